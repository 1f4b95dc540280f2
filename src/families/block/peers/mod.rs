//! Peers: other implementations over the same images and the same offsets,
//! measured in turns with ours and with bare system calls, the floor.
//!
//! `cargo bench --bench block --features peers -- --subject all` prints the table.

mod args;
mod costs;
mod floor;
mod imago;
mod layout;
mod qcow2_rs;
mod qemu;
mod rows;
mod table;

pub use args::asked;
pub use costs::register_rows;
pub use floor::Floor;
pub use imago::Imago;
pub use qcow2_rs::Qcow2Rs;
pub use table::Comparison;

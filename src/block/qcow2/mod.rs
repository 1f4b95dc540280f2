//! qcow2 images, versions 2 and 3.
//!
//! The format is described in qemu's `docs/interop/qcow2.txt`; the modules
//! cite its sections by name.
//!
//! One [`Image`] owns all metadata. It maps guest ranges to [`Extent`]s, plain
//! data on which its synchronous methods act, and a [`QcowDisk`] over any
//! engine; both may be at work on one image at the same time. Readers of mappings in memory never exclude each other.
//!
//! | module | what it has |
//! |---|---|
//! | `types`, `entry`, `width`, `header`, `extension`, `snapshot` | bit layouts, pure |
//! | `paged`, `cache`, `refcount`, `survey`, `sync` | metadata in memory, what lies where, and who may touch it |
//! | `table`, `alloc`, `flush` | bringing tables in, making them grow, writing them in order |
//! | `map`, `plan`, `read`, `write`, `discard`, `compress`, `compressed` | what a guest asks for |
//! | `disk`, `disk_jobs`, `disk_port`, `disk_start`, `disk_read`, `disk_write` | the same over any engine |
//! | `options`, `backing`, `open`, `adopt`, `create` | how an image comes into being |
//! | `snapshot_ops`, `resize`, `check`, `overlap`, `repair`, `salvage` | what an administrator asks for |

mod adopt;
mod alloc;
mod backing;
mod cache;
mod check;
mod compress;
mod compressed;
mod counts;
mod create;
mod discard;
mod disk;
mod disk_jobs;
mod disk_port;
mod disk_read;
mod disk_start;
mod disk_write;
mod entry;
mod extension;
mod flush;
mod header;
mod image;
mod map;
mod open;
mod options;
mod overlap;
mod paged;
mod plan;
mod read;
mod refcount;
mod repair;
mod resize;
mod salvage;
mod snapshot;
mod snapshot_ops;
mod survey;
mod sync;
mod table;
mod types;
mod width;
mod write;

pub use backing::{Backing, Opener};
pub use check::Report;
pub use create::{CreateOptions, Preallocation, create};
pub use disk::QcowDisk;
pub use entry::Compressed;
pub use extension::Extension;
pub use header::Header;
pub use image::Image;
pub use map::{Extent, Source};
pub use open::{FileOpener, Parts};
pub use options::{CacheSettings, OpenOptions};
pub use snapshot::Snapshot;
pub use sync::ReadTicket;
pub use types::{Compression, Geometry, GuestOffset, HostOffset};

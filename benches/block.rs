//! The block suite as a bench target: `cargo bench --bench block`. With the
//! feature `peers`, `-- --subject all` compares it with others instead:
//! `--subject NAME,NAME` takes some of them, `--rounds N` says how often, and
//! `-- --subject all --help` what else. The rows are scenarios as well then:
//! `block::rows::`. `-- --growth` prints what larger disks and more threads cost.

mod moved;

fn main() -> std::process::ExitCode {
    moved::keep();
    #[cfg(feature = "peers")]
    if let Some(code) = peers::main() {
        return code;
    }
    if std::env::args().any(|arg| arg == "--growth") {
        return growth();
    }
    wallgrind::main(|suite| {
        wallgrind::families::block::register(suite);
        #[cfg(feature = "peers")]
        wallgrind::families::block::peers::register_rows(suite);
    })
}

/// Prints the table of sizes.
fn growth() -> std::process::ExitCode {
    use std::io::Write;
    let table = wallgrind::families::block::Growth { rounds: 21 }.table();
    match table.and_then(|table| Ok(write!(std::io::stdout(), "{table}")?)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to be told when this fails as well.
            let _ = writeln!(std::io::stderr(), "Error: {error:#}");
            std::process::ExitCode::from(101)
        }
    }
}

#[cfg(feature = "peers")]
mod peers {
    use std::io::Write;
    use std::process::ExitCode;

    use wallgrind::families::block::peers::asked;

    /// Compares, if that was asked for.
    pub fn main() -> Option<ExitCode> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let comparison = match asked(&args) {
            Ok(comparison) => comparison?,
            Err(error) => {
                // Nothing is left to be told when this fails as well.
                let _ = error.print();
                return Some(ExitCode::from(if error.use_stderr() { 101 } else { 0 }));
            }
        };
        let printed = comparison.table().and_then(|table| Ok(write!(std::io::stdout(), "{table}")?));
        Some(match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "Error: {error:#}");
                ExitCode::from(101)
            }
        })
    }
}

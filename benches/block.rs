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
    if let Some(code) = growth() {
        return code;
    }
    wallgrind::main(|suite| {
        wallgrind::families::block::register(suite);
        #[cfg(feature = "peers")]
        wallgrind::families::block::peers::register_rows(suite);
    })
}

/// Prints the table of sizes, if that was asked for.
fn growth() -> Option<std::process::ExitCode> {
    use std::io::Write;
    let args: Vec<String> =
        std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let table = match wallgrind::families::block::Growth::asked(&args) {
        Ok(growth) => growth?.table(),
        Err(error) => Err(error),
    };
    Some(match table.and_then(|table| Ok(write!(std::io::stdout(), "{table}")?)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            // Nothing is left to be told when this fails as well.
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            std::process::ExitCode::from(101)
        }
    })
}

#[cfg(feature = "peers")]
mod peers {
    use std::io::Write;
    use std::process::ExitCode;

    use wallgrind::families::block::peers::asked;

    /// Compares, if that was asked for.
    pub fn main() -> Option<ExitCode> {
        let args: Vec<String> =
            std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
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

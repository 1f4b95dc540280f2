//! The block suite as a bench target: `cargo bench --bench block`. With the
//! feature `peers`, `-- --subject all` compares it with others instead:
//! `--subject NAME,NAME` takes some of them, `--rounds N` says how often.
//! `-- --growth` prints what larger disks and more threads cost.

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
    wallgrind::main(wallgrind::families::block::register)
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

    use wallgrind::anyhow::{Context, Result};
    use wallgrind::families::block::peers::Comparison;

    /// Rounds where nothing is said.
    const ROUNDS: usize = 15;

    /// Compares, if that was asked for.
    pub fn main() -> Option<ExitCode> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        if !args.iter().any(|arg| arg == "--subject" || arg.starts_with("--subject=")) {
            return None;
        }
        let printed = comparison(&args)
            .and_then(|comparison| comparison.table())
            .and_then(|table| Ok(write!(std::io::stdout(), "{table}")?));
        Some(match printed {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                // Nothing is left to be told when this fails as well.
                let _ = writeln!(std::io::stderr(), "Error: {error:#}");
                ExitCode::from(101)
            }
        })
    }

    fn comparison(args: &[String]) -> Result<Comparison> {
        let mut comparison = Comparison { subjects: Vec::new(), rounds: ROUNDS, filter: String::new() };
        let mut words = args.iter().flat_map(|arg| arg.splitn(2, '='));
        while let Some(word) = words.next() {
            match word {
                "--bench" => {}
                "--subject" => {
                    let names = words.next().context("--subject wants names, or all")?;
                    let names = names.split(',').filter(|name| *name != "all");
                    comparison.subjects = names.map(str::to_owned).collect();
                }
                "--rounds" => {
                    let rounds = words.next().context("--rounds wants a number")?;
                    comparison.rounds = rounds.parse().context("--rounds wants a number")?;
                }
                filter => comparison.filter = filter.to_owned(),
            }
        }
        Ok(comparison)
    }
}

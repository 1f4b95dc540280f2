//! What the command line asks of the comparison.
//!
//! Neighbours: `table` does it; a bench target hands over its arguments.

use std::path::PathBuf;

use clap::Parser;

use super::table::Comparison;

/// Others beside ours, measured in turns.
#[derive(Debug, Parser)]
#[command(
    disable_version_flag = true,
    args_override_self = true,
    help_template = "{usage-heading} cargo bench --bench block --features peers -- --subject NAMES [OPTIONS] \
                     [FILTER]\n\n{all-args}"
)]
struct Args {
    /// The rows whose labels contain this; all without it
    filter: Option<String>,
    /// Names with commas between them, or all
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    subject: Vec<String>,
    /// Turns of each subject
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Where the images are made, which says on what file system
    #[arg(long, value_name = "DIR", env = "WALLGRIND_SCRATCH_DIR")]
    scratch_dir: Option<PathBuf>,
    /// Times only: neither system calls nor instructions
    #[arg(long)]
    times_only: bool,
    /// cargo bench passes this
    #[arg(long, hide = true)]
    bench: bool,
    /// What strace is given to run: one row of one subject
    #[arg(long, hide = true, value_names = ["SUBJECT", "ROW"], num_args = 2)]
    one_turn: Vec<String>,
}

/// What the arguments of a bench target, without the program's name, ask for; `None` where nothing
/// is to be compared.
///
/// # Errors
/// An argument that is none, or has no such value.
pub fn asked(args: &[String]) -> Result<Option<Comparison>, clap::Error> {
    let ours =
        |arg: &String| ["--subject", "--one-turn"].contains(&arg.as_str()) || arg.starts_with("--subject=");
    if !args.iter().any(ours) {
        return Ok(None);
    }
    let args = Args::try_parse_from(std::iter::once("block".to_owned()).chain(args.iter().cloned()))?;
    let mut one_turn = args.one_turn.into_iter();
    Ok(Some(Comparison {
        subjects: args.subject.into_iter().filter(|name| name != "all").collect(),
        rounds: args.rounds.into(),
        filter: args.filter.unwrap_or_default(),
        folder: args.scratch_dir,
        costs: !args.times_only,
        one_turn: one_turn.next().zip(one_turn.next()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Option<Comparison>, clap::Error> {
        asked(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_filter_is_a_filter_and_an_unknown_flag_is_an_error() {
        let found = of("--bench --subject all zlib --scratch-dir /tmp").expect("valid").expect("asked for");
        assert_eq!((found.filter.as_str(), found.rounds), ("zlib", 21));
        assert!(found.subjects.is_empty() && found.costs);
        assert_eq!(found.folder, Some(PathBuf::from("/tmp")));
        let found = of("--subject=imago,qemu --rounds 3 --times-only").expect("valid").expect("asked for");
        assert_eq!((found.subjects.len(), found.rounds, found.costs), (2, 3, false));
        assert!(of("--bench zlib").expect("valid").is_none(), "nothing is compared");
        let wrong = [
            "--subject all --scratch DIR",
            "--subject all --rounds 0",
            "--subject all a b",
            "--subject",
            "--subject all --shard 1/2",
        ];
        for line in wrong {
            assert!(of(line).is_err(), "{line}");
        }
    }
}

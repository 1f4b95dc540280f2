//! The commands `completions` and `man`: what shells and `man` know of the
//! command line, made of its own definition.
//!
//! Neighbours: `commands` has the definition of `wallgrind`, `args` that of a
//! bench target.

use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::Args;
use super::exchange::{make_dir, write};
use super::term::print;
use crate::error::{Error, Kind, Result};

/// Prints the script by which a shell completes `wallgrind`.
///
/// # Errors
/// Standard output cannot be written.
pub fn completions(definition: Command, shell: Shell) -> Result<()> {
    print(&script(definition, shell))
}

fn script(mut definition: Command, shell: Shell) -> String {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut definition, "wallgrind", &mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Prints the manual page of `wallgrind`, or writes those of all its commands
/// and of bench targets into a folder.
///
/// # Errors
/// A page cannot be written; the error names it.
pub fn man(definition: Command, folder: Option<&Path>) -> Result<()> {
    let pages = pages(definition)?;
    let Some(folder) = folder else {
        // The command's own page is the first.
        return print(pages.first().map_or("", |(_, text)| text));
    };
    make_dir(folder)?;
    for (name, text) in &pages {
        write(&folder.join(name), text)?;
    }
    print(&format!("{} pages in {}\n", pages.len(), folder.display()))
}

/// The file name and the text of each page, that of `wallgrind` first.
fn pages(definition: Command) -> Result<Vec<(String, String)>> {
    let mut definition = definition.disable_help_subcommand(true);
    definition.build();
    let mut all = Vec::new();
    gather(definition, &mut all)?;
    let bench = Args::command().name("wallgrind-bench").about(
        "run, measure and compare the scenarios of a bench target: cargo bench -- [OPTIONS] [FILTER]...",
    );
    gather(bench, &mut all)?;
    Ok(all)
}

fn gather(command: Command, all: &mut Vec<(String, String)>) -> Result<()> {
    let below: Vec<Command> = command.get_subcommands().filter(|sub| !sub.is_hide_set()).cloned().collect();
    let man = Man::new(command);
    let mut bytes = Vec::new();
    man.render(&mut bytes)
        .map_err(|error| Error::new(Kind::Io, "a manual page cannot be made").source(error))?;
    all.push((man.get_filename(), String::from_utf8_lossy(&bytes).into_owned()));
    below.into_iter().try_for_each(|sub| gather(sub, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::definition;

    /// Names of the commands below one, and its flags, at any depth.
    fn names(command: &Command, subcommands: &mut Vec<String>, flags: &mut Vec<String>) {
        let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
        flags.extend(shown.filter_map(|arg| arg.get_long()).map(str::to_string));
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            subcommands.push(sub.get_name().to_string());
            names(sub, subcommands, flags);
        }
    }

    fn of(command: &Command) -> (Vec<String>, Vec<String>) {
        let (mut subcommands, mut flags) = (Vec::new(), Vec::new());
        names(command, &mut subcommands, &mut flags);
        (subcommands, flags)
    }

    #[test]
    fn each_shell_completes_every_command_and_flag() {
        let (subcommands, flags) = of(&definition());
        assert!(subcommands.len() > 15 && flags.len() > 30, "{subcommands:?} {flags:?}");
        for shell in [Shell::Bash, Shell::Elvish, Shell::Fish, Shell::PowerShell, Shell::Zsh] {
            let text = script(definition(), shell);
            for name in subcommands.iter().chain(&flags) {
                assert!(text.contains(name.as_str()), "{shell} does not complete {name}");
            }
            // As a flag, and not a word of some help.
            let dashes = if shell == Shell::Fish { "-l " } else { "--" };
            for flag in &flags {
                assert!(text.contains(&format!("{dashes}{flag}")), "{shell} has no flag {flag}");
            }
        }
    }

    #[test]
    fn the_manual_pages_name_every_command_and_flag() {
        let pages = pages(definition()).expect("pages");
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[0], "wallgrind.1");
        let text = |name: &str| {
            let page = pages.iter().find(|(known, _)| known == name);
            // Roff writes a hyphen that is no line break so.
            page.map(|(_, text)| text.replace("\\-", "-")).unwrap_or_else(|| panic!("no {name}: {names:?}"))
        };
        for sub in definition().get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let page = text(&format!("wallgrind-{}.1", sub.get_name()));
            assert!(text("wallgrind.1").contains(&format!("wallgrind-{}", sub.get_name())));
            for flag in sub.get_arguments().filter(|arg| !arg.is_hide_set()).filter_map(|a| a.get_long()) {
                assert!(page.contains(&format!("--{flag}")), "{}: --{flag}", sub.get_name());
            }
        }
        let bench = text("wallgrind-bench.1");
        for flag in of(&Args::command()).1 {
            assert!(bench.contains(&format!("--{flag}")), "--{flag}");
        }
    }

    /// Complete: what is not hidden is there, with a word about it. Short: it fits two screens.
    fn is_complete_and_short(command: Command, most_lines: usize) {
        let (subcommands, flags) = (command.clone(), command.clone());
        let text = command.term_width(100).render_help().to_string();
        for sub in subcommands.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            assert!(sub.get_about().is_some(), "{} says nothing", sub.get_name());
            assert!(text.contains(&format!("\n  {} ", sub.get_name())), "no {} in {text}", sub.get_name());
        }
        for arg in flags.get_arguments().filter(|arg| !arg.is_hide_set()) {
            assert!(arg.get_help().is_some(), "{} says nothing", arg.get_id());
            if let Some(flag) = arg.get_long() {
                assert!(text.contains(&format!("--{flag}")), "no --{flag} in {text}");
            }
        }
        let lines = text.lines().count();
        assert!(lines <= most_lines, "{lines} lines:\n{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }

    #[test]
    fn help_is_complete_and_short() {
        is_complete_and_short(definition(), 30);
        is_complete_and_short(Args::command(), 80);
        for sub in definition().get_subcommands() {
            is_complete_and_short(sub.clone(), 45);
        }
    }
}

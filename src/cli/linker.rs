//! The `wallgrind` command as the linker of a build: it links as the one
//! before would, and then again in other orders, while the compiler's files
//! are there. One build gives all layouts, for the price of a link each.
//!
//! Neighbours: `commands` asks first whether this is such a call, `revision`
//! starts cargo with it, `store::layouts` has the files.

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::process::{Command, ExitCode};

use super::term::say;
use crate::error::{Error, Kind, Result};
use crate::store::{LEAST_LAYOUTS, make_layouts};

/// How many layouts are made; set only where this is the linker.
pub const LAYOUTS: &str = "WALLGRIND_LAYOUTS";

/// The linker that does the work, as a compiler's front end takes arguments.
pub const LINKER: &str = "WALLGRIND_LINKER";

/// How many layouts a build may have.
pub const COUNTS: RangeInclusive<u32> = LEAST_LAYOUTS..=256;

/// Ends this process as a linker would, if it was started as one.
pub fn as_linker(arguments: &[OsString]) -> Option<ExitCode> {
    let count = std::env::var(LAYOUTS).ok()?;
    // The commands of `wallgrind` have no `-o`; a linker always has.
    let output = output(arguments)?;
    let linker = std::env::var_os(LINKER).unwrap_or_else(|| "cc".into());
    let is_wanted = wants_layouts(output, arguments, std::env::var_os("CARGO_BIN_NAME").is_some());
    let is_linked = link(&linker, arguments, is_wanted.then_some((Path::new(output), &count)))
        .unwrap_or_else(|error| {
            say(&error.report());
            false
        });
    // What the linker says for itself, rustc shows; it asks for no more than yes or no.
    Some(if is_linked { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Links, and makes as many layouts of what comes of it as are wanted; whether the linker was content.
fn link(linker: &OsStr, arguments: &[OsString], layouts: Option<(&Path, &str)>) -> Result<bool> {
    let layouts = layouts.map(|(output, count)| Ok((output, count_of(count)?))).transpose()?;
    let links =
        |arguments: &[OsString]| Command::new(linker).args(arguments).status().map(|status| status.success());
    let is_linked = links(arguments).map_err(|error| {
        let text = format!("the linker {} cannot be started", linker.to_string_lossy());
        Error::new(Kind::Missing, text).hint(format!("name another in {LINKER}")).source(error)
    })?;
    let Some((output, count)) = layouts.filter(|_| is_linked) else { return Ok(is_linked) };
    let again = |number, path: &Path| match links(&layout(arguments, output.as_os_str(), number, path))? {
        true => Ok(()),
        false => Err(io::Error::other(format!("{} failed", linker.to_string_lossy()))),
    };
    make_layouts(output, count, again).map_err(|error| {
        Error::new(Kind::Missing, format!("no other layout of {} can be linked", output.display()))
            .hint(
                "layouts need a linker with --shuffle-sections: leave them out, or link with rust-lld or lld",
            )
            .source(error)
    })?;
    Ok(true)
}

/// The arguments that link to another path, with the code in the order that
/// `number` draws, and without what only a debugger reads.
fn layout(arguments: &[OsString], output: &OsStr, number: u32, path: &Path) -> Vec<OsString> {
    let elsewhere = arguments.iter().map(|arg| if arg == output { path.into() } else { arg.clone() });
    let shuffled = [
        format!("-Wl,--shuffle-sections=.text*={number}"),
        // Tables and constants lie in another order as well.
        format!("-Wl,--shuffle-sections=.rodata*={number}"),
        "-Wl,--strip-all".to_string(),
    ];
    elsewhere.chain(shuffled.map(OsString::from)).collect()
}

/// Whether what is linked is measured: a target in `deps`, no library for the
/// compiler, no program of the package.
fn wants_layouts(output: &OsStr, arguments: &[OsString], is_bin: bool) -> bool {
    let is_target = Path::new(output).parent().is_some_and(|folder| folder.ends_with("deps"));
    is_target && !is_bin && !arguments.iter().any(|arg| arg == "-shared")
}

/// What is linked, of a linker's arguments.
fn output(arguments: &[OsString]) -> Option<&OsStr> {
    let at = arguments.iter().position(|arg| arg == "-o")?;
    arguments.get(at + 1).map(OsString::as_os_str)
}

fn count_of(text: &str) -> Result<u32> {
    text.parse().ok().filter(|count| COUNTS.contains(count)).ok_or_else(|| {
        Error::new(Kind::Usage, format!("{LAYOUTS}={text}: that many layouts cannot be made")).hint(format!(
            "give a number from {} to {}",
            COUNTS.start(),
            COUNTS.end()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn only_what_is_measured_gets_layouts() {
        let wants = |line: &str, is_bin| {
            let arguments = words(line);
            output(&arguments).is_some_and(|output| wants_layouts(output, &arguments, is_bin))
        };
        assert!(wants("-m64 a.o -o /t/release/deps/tls-1 -pie", false));
        assert!(!wants("-m64 a.o -o /t/release/deps/wallgrind-1 -pie", true));
        assert!(!wants("-m64 a.o -shared -o /t/release/deps/libserde_derive-1.so", false));
        assert!(!wants("-m64 a.o -o /t/release/build/ring-1/build_script_build-1", false));
        assert!(!wants("baselines list", false));
    }

    #[test]
    fn a_layout_is_linked_as_the_first_but_elsewhere_in_another_order() {
        let first = words("-m64 a.o -o deps/tls-1 -pie");
        let again = layout(&first, OsStr::new("deps/tls-1"), 7, Path::new("there/7"));
        let expected = "-m64 a.o -o there/7 -pie -Wl,--shuffle-sections=.text*=7 \
                        -Wl,--shuffle-sections=.rodata*=7 -Wl,--strip-all";
        assert_eq!(again, words(expected));
    }

    #[test]
    fn a_number_of_layouts_that_makes_no_sense_is_refused() {
        assert_eq!(count_of("32").expect("fine"), 32);
        for bad in ["", "1", "7", "-3", "many", "100000"] {
            let error = count_of(bad).expect_err(bad).report();
            assert!(error.contains("WALLGRIND_LAYOUTS") && error.contains("8 to 256"), "{error}");
        }
    }
}

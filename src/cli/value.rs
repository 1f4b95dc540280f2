//! Values of flags and variables, each with one parser, which says what it
//! would have taken.
//!
//! Neighbours: `resolve` adds where the value came from.

use std::time::Duration;

use crate::plan::{CacheGeometry, Mode, Region};
use crate::store::MOST_SHARDS;

/// What is wrong with a value: a fragment, to be read after its source.
pub type Wrong = String;

/// A duration: `500ms`, `2s`, `1m 30s`, or a number of seconds.
pub fn duration(text: &str) -> Result<Duration, Wrong> {
    let wrong = || format!("{text:?} is not a duration such as 500ms, 2s or 1m30s");
    let parsed = match text.parse::<f64>() {
        Ok(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?,
        Err(_) => {
            let parsed: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
            Duration::try_from(parsed).map_err(|_| wrong())?
        }
    };
    if parsed.is_zero() {
        return Err(format!("{text:?} is no time at all: give a duration such as 500ms"));
    }
    Ok(parsed)
}

/// A duration, or `none` for no limit.
pub fn limit(text: &str) -> Result<Duration, Wrong> {
    if text == "none" {
        return Ok(Duration::MAX);
    }
    duration(text).map_err(|wrong| format!("{wrong}, or none"))
}

/// `MIN` or `MIN..MAX`. With `MIN` alone the most is `most`, or `MIN` if that is more.
pub fn samples(text: &str, most: usize) -> Result<(usize, usize), Wrong> {
    let form = "give at least one sample, as MIN or MIN..MAX, such as 20 or 20..500";
    let number = |part: &str| match part.trim().parse::<usize>() {
        Ok(0) => Err(format!("{text:?} asks for no samples: {form}")),
        Ok(n) => Ok(n),
        Err(_) => Err(format!("{text:?} is not a range of samples: {form}")),
    };
    let (min, max) = match text.split_once("..") {
        Some((min, max)) => (number(min)?, number(max.trim_start_matches('='))?),
        None => number(text).map(|min| (min, min.max(most)))?,
    };
    if min > max {
        return Err(format!("{text:?} is upside down: {form}"));
    }
    Ok((min, max))
}

/// `yes` or `no`, in the spellings that people use.
pub fn yes_or_no(text: &str) -> Result<bool, Wrong> {
    match text.to_ascii_lowercase().as_str() {
        "yes" | "true" | "1" | "on" => Ok(true),
        "no" | "false" | "0" | "off" => Ok(false),
        _ => Err(format!("{text:?} is neither yes nor no")),
    }
}

/// A number from 1 on.
pub fn count(text: &str) -> Result<u32, Wrong> {
    match text.parse() {
        Ok(0) => Err("0 is none at all: give a number from 1 on".into()),
        Ok(n) => Ok(n),
        Err(_) => Err(format!("{text:?} is not a number from 1 on")),
    }
}

/// A whole number from 0 on.
pub fn number(text: &str) -> Result<u64, Wrong> {
    text.parse().map_err(|_| format!("{text:?} is not a whole number"))
}

/// `K/N`, one of N parts, counted from 1.
pub fn shard(text: &str) -> Result<(usize, usize), Wrong> {
    let form = "give K/N, the K-th of N parts, such as 1/4";
    let part = |part: &str| part.trim().parse::<usize>().map_err(|_| format!("{text:?} is not K/N: {form}"));
    let (number, of) = text.split_once('/').ok_or_else(|| format!("{text:?} is not K/N: {form}"))?;
    match (part(number)?, part(of)?) {
        (_, 0) => Err(format!("{text:?} is a part of nothing: {form}")),
        (_, of) if of > MOST_SHARDS => Err(format!("{text:?} has more than {MOST_SHARDS} parts: {form}")),
        (0, of) => Err(format!("{text:?}: parts are counted from 1 to {of}")),
        (number, of) if number > of => Err(format!("{text:?}: there are parts 1 to {of} only")),
        both => Ok(both),
    }
}

/// A share between nothing and all, such as `1%` or `0.01`.
pub fn share(text: &str) -> Result<f64, Wrong> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01));
    match number.trim().parse::<f64>().map(|value| value * scale) {
        Ok(share) if share > 0.0 && share < 1.0 => Ok(share),
        _ => Err(format!("{text:?} is not a share between 0 and 100 %, such as 1% or 0.01")),
    }
}

/// A processor, by its number.
pub fn cpu(text: &str) -> Result<usize, Wrong> {
    text.parse().map_err(|_| format!("{text:?} is not the number of a processor"))
}

/// One of a few words, with a suggestion when the word is near one of them.
pub fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, Wrong> {
    if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
        return Ok(*value);
    }
    let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let near = super::names::nearest(text, all.iter().copied());
    let guess = near.map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
    Err(format!("{text:?} is not one of {}{guess}", all.join(", ")))
}

/// A meter.
pub fn mode(text: &str) -> Result<Mode, Wrong> {
    word(text, &[("walltime", Mode::Walltime), ("cachegrind", Mode::Cachegrind), ("dhat", Mode::Dhat)])
}

/// A way to tell the region apart.
pub fn region(text: &str) -> Result<Region, Wrong> {
    let words = [
        ("auto", Region::Auto),
        ("requests", Region::Requests),
        ("difference", Region::Difference),
        ("toggle", Region::Toggle),
    ];
    word(text, &words)
}

/// Whether to keep to the processor features that Valgrind shows.
pub fn cpu_features(text: &str) -> Result<bool, Wrong> {
    word(text, &[("native", false), ("valgrind", true)])
}

/// The caches that are simulated when no sizes are given: fixed, so that
/// counts do not depend on the machine.
const CACHES: [CacheGeometry; 3] = [
    CacheGeometry { size: 32_768, ways: 8, line: 64 },
    CacheGeometry { size: 32_768, ways: 8, line: 64 },
    CacheGeometry { size: 8_388_608, ways: 16, line: 64 },
];

/// `I1:D1:LL`, each `SIZE,WAYS,LINE`; or yes or no.
pub fn caches(text: &str) -> Result<Option<[CacheGeometry; 3]>, Wrong> {
    if let Ok(wanted) = yes_or_no(text) {
        return Ok(wanted.then_some(CACHES));
    }
    let wrong = || {
        format!(
            "{text:?} is not I1:D1:LL, each SIZE,WAYS,LINE in bytes, such as \
             32768,8,64:32768,8,64:8388608,16,64"
        )
    };
    let parsed: Option<Vec<CacheGeometry>> = text.split(':').map(cache).collect();
    let caches: [CacheGeometry; 3] = parsed.ok_or_else(wrong)?.try_into().map_err(|_| wrong())?;
    Ok(Some(caches))
}

fn cache(text: &str) -> Option<CacheGeometry> {
    let numbers: Vec<u64> = text.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
    let [size, ways, line] = numbers[..] else { return None };
    // What Valgrind demands: full sets of whole lines, and powers of two.
    let set = ways.checked_mul(line)?;
    let whole = ways > 0 && line.is_power_of_two() && size > 0 && size.is_multiple_of(set);
    (whole && (size / set).is_power_of_two()).then_some(CacheGeometry { size, ways, line })
}

/// A name that is used as one folder's: no separators, no dots in front.
pub fn folder_name(text: &str) -> Result<String, Wrong> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if !text.is_empty() && text.len() <= 128 && text.chars().all(fits) && !text.starts_with('.') {
        return Ok(text.to_string());
    }
    Err(format!("{text:?} cannot name a folder: use up to 128 of a-z, A-Z, 0-9, `.`, `_` and `-`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units_or_are_seconds() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("0.5s"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(limit("none"), Ok(Duration::MAX));
        for bad in ["", "x", "-1", "-2s", "0", "0s", "inf", "nan", "1e300", "5 parsecs"] {
            assert!(duration(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn shares_have_a_sign_of_per_cent_or_are_fractions() {
        assert_eq!((share("1%"), share("0.5 %"), share("0.02")), (Ok(0.01), Ok(0.005), Ok(0.02)));
        for bad in ["", "0", "1", "100%", "-1%", "x%", "nan", "inf"] {
            assert!(share(bad).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn sample_ranges() {
        assert_eq!(samples("20", 1000), Ok((20, 1000)));
        assert_eq!(samples("2000", 1000), Ok((2000, 2000)));
        assert_eq!(samples("5..50", 1000), Ok((5, 50)));
        for bad in ["0", "0..5", "5..", "..5", "5..0", "9..3", "x", "-1"] {
            assert!(samples(bad, 1000).is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn parts_are_counted_from_one() {
        assert_eq!((shard("1/1"), shard("4/4"), shard("2 / 64")), (Ok((1, 1)), Ok((4, 4)), Ok((2, 64))));
        for bad in [
            "",
            "x",
            "0/4",
            "5/4",
            "1/0",
            "0/0",
            "1",
            "/",
            "1/",
            "/4",
            "-1/4",
            "1/4/2",
            "1/99999999",
            "1.0/2",
        ] {
            assert!(shard(bad).is_err_and(|wrong| wrong.contains(&format!("{bad:?}"))), "{bad:?} was taken");
        }
    }

    #[test]
    fn caches_are_what_valgrind_takes() {
        assert_eq!(caches("yes"), Ok(Some(CACHES)));
        assert_eq!(caches("no"), Ok(None));
        assert_eq!(caches("32768,8,64:32768,8,64:8388608,16,64"), Ok(Some(CACHES)));
        for bad in ["", "1,2,3", "32768,8,64:32768,8,64", "0,8,64:0,8,64:0,8,64", "a,b,c:1,1,1:1,1,1"] {
            assert!(caches(bad).is_err(), "{bad:?} was taken");
        }
        assert!(caches("32768,0,64:32768,8,64:8388608,16,64").is_err());
        assert!(caches("32768,18446744073709551615,64:32768,8,64:8388608,16,64").is_err());
    }

    #[test]
    fn a_word_that_is_near_is_suggested() {
        assert!(mode("cachegrid").is_err_and(|wrong| wrong.contains("did you mean cachegrind?")));
        assert!(mode("zzz").is_err_and(|wrong| !wrong.contains("did you mean")));
    }

    #[test]
    fn folder_names_stay_inside_their_folder() {
        assert!(folder_name("20261130T044406Z-a_b.c").is_ok());
        for bad in ["", "..", "a/b", ".hidden", "a b", "ä"] {
            assert!(folder_name(bad).is_err(), "{bad:?} was taken");
        }
    }
}

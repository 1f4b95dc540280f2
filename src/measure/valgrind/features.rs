//! Processor features: what a program sees, natively or under Valgrind, which
//! hides those whose instructions it does not know. Cryptography takes other
//! code paths then.
//!
//! Neighbours: `child` reports what it sees, `readings` compares.

/// The environment variable by which aws-lc is told to leave features unused.
pub(super) const AWS_LC_VARIABLE: &str = "OPENSSL_ia32cap";

macro_rules! detected {
    ($detect:ident: $($name:tt)*) => {
        [$(($name, std::arch::$detect!($name))),*]
    };
}

/// The features, among those that cryptography and compression choose code
/// paths by, that this process sees; sorted.
pub fn seen() -> Vec<String> {
    #[cfg(target_arch = "x86_64")]
    let all = detected!(is_x86_feature_detected:
        "adx" "aes" "avx" "avx2" "avx512bw" "avx512f" "avx512ifma" "avx512vbmi" "avx512vl" "bmi1" "bmi2"
        "fma" "gfni" "lzcnt" "movbe" "pclmulqdq" "popcnt" "rdrand" "rdseed" "sha" "sse4.2" "ssse3"
        "vaes" "vpclmulqdq");
    #[cfg(target_arch = "aarch64")]
    let all = detected!(is_aarch64_feature_detected:
        "aes" "crc" "dotprod" "fp16" "lse" "pmull" "rand" "sha2" "sha3" "sve" "sve2");
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name.to_string()).collect()
}

/// Features that Valgrind 3.19 to 3.27 hides on x86-64, with their bits in
/// leaf 7 of CPUID: `ebx` below, `ecx` from bit 32 on (Intel's manual, volume
/// 2A, "CPUID").
const HIDDEN: [(&str, u32); 10] = [
    ("avx512f", 16),
    ("adx", 19),
    ("avx512ifma", 21),
    ("sha", 29),
    ("avx512bw", 30),
    ("avx512vl", 31),
    ("avx512vbmi", 32 + 1),
    ("gfni", 32 + 8),
    ("vaes", 32 + 9),
    ("vpclmulqdq", 32 + 10),
];

/// What makes a program use natively only what Valgrind shows, as far as
/// providers allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// The variable to be set before the program starts: providers look at it
    /// once, when they are first used or even before `main`.
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// What is capped and what is not, for a note beside every number.
    pub note: String,
}

/// How to cap the processor features of a wall-time run to those that Valgrind
/// shows. `None` where Valgrind hides nothing that this processor has.
pub fn cap() -> Option<Cap> {
    cap_of(&seen())
}

fn cap_of(native: &[String]) -> Option<Cap> {
    let hidden: Vec<_> = HIDDEN.iter().filter(|(name, _)| native.iter().any(|n| n == name)).collect();
    if hidden.is_empty() {
        return None;
    }
    let mask = hidden.iter().fold(0_u64, |mask, (_, bit)| mask | 1 << bit);
    let names: Vec<&str> = hidden.iter().map(|(name, _)| *name).collect();
    Some(Cap {
        variable: AWS_LC_VARIABLE,
        value: format!("~0x0:~{mask:#x}"),
        note: format!(
            "without {} in aws-lc-rs only: ring, graviola, RustCrypto and the standard library ask the \
             processor themselves, and cannot be capped",
            names.join(", ")
        ),
    })
}

/// Features of `native` that are not in `seen`.
pub(super) fn hidden(native: &[String], seen: &[String]) -> Vec<String> {
    native.iter().filter(|name| !seen.contains(name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_has_the_bits_of_what_the_processor_has() {
        let native = ["aes", "adx", "sha", "vaes"].map(String::from);
        let cap = cap_of(&native).expect("three are hidden");
        assert_eq!(cap.value, format!("~0x0:~{:#x}", 1_u64 << 19 | 1 << 29 | 1 << 41));
        assert!(cap.note.starts_with("without adx, sha, vaes in aws-lc-rs only"));
        assert_eq!(cap_of(&["aes".to_string()]), None);
        assert_eq!(hidden(&native, &["aes".to_string()]), ["adx", "sha", "vaes"]);
    }
}

//! Processor features: what a program sees, natively or under Valgrind, which
//! hides those whose instructions it does not know. Cryptography takes other
//! code paths then.
//!
//! Neighbours: `child` reports what it sees, `readings` compares.

/// The environment variable by which aws-lc is told to leave features unused.
pub const AWS_LC_VARIABLE: &str = "OPENSSL_ia32cap";

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

/// Features of `native` that are not in `seen`.
pub(super) fn hidden(native: &[String], seen: &[String]) -> Vec<String> {
    native.iter().filter(|name| !seen.contains(name)).cloned().collect()
}

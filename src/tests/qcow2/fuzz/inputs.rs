//! Inputs with which the fuzzer found something, as hexadecimal digits.
//!
//! Neighbours: `play` takes them; `found` has what they showed as the shortest way there.

/// What each of them led to, and the bytes.
pub const KEPT: &[(&str, &str)] = &[
    (
        "growth showed what a table mapped beyond the end",
        "0af1e9e22435529c6bb5fba647c40626dbec858d3a1a4035e2c0bdd301bb4424f1709d01000000000000044261\
         eee3389d347c",
    ),
    (
        "two guest clusters shared one, and the flag of the second stays unset",
        "0980dae788fe74cdcb95e89716c80c41db5d96850c1339cce7cd5762010000000000000267b55d12c846e28b5f\
         48ab89d465723d3356710100a6f6cf74ff4328efe45b06b8be014cb2218121bc84b2fd855c80fa5a195367b0dc\
         4bfa13bad390e977614d799a247438bdcd1d361f120e82a7c19ad96100170f767090c3e37ead50b892400a3631\
         3806b8e5c1240a9dd4dbb48f75470b219527b65eda9048f17a331667d4c5ed16d07aa5392f91",
    ),
    (
        "a snapshot was cut off, and the image opened for repair",
        "0e3f22e7f8047912134d29445df7089c4d290e3f22e7f8047912134d29445df7089c4d29445df7089c0b39f1fa\
         b5768b7b2f1a91bbe091cdbbb087984cbe6a97bd8c31a5ba7f61944a4ca91073bba7d387169e0000445df7089c\
         0b39f1fab5767584d0e491bbe091cdbbb087984cbe6a97bd8c31b087984cbe6a97bd8c31a5ba7f61944a4ca910\
         73bba7d38716a5ba7f61944a4ca91073bba7d387169e00000091cdbbb0870000000000000066e7893fdd44cfc0\
         f9efe369a0c6292382",
    ),
    (
        "repaired and clean, but a compressed cluster that does not decode marks it corrupt",
        "0282753ce6b1f7be800600e5e7c3bc01529519ff7528c25b0c542a5bd768ab060c0302c6c37c07f7cefeb90cdd\
         134dc637bdcdaffb51e0c281dd2a6e9dc2804b66ef169e7431c4c621e7d05a0d1ac44f3250cef73c779c445a79\
         dce18898203f043f01000000cb176b95cdfd0d13d1cf1d205a46306588fcca153ec2090f0c0081c29ea96dbc32\
         435d392fe98d0af70100000000000016be80069ea96dbc32435d392fe98dffffffbf046d3f",
    ),
    (
        "a data file's cluster where another one has its place was written through",
        "0ce16961ce63bf01588a5f20374cb290b3f0e69aa03c15a6bc6f3c8f7c1c8f1b7d0c000f4db238176afd7f0964\
         01b48e7f7f7f7f7f7f10",
    ),
];

/// The bytes that digits stand for.
pub fn bytes(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

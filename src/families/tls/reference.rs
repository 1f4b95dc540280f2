//! The names of rustls' own benchmark (`ci-bench` in its repository) and ours
//! for the same scenarios. What a name has before and after the version is
//! swapped for the sake of Rust paths: `handshake_tickets_ring_1.3_rsa_aes` is
//! `tls::handshake_tickets::ring_1_3_rsa_aes`.
//!
//! Neighbours: `register` gives scenarios these names.

/// The kinds, in the order of the reference.
pub(super) const KINDS: [&str; 4] =
    ["handshake_no_resume", "handshake_session_id", "handshake_tickets", "transfer_no_resume"];

/// Version and label of the parameters that each provider has, in the order of
/// the reference.
const LABELS: [(&str, &str); 7] = [
    ("1.2", "rsa_aes"),
    ("1.3", "rsa_aes"),
    ("1.3", "ecdsap256_aes"),
    ("1.3", "ecdsap384_aes"),
    ("1.3", "rsa_chacha"),
    ("1.3", "ecdsap256_chacha"),
    ("1.3", "ecdsap384_chacha"),
];

/// Our name and the reference's, for each of the 64.
pub fn reference_names() -> Vec<(String, String)> {
    let mut names = Vec::new();
    for provider in ["ring", "aws_lc_rs"] {
        for (version, label) in LABELS {
            let params = (our_params(provider, version, label), format!("{provider}_{version}_{label}"));
            names.extend(KINDS.map(|kind| pair(kind, &params)));
        }
    }
    for version in ["1.3", "1.2"] {
        let params = (our_params("no_crypto", version, ""), format!("{version}_no_crypto"));
        names.extend(KINDS.map(|kind| pair(kind, &params)));
    }
    names
}

/// The reference's name for a scenario of ours, if it has it.
pub fn to_reference(ours: &str) -> Option<String> {
    reference_names().into_iter().find_map(|(name, reference)| (name == ours).then_some(reference))
}

/// Our name for a scenario of the reference, if there is one.
pub fn from_reference(reference: &str) -> Option<String> {
    reference_names().into_iter().find_map(|(ours, name)| (name == reference).then_some(ours))
}

/// The last segment of our names.
pub(super) fn our_params(provider: &str, version: &str, label: &str) -> String {
    let version = version.replace('.', "_");
    let separator = if label.is_empty() { "" } else { "_" };
    format!("{provider}_{version}{separator}{label}")
}

fn pair(kind: &str, (ours, reference): &(String, String)) -> (String, String) {
    (format!("tls::{kind}::{ours}"), format!("{kind}_{reference}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn all_64_go_there_and_back() {
        let names = reference_names();
        assert_eq!(names.len(), 64);
        for (ours, reference) in &names {
            assert_eq!(to_reference(ours).as_ref(), Some(reference));
            assert_eq!(from_reference(reference).as_ref(), Some(ours));
        }
        let distinct: BTreeSet<&String> = names.iter().flat_map(|(a, b)| [a, b]).collect();
        assert_eq!(distinct.len(), 128);
    }

    #[test]
    fn names_that_were_published() {
        for (ours, reference) in [
            ("tls::handshake_tickets::ring_1_3_ecdsap256_aes", "handshake_tickets_ring_1.3_ecdsap256_aes"),
            (
                "tls::handshake_tickets::aws_lc_rs_1_3_ecdsap256_aes",
                "handshake_tickets_aws_lc_rs_1.3_ecdsap256_aes",
            ),
            ("tls::handshake_no_resume::aws_lc_rs_1_2_rsa_aes", "handshake_no_resume_aws_lc_rs_1.2_rsa_aes"),
            ("tls::handshake_no_resume::no_crypto_1_3", "handshake_no_resume_1.3_no_crypto"),
            ("tls::transfer_no_resume::no_crypto_1_2", "transfer_no_resume_1.2_no_crypto"),
        ] {
            assert_eq!(to_reference(ours).as_deref(), Some(reference));
        }
        assert_eq!(to_reference("tls::handshake_retry::ring_1_3_rsa_aes"), None);
        assert_eq!(from_reference("handshake_tickets_ring_1.2_ecdsap256_aes"), None);
    }
}

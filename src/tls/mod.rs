//! TLS endpoints over rustls as state machines, keys, and a provider whose
//! cryptography does nothing; written as if it were a crate of its own:
//! nothing here sees the benchmark harness.

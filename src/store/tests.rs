//! Records on disk and back.

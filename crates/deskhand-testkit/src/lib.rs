//! What the tests stand on: a [`fake`] desktop for the engine, and fixture applications (in `fixtures/`) for real ones.
#![forbid(unsafe_code)]

pub mod fake;
pub mod transcript;

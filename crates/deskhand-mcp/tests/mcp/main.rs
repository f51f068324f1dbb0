//! The protocol as a client meets it: raw lines against a stub driver.
#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod client;
mod flow;
mod progress;
mod protocol;

//! The protocol as a client meets it: raw lines against a stub driver.

mod client;
mod flow;
mod protocol;

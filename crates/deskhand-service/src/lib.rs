//! The process model: one service owns a desktop, clients reach it over a socket.
//!
//! Who becomes the service is decided by locks (the election), never by asking who answers. Nothing here knows what a
//! desktop is made of, or what MCP is.
#![deny(unsafe_code)]

pub mod build;
pub mod client;
#[cfg(feature = "host-consent")]
pub mod consent;
pub mod desktop;
pub mod election;
pub mod folder;
pub mod holder;
pub mod launch;
mod lines;
mod lock;
pub mod log;
mod process;
pub mod rule;
pub mod server;
pub mod starting;
pub mod wire;

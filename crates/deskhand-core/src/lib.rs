//! The engine of deskhand: everything that is the same on every desktop and over every transport.
//!
//! A call enters through [`Engine::invoke`] and reaches the desktop through the ports in [`desktop`]. This
//! crate does no I/O on a desktop of its own, knows no operating system and no transport, and is tested against
//! a fake desktop from short texts.
#![forbid(unsafe_code)]

pub mod call;
pub mod desktop;
pub mod driver;
pub mod error;
pub mod geometry;
pub mod host;

pub use call::{Call, CallId, Outcome, SessionId};
pub use driver::{Driver, ToolListing};
pub use error::{Code, Error, Recovery};

//! The engine of deskhand: everything that is the same on every desktop and over every transport.
//!
//! A call enters through [`Engine::invoke`] and reaches the desktop through the ports in [`desktop`]. This
//! crate does no I/O on a desktop of its own, knows no operating system and no transport, and is tested against
//! a fake desktop from short texts.
#![forbid(unsafe_code)]

mod activity;
pub mod activity_log;
mod agent_cursor;
mod backlog;
pub mod call;
pub mod consent;
pub mod desktop;
pub mod driver;
pub mod effect;
pub mod engine;
pub mod error;
pub mod geometry;
pub mod host;
mod keys;
pub mod limits;
mod output_folder;
pub mod picture;
mod plain_file;
mod preview;
pub mod progress;
pub mod queue;
pub mod recording;
pub mod session;
pub mod settings;
mod sight;
mod subject;
pub mod timestamp;
pub mod tools;
pub mod tree;

pub use call::{Answer, Call, Image, Outcome, SessionId};
pub use driver::{Driver, Profile, ToolListing};
pub use engine::Engine;
pub use error::{Code, Error, Recovery};
pub use host::Host;
pub use limits::Limits;
pub use progress::{Progress, ProgressSink};
pub use session::{Lease, SessionInfo};

//! Programs: what runs, what can be launched.

mod launcher;

pub(crate) use launcher::Exits;
pub use launcher::{Launcher, LocalLauncher, ProgramStart};

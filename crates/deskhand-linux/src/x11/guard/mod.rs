//! The guard.

use std::path::PathBuf;

/// What is held down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pressed {
    /// A button of the pointer device.
    Button(u8),
}

/// Our end.
pub(super) struct Guard {
    _program: PathBuf,
}

impl Guard {
    pub(super) fn new(program: PathBuf) -> Self {
        Self { _program: program }
    }
    pub(super) fn pressing(&mut self, _keys: &[Pressed]) {}
    pub(super) fn released(&mut self) {}
}

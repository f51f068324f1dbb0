//! What the engine takes from the process it runs in, gathered in one value so that tests can set it.

use std::path::PathBuf;
use std::time::Duration;

/// The process's surroundings.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Where global settings are kept; `None`: they are not saved.
    pub settings_file: Option<PathBuf>,
    /// Time-out of a call if neither the call nor a setting says otherwise.
    pub call_timeout: Option<Duration>,
    /// Version of the program, for `health_report`.
    pub version: String,
}

//! What the engine takes from the process it runs in, gathered in one value so that tests can set it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::activity_log::ActivityLog;
use crate::consent::{Background, ConsentSource, NeverJoined};
use crate::limits::Limits;
use crate::recording::video::{NoEncoder, VideoEncoder};
use crate::settings::Overrides;

/// The process's surroundings.
#[derive(Clone, Debug)]
pub struct Host {
    /// Where global settings are kept; `None`: they are not saved.
    pub settings_file: Option<PathBuf>,
    /// What the settings are here where nobody set them, as far as that differs from the engine's own defaults.
    pub defaults: Overrides,
    /// Time-out of a call if neither the call nor a setting says otherwise.
    pub call_timeout: Option<Duration>,
    /// How long a session without a lease may do nothing before it ends; `None`: the default.
    pub session_idle: Option<Duration>,
    /// How much there may be of what clients make.
    pub limits: Limits,
    /// Version of the program, for `health_report`.
    pub version: String,
    /// Which build of the program, for recordings; `None`: it was not asked.
    pub build: Option<String>,
    /// How long nothing may be called before a recording ends; `None`: the default.
    pub recording_idle: Option<Duration>,
    /// Whether this process shows a preview, if it was told so.
    pub preview: Option<bool>,
    /// Where each call is noted for whoever answers for the machine.
    pub activity_log: Option<ActivityLog>,
    /// Who makes videos.
    pub video: Arc<dyn VideoEncoder>,
    /// Where consent comes from.
    pub consent: Arc<dyn ConsentSource>,
    /// Who runs what goes on between calls.
    pub background: Background,
}

impl Default for Host {
    /// A machine that cannot be joined.
    fn default() -> Self {
        Self {
            settings_file: None,
            defaults: Overrides::default(),
            call_timeout: None,
            session_idle: None,
            limits: Limits::default(),
            version: String::new(),
            build: None,
            recording_idle: None,
            preview: None,
            activity_log: None,
            video: Arc::new(NoEncoder),
            consent: Arc::new(NeverJoined),
            background: Background::default(),
        }
    }
}

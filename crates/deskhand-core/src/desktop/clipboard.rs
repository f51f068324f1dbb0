use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{PortError, Stop};

/// Which of the desktop's exchange places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Selection {
    /// What copy and paste use.
    #[default]
    Clipboard,
    /// The text that is selected at the moment, which the middle button inserts.
    Primary,
}

/// Content in one format.
#[derive(Clone, PartialEq, Eq)]
pub struct ClipboardData {
    /// Its media type, such as `text/plain` or `image/png`.
    pub mime: String,
    /// The content; of `text/plain` always UTF-8.
    pub bytes: Vec<u8>,
}

/// Content never gets into a log.
impl std::fmt::Debug for ClipboardData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClipboardData({}, {} bytes)", self.mime, self.bytes.len())
    }
}

/// What is there at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClipboardContent {
    /// The formats that the content can be had in, as its owner calls them. Empty: nothing is there.
    pub formats: Vec<String>,
    /// The content in the format asked for, if it can be had in that.
    pub data: Option<ClipboardData>,
}

/// What became of content that was put there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClipboardWritten {
    /// It will be lost when this process ends: nobody keeps it.
    pub volatile: bool,
}

/// The clipboard of the desktop. Content lies with the program that put it there and is handed over by that program, so
/// reading waits for it, a bounded time.
#[async_trait]
pub trait Clipboard: Send + Sync {
    /// Reads the content in the format `mime`, up to `limit` bytes.
    ///
    /// # Errors
    /// `AppNotResponding` and `TransferFailed` for an owner that does not hand it over, `TooLarge`, `Stopped`,
    /// `Unavailable`, `DesktopLost`, `DesktopNotResponding`.
    async fn read(
        &self,
        selection: Selection,
        mime: &str,
        limit: usize,
        stop: &Stop,
    ) -> Result<ClipboardContent, PortError>;

    /// Puts content there, in place of what was there.
    ///
    /// # Errors
    /// `NotSupported` if another program took the place at once, `Unavailable`, `DesktopLost`, `DesktopNotResponding`.
    async fn write(&self, selection: Selection, data: ClipboardData) -> Result<ClipboardWritten, PortError>;

    /// Hands what is ours to whoever keeps it after our end, a bounded time. Called when the process is about to end; does
    /// nothing if nothing was ever written.
    async fn hand_over(&self);
}

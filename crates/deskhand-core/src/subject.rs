//! What a call acts on, for whoever takes a picture of it.

use serde_json::{Map, Value};

use crate::desktop::{CaptureTarget, Desktop, Display, WindowId};
use crate::error::Result;

/// Tools that act on what has the focus, if they are given no window.
pub(crate) const TO_FOCUS: &[&str] = &["type_text", "type_text_chars", "press_key", "hotkey"];

/// What a call acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    Window(WindowId),
    /// The window that has the focus.
    Focus,
    /// The primary display.
    Display,
}

impl Subject {
    /// What a call of `tool` acts on, as far as its arguments say it.
    pub(crate) fn of(tool: &str, arguments: &Map<String, Value>) -> Self {
        match arguments.get("window_id").and_then(Value::as_u64) {
            Some(id) => Self::Window(WindowId(id)),
            None if TO_FOCUS.contains(&tool) => Self::Focus,
            None => Self::Display,
        }
    }

    /// What a picture of it shows. Where nothing has the focus, the display.
    ///
    /// # Errors
    /// Those of the ports.
    pub(crate) async fn target(self, desktop: &Desktop) -> Result<CaptureTarget> {
        match self {
            Self::Window(id) => return Ok(CaptureTarget::Window(id)),
            Self::Focus => {
                let windows = desktop.windows.list().await?;
                if let Some(window) = windows.iter().find(|window| window.focused) {
                    return Ok(CaptureTarget::Window(window.id));
                }
            }
            Self::Display => {}
        }
        let displays = desktop.screen.displays().await?;
        Ok(CaptureTarget::Region(Display::choose(&displays, None)?.frame))
    }
}

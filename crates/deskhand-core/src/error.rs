//! The one error type at the engine's edge, and what each code means for the caller.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::desktop::PortError;

/// What a failed call took with it, and so what the agent should do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recovery {
    /// This call only: correct or repeat it.
    Request,
    /// The reading: take a new snapshot.
    Snapshot,
    /// A window, application or element: look it up again.
    Handle,
    /// The capture back end: carry on without pictures, try later.
    Capture,
    /// This session: start a new one.
    Session,
    /// The process: reconnect; all handles are gone; check what the last input did.
    Process,
}

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $recovery:ident,)+) => {
        /// Every code an answer can carry. The recovery table of the documentation is checked against this.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
        pub enum Code {
            $($(#[doc = $doc])+ #[serde(rename = $name)] $variant,)+
        }

        impl Code {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            /// The code as answers spell it.
            pub const fn name(self) -> &'static str {
                match self { $(Code::$variant => $name),+ }
            }

            /// The code that is spelled so.
            pub fn named(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|code| code.name() == name)
            }

            /// What was lost with it.
            pub const fn recovery(self) -> Recovery {
                match self { $(Code::$variant => Recovery::$recovery),+ }
            }

            /// What it means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $(Code::$variant => concat!($($doc),+)),+ }
            }
        }
    };
}

codes! {
    /// An argument is missing, unknown, of the wrong type or out of range; the message names it.
    InvalidArgument "invalid_argument" Request,
    /// No tool has that name.
    UnknownTool "unknown_tool" Request,
    /// The service knows no such method.
    UnknownMethod "unknown_method" Request,
    /// The call's deadline passed; the message says how far it got.
    Timeout "timeout" Request,
    /// The call was cancelled.
    Cancelled "cancelled" Request,
    /// A limit of this session or service was reached; the message names it.
    LimitExceeded "limit_exceeded" Request,
    /// This desktop, application or element cannot do it; the message says what can be tried instead.
    NotSupported "not_supported" Request,
    /// No window matches.
    UnknownWindow "unknown_window" Request,
    /// Several things match; the message lists them.
    Ambiguous "ambiguous" Request,
    /// No element matches the query.
    ElementNotFound "element_not_found" Request,
    /// Something else lies over the point; the message names it. Nothing was clicked.
    Occluded "occluded" Request,
    /// Another window took the keyboard focus in the middle of typing; the message says how far it got.
    FocusLost "focus_lost" Request,
    /// Text or a key that cannot be typed on this keyboard. Nothing was typed.
    Untypable "untypable" Request,
    /// A program could not be started.
    LaunchFailed "launch_failed" Request,
    /// A program did not hand over content that it had put on the clipboard.
    TransferFailed "transfer_failed" Request,
    /// A file could not be read or written.
    FileError "file_error" Request,
    /// The session records already; the message says where.
    RecordingActive "recording_active" Request,
    /// No video can be made; the message names what is missing. Recording without one is possible.
    VideoUnavailable "video_unavailable" Request,
    /// A folder holds no recording that can be read; the message says why.
    InvalidTrajectory "invalid_trajectory" Request,
    /// The person at the machine has not allowed it.
    ConsentRequired "consent_required" Request,
    /// A revoke of consent could not be watched for. Nothing was started.
    ConsentWatchUnavailable "consent_watch_unavailable" Request,
    /// The display server does not answer at the moment.
    DesktopNotResponding "desktop_not_responding" Request,
    /// The desktop, or a part of it, cannot be reached; the message says what and why.
    DesktopUnavailable "desktop_unavailable" Request,
    /// A fault of the driver itself; other calls go on.
    InternalError "internal_error" Request,
    /// The element index belongs to a snapshot that is too old or unknown, or the element is another now.
    StaleSnapshot "stale_snapshot" Snapshot,
    /// The element no longer exists. Nothing was done.
    ElementGone "element_gone" Snapshot,
    /// The handle is not known in this session.
    UnknownHandle "unknown_handle" Handle,
    /// The window has been closed.
    WindowGone "window_gone" Handle,
    /// The application is not running.
    AppGone "app_gone" Handle,
    /// The application does not answer.
    AppNotResponding "app_not_responding" Handle,
    /// An earlier capture still waits for the display server.
    CaptureBusy "capture_busy" Capture,
    /// A picture could not be taken; the message says why.
    CaptureFailed "capture_failed" Capture,
    /// The session belongs to another connection: its calls are accepted over that one alone.
    SessionInUse "session_in_use" Session,
    /// The session has ended.
    SessionEnded "session_ended" Session,
    /// The process is no longer trustworthy and ends.
    ProcessFailed "process_failed" Process,
    /// The display server has ended.
    DesktopLost "desktop_lost" Process,
    /// The service cannot be reached.
    ServiceUnreachable "service_unreachable" Process,
    /// The service was restarted; handles are gone.
    ServiceRestarted "service_restarted" Process,
    /// Another build owns this path or desktop.
    BuildConflict "build_conflict" Process,
    /// Another process owns the desktop.
    DesktopInUse "desktop_in_use" Process,
}

impl std::fmt::Display for Code {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call failed. The message says what to do next and carries no text of the screen unquoted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What kind of failure.
    pub code: Code,
    /// For the agent: what happened and what to do next.
    pub message: String,
    /// What a program needs to go on, such as the candidates of an ambiguous query.
    pub details: Option<Value>,
}

/// Results of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error without details.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    /// A bad argument: names the field and says what was expected.
    pub fn argument(field: &str, expected: impl std::fmt::Display) -> Self {
        Self::new(Code::InvalidArgument, format!("argument `{field}`: {expected}"))
    }

    /// The same error with details.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// As it passes between processes: every field for itself, so that it can be read back.
    pub fn to_json(&self) -> Value {
        let mut json = serde_json::json!({
            "code": self.code.name(),
            "message": self.message,
            "recovery": self.code.recovery(),
        });
        if let Some(details) = &self.details {
            json["details"] = details.clone();
        }
        json
    }

    /// What goes into `structuredContent`. What consent is missing stands beside the code there, where a host that shows it
    /// to the person looks for it.
    pub fn structured(&self) -> Value {
        let mut json = self.to_json();
        if self.code == Code::ConsentRequired
            && let Value::Object(json) = &mut json
            && let Some(Value::Object(details)) = json.remove("details")
        {
            json.extend(details);
        }
        json
    }
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        let code = match &error {
            PortError::Unavailable { .. } => Code::DesktopUnavailable,
            PortError::NotSupported(_) => Code::NotSupported,
            PortError::UnknownWindow(_) => Code::UnknownWindow,
            PortError::WindowGone(_) => Code::WindowGone,
            PortError::ElementGone => Code::ElementGone,
            PortError::AppGone(_) => Code::AppGone,
            PortError::AppNotResponding { .. } => Code::AppNotResponding,
            PortError::DesktopNotResponding | PortError::InputUncertain | PortError::DesktopStillSilent => {
                Code::DesktopNotResponding
            }
            PortError::DesktopLost => Code::DesktopLost,
            PortError::InUse(_) => Code::DesktopInUse,
            PortError::CaptureBusy => Code::CaptureBusy,
            PortError::CaptureFailed(_) => Code::CaptureFailed,
            PortError::Untypable(_) => Code::Untypable,
            PortError::LaunchFailed(_) => Code::LaunchFailed,
            PortError::TransferFailed(_) => Code::TransferFailed,
            PortError::TooLarge { .. } => Code::LimitExceeded,
            PortError::Stopped => Code::Cancelled,
            PortError::Internal(_) => Code::InternalError,
        };
        let next = match code {
            Code::UnknownWindow | Code::WindowGone => "; list_windows shows the windows there are",
            Code::ElementGone => "; nothing was done; take a new snapshot with get_window_state",
            Code::AppGone => "; list_apps shows what runs",
            Code::DesktopNotResponding => "; try again later",
            Code::CaptureBusy => "; carry on without pictures and try later",
            _ => "",
        };
        let delivery = match error {
            PortError::InputUncertain => Some("uncertain"),
            PortError::DesktopStillSilent => Some("not_delivered"),
            _ => None,
        };
        let details = delivery.map(|delivery| serde_json::json!({"delivery": delivery}));
        Self { details, ..Self::new(code, format!("{error}{next}")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_snake_case_and_unique() {
        let mut names: Vec<_> = Code::ALL.iter().map(|code| code.name()).collect();
        assert!(names.iter().all(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len());
    }

    #[test]
    fn an_error_as_json_carries_code_message_and_recovery() {
        let json = Error::argument("window_id", "expected a number").to_json();
        assert_eq!(
            json.to_string(),
            r#"{"code":"invalid_argument","message":"argument `window_id`: expected a number","recovery":"request"}"#
        );
    }
}

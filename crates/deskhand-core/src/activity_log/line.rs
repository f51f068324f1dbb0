use serde::{Deserialize, Serialize};

/// One call, as a line of the log. It holds no value of an argument and no message, which may repeat one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Line {
    /// Its number; they go up through all files of a folder.
    pub line: u64,
    /// When the call came, as RFC 3339 has it, in UTC with milliseconds.
    pub time: String,
    /// Label of the session that called, else its id; `None`: it named no session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Id of that session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tool; `None`: there is none of the name that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Names of the arguments.
    pub arguments: Vec<String>,
    /// How many more there were, of names that the tool does not know: they are the caller's words.
    #[serde(skip_serializing_if = "is_zero")]
    pub unknown_arguments: u64,
    /// `confirmed`, `unverifiable` or `suspected_noop`, if it acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Code of the error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How far the input of a failed call got: `not_delivered`, `partial`, `complete` or `uncertain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// From its coming to its answer.
    pub duration_ms: u64,
    /// The file, in the folder, of the picture from after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// Why there is no picture of a call that acted: the code of an error, `superseded`, `slow_disk`, `disk_full` or `write_failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_missing: Option<String>,
    /// How many lines are missing before this one, because the disk was full or too slow.
    #[serde(skip_serializing_if = "is_zero")]
    pub lines_dropped: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
fn is_zero(number: &u64) -> bool {
    *number == 0
}

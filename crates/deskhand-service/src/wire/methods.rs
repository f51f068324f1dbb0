//! The methods: each is one type with its parameters, its answer and an example, from which `docs/wire.md` comes.

use crate::holder::Lifetime;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use deskhand_core::activity_log::ActivityLogState;
use deskhand_core::call::{self, Image};
use deskhand_core::consent::Report;
use deskhand_core::driver::{self, ToolListing};
use deskhand_core::progress::Progress;
use deskhand_core::session::SessionInfo;
use deskhand_core::{Code, Error};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A method of the wire.
pub trait Method {
    /// Its name.
    const NAME: &'static str;
    /// For the author of a client.
    const DESCRIPTION: &'static str;
    /// A request, as one line.
    const EXAMPLE: &'static str;
    /// What stands beside `id`, `method` and `session_id`.
    type Parameters: Serialize + DeserializeOwned + JsonSchema;
    /// What `ok` holds.
    type Answer: Serialize + DeserializeOwned + JsonSchema;
}

/// A method with its types erased, for the documentation.
#[derive(Clone, Copy, Debug)]
pub struct Described {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    pub(super) example: &'static str,
    pub(super) parameters: fn() -> schemars::Schema,
    pub(super) answer: fn() -> schemars::Schema,
}

const fn describe<M: Method>() -> Described {
    Described {
        name: M::NAME,
        description: M::DESCRIPTION,
        example: M::EXAMPLE,
        parameters: schema::<M::Parameters>,
        answer: schema::<M::Answer>,
    }
}

fn schema<T: JsonSchema>() -> schemars::Schema {
    schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>()
}

/// All methods, in the order of the documentation.
pub const METHODS: &[Described] = &[
    describe::<Hello>(),
    describe::<List>(),
    describe::<Call>(),
    describe::<Cancel>(),
    describe::<Leave>(),
    describe::<SessionEnd>(),
    describe::<Sessions>(),
    describe::<Status>(),
    describe::<Consent>(),
    describe::<Shutdown>(),
    // Tests write the documentation, which is about all builds.
    #[cfg(any(feature = "host-consent", test))]
    describe::<MachineConsentHost>(),
];

/// Nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Empty {}

/// Parameters of `hello`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelloParameters {
    /// The connection is the life of the session that `session_id` names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lease: bool,
    /// Digest of the client's program, if it is deskhand itself: another one than the service's is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// What people see in a list of sessions, such as the client's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `persistent` makes a managed service persistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Lifetime>,
}

/// What `hello` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Welcome {
    /// Version of the wire.
    pub protocol: u32,
    /// Version of the service's program.
    pub version: String,
    /// Digest of the service's program.
    pub build: String,
    /// Its process.
    pub pid: u32,
    /// The desktop that it owns.
    pub desktop: String,
    /// How long it lives, from now on.
    pub lifetime: Lifetime,
    /// Its bounds.
    pub limits: Limits,
}

/// Bounds of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Longest line, in bytes.
    pub line_bytes: usize,
    /// Answers that may wait for a client that does not read, in bytes.
    pub unread_bytes: usize,
    /// Connections at a time.
    pub connections: usize,
    /// Calls of one session that may be under way.
    pub calls: usize,
}

/// Opens a connection.
#[derive(Debug)]
pub enum Hello {}

impl Method for Hello {
    const NAME: &'static str = "hello";
    const DESCRIPTION: &'static str = "Says who is there. Not needed before other methods, but for a lease, and wise: a client of another build is refused \
         here (`build_conflict`) and not in the middle of its work. With `lease`, `session_id` names the session, a text \
         that no other session has had; it ends when the connection closes.";
    const EXAMPLE: &'static str =
        r#"{"id": 1, "method": "hello", "session_id": "mine-7f3a", "lease": true, "label": "my editor"}"#;
    type Parameters = HelloParameters;
    type Answer = Welcome;
}

/// Which tools a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    /// The small set that serves nearly every task.
    #[default]
    Default,
    /// All.
    Full,
}

impl From<Profile> for driver::Profile {
    fn from(profile: Profile) -> Self {
        match profile {
            Profile::Default => Self::Default,
            Profile::Full => Self::Full,
        }
    }
}

impl From<driver::Profile> for Profile {
    fn from(profile: driver::Profile) -> Self {
        match profile {
            driver::Profile::Default => Self::Default,
            driver::Profile::Full => Self::Full,
        }
    }
}

/// Parameters of `list`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListParameters {
    /// Which.
    #[serde(default)]
    pub profile: Profile,
}

/// What `list` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Listed {
    /// In their documented order.
    pub tools: Vec<Tool>,
}

/// A tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// For a model.
    pub description: String,
    /// JSON schema of its arguments.
    pub input_schema: Map<String, Value>,
    /// Only reads.
    pub read_only: bool,
    /// May change or lose the user's data.
    pub destructive: bool,
    /// Repeating it with the same arguments changes nothing more.
    pub idempotent: bool,
}

impl From<ToolListing> for Tool {
    fn from(tool: ToolListing) -> Self {
        let ToolListing { name, description, input_schema, read_only, destructive, idempotent } = tool;
        Self { name, description, input_schema: (*input_schema).clone(), read_only, destructive, idempotent }
    }
}

impl From<Tool> for ToolListing {
    fn from(tool: Tool) -> Self {
        let Tool { name, description, input_schema, read_only, destructive, idempotent } = tool;
        Self { name, description, input_schema: input_schema.into(), read_only, destructive, idempotent }
    }
}

/// Lists the tools.
#[derive(Debug)]
pub enum List {}

impl Method for List {
    const NAME: &'static str = "list";
    const DESCRIPTION: &'static str =
        "The tools. Those that a profile does not show can be called all the same.";
    const EXAMPLE: &'static str = r#"{"id": 2, "method": "list", "profile": "full"}"#;
    type Parameters = ListParameters;
    type Answer = Listed;
}

/// Parameters of `call`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CallParameters {
    /// The tool's name.
    pub tool: String,
    /// Its arguments. Those whose name begins with `_` are dropped.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// Lines with `progress` may come before the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub progress: bool,
}

/// What `call` answers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Called {
    /// For a model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// For programs; does not repeat the text.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub structured: Value,
    /// Pictures.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Picture>,
}

/// A picture of an answer.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
pub struct Picture {
    /// `image/png`, `image/jpeg` or `image/webp`.
    pub mime: String,
    /// The encoded bytes in base64.
    pub data: String,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}, {} characters)", self.mime, self.data.len())
    }
}

impl From<call::Answer> for Called {
    fn from(answer: call::Answer) -> Self {
        let picture =
            |image: Image| Picture { mime: image.mime.to_owned(), data: STANDARD.encode(&image.bytes) };
        let images = answer.images.into_iter().map(picture).collect();
        Self { text: answer.text, structured: answer.structured, images }
    }
}

impl TryFrom<Called> for call::Answer {
    type Error = Error;

    fn try_from(called: Called) -> Result<Self, Error> {
        let images = called.images.into_iter().map(image).collect::<Result<_, _>>()?;
        Ok(Self { text: called.text, structured: called.structured, images })
    }
}

fn image(picture: Picture) -> Result<Image, Error> {
    let mime = ["image/png", "image/jpeg", "image/webp"].into_iter().find(|mime| *mime == picture.mime);
    match (mime, STANDARD.decode(picture.data)) {
        (Some(mime), Ok(bytes)) => Ok(Image { mime, bytes }),
        _ => Err(Error::new(Code::InternalError, "the service sent a picture that cannot be read")),
    }
}

/// Runs a tool.
#[derive(Debug)]
pub enum Call {}

impl Method for Call {
    const NAME: &'static str = "call";
    const DESCRIPTION: &'static str = "Runs a tool. Its place on the desktop is taken when the line is read.";
    const EXAMPLE: &'static str =
        r#"{"id": 3, "method": "call", "session_id": "mine-7f3a", "tool": "list_windows", "arguments": {}}"#;
    type Parameters = CallParameters;
    type Answer = Called;
}

/// How far a call has come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Progressed {
    /// Grows with each line of a call.
    pub progress: f64,
    /// What `progress` will be at the end, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// What the call does now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl From<Progress> for Progressed {
    fn from(Progress { done, total, message }: Progress) -> Self {
        Self { progress: done, total, message: Some(message) }
    }
}

impl From<Progressed> for Progress {
    fn from(Progressed { progress, total, message }: Progressed) -> Self {
        Self { done: progress, total, message: message.unwrap_or_default() }
    }
}

/// Parameters of `cancel`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CancelParameters {
    /// The `id` of a `call` of this connection.
    pub target: u64,
}

/// Cancels a call.
#[derive(Debug)]
pub enum Cancel {}

impl Method for Cancel {
    const NAME: &'static str = "cancel";
    const DESCRIPTION: &'static str = "Asks a call of this connection to stop. The call answers for itself, with how far it got; one that has answered \
         already is not an error.";
    const EXAMPLE: &'static str = r#"{"id": 4, "method": "cancel", "target": 3}"#;
    type Parameters = CancelParameters;
    type Answer = Empty;
}

/// Begins no more of a session's calls.
#[derive(Debug)]
pub enum Leave {}

impl Method for Leave {
    const NAME: &'static str = "leave";
    const DESCRIPTION: &'static str = "The session's client is leaving: calls that wait for their first turn answer `session_ended` and are not begun; \
         those at work go on until they end or the session does.";
    const EXAMPLE: &'static str = r#"{"id": 5, "method": "leave", "session_id": "mine-7f3a"}"#;
    type Parameters = Empty;
    type Answer = Empty;
}

/// Parameters of `session_end`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionEndParameters {
    /// Another session than that of `session_id`: for the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// What `session_end` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionEnded {
    /// Whether there was such a session.
    pub ended: bool,
}

/// Ends a session.
#[derive(Debug)]
pub enum SessionEnd {}

impl Method for SessionEnd {
    const NAME: &'static str = "session_end";
    const DESCRIPTION: &'static str = "Ends a session: its calls are cancelled and awaited, what it owned is dropped. Answers when that is done.";
    const EXAMPLE: &'static str = r#"{"id": 6, "method": "session_end", "session_id": "mine-7f3a"}"#;
    type Parameters = SessionEndParameters;
    type Answer = SessionEnded;
}

/// What `sessions` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionsListed {
    /// The oldest first.
    pub sessions: Vec<SessionReport>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SessionReport {
    /// Its id.
    pub session: String,
    /// What it calls itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Whether it ends with a connection.
    pub leased: bool,
    /// How long ago it began, in milliseconds.
    pub age_ms: u64,
    /// How long ago its last call began or ended, in milliseconds.
    pub idle_ms: u64,
    /// Tools that its calls under way run.
    pub calls: Vec<String>,
}

impl From<SessionInfo> for SessionReport {
    fn from(info: SessionInfo) -> Self {
        let SessionInfo { session, label, leased, age_ms, idle_ms, calls, .. } = info;
        let calls = calls.into_iter().map(|call| call.tool.to_owned()).collect();
        Self { session: session.unwrap_or_default(), label, leased, age_ms, idle_ms, calls }
    }
}

/// Lists the sessions.
#[derive(Debug)]
pub enum Sessions {}

impl Method for Sessions {
    const NAME: &'static str = "sessions";
    const DESCRIPTION: &'static str = "The sessions that live.";
    const EXAMPLE: &'static str = r#"{"id": 7, "method": "sessions"}"#;
    type Parameters = Empty;
    type Answer = SessionsListed;
}

/// What `status` answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StatusReport {
    /// Version of the service's program.
    pub version: String,
    /// Digest of it.
    pub build: String,
    /// Where it was started from.
    pub path: String,
    /// Its process.
    pub pid: u32,
    /// The desktop that it owns.
    pub desktop: String,
    /// Where it listens.
    pub socket: String,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// How long it has run, in milliseconds.
    pub age_ms: u64,
    /// Connections, this one included.
    pub connections: usize,
    /// Steps that wait for their turn on the desktop.
    pub waiting: usize,
    /// The sessions that live.
    pub sessions: Vec<SessionReport>,
    /// The activity log, if the service keeps one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity_log: Option<ActivityLogReport>,
}

/// How the activity log is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActivityLogReport {
    /// Its folder.
    pub folder: String,
    /// Lines that this service has written.
    pub lines: u64,
    /// Lines that it could not write.
    pub lines_dropped: u64,
    /// Pictures that it has written.
    pub frames: u64,
    /// Why no lines are written at the moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Why no pictures are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames_stopped: Option<String>,
}

impl From<ActivityLogState> for ActivityLogReport {
    fn from(state: ActivityLogState) -> Self {
        let ActivityLogState { folder, lines, lines_dropped, frames, stopped, frames_stopped } = state;
        let folder = folder.display().to_string();
        Self { folder, lines, lines_dropped, frames, stopped, frames_stopped }
    }
}

/// Says how the service is.
#[derive(Debug)]
pub enum Status {}

impl Method for Status {
    const NAME: &'static str = "status";
    const DESCRIPTION: &'static str = "What the service is and who uses it.";
    const EXAMPLE: &'static str = r#"{"id": 8, "method": "status"}"#;
    type Parameters = Empty;
    type Answer = StatusReport;
}

/// What `consent` answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConsentReport {
    /// Whether the machine is joined, or counts as such. If not, consent is not asked for.
    pub joined: bool,
    /// Whether agents may see.
    pub screen: bool,
    /// Whether agents may act.
    pub control: bool,
    /// What is wrong, if nobody decided that it should be so.
    pub trouble: Option<String>,
}

impl From<Report> for ConsentReport {
    fn from(Report { grant, trouble }: Report) -> Self {
        Self { joined: grant.joined, screen: grant.sees(), control: grant.acts(), trouble }
    }
}

/// Says what agents may do.
#[derive(Debug)]
pub enum Consent {}

impl Method for Consent {
    const NAME: &'static str = "consent";
    const DESCRIPTION: &'static str = "What the person at the machine allows agents at this moment, as this service sees it: it may have other records than \
         who asks. Waits for a consent host (1.5 s at most).";
    const EXAMPLE: &'static str = r#"{"id": 9, "method": "consent"}"#;
    type Parameters = Empty;
    type Answer = ConsentReport;
}

/// What `shutdown` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Stopping {
    /// The process to wait for.
    pub pid: u32,
}

/// Ends the service.
#[derive(Debug)]
pub enum Shutdown {}

impl Method for Shutdown {
    const NAME: &'static str = "shutdown";
    const DESCRIPTION: &'static str = "Ends the service in order: no new calls, running ones cancelled and awaited, sessions cleaned up, the clipboard \
         handed over, the socket removed. Answers at once; the service has ended when its process has.";
    const EXAMPLE: &'static str = r#"{"id": 10, "method": "shutdown"}"#;
    type Parameters = Empty;
    type Answer = Stopping;
}

/// What `machine_consent_host` answers first.
#[cfg(any(feature = "host-consent", test))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostChallenge {
    /// To be sent back with the host token.
    pub nonce: String,
}

/// Makes a connection the consent host's.
#[cfg(any(feature = "host-consent", test))]
#[derive(Debug)]
pub enum MachineConsentHost {}

#[cfg(any(feature = "host-consent", test))]
impl Method for MachineConsentHost {
    const NAME: &'static str = "machine_consent_host";
    const DESCRIPTION: &'static str = "Makes the connection the consent host's. Only in builds with the feature `host-consent`; others answer `unknown_method`. Must be \
         the first line of its connection, and nothing may follow it before the answer. What comes after is described [below](#consent-host).";
    const EXAMPLE: &'static str = r#"{"id": 1, "method": "machine_consent_host"}"#;
    type Parameters = Empty;
    type Answer = HostChallenge;
}

//! The tools: each is one definition from which `tools/list`, the command line's help, the documentation and the
//! consent table come. [`TOOLS`] is the list of them all.

mod agent_cursor;
mod app_state;
mod apps;
mod arguments;
mod arrange;
mod choose;
mod click;
mod clipboard;
mod config;
mod cover;
mod cursor;
mod debug;
mod desktop_state;
mod drag;
mod gauge;
mod health;
mod judge;
mod menu;
mod overflow;
mod pointing;
mod press;
mod reading;
mod recording;
mod region;
mod replay;
mod schema;
mod screenshot;
mod scroll;
mod secondary;
mod select_text;
mod sessions;
mod set_value;
mod som;
mod steps;
mod target;
mod type_text;
mod under;
mod wait_for;
mod window_state;
mod windows;
mod zoom;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::call::{Answer, Image, Outcome};
use crate::driver::{Profile, ToolListing};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;

pub(crate) use arguments::in_words_of_json;
pub(crate) use target::Element;
pub(crate) use type_text::differing;

/// What consent a tool needs on a joined machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    /// Neither.
    None,
    /// Seeing.
    Screen,
    /// Seeing and acting.
    Control,
}

impl Surface {
    /// As records and answers spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Screen => "screen",
            Self::Control => "control",
        }
    }
}

/// What a tool is, apart from its arguments and its code.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// One paragraph for a model.
    pub description: &'static str,
    /// Consent that it needs.
    pub surface: Surface,
    /// How it takes its place in the desktop's queue; `None`: it touches no desktop.
    pub queue: Option<StepKind>,
    /// Whether it may lose data of the user.
    pub destructive: bool,
    /// Whether repeating it changes nothing more.
    pub idempotent: bool,
    /// Whether the default profile lists it.
    pub listed: bool,
    /// Arguments of a typical call, as JSON.
    pub example: &'static str,
}

impl Spec {
    /// Whether it leaves everything as it is.
    pub const fn read_only(&self) -> bool {
        !matches!(self.surface, Surface::Control) && self.idempotent && !self.destructive
    }
}

/// The definition of a tool.
pub(crate) trait Tool: 'static {
    const SPEC: Spec;
    type Arguments: DeserializeOwned + JsonSchema + Send + 'static;
    type Reply: Reply + Send;

    /// What the types do not say about the arguments.
    fn check(_arguments: &Self::Arguments) -> Result<()> {
        Ok(())
    }

    /// A deadline of the call's own.
    fn timeout(_arguments: &Self::Arguments) -> Option<Duration> {
        None
    }

    /// Time that doing as the arguments say takes. A call has so much more, unless somebody has set its deadline.
    fn takes(_arguments: &Self::Arguments) -> Duration {
        Duration::ZERO
    }

    fn run(arguments: Self::Arguments, context: Context) -> impl Future<Output = Result<Self::Reply>> + Send;
}

/// A typed answer: serialised for programs, written out for the model.
pub(crate) trait Reply: Serialize {
    fn text(&self) -> String;

    fn take_images(&mut self) -> Vec<Image> {
        Vec::new()
    }
}

/// A call whose arguments are understood.
pub(crate) struct Prepared {
    pub(crate) timeout: Option<Duration>,
    pub(crate) takes: Duration,
    pub(crate) run: Box<dyn FnOnce(Context) -> BoxFuture<'static, Outcome> + Send>,
}

/// A tool with its types erased.
#[derive(Clone, Copy, Debug)]
pub struct ToolDefinition {
    /// What it is.
    pub spec: Spec,
    /// JSON schema of its arguments.
    pub schema: fn() -> Map<String, Value>,
    prepare: fn(Map<String, Value>) -> Result<Prepared>,
    /// Arguments that hold unless the caller says otherwise, as JSON: what makes an alias of another tool.
    defaults: &'static str,
}

const fn define<T: Tool>() -> ToolDefinition {
    ToolDefinition {
        spec: T::SPEC,
        schema: schema::of::<T::Arguments>,
        prepare: prepare::<T>,
        defaults: "{}",
    }
}

impl ToolDefinition {
    /// The same tool under another name, with other defaults; callable, not listed.
    const fn alias(self, name: &'static str, description: &'static str, defaults: &'static str) -> Self {
        Self { spec: Spec { name, description, listed: false, ..self.spec }, defaults, ..self }
    }

    /// Reads the arguments of a call.
    pub(crate) fn prepare(&self, mut arguments: Map<String, Value>) -> Result<Prepared> {
        let defaults: Map<String, Value> = serde_json::from_str(self.defaults).map_err(|error| {
            Error::new(Code::InternalError, format!("defaults of {}: {error}", self.spec.name))
        })?;
        for (name, value) in defaults {
            arguments.entry(name).or_insert(value);
        }
        (self.prepare)(arguments)
    }
}

/// All tools, in the order of the documentation.
pub const TOOLS: &[ToolDefinition] = &[
    define::<windows::ListWindows>(),
    define::<apps::ListApps>(),
    define::<apps::LaunchApp>(),
    define::<apps::KillApp>(),
    define::<window_state::GetWindowState>(),
    define::<window_state::GetAccessibilityTree>(),
    define::<app_state::GetAppState>(),
    define::<desktop_state::GetDesktopState>(),
    define::<screenshot::Screenshot>(),
    define::<zoom::Zoom>(),
    define::<desktop_state::GetScreenSize>(),
    define::<cursor::GetCursorPosition>(),
    define::<wait_for::WaitFor>(),
    define::<click::ClickTool>(),
    define::<click::ClickTool>().alias("double_click", "`click` with `count` 2.", r#"{"count": 2}"#),
    define::<click::ClickTool>().alias(
        "right_click",
        "`click` with `button` right: opens a context menu.",
        r#"{"button": "right"}"#,
    ),
    define::<arrange::BringToFront>(),
    define::<arrange::SetWindowFrame>(),
    define::<cursor::MoveCursor>(),
    define::<drag::DragTool>(),
    define::<scroll::Scroll>(),
    define::<type_text::TypeText>(),
    define::<type_text::TypeText>().alias("type_text_chars", "Old name of `type_text`.", "{}"),
    define::<press::PressKey>(),
    define::<press::Hotkey>(),
    define::<set_value::SetValue>(),
    define::<select_text::SelectText>(),
    define::<secondary::PerformSecondaryAction>(),
    define::<menu::InvokeMenu>(),
    define::<clipboard::ClipboardRead>(),
    define::<clipboard::ClipboardWrite>(),
    define::<recording::StartRecording>(),
    define::<recording::StopRecording>(),
    define::<recording::GetRecordingState>(),
    define::<replay::ReplayTrajectory>(),
    define::<recording::InstallFfmpeg>(),
    define::<config::GetConfig>(),
    define::<config::SetConfig>(),
    define::<agent_cursor::SetEnabled>(),
    define::<agent_cursor::SetStyle>(),
    define::<agent_cursor::SetMotion>(),
    define::<agent_cursor::GetState>(),
    define::<sessions::GetSession>(),
    define::<sessions::ListSessions>(),
    define::<sessions::EndSession>(),
    define::<health::HealthReport>(),
    define::<health::CheckPermissions>(),
    define::<debug::DebugWindowInfo>(),
];

/// The tool called `name`.
pub fn find(name: &str) -> Option<&'static ToolDefinition> {
    TOOLS.iter().find(|tool| tool.spec.name == name)
}

/// The tools that `profile` shows.
pub fn listing(profile: Profile) -> Vec<ToolListing> {
    TOOLS
        .iter()
        .filter(|tool| profile == Profile::Full || tool.spec.listed)
        .map(|ToolDefinition { spec, schema, .. }| ToolListing {
            name: spec.name.to_owned(),
            description: spec.description.to_owned(),
            input_schema: Arc::new(schema()),
            read_only: spec.read_only(),
            destructive: spec.destructive,
            idempotent: spec.idempotent,
        })
        .collect()
}

fn prepare<T: Tool>(arguments: Map<String, Value>) -> Result<Prepared> {
    let arguments: T::Arguments = arguments::read(arguments)?;
    T::check(&arguments)?;
    let (timeout, takes) = (T::timeout(&arguments), T::takes(&arguments));
    let run = move |context: Context| {
        let overlapped = context.clone();
        async move {
            let mut reply = T::run(arguments, context).await?;
            let images = reply.take_images();
            let mut structured = serde_json::to_value(&reply).map_err(|error| {
                Error::new(Code::InternalError, format!("the answer could not be written: {error}"))
            })?;
            if overlapped.overlapped()
                && let Value::Object(fields) = &mut structured
            {
                fields.insert("overlapped".to_owned(), Value::Bool(true));
            }
            Ok(Answer { text: reply.text(), structured, images })
        }
        .boxed()
    };
    Ok(Prepared { timeout, takes, run: Box::new(run) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_examples_are_accepted() {
        let mut names: Vec<_> = TOOLS.iter().map(|tool| tool.spec.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TOOLS.len());
        for tool in TOOLS {
            let example = serde_json::from_str(tool.spec.example).unwrap();
            if let Err(error) = tool.prepare(example) {
                panic!("{}: {error}", tool.spec.name);
            }
        }
    }

    #[test]
    fn every_argument_is_described_and_schemas_are_plain() {
        for tool in TOOLS {
            let schema = Value::Object((tool.schema)());
            assert_eq!(schema["type"], "object", "{}", tool.spec.name);
            assert_eq!(schema["additionalProperties"], false, "{}", tool.spec.name);
            let text = schema.to_string();
            for word in ["$ref", "$schema", "anyOf", "\"null\"", "\"title\":\"", "uint"] {
                assert!(!text.contains(word), "{}: {word} in {text}", tool.spec.name);
            }
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                assert!(property["description"].is_string(), "{}.{name} is not described", tool.spec.name);
            }
        }
    }

    #[test]
    fn the_default_list_is_small() {
        let listing = listing(Profile::Default);
        let bytes: usize = listing
            .iter()
            .map(|tool| {
                let schema = serde_json::to_string(&*tool.input_schema).unwrap();
                tool.name.len() + tool.description.len() + schema.len() + 150
            })
            .sum();
        assert!(bytes < 24_000, "{bytes} bytes");
    }
}

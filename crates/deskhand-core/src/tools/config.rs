//! `get_config` and `set_config`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cursor::Nothing;
use super::{Reply, Spec, Surface, Tool};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::settings::{self, CaptureMode, ImageFormat, Overrides, Settings};

/// Effective settings and where each comes from.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Effective {
    settings: Settings,
    origins: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

impl Effective {
    fn of(context: &Context) -> Self {
        let global = context.global_settings().overrides();
        let session =
            if context.session().anonymous { Overrides::default() } else { context.session().overrides() };
        let process = context.shared().preview.overrides();
        Self {
            settings: Settings::effective(&[&context.host().defaults, &global, &session, &process]),
            origins: settings::origins(&global, &session, &process),
            problem: context.global_settings().problem().map(|error| error.message),
        }
    }
}

impl Reply for Effective {
    fn text(&self) -> String {
        let values = serde_json::to_value(&self.settings).unwrap_or_default();
        let line = |(name, origin): (&String, &Value)| {
            let value = &values[name];
            format!(
                "{name} = {} ({})",
                value.as_str().map_or_else(|| value.to_string(), str::to_owned),
                origin.as_str().unwrap_or_default()
            )
        };
        let mut lines: Vec<_> = self.origins.iter().map(line).collect();
        lines.extend(self.problem.clone());
        lines.join("\n")
    }
}

pub(super) struct GetConfig;

impl Tool for GetConfig {
    const SPEC: Spec = Spec {
        name: "get_config",
        description: "The effective settings of this session, and for each whether it is the default, the global value or this \
                      session's override.",
        surface: Surface::None,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: "{}",
    };
    type Arguments = Nothing;
    type Reply = Effective;

    async fn run(_: Nothing, context: Context) -> Result<Effective> {
        Ok(Effective::of(&context))
    }
}

/// Changes settings.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SetArguments {
    /// What get_window_state answers with.
    capture_mode: Option<CaptureMode>,
    /// Long side of pictures in pixels.
    #[schemars(range(min = 64, max = 8192))]
    max_image_dimension: Option<u32>,
    /// Encoding of pictures.
    image_format: Option<ImageFormat>,
    /// Elements shown of a tree.
    #[schemars(range(min = 1, max = 5000))]
    max_elements: Option<u32>,
    /// Deadline of a call.
    #[schemars(range(min = 100, max = 600000))]
    call_timeout_ms: Option<u64>,
    /// Whether people see a cursor where this session acts.
    agent_cursor: Option<bool>,
    /// Whether people see a preview of what agents act on: of the whole process, not of this session alone.
    preview: Option<bool>,
    /// Names of settings to set back to what is below.
    unset: Option<Vec<String>>,
}

impl SetArguments {
    fn overrides(&self) -> Overrides {
        Overrides {
            capture_mode: self.capture_mode,
            max_image_dimension: self.max_image_dimension,
            image_format: self.image_format,
            max_elements: self.max_elements,
            call_timeout_ms: self.call_timeout_ms,
            agent_cursor: self.agent_cursor,
            preview: self.preview,
        }
    }
}

pub(super) struct SetConfig;

impl Tool for SetConfig {
    const SPEC: Spec = Spec {
        name: "set_config",
        description: "Override settings for this session only: nothing changes for others and nothing is written to disk. (From \
                      the command line, without a session, it changes and saves the global values.) Only `preview` is \
                      the whole process's.",
        surface: Surface::Control,
        queue: None,
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"max_image_dimension": 1024, "unset": ["image_format"]}"#,
    };
    type Arguments = SetArguments;
    type Reply = Effective;

    fn check(arguments: &SetArguments) -> Result<()> {
        arguments.overrides().validate()?;
        for name in arguments.unset.iter().flatten() {
            if !settings::NAMES.contains(&name.as_str()) {
                let message = format!("there is no such setting; there are: {}", settings::NAMES.join(", "));
                return Err(Error::argument("unset", message));
            }
        }
        if arguments.overrides() == Overrides::default() && arguments.unset.as_ref().is_none_or(Vec::is_empty)
        {
            return Err(Error::argument(
                "unset",
                format!("nothing to change; settings: {}", settings::NAMES.join(", ")),
            ));
        }
        Ok(())
    }

    async fn run(arguments: SetArguments, context: Context) -> Result<Effective> {
        let unset = arguments.unset.clone().unwrap_or_default();
        change(&context, &arguments.overrides(), &unset)?;
        Ok(Effective::of(&context))
    }
}

/// Changes the session's settings, or the global ones where there is no session.
pub(super) fn change(context: &Context, set: &Overrides, unset: &[String]) -> Result<()> {
    let preview = &context.shared().preview;
    let names_preview = set.preview.is_some() || unset.iter().any(|name| name == "preview");
    if context.session().anonymous {
        context.global_settings().change(set, unset)?;
        if names_preview {
            preview.follow_settings();
        }
    } else {
        let is_person_s =
            preview.is_wanted_by_person() || context.global_settings().overrides().preview == Some(true);
        if set.preview == Some(false) && is_person_s {
            let message = "a person asked for the preview, so only they can close it, with `deskhand config set preview false`; \
                           nothing was changed";
            return Err(Error::new(Code::NotSupported, message));
        }
        let own: Vec<_> = unset.iter().filter(|name| *name != "preview").cloned().collect();
        context.session().change_overrides(&Overrides { preview: None, ..set.clone() }, &own);
        if names_preview {
            preview.set_by_agent(set.preview);
        }
    }
    let defaults = &context.host().defaults;
    let (global, process) = (context.global_settings().overrides(), preview.overrides());
    for session in context.sessions().all().iter().chain([context.own_session()]) {
        if !Settings::effective(&[defaults, &global, &session.overrides(), &process]).agent_cursor {
            context.cursors().hide(session);
        }
    }
    if !effective(context).preview {
        preview.close();
    }
    Ok(())
}

/// The session's settings as they are now.
pub(super) fn effective(context: &Context) -> Settings {
    Effective::of(context).settings
}

//! `get_app_state`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::reading::Family;
use super::window_state::{self, WindowState};
use super::{Spec, Surface, Tool, windows};
use crate::desktop::{Window, WindowKind};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::settings::CaptureMode;
use crate::tree::quote;

/// Other windows of the application that an answer names.
const OTHERS: usize = 8;

/// Reads an application's main window.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Application, by its name, a part of it, or its desktop id.
    app: String,
    /// As in get_window_state.
    capture_mode: Option<CaptureMode>,
    /// Only elements whose name, role, text or value contains this, in any case.
    query: Option<String>,
    /// Elements to show at most.
    #[schemars(range(min = 1, max = 5000))]
    max_elements: Option<u32>,
    /// Also show elements that are not on the screen.
    include_hidden: Option<bool>,
    /// Add each element's frame.
    frames: Option<bool>,
    /// A snapshot_id of this window: answer only what is different from it.
    since: Option<String>,
}

impl Arguments {
    fn of_window(&self) -> window_state::Arguments {
        let Self { app, capture_mode, query, max_elements, include_hidden, frames, since } = self.clone();
        window_state::Arguments {
            app: Some(app),
            capture_mode,
            query,
            max_elements,
            include_hidden,
            frames,
            since,
            ..window_state::Arguments::default()
        }
    }
}

/// Windows of the application, lowest first.
async fn windows_of<'w>(context: &Context, windows: &'w [Window], app: &str) -> Result<Vec<&'w Window>> {
    let wanted = app.to_lowercase();
    let usable = || {
        let usable = |window: &&Window| matches!(window.kind, WindowKind::Normal | WindowKind::Dialog);
        windows.iter().filter(usable)
    };
    let named = |whole: bool| -> Vec<&Window> {
        let fits = |window: &&Window| {
            let name = window.app.to_lowercase();
            if whole { name == wanted } else { name.contains(&wanted) }
        };
        usable().filter(fits).collect()
    };
    for found in [named(true), named(false)] {
        if !found.is_empty() {
            return Ok(found);
        }
    }
    // A person's name for it and its desktop id need not be what its windows say.
    let running = context.desktop().apps.running().await?;
    let is_meant = |name: &str| name.to_lowercase().contains(&wanted);
    let pids: Vec<u32> = running
        .into_iter()
        .filter(|app| is_meant(&app.name) || app.desktop_id.as_deref().is_some_and(is_meant))
        .flat_map(|app| app.pids)
        .collect();
    Ok(usable().filter(|window| window.pid.is_some_and(|pid| pids.contains(&pid))).collect())
}

/// The window that a person would call the application: in front of its other ordinary windows.
fn main_window<'w>(found: &[&'w Window]) -> Option<&'w Window> {
    let ordinary = |window: &&&Window| window.kind == WindowKind::Normal && window.parent.is_none();
    found.iter().rev().find(ordinary).or(found.last()).copied()
}

pub(super) struct GetAppState;

impl Tool for GetAppState {
    const SPEC: Spec = Spec {
        name: "get_app_state",
        description: "get_window_state of an application's main window; names its other windows.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"app": "mousepad"}"#,
    };
    type Arguments = Arguments;
    type Reply = WindowState;

    fn check(arguments: &Arguments) -> Result<()> {
        window_state::check(&arguments.of_window())
    }

    async fn run(arguments: Arguments, context: Context) -> Result<WindowState> {
        context
            .read(async {
                let list = context.desktop().windows.list().await?;
                let found = windows_of(&context, &list, &arguments.app).await?;
                let window = main_window(&found).ok_or_else(|| {
                    let app = quote(&arguments.app, 60);
                    let message = format!(
                        "no window of an application called {app}; list_apps shows what runs, launch_app starts it"
                    );
                    Error::new(Code::UnknownWindow, message)
                })?;
                let others = found.iter().rev().filter(|other| other.id != window.id).take(OTHERS);
                let others: Vec<String> = others.map(|other| windows::line(other)).collect();
                let family = Family::among(&list, window.clone());
                let mut state = window_state::of_window(&context, &arguments.of_window(), family).await?;
                state.notes.extend(others.into_iter().map(|line| format!("it also has window {line}")));
                Ok(state)
            })
            .await
    }
}

//! `list_windows`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reply, Spec, Surface, Tool};
use crate::desktop::{Window, WindowId, WindowKind};
use crate::engine::Context;
use crate::error::Result;
use crate::geometry::Rect;
use crate::queue::StepKind;
use crate::tree::quote;

/// Lists windows.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Only windows of applications whose name contains this, in any case.
    app: Option<String>,
    /// Only windows of this process.
    pid: Option<u32>,
    /// Leave out minimised windows and those outside of every display.
    on_screen_only: Option<bool>,
}

/// The windows, front first.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Listing {
    windows: Vec<Entry>,
}

/// A window and the popups that are open on it.
#[derive(Clone, Debug, Serialize)]
struct Entry {
    #[serde(flatten)]
    window: Window,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    popups: Vec<WindowId>,
}

/// A window in one line: `4194310 "Untitled 1 - Mousepad" Mousepad pid 1234 800x600 at 10,20 focused`.
pub(super) fn line(window: &Window) -> String {
    let mut line = format!("{} {} {}", window.id, quote(&window.title, 100), quote(&window.app, 40));
    if let Some(pid) = window.pid {
        line += &format!(" pid {pid}");
    }
    line += &format!(" {}", window.frame);
    for (set, word) in [
        (window.focused, "focused"),
        (window.minimized, "minimized"),
        (window.maximized, "maximized"),
        (window.fullscreen, "fullscreen"),
    ] {
        if set {
            line += &format!(" {word}");
        }
    }
    match (window.kind, window.parent) {
        (WindowKind::Normal, _) => {}
        (kind, Some(parent)) => line += &format!(" ({kind:?} of {parent})").to_lowercase(),
        (kind, None) => line += &format!(" ({kind:?})").to_lowercase(),
    }
    line
}

impl Reply for Listing {
    fn text(&self) -> String {
        if self.windows.is_empty() {
            return "no windows".to_owned();
        }
        let lines: Vec<_> = self.windows.iter().map(|entry| line(&entry.window)).collect();
        format!("{} windows, front first:\n{}", lines.len(), lines.join("\n"))
    }
}

pub(super) struct ListWindows;

impl Tool for ListWindows {
    const SPEC: Spec = Spec {
        name: "list_windows",
        description: "List the windows of the desktop with id, process, application, title, frame (screen pixels), focus and \
                      stacking order (greatest `z` in front). Popups (menus, lists) name the window they belong to, whose get_window_state shows them too.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"app": "mousepad"}"#,
    };
    type Arguments = Arguments;
    type Reply = Listing;

    async fn run(arguments: Arguments, context: Context) -> Result<Listing> {
        let desktop = context.desktop();
        let (mut windows, displays) = context
            .read(async {
                let windows = desktop.windows.list().await?;
                let displays = match arguments.on_screen_only {
                    Some(true) => desktop.screen.displays().await?,
                    _ => Vec::new(),
                };
                Ok((windows, displays))
            })
            .await?;
        let app = arguments.app.map(|app| app.to_lowercase());
        let on_display =
            |frame: &Rect| displays.iter().any(|display| display.frame.intersection(frame).is_some());
        windows.retain(|window| {
            app.as_ref().is_none_or(|app| window.app.to_lowercase().contains(app))
                && arguments.pid.is_none_or(|pid| window.pid == Some(pid))
                && (arguments.on_screen_only != Some(true)
                    || (!window.minimized && on_display(&window.frame)))
        });
        let popups_of = |id: WindowId| {
            let of_it = |other: &&Window| other.kind == WindowKind::Popup && other.parent == Some(id);
            windows.iter().filter(of_it).map(|popup| popup.id).collect()
        };
        let windows =
            windows.iter().rev().map(|window| Entry { window: window.clone(), popups: popups_of(window.id) });
        Ok(Listing { windows: windows.collect() })
    }
}

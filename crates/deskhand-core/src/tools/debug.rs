//! `debug_window_info`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reply, Spec, Surface, Tool, windows};
use crate::desktop::{Fact, Window, WindowId};
use crate::engine::Context;
use crate::error::Result;
use crate::queue::StepKind;
use crate::tree::quote;

/// Characters of one fact that are told.
const FACT_LIMIT: usize = 600;

/// Says what is known of a window.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window, from list_windows.
    window_id: WindowId,
}

/// Raw facts.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Information {
    version: String,
    window: Window,
    /// The client's own area, in screen pixels.
    client: crate::geometry::Rect,
    #[serde(skip)]
    lines: Vec<String>,
}

impl Reply for Information {
    fn text(&self) -> String {
        format!(
            "deskhand {}\nwindow {}\n{}",
            self.version,
            windows::line(&self.window),
            self.lines.join("\n")
        )
    }
}

/// `windows.map_state: "viewable"`: names are ours or of the protocol, values may be anybody's text.
fn line(source: &str, fact: &Fact) -> String {
    let is_plain = |c: char| c.is_ascii_graphic() || c == ' ';
    let name: String = fact.name.chars().filter(|&c| is_plain(c)).take(60).collect();
    format!("{source}.{name}: {}", quote(&fact.value, FACT_LIMIT))
}

pub(super) struct DebugWindowInfo;

impl Tool for DebugWindowInfo {
    const SPEC: Spec = Spec {
        name: "debug_window_info",
        description: "Raw facts of a window for a bug report: properties, geometry, place in the tree, sources of its process, and \
                      which application of the accessibility bus is taken for its own and why.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: false,
        example: r#"{"window_id": 4194310}"#,
    };
    type Arguments = Arguments;
    type Reply = Information;

    async fn run(arguments: Arguments, context: Context) -> Result<Information> {
        context
            .read(async {
                let window = context.window(arguments.window_id).await?;
                let desktop = context.desktop();
                let (system, accessibility) =
                    tokio::join!(desktop.windows.facts(window.id), desktop.accessibility.facts(&window));
                let mut lines: Vec<String> = system?.iter().map(|fact| line("window_system", fact)).collect();
                lines.extend(accessibility.iter().map(|fact| line("accessibility", fact)));
                let version = context.host().version.clone();
                Ok(Information { version, client: window.client, window, lines })
            })
            .await
    }
}

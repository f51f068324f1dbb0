//! `perform_secondary_action`: an action that an element offers besides being clicked.

use schemars::JsonSchema;
use serde::Deserialize;

use super::target::{self, Aim, QueryArgument};
use super::{Spec, Surface, Tool};
use crate::desktop::WindowId;
use crate::effect::{Effect, EffectReport, Expectation, Observer, Route, Target};
use crate::engine::Context;
use crate::error::{Error, Result};
use crate::queue::StepKind;
use crate::tree::quote;

/// Performs an action of an element.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Window of the element.
    window_id: Option<WindowId>,
    /// Element, by its number in the newest snapshot of the window.
    element_index: Option<u32>,
    /// As in click.
    query: Option<QueryArgument>,
    /// Snapshot that the number is from, if not the newest.
    snapshot_id: Option<String>,
    /// Name of the action, as the tree lists it.
    action: String,
}

impl Arguments {
    fn aim(&self) -> Aim {
        Aim {
            window_id: self.window_id,
            element_index: self.element_index,
            query: self.query.clone(),
            snapshot_id: self.snapshot_id.clone(),
            ..Aim::default()
        }
    }
}

pub(super) struct PerformSecondaryAction;

impl Tool for PerformSecondaryAction {
    const SPEC: Spec = Spec {
        name: "perform_secondary_action",
        description: "Perform an accessibility action of an element other than a click, by a name that the tree lists \
                      (`actions=`), such as \"expand or contract\".",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: false,
        listed: true,
        example: r#"{"window_id": 4194310, "element_index": 3, "action": "expand or contract"}"#,
    };
    type Arguments = Arguments;
    type Reply = EffectReport;

    fn check(arguments: &Arguments) -> Result<()> {
        arguments.aim().check_element()
    }

    async fn run(arguments: Arguments, context: Context) -> Result<EffectReport> {
        let (mut observer, element, claimed) = context
            .act(async {
                let element = target::element(&context, &arguments.aim()).await?;
                element.require_enabled(&context).await?;
                let details = element.details(&context, 0, true).await?;
                let wanted = arguments.action.trim().to_lowercase();
                let action =
                    details.actions.iter().find(|action| action.name.trim().to_lowercase() == wanted);
                let Some(action) = action else {
                    let names: Vec<_> =
                        details.actions.iter().map(|action| quote(&action.name, 40)).collect();
                    let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                    let message = format!("{} has no such action; it has: {known}", element.describe());
                    return Err(Error::argument("action", message));
                };
                let target = Target {
                    owner: Some(&element.id().owner),
                    element: Some(element.id()),
                    window: Some(&element.window),
                    wants_focus: false,
                };
                let observer = Observer::start(&context, target).await;
                let claimed = context.desktop().accessibility.do_action(element.id(), action.index).await?;
                Ok((observer, element, claimed))
            })
            .await?;
        let report = |effect| EffectReport::new(effect, Route::AxAction).in_window(Some(element.window.id));
        Ok(match observer.evidence(&context, Some(&element.snapshot), Expectation::Possible).await {
            Some(evidence) => report(Effect::Confirmed).to(evidence),
            None if claimed => {
                observer.leave_open(&context);
                match observer.doubtful() {
                    Some(seen) => report(Effect::Unverifiable).doubtful(seen),
                    None => report(Effect::Unverifiable).hint("no change was seen; look at the window"),
                }
            }
            None => report(Effect::SuspectedNoop).hint("the application refused the action"),
        })
    }
}

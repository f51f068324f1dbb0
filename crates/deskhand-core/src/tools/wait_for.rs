//! `wait_for`: until something becomes true, told by events.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::reading::{Family, Reading};
use super::target::QUERY_TEXT;
use super::window_state::{MAX_NODES, TREE_BUDGET};
use super::{Reply, Spec, Surface, Tool, windows};
use crate::desktop::{
    Change, Details, DetailsRequest, Node, PortError, State, States, TreeRequest, Window, WindowId,
};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::progress::Part;
use crate::queue::StepKind;
use crate::tree::{Query, quote, spoken};

/// How long to wait, if not given.
const DEFAULT_TIMEOUT_MS: u64 = 10_000;
/// Longest wait.
const MAX_TIMEOUT_MS: u64 = 600_000;
/// An application without changes for so long is idle, if not given.
const DEFAULT_IDLE_MS: u64 = 500;
/// Events come in bursts: the condition is looked at once for each burst.
const BURST: Duration = Duration::from_millis(15);
/// Not every toolkit tells every change: the condition is looked at so often even without an event.
const LOOK_ANYWAY: Duration = Duration::from_secs(1);

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Condition {
    /// An element matches role, name and value.
    ElementAppears,
    /// No element matches.
    ElementVanishes,
    /// A window matches title and app.
    WindowOpens,
    /// No window matches.
    WindowCloses,
    /// The window's application has not changed for a while.
    Idle,
}

/// A state of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    Enabled,
    Checked,
    Selected,
    Focused,
    Expanded,
    Visible,
}

impl Wanted {
    const fn word(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Checked => "checked",
            Self::Selected => "selected",
            Self::Focused => "focused",
            Self::Expanded => "expanded",
            Self::Visible => "visible",
        }
    }

    fn holds(self, states: States) -> bool {
        match self {
            Self::Enabled => states.has(State::Enabled) || states.has(State::Sensitive),
            // Toggle buttons of some toolkits are pressed.
            Self::Checked => states.has(State::Checked) || states.has(State::Pressed),
            Self::Selected => states.has(State::Selected),
            Self::Focused => states.has(State::Focused),
            Self::Expanded => states.has(State::Expanded),
            Self::Visible => states.has(State::Showing),
        }
    }
}

/// Waits for a condition.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// `element_appears` and `element_vanishes` look at role, name and value in `window_id`; `window_opens` and `window_closes` at title, app or `window_id`; `idle` at `window_id`.
    condition: Condition,
    /// Window to look into.
    window_id: Option<WindowId>,
    /// Role of the element, as outlines spell it.
    role: Option<String>,
    /// Part of the element's name.
    name: Option<String>,
    /// Part of the element's text or value.
    value: Option<String>,
    /// State that the element is in.
    state: Option<Wanted>,
    /// Part of the window's title.
    title: Option<String>,
    /// Part of the application's name.
    app: Option<String>,
    /// Whole names and texts must be equal, case included.
    exact: Option<bool>,
    /// How long without changes counts as idle.
    #[schemars(range(min = 50, max = 10000))]
    idle_ms: Option<u64>,
    /// How long to wait; then the answer is the error `timeout` with the last state.
    #[schemars(range(min = 0, max = 600000))]
    timeout_ms: Option<u64>,
}

/// What became true.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Met {
    met: bool,
    waited_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    window: Option<Window>,
    #[serde(skip_serializing_if = "Option::is_none")]
    element: Option<String>,
    #[serde(skip)]
    text: String,
}

impl Reply for Met {
    fn text(&self) -> String {
        format!("{} after {} ms", self.text, self.waited_ms)
    }
}

/// One look at the condition.
enum Look {
    Met { text: String, window: Option<Box<Window>>, element: Option<String> },
    NotYet(String),
}

impl Arguments {
    fn query(&self) -> Query {
        Query {
            role: self.role.clone(),
            name: self.name.clone(),
            value: self.value.clone(),
            any: None,
            exact: self.exact.unwrap_or(false),
        }
    }

    fn text_matches(&self, wanted: Option<&String>, text: &str) -> bool {
        wanted.is_none_or(|wanted| {
            if self.exact == Some(true) {
                wanted == text
            } else {
                text.to_lowercase().contains(&wanted.to_lowercase())
            }
        })
    }

    fn window_matches(&self, window: &Window) -> bool {
        self.window_id.is_none_or(|id| id == window.id)
            && self.text_matches(self.title.as_ref(), &window.title)
            && self.text_matches(self.app.as_ref(), &window.app)
    }
}

fn check(arguments: &Arguments) -> Result<()> {
    crate::settings::within("timeout_ms", arguments.timeout_ms, &(0..=MAX_TIMEOUT_MS))?;
    crate::settings::within("idle_ms", arguments.idle_ms, &(50..=10_000))?;
    let Arguments { role, name, value, title, app, window_id, .. } = arguments;
    let missing = |field: &str, why: &str| Err(Error::argument(field, why));
    match arguments.condition {
        Condition::ElementAppears | Condition::ElementVanishes => {
            if window_id.is_none() {
                return missing("window_id", "missing; expected the window to look into");
            }
            if role.is_none() && name.is_none() && value.is_none() && arguments.state.is_none() {
                return missing("name", "missing; expected `role`, `name` or `value` of the element");
            }
        }
        Condition::WindowOpens if title.is_none() && app.is_none() => {
            return missing("title", "missing; expected `title` or `app` of the window");
        }
        Condition::WindowCloses if title.is_none() && app.is_none() && window_id.is_none() => {
            return missing("window_id", "missing; expected `window_id`, `title` or `app` of the window");
        }
        Condition::Idle if window_id.is_none() => {
            return missing("window_id", "missing; expected the window to watch");
        }
        _ => {}
    }
    Ok(())
}

async fn run(arguments: Arguments, context: Context) -> Result<Met> {
    let started = Instant::now();
    let wait = Duration::from_millis(arguments.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS));
    let deadline = started + wait;
    let part = || Part::Done {
        done: started.elapsed().as_secs_f64(),
        total: wait.as_secs_f64(),
        message: format!("still waiting ({} of {} s)", started.elapsed().as_secs(), wait.as_secs()),
    };
    let mut events = Events::subscribe(&arguments, &context).await?;
    let waited = || u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    if arguments.condition == Condition::Idle {
        let idle = Duration::from_millis(arguments.idle_ms.unwrap_or(DEFAULT_IDLE_MS));
        return match context.reporting(part, events.quiet(&context, idle, deadline)).await? {
            true => Ok(Met {
                met: true,
                waited_ms: waited(),
                window: None,
                element: None,
                text: "idle".to_owned(),
            }),
            false => Err(timeout(wait, "it kept changing")),
        };
    }
    loop {
        events.forget();
        let last = match context.read(look(&arguments, &context)).await? {
            Look::Met { text, window, element } => {
                return Ok(Met { met: true, waited_ms: waited(), window: window.map(|w| *w), element, text });
            }
            Look::NotYet(last) => last,
        };
        let now = Instant::now();
        if now >= deadline {
            return Err(timeout(wait, &last));
        }
        context.reporting(part, events.next(&context, deadline.min(now + LOOK_ANYWAY))).await?;
    }
}

fn timeout(wait: Duration, last: &str) -> Error {
    Error::new(Code::Timeout, format!("not true within {} ms; last state: {last}", wait.as_millis()))
}

/// Events that may change the answer.
struct Events {
    windows: watch::Receiver<u64>,
    changes: Option<broadcast::Receiver<Change>>,
    /// Only this application's changes matter.
    owner: Option<std::sync::Arc<str>>,
}

impl Events {
    async fn subscribe(arguments: &Arguments, context: &Context) -> Result<Self> {
        let windows = context.desktop().windows.changes().await?;
        let about_windows = matches!(arguments.condition, Condition::WindowOpens | Condition::WindowCloses);
        let changes =
            if about_windows { None } else { Some(context.desktop().accessibility.changes().await?) };
        let mut owner = None;
        if arguments.condition == Condition::Idle
            && let Some(id) = arguments.window_id
        {
            owner = context
                .read(async { Ok(read(context, Family::of(context, id).await?).await?) })
                .await?
                .tree
                .nodes
                .first()
                .map(|node| node.id.owner.clone());
        }
        Ok(Self { windows, changes, owner })
    }

    /// Forgets what was told so far: a look that follows sees it.
    fn forget(&mut self) {
        self.windows.borrow_and_update();
        if let Some(changes) = &mut self.changes {
            *changes = changes.resubscribe();
        }
    }

    /// Waits for an event and for the burst that it began, or until `deadline`.
    async fn next(&mut self, context: &Context, deadline: Instant) -> Result<()> {
        if self.event(context, deadline).await? {
            context.pause(BURST).await?;
        }
        Ok(())
    }

    /// Waits for one event; `false` at the deadline.
    async fn event(&mut self, context: &Context, deadline: Instant) -> Result<bool> {
        loop {
            let changed = async {
                match &mut self.changes {
                    Some(changes) => changes.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = context.stop().cancelled() => return Err(context.stopped()),
                alive = self.windows.changed() => {
                    return alive.map(|()| true).map_err(|_| PortError::DesktopLost.into());
                }
                change = changed => match change {
                    Ok(change) if self.owner.as_ref().is_some_and(|owner| *owner != change.element.owner) => {}
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return Ok(true),
                    Err(broadcast::error::RecvError::Closed) => self.changes = None,
                },
                () = tokio::time::sleep_until(deadline) => return Ok(false),
            }
        }
    }

    /// Waits until nothing has happened for `idle`; `false` at the deadline.
    async fn quiet(&mut self, context: &Context, idle: Duration, deadline: Instant) -> Result<bool> {
        loop {
            let until = Instant::now() + idle;
            if !self.event(context, until.min(deadline)).await? {
                return Ok(until <= deadline);
            }
        }
    }
}

async fn look(arguments: &Arguments, context: &Context) -> Result<Look> {
    match arguments.condition {
        Condition::WindowOpens => {
            let windows = context.desktop().windows.list().await?;
            let count = windows.len();
            Ok(match windows.into_iter().rev().find(|window| arguments.window_matches(window)) {
                Some(window) => Look::Met {
                    text: format!("window {} is there", windows::line(&window)),
                    window: Some(Box::new(window)),
                    element: None,
                },
                None => Look::NotYet(format!("none of {count} windows matches")),
            })
        }
        Condition::WindowCloses => {
            let windows = context.desktop().windows.list().await?;
            Ok(match windows.into_iter().rev().find(|window| arguments.window_matches(window)) {
                Some(window) => Look::NotYet(format!("window {} is there", windows::line(&window))),
                None => Look::Met { text: "no such window is there".to_owned(), window: None, element: None },
            })
        }
        _ => look_for_element(arguments, context).await,
    }
}

async fn read(context: &Context, family: Family) -> Result<Reading, PortError> {
    let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: 0 };
    Reading::take(context, family, &request).await
}

async fn look_for_element(arguments: &Arguments, context: &Context) -> Result<Look> {
    let Some(id) = arguments.window_id else { return Err(Error::argument("window_id", "missing")) };
    let vanishes = arguments.condition == Condition::ElementVanishes;
    let family = match Family::of(context, id).await {
        Ok(family) => family,
        // With its window the element is gone as well.
        Err(error) if vanishes && error.code == Code::WindowGone => {
            return Ok(Look::Met {
                text: "the window is gone, and the element with it".to_owned(),
                window: None,
                element: None,
            });
        }
        Err(error) => return Err(error),
    };
    let reading = read(context, family).await?;
    let tree = &reading.tree;
    let partial =
        tree.notes.iter().any(|note| matches!(note, crate::desktop::TreeNote::NotResponding { .. }));
    let query = arguments.query();
    let in_state = |node: &Node| arguments.state.is_none_or(|state| state.holds(node.states));
    let is_candidate = |(_, node): &(u32, &Node)| !query.excludes(node) && in_state(node);
    let places: Vec<u32> = (0u32..).zip(&tree.nodes).filter(is_candidate).map(|(place, _)| place).collect();
    // In another state: what the caller hears of when the time is up.
    let others = tree.nodes.iter().find(|node| !query.excludes(node) && !in_state(node));
    let mut details: Vec<Option<Details>> = vec![None; places.len()];
    if query.needs_details() {
        let request = DetailsRequest { text_limit: QUERY_TEXT, frames: false, actions: false };
        details = reading.details(context, &places, request).await?;
    }
    let candidates = places.iter().map(|&place| &tree.nodes[place as usize]);
    let found = candidates.zip(&details).find(|(node, details)| query.matches(node, details.as_ref()));
    let name = |node: &crate::desktop::Node| format!("{} {}", spoken(&node.role), quote(&node.name, 80));
    Ok(match (found, vanishes) {
        (Some((node, _)), false) => {
            Look::Met { text: format!("{} is there", name(node)), window: None, element: Some(name(node)) }
        }
        (Some((node, _)), true) => Look::NotYet(format!("{} is there", name(node))),
        (None, true) if !partial => {
            Look::Met { text: "no such element is there".to_owned(), window: None, element: None }
        }
        (None, _) if partial => Look::NotYet("the application does not answer".to_owned()),
        (None, _) => Look::NotYet(match (arguments.state, others) {
            (Some(state), Some(node)) => format!("{} is there, and not {}", name(node), state.word()),
            _ => format!("none of {} elements matches", tree.nodes.len()),
        }),
    })
}

pub(super) struct WaitFor;

impl Tool for WaitFor {
    const SPEC: Spec = Spec {
        name: "wait_for",
        description: "Wait until an element appears or vanishes, a window opens or closes, or an application is idle; better than \
                      looking again and again. Other calls go on meanwhile.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"condition": "element_appears", "window_id": 4194310, "role": "button", "name": "Save"}"#,
    };
    type Arguments = Arguments;
    type Reply = Met;

    fn check(arguments: &Arguments) -> Result<()> {
        check(arguments)
    }

    /// Its own time-out answers with the last state; the call's deadline stands behind it.
    fn timeout(arguments: &Arguments) -> Option<Duration> {
        Some(
            Duration::from_millis(arguments.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS))
                + Duration::from_secs(15),
        )
    }

    async fn run(arguments: Arguments, context: Context) -> Result<Met> {
        run(arguments, context).await
    }
}

//! `replay_trajectory`: does again what was recorded.

use std::collections::HashMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::reading::{Family, Reading};
use super::window_state::{MAX_NODES, TREE_BUDGET};
use super::{Reply, Spec, Surface, TOOLS, Tool};
use crate::call::{Call, Outcome};
use crate::desktop::{TreeRequest, Window, WindowId};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Rect;
use crate::queue::StepKind;
use crate::recording::replay;
use crate::recording::trajectory::{Action, ElementRecord, Trajectory};
use crate::subject::TO_FOCUS;
use crate::tree::Snapshot;

/// A whole replay takes so long at most.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// How long a window or an element may take to appear: the program was as fast when it was recorded.
const APPEAR: Duration = Duration::from_secs(10);
/// How often it is looked for: windows tell that they are there, elements do not all.
const LOOK: Duration = Duration::from_millis(100);
/// A pause of the recording is kept up to this: a person was away.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Turns that are looked at: an hour of an agent at work.
const MAX_TURNS: usize = 10_000;

/// Does again what was recorded.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    /// Absolute path of the recording's folder.
    dir: PathBuf,
    /// 1 keeps the pauses between turns as they were, 2 halves them; without it there are none.
    #[schemars(range(min = 0.1, max = 100))]
    speed: Option<f64>,
    /// Stop at the first turn that does not succeed; true if not given.
    stop_on_error: Option<bool>,
}

/// What became of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    /// It was done again.
    Done,
    /// It was done again, with another effect than before.
    Differs,
    /// It is left out of a replay.
    Skipped,
    /// It could not be done.
    Failed,
}

/// One turn of the replay.
#[derive(Clone, Debug, Serialize)]
struct Replayed {
    turn: u32,
    tool: String,
    status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    effect: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A replay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Whether every turn was come to.
    completed: bool,
    /// How many there are.
    recorded: usize,
    turns: Vec<Replayed>,
}

impl Reply for Report {
    fn text(&self) -> String {
        let count = |status: Status| self.turns.iter().filter(|turn| turn.status == status).count();
        let mut text = match self.completed {
            true => format!("replayed {} turns", self.recorded),
            false => format!(
                "stopped at turn {} of {}",
                self.turns.last().map_or(0, |turn| turn.turn),
                self.recorded
            ),
        };
        let others = [
            (Status::Differs, "with another effect"),
            (Status::Skipped, "left out"),
            (Status::Failed, "failed"),
        ];
        for (status, words) in others {
            if let number @ 1.. = count(status) {
                let _ = write!(text, ", {number} {words}");
            }
        }
        for turn in &self.turns {
            let Replayed { turn: number, tool, effect, code, message, .. } = turn;
            let effect = effect.as_deref().or(*code).unwrap_or(match turn.status {
                Status::Skipped => "left out",
                _ => "done",
            });
            let _ = write!(text, "\n{number} {tool}: {effect}");
            if let Some(message) = message {
                let _ = write!(text, "; {message}");
            }
        }
        text
    }
}

/// Reads a trajectory whole, and makes sure that all of it can be understood.
fn read(dir: &std::path::Path) -> Result<(Trajectory, Vec<Action>)> {
    let trajectory = Trajectory::read(dir)?;
    let actions = Trajectory::turns(dir)?;
    let invalid = |turn: u32, why: String| {
        Err(Error::new(
            Code::InvalidTrajectory,
            format!("turn {turn} of {}: {why}; nothing was done", dir.display()),
        ))
    };
    if actions.len() > MAX_TURNS {
        return invalid(0, format!("there are {} turns, more than {MAX_TURNS}", actions.len()));
    }
    for action in &actions {
        let known = TOOLS.iter().find(|tool| tool.spec.name == action.tool);
        let Some(tool) = known.filter(|tool| tool.spec.queue == Some(StepKind::Act)) else {
            return invalid(action.turn, format!("{:?} is no tool that acts", action.tool));
        };
        if action.withheld.is_empty()
            && let Err(error) = tool.prepare(action.arguments.clone())
            && action.error.is_none()
        {
            return invalid(action.turn, error.message);
        }
    }
    Ok((trajectory, actions))
}

/// A replay under way.
struct Replay<'c> {
    context: &'c Context,
    displays: Vec<Rect>,
    /// What windows of then have become.
    windows: HashMap<WindowId, WindowId>,
    /// What processes of then have become.
    pids: HashMap<u64, u64>,
}

impl Replay<'_> {
    /// Does one turn again.
    async fn turn(&mut self, action: &Action) -> Replayed {
        let mut replayed = Replayed {
            turn: action.turn,
            tool: action.tool.clone(),
            status: Status::Done,
            effect: None,
            code: None,
            message: None,
        };
        if let Some(why) = replay::left_out(action) {
            return Replayed { status: Status::Skipped, message: Some(why), ..replayed };
        }
        let outcome = match self.arguments(action).await {
            Ok(arguments) => self.call(&action.tool, arguments).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(answer) => {
                self.learn(action, &answer.structured);
                replayed.effect = answer.structured["effect"].as_str().map(str::to_owned);
                if action.effect.as_deref() == Some("confirmed") && replayed.effect != action.effect {
                    replayed.status = Status::Differs;
                    replayed.message = Some("it was confirmed when it was recorded".to_owned());
                }
            }
            Err(error) => {
                replayed.status = Status::Failed;
                replayed.code = Some(error.code.name());
                replayed.message = Some(error.message);
            }
        }
        replayed
    }

    /// Enters the engine like every other call: consent, queue and limits hold for it.
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Outcome {
        let cancel = self.context.stop().child_token();
        let call = Call { tool: tool.to_owned(), arguments, cancel, ..Call::default() };
        self.context.invoke(call).await
    }

    /// The arguments of a turn, aimed at what is on the desktop now.
    async fn arguments(&mut self, action: &Action) -> Result<Map<String, Value>> {
        if !action.withheld.is_empty() {
            let message = format!(
                "its `{}` was not recorded, because it went into a password field; do it yourself",
                action.withheld.join("`, `")
            );
            return Err(Error::new(Code::NotSupported, message));
        }
        let mut arguments = action.arguments.clone();
        match action.tool.as_str() {
            "launch_app" => self.require_installed(&arguments).await?,
            "kill_app" => self.require_own(&mut arguments)?,
            _ => {}
        }
        let now = self.window_of(action).await?;
        if let Some(now) = &now
            && TO_FOCUS.contains(&action.tool.as_str())
        {
            arguments.entry("window_id").or_insert_with(|| json!(now.id));
        }
        let windows = &self.windows;
        replay::rewindow(&mut arguments, |then| {
            windows
                .get(&then)
                .copied()
                .or(now.as_ref().filter(|now| now.id == then).map(|now| now.id))
                .ok_or_else(|| {
                    Error::new(
                        Code::UnknownWindow,
                        format!("nothing is known of the window {then} that it names"),
                    )
                })
        })?;
        self.aim(action, &mut arguments, now.as_ref()).await?;
        Ok(arguments)
    }

    /// Finds the elements and points of a turn again.
    async fn aim(
        &self,
        action: &Action,
        arguments: &mut Map<String, Value>,
        now: Option<&Window>,
    ) -> Result<()> {
        let mut elements = action.elements.iter();
        let mut points = action.points.iter();
        let then = action.window.as_ref().map(|window| window.frame);
        let own = std::iter::once(None).chain(replay::PARTS.iter().map(|part| Some(*part)));
        for part in own {
            let window = arguments.get("window_id").and_then(Value::as_u64);
            let aimed = match part {
                None => Some(&mut *arguments),
                Some(part) => arguments.get_mut(part).and_then(Value::as_object_mut),
            };
            let Some(aimed) = aimed else { continue };
            if replay::names_element(aimed) {
                let Some(element) = elements.next() else { continue };
                let window = aimed.get("window_id").and_then(Value::as_u64).or(window);
                let window = window.map(WindowId).or(now.map(|now| now.id));
                let Some(window) = window else { continue };
                let (index, snapshot) = self.element(window, element).await?;
                replay::aim_at_element(aimed, index, &snapshot);
            } else if replay::names_point(aimed) {
                let Some(point) = points.next() else { continue };
                if now.is_none() && self.displays != self.displays_now().await? {
                    let message = "the displays are not as they were, so points of the screen mean nothing";
                    return Err(Error::new(Code::NotSupported, message));
                }
                replay::aim_at_point(aimed, *point, then, now.map(|now| now.frame))?;
            }
        }
        Ok(())
    }

    async fn displays_now(&self) -> Result<Vec<Rect>> {
        let displays = self.context.desktop().screen.displays().await?;
        Ok(displays.iter().map(|display| display.frame).collect())
    }

    /// The window of a turn, as it is now; waits for it to appear.
    async fn window_of(&mut self, action: &Action) -> Result<Option<Window>> {
        let Some(then) = &action.window else { return Ok(None) };
        let begun = Instant::now();
        loop {
            let windows =
                self.context.read(async { Ok(self.context.desktop().windows.list().await?) }).await?;
            let known = self.windows.get(&then.window_id);
            let found = match known.and_then(|id| windows.iter().find(|window| window.id == *id)) {
                Some(window) => Ok(window),
                None => replay::window(&windows, then),
            };
            match found {
                Ok(window) => {
                    self.windows.insert(then.window_id, window.id);
                    return Ok(Some(window.clone()));
                }
                Err(error) if begun.elapsed() >= APPEAR => return Err(error),
                Err(_) => self.context.pause(LOOK).await?,
            }
        }
    }

    /// The element of a window that was `then`: its index, and the snapshot that has it. Waits for it to appear.
    async fn element(&self, window: WindowId, then: &ElementRecord) -> Result<(u32, String)> {
        let context = self.context;
        let begun = Instant::now();
        loop {
            let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: 0 };
            let reading = context.read(async {
                let family = Family::of(context, window).await?;
                Ok(Reading::take(context, family, &request).await?)
            });
            let Reading { window, tree, parts } = reading.await?;
            match replay::element(&tree.nodes, then) {
                Ok(place) => {
                    let nodes = tree.nodes;
                    let indices = context.session().indices(window.id, &nodes);
                    let snapshot = context.session().keep(|id| Snapshot {
                        id,
                        window,
                        nodes,
                        indices,
                        parts,
                        seen: None,
                    });
                    return Ok((snapshot.index(place), snapshot.id.clone()));
                }
                Err(error) if begun.elapsed() >= APPEAR => return Err(error),
                Err(_) => context.pause(LOOK).await?,
            }
        }
    }

    /// Refuses a launch of what is no installed application.
    async fn require_installed(&self, arguments: &Map<String, Value>) -> Result<()> {
        let app = arguments.get("app").and_then(Value::as_str).unwrap_or_default().trim().to_lowercase();
        let installed =
            self.context.read(async { Ok(self.context.desktop().apps.installed().await?) }).await?;
        let is_it = |name: &str| name.to_lowercase() == app;
        let known = installed.iter().any(|each| {
            is_it(&each.name)
                || is_it(&each.desktop_id)
                || each.desktop_id.rsplit('.').next().is_some_and(is_it)
        });
        if known {
            return Ok(());
        }
        let message = format!(
            "{app:?} is no installed application, and a replay runs no commands; start it yourself before"
        );
        Err(Error::new(Code::NotSupported, message))
    }

    /// Lets a process be ended only if it was started by this replay.
    fn require_own(&self, arguments: &mut Map<String, Value>) -> Result<()> {
        let Some(then) = arguments.get("pid").and_then(Value::as_u64) else { return Ok(()) };
        let Some(now) = self.pids.get(&then) else {
            let message = "the process that it ended was not started by a turn of the recording, so which one it would be now \
                           is not known";
            return Err(Error::new(Code::NotSupported, message));
        };
        arguments.insert("pid".to_owned(), json!(now));
        Ok(())
    }

    /// Takes in what a turn says of processes and windows.
    fn learn(&mut self, action: &Action, now: &Value) {
        let Some(then) = &action.result else { return };
        if action.tool != "launch_app" {
            return;
        }
        if let (Some(then), Some(now)) = (then["pid"].as_u64(), now["pid"].as_u64()) {
            self.pids.insert(then, now);
        }
        let id = |window: &Value| window["window_id"].as_u64().map(WindowId);
        let windows = |of: &Value| of["windows"].as_array().cloned().unwrap_or_default();
        for (then, now) in windows(then).iter().zip(&windows(now)) {
            if let (Some(then), Some(now)) = (id(then), id(now)) {
                self.windows.insert(then, now);
            }
        }
    }
}

async fn run(arguments: Arguments, context: Context) -> Result<Report> {
    let dir = arguments.dir.clone();
    let read = tokio::task::spawn_blocking(move || read(&dir)).await;
    let (trajectory, actions) =
        read.map_err(|error| Error::new(Code::InternalError, error.to_string()))??;
    let displays = trajectory.displays.iter().map(|display| display.frame).collect();
    let mut replay = Replay { context: &context, displays, windows: HashMap::new(), pids: HashMap::new() };
    let stop_on_error = arguments.stop_on_error.unwrap_or(true);
    let mut report = Report { completed: true, recorded: actions.len(), turns: Vec::new() };
    let mut last: Option<&Action> = None;
    for action in &actions {
        if let (Some(speed), Some(last)) = (arguments.speed, last) {
            context.pause(pause(last, action).min(MAX_PAUSE).div_f64(speed)).await?;
        }
        last = Some(action);
        if context.stop().is_cancelled() {
            return Err(context.stopped());
        }
        let replayed = replay.turn(action).await;
        let refused = matches!(replayed.code, Some(code) if code == Code::ConsentRequired.name());
        let failed = replayed.status == Status::Failed;
        report.turns.push(replayed);
        if refused || (failed && stop_on_error) {
            report.completed = false;
            break;
        }
    }
    Ok(report)
}

/// The time between the answer of one turn and the beginning of the next.
fn pause(last: &Action, next: &Action) -> Duration {
    let at = |action: &Action| crate::timestamp::parse(&action.started);
    let (Some(last_at), Some(next_at)) = (at(last), at(next)) else { return Duration::ZERO };
    next_at.saturating_sub(last_at).saturating_sub(Duration::from_millis(last.duration_ms))
}

pub(super) struct ReplayTrajectory;

impl Tool for ReplayTrajectory {
    const SPEC: Spec = Spec {
        name: "replay_trajectory",
        description: "Do again what start_recording recorded. Windows are found by application and title, elements by role, name and \
                      place in the tree; points only in a window of the size it had. Nothing is run that is no installed \
                      application. Answers what became of each turn.",
        surface: Surface::Control,
        queue: None,
        destructive: true,
        idempotent: false,
        listed: false,
        example: r#"{"dir": "/home/ada/recordings/1"}"#,
    };
    type Arguments = Arguments;
    type Reply = Report;

    fn check(arguments: &Arguments) -> Result<()> {
        if !arguments.dir.is_absolute() {
            return Err(Error::argument("dir", "expected an absolute path"));
        }
        match arguments.speed {
            Some(speed) if !(0.1..=100.0).contains(&speed) => {
                Err(Error::argument("speed", format!("{speed} is out of range; expected 0.1 to 100")))
            }
            _ => Ok(()),
        }
    }

    fn timeout(_: &Arguments) -> Option<Duration> {
        Some(MAX_TIME)
    }

    async fn run(arguments: Arguments, context: Context) -> Result<Report> {
        run(arguments, context).await
    }
}

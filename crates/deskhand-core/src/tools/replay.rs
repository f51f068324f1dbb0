//! `replay_trajectory`: does again what was recorded.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::reading::{Family, Reading};
use super::window_state::{MAX_NODES, TREE_BUDGET};
use super::{Reply, Spec, Surface, TOOLS, Tool};
use crate::call::{Call, Outcome};
use crate::desktop::{CaptureTarget, TreeRequest, Window, WindowId};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::{Point, Rect};
use crate::picture;
use crate::queue::StepKind;
use crate::recording::looks::{self, Place};
use crate::recording::replay::LeftOut;
use crate::recording::trajectory::{Action, ElementRecord, Shot, Trajectory, WindowRecord, counted};
use crate::recording::{render, replay};
use crate::subject::TO_FOCUS;
use crate::tree::Snapshot;

/// A whole replay takes so long at most.
const MAX_TIME: Duration = Duration::from_secs(3600);
/// How long a window or an element may take to appear: the program was as fast when it was recorded.
const APPEAR: Duration = Duration::from_secs(10);
/// How long what lies at a point may take to look as it did: a page that was there already is being drawn.
const SETTLE: Duration = Duration::from_secs(5);
/// How often it is looked for: windows tell that they are there, elements do not all.
const LOOK: Duration = Duration::from_millis(100);
/// A pause of the recording is kept up to this: a person was away.
const MAX_PAUSE: Duration = Duration::from_secs(10);
/// Reading a recording takes so long at most. A disk that is away, over a network say, answers never.
const READ_TIME: Duration = Duration::from_secs(30);

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
    code: Option<Code>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// It is left out because it did nothing when it was recorded.
    #[serde(skip)]
    did_nothing: bool,
}

/// A replay.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    /// Whether every turn that did something then was done again.
    completed: bool,
    /// How many turns there are.
    recorded: usize,
    /// How many were done again.
    done: usize,
    /// How many could not be done.
    failed: usize,
    /// How many are left out of a replay.
    left_out: usize,
    turns: Vec<Replayed>,
}

impl Report {
    fn of(recorded: usize, turns: Vec<Replayed>) -> Self {
        let count = |of: &dyn Fn(&Replayed) -> bool| turns.iter().filter(|turn| of(turn)).count();
        Self {
            completed: turns.len() == recorded && turns.iter().all(Replayed::is_as_well),
            recorded,
            done: count(&|turn| matches!(turn.status, Status::Done | Status::Differs)),
            failed: count(&|turn| turn.status == Status::Failed),
            left_out: count(&|turn| turn.status == Status::Skipped),
            turns,
        }
    }

    /// The error of a replay that stops before `turn`, or at it, with all that was done until then.
    fn stopped(self, turn: u32, tool: &str, code: Code, why: &str) -> Error {
        let message = format!(
            "stopped at turn {turn} of {} ({tool}): {why}; {} done again before it",
            self.recorded,
            match self.done {
                1 => "1 turn was".to_owned(),
                done => format!("{done} turns were"),
            }
        );
        let error = Error::new(code, message);
        match serde_json::to_value(self) {
            Ok(report) => error.with_details(report),
            Err(_) => error,
        }
    }
}

impl Replayed {
    /// Whether there is nothing more to do of it.
    fn is_as_well(&self) -> bool {
        match self.status {
            Status::Done | Status::Differs => true,
            Status::Failed => false,
            Status::Skipped => self.did_nothing,
        }
    }
}

impl Reply for Report {
    fn text(&self) -> String {
        let mut text = format!("did {} of {} again", self.done, counted(self.recorded, "turn"));
        let differ = self.turns.iter().filter(|turn| turn.status == Status::Differs).count();
        for (number, words) in
            [(differ, "of them with another effect"), (self.failed, "failed"), (self.left_out, "left out")]
        {
            if number > 0 {
                let _ = write!(text, ", {number} {words}");
            }
        }
        for turn in &self.turns {
            let Replayed { turn: number, tool, effect, code, message, .. } = turn;
            let effect = effect.as_deref().or(code.map(|code| code.name())).unwrap_or(match turn.status {
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
    dir: PathBuf,
    displays: Vec<Rect>,
    /// What windows of then have become.
    windows: HashMap<WindowId, WindowId>,
    /// What processes of then have become.
    pids: HashMap<u64, u64>,
    /// Programs that a turn started then, and not now.
    not_started: Vec<NotStarted>,
    /// Windows of then, and applications, that were waited for and did not appear.
    absent_windows: HashSet<WindowId>,
    absent_apps: HashSet<String>,
}

/// A program that a turn started then, and not now.
struct NotStarted {
    turn: u32,
    app: String,
    windows: Vec<WindowId>,
    /// What a person can do.
    way_out: &'static str,
}

impl NotStarted {
    fn had(&self, window: &WindowRecord) -> bool {
        self.windows.contains(&window.window_id) || self.app.eq_ignore_ascii_case(&window.app)
    }
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
            did_nothing: false,
        };
        if let Some(why) = replay::left_out(action) {
            let did_nothing = why != LeftOut::Command;
            if !did_nothing {
                self.was_not_started(action, "start it by hand before the replay");
            }
            let message = Some(why.to_string());
            return Replayed { status: Status::Skipped, message, did_nothing, ..replayed };
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
                self.was_not_started(action, "it could not be started");
                replayed.status = Status::Failed;
                replayed.code = Some(error.code);
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
        // Of a drag the beginning and the end, however they are named.
        let point_of = |part: Option<&str>| match part {
            Some("to") => action.points.get(1),
            _ => action.points.first(),
        };
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
                let Some(point) = point_of(part) else { continue };
                if now.is_none() && self.displays != self.displays_now().await? {
                    let message = "the displays are not as they were, so points of the screen mean nothing";
                    return Err(Error::new(Code::NotSupported, message));
                }
                replay::aim_at_point(aimed, *point, then, now.map(|now| now.frame))?;
                let moved = match (then, now) {
                    (Some(then), Some(now)) => {
                        let along =
                            |at: i32, then: i32, now: i32| at.saturating_sub(then).saturating_add(now);
                        Point::new(along(point.x, then.x, now.frame.x), along(point.y, then.y, now.frame.y))
                    }
                    _ => *point,
                };
                self.require_alike(action, *point, moved, now).await?;
            }
        }
        Ok(())
    }

    /// Makes sure that what lies at a point looks as it did: a window of the same size may show another page. Waits for it, and
    /// lets pass what was not seen then.
    async fn require_alike(
        &self,
        action: &Action,
        at: Point,
        now: Point,
        window: Option<&Window>,
    ) -> Result<()> {
        let Shot::Taken { file, frame, .. } = &action.before else { return Ok(()) };
        let (dir, turn, name) = (self.dir.clone(), action.turn, file.clone());
        let before = tokio::task::spawn_blocking(move || render::read(&dir, turn, &name)).await;
        let Some(before) = before.ok().flatten().map(Arc::new) else { return Ok(()) };
        let target = match window {
            Some(window) => CaptureTarget::Window(window.id),
            None => CaptureTarget::Region(*frame),
        };
        let begun = Instant::now();
        loop {
            let capture = self.context.read(self.context.capture(target)).await?;
            let (before, frame) = (Arc::clone(&before), *frame);
            let alike = move || {
                let scale = f64::from(before.width) / f64::from(frame.width.max(1));
                let size = |side: u32| ((f64::from(side) * scale).round() as u32).max(1);
                let (width, height) = (size(capture.pixels.width), size(capture.pixels.height));
                let pixels = match (width, height) == (capture.pixels.width, capture.pixels.height) {
                    true => capture.pixels,
                    false => picture::scale(&capture.pixels, width, height).ok()?,
                };
                let then = Place { pixels: &before, frame, at };
                Some(looks::alike(&then, &Place { pixels: &pixels, frame: capture.frame, at: now }))
            };
            let alike = tokio::task::spawn_blocking(alike).await.ok().flatten().unwrap_or(true);
            if alike {
                return Ok(());
            }
            if begun.elapsed() >= SETTLE {
                let message =
                    "what lies at the point does not look as it did when it was recorded; nothing was done";
                return Err(Error::new(Code::NotSupported, message));
            }
            self.context.pause(LOOK).await?;
        }
    }

    async fn displays_now(&self) -> Result<Vec<Rect>> {
        let displays = self.context.desktop().screen.displays().await?;
        Ok(displays.iter().map(|display| display.frame).collect())
    }

    /// The window of a turn, as it is now; waits for it to appear.
    async fn window_of(&mut self, action: &Action) -> Result<Option<Window>> {
        let Some(then) = &action.window else { return Ok(None) };
        let begun = Instant::now();
        let not_started = self.not_started.iter().find(|each| each.had(then));
        let gone = self.absent_windows.contains(&then.window_id) || self.absent_apps.contains(&then.app);
        // Whoever owns it does not run: it is there already, or will not come.
        let patience = if gone || not_started.is_some() { Duration::ZERO } else { APPEAR };
        let turn_of_start = not_started.map(|each| (each.turn, each.way_out));
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
                Err(mut error) if begun.elapsed() >= patience => {
                    self.absent_windows.insert(then.window_id);
                    if windows.iter().all(|window| window.app != then.app) {
                        self.absent_apps.insert(then.app.clone());
                    }
                    if let Some((turn, way_out)) = turn_of_start {
                        error.message += &format!("; turn {turn} started its program then: {way_out}");
                    }
                    return Err(error);
                }
                Err(_) => self.context.pause(LOOK).await?,
            }
        }
    }

    /// Takes in that a turn which started a program then has not done so now.
    fn was_not_started(&mut self, action: &Action, way_out: &'static str) {
        if action.tool != "launch_app" {
            return;
        }
        let app = action.arguments.get("app").and_then(Value::as_str).unwrap_or_default();
        let windows = action.result.as_ref().map(window_ids).unwrap_or_default();
        self.not_started.push(NotStarted { turn: action.turn, app: app.to_owned(), windows, way_out });
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
        self.windows.extend(window_ids(then).into_iter().zip(window_ids(now)));
        // What runs now may show what was not there before.
        self.absent_windows.clear();
        self.absent_apps.clear();
    }
}

/// The windows that an answer of `launch_app` names.
fn window_ids(answer: &Value) -> Vec<WindowId> {
    let windows = answer["windows"].as_array().map(Vec::as_slice).unwrap_or_default();
    windows.iter().filter_map(|window| window["window_id"].as_u64().map(WindowId)).collect()
}

/// Reads a trajectory beside everything else, as long as the call may take.
async fn read_beside(dir: PathBuf, context: &Context) -> Result<(Trajectory, Vec<Action>)> {
    let late = || {
        let message = format!("{} could not be read within {} s", dir.display(), READ_TIME.as_secs());
        Error::new(Code::FileError, message)
    };
    let own = dir.clone();
    tokio::select! {
        () = context.stop().cancelled() => Err(context.stopped()),
        () = tokio::time::sleep(READ_TIME) => Err(late()),
        read = tokio::task::spawn_blocking(move || read(&own)) => {
            read.map_err(|error| Error::new(Code::InternalError, error.to_string()))?
        }
    }
}

async fn run(arguments: Arguments, context: Context) -> Result<Report> {
    let (trajectory, actions) = read_beside(arguments.dir.clone(), &context).await?;
    let mut replay = Replay {
        context: &context,
        dir: arguments.dir,
        displays: trajectory.displays.iter().map(|display| display.frame).collect(),
        windows: HashMap::new(),
        pids: HashMap::new(),
        not_started: Vec::new(),
        absent_windows: HashSet::new(),
        absent_apps: HashSet::new(),
    };
    let stop_on_error = arguments.stop_on_error.unwrap_or(true);
    let mut turns: Vec<Replayed> = Vec::new();
    let mut last: Option<&Action> = None;
    for action in &actions {
        if let (Some(speed), Some(last)) = (arguments.speed, last) {
            // That it was asked to stop is found out below.
            let _ = context.pause(pause(last, action).min(MAX_PAUSE).div_f64(speed)).await;
        }
        last = Some(action);
        if context.stop().is_cancelled() {
            let Error { code, message, .. } = context.stopped();
            return Err(Report::of(actions.len(), turns).stopped(action.turn, &action.tool, code, &message));
        }
        let replayed = replay.turn(action).await;
        let refused = replayed.code == Some(Code::ConsentRequired);
        let stops = replayed.code.filter(|_| refused || stop_on_error);
        let why = replayed.message.clone().unwrap_or_default();
        turns.push(replayed);
        if let Some(code) = stops {
            return Err(Report::of(actions.len(), turns).stopped(action.turn, &action.tool, code, &why));
        }
    }
    Ok(Report::of(actions.len(), turns))
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
                      place in the tree; points only in a window of the size it had, where the same is to be seen. Only installed \
                      applications are started, without arguments: start others by hand before. A replay that stops is an \
                      error with what became of each turn in its details.",
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

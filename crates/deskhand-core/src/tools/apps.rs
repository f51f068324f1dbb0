//! `list_apps`, `launch_app` and `kill_app`.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Reply, Spec, Surface, Tool, windows};
use crate::desktop::{
    Ended, InstalledApp, LaunchRequest, PortError, RunningApp, Window, WindowId, WindowKind,
};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::queue::StepKind;
use crate::tree::quote;

/// How long the window of a launched application is awaited, if not given.
const WINDOW_WAIT_MS: u64 = 20_000;
/// Longest wait for a window.
const MAX_WINDOW_WAIT_MS: u64 = 120_000;

/// Lists applications.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ListArguments {
    /// Also list what could be launched.
    include_installed: Option<bool>,
}

/// Applications.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Applications {
    running: Vec<RunningApp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    installed: Option<Vec<InstalledApp>>,
}

impl Reply for Applications {
    fn text(&self) -> String {
        let mut lines = vec![format!("{} running:", self.running.len())];
        lines.extend(self.running.iter().map(|app| {
            let pids: Vec<_> = app.pids.iter().map(ToString::to_string).collect();
            let id = app.desktop_id.as_ref().map(|id| format!(" ({id})")).unwrap_or_default();
            format!("{}{id} pid {}", quote(&app.name, 60), pids.join(","))
        }));
        if let Some(installed) = &self.installed {
            lines.push(format!("{} installed:", installed.len()));
            lines
                .extend(installed.iter().map(|app| format!("{} ({})", quote(&app.name, 60), app.desktop_id)));
        }
        lines.join("\n")
    }
}

pub(super) struct ListApps;

impl Tool for ListApps {
    const SPEC: Spec = Spec {
        name: "list_apps",
        description: "List the applications that run (those with windows) and, if asked, those that are installed.",
        surface: Surface::Screen,
        queue: Some(StepKind::Read),
        destructive: false,
        idempotent: true,
        listed: true,
        example: r#"{"include_installed": true}"#,
    };
    type Arguments = ListArguments;
    type Reply = Applications;

    async fn run(arguments: ListArguments, context: Context) -> Result<Applications> {
        let apps = &context.desktop().apps;
        context
            .read(async {
                let running = apps.running().await?;
                let installed = match arguments.include_installed {
                    Some(true) => Some(apps.installed().await?),
                    _ => None,
                };
                Ok(Applications { running, installed })
            })
            .await
    }
}

/// Starts a program.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LaunchArguments {
    /// Name (`Mousepad`), desktop id (`org.xfce.mousepad`) or command (`mousepad`).
    app: String,
    /// Further arguments.
    args: Option<Vec<String>>,
    /// Files or URLs to open.
    files: Option<Vec<String>>,
    /// Added to its environment.
    env: Option<BTreeMap<String, String>>,
    /// Wait until its window is there; true if not given.
    wait_for_window: Option<bool>,
    /// How long to wait for the window.
    #[schemars(range(min = 0, max = 120000))]
    timeout_ms: Option<u64>,
}

/// A program that was started.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Started {
    pid: u32,
    name: String,
    windows: Vec<Window>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Reply for Started {
    fn text(&self) -> String {
        let mut text = format!("started {} pid {}", quote(&self.name, 60), self.pid);
        for window in &self.windows {
            text += &format!("\nwindow {}", windows::line(window));
        }
        if let Some(hint) = &self.hint {
            text += &format!("; {hint}");
        }
        text
    }
}

pub(super) struct LaunchApp;

impl Tool for LaunchApp {
    const SPEC: Spec = Spec {
        name: "launch_app",
        description: "Start an application, wait for its window, and answer its process and windows.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: false,
        idempotent: false,
        listed: true,
        example: r#"{"app": "mousepad", "files": ["/tmp/notes.txt"]}"#,
    };
    type Arguments = LaunchArguments;
    type Reply = Started;

    fn check(arguments: &LaunchArguments) -> Result<()> {
        if arguments.app.trim().is_empty() {
            return Err(Error::argument("app", "is empty; expected a name, a desktop id or a command"));
        }
        crate::settings::within("timeout_ms", arguments.timeout_ms, &(0..=MAX_WINDOW_WAIT_MS))
    }

    fn timeout(arguments: &LaunchArguments) -> Option<Duration> {
        Some(Duration::from_millis(arguments.timeout_ms.unwrap_or(WINDOW_WAIT_MS) + 10_000))
    }

    async fn run(arguments: LaunchArguments, context: Context) -> Result<Started> {
        let desktop = context.desktop();
        let wait = Duration::from_millis(arguments.timeout_ms.unwrap_or(WINDOW_WAIT_MS));
        let request = LaunchRequest {
            app: arguments.app,
            args: arguments.args.unwrap_or_default(),
            files: arguments.files.unwrap_or_default(),
            env: arguments.env.unwrap_or_default(),
            folder: None,
        };
        let (before, changes, launched) = context
            .act(async {
                let changes = desktop.windows.changes().await?;
                let before: HashSet<WindowId> =
                    desktop.windows.list().await?.iter().map(|window| window.id).collect();
                let launched = desktop.apps.launch(&request).await.map_err(|error| match error {
                    PortError::AppGone(_) => {
                        let name = quote(&request.app, 60);
                        let message = format!(
                            "there is no application or command {name}; list_apps can list what is installed"
                        );
                        Error::new(Code::LaunchFailed, message)
                    }
                    error => error.into(),
                })?;
                Ok((before, changes, launched))
            })
            .await?;
        let start = Start { pid: launched.pid, startup_id: launched.startup_id, before };
        let mut started = Started { pid: launched.pid, name: launched.name, windows: Vec::new(), hint: None };
        if arguments.wait_for_window == Some(false) {
            return Ok(started);
        }
        await_window(&context, &mut started, &start, changes, wait).await?;
        Ok(started)
    }
}

/// How often a launched process is looked at while it shows no window: its end is not an event of the display.
const EXIT_LOOK: Duration = Duration::from_millis(200);

/// How long the window of an instance that runs already is awaited before its open windows are answered.
const HAND_OVER_WAIT: Duration = Duration::from_secs(1);

const RAN_ALREADY: &str = "it was running already and opened no new window";

/// The start of a program, as its windows are told from others by.
struct Start {
    pid: u32,
    /// What its windows carry, if it passes it on.
    startup_id: Option<String>,
    /// Windows that were there before.
    before: HashSet<WindowId>,
}

/// What is on the desktop, as seen from one start.
#[derive(Default)]
struct Opened {
    /// New, and of this start.
    ours: Vec<Window>,
    /// New, of nobody known.
    others: Vec<Window>,
    /// There before, and shown again by this start.
    shown_again: Vec<Window>,
    /// There before.
    known: Vec<Window>,
}

impl Start {
    async fn opened(&self, context: &Context) -> Result<Opened> {
        let desktop = context.desktop();
        let (list, carry_id) = context
            .read(async {
                let carry_id = match &self.startup_id {
                    Some(id) => desktop.windows.started_as(id).await?,
                    None => Vec::new(),
                };
                Ok((desktop.windows.list().await?, carry_id))
            })
            .await?;
        let mut opened = Opened::default();
        let mut descended = Vec::new();
        for window in list {
            let carries_id = carry_id.contains(&window.id);
            // A window that is being made has no size yet.
            let is_there = window.frame.width > 1 && window.frame.height > 1;
            let is_proper = is_there && !matches!(window.kind, WindowKind::Popup | WindowKind::Splash);
            if self.before.contains(&window.id) {
                if carries_id && is_proper {
                    opened.shown_again.push(window.clone());
                }
                opened.known.push(window);
            } else if is_proper && carries_id {
                opened.ours.push(window);
            } else if is_proper {
                match window.pid {
                    Some(pid) if pid == self.pid || desktop.apps.descends_from(pid, self.pid).await => {
                        descended.push(window);
                    }
                    _ => opened.others.push(window),
                }
            }
        }
        if opened.ours.is_empty() {
            opened.ours = descended;
        }
        Ok(opened)
    }
}

async fn await_window(
    context: &Context,
    started: &mut Started,
    start: &Start,
    mut changes: tokio::sync::watch::Receiver<u64>,
    wait: Duration,
) -> Result<()> {
    let desktop = context.desktop();
    let deadline = tokio::time::Instant::now() + wait;
    let mut handed_over = None;
    loop {
        changes.borrow_and_update();
        // Asked first: what ended before it was looked at has opened its windows by then.
        let exited = desktop.apps.exited(started.pid).await;
        let opened = start.opened(context).await?;
        started.windows = opened.ours;
        // A program that hands over to an instance that runs already ends at once, without an error; that instance opens
        // a window, or shows what it was given in one that is open.
        let hands_over = exited == Some(0) || !opened.shown_again.is_empty();
        if started.windows.is_empty() && hands_over {
            let since = *handed_over.get_or_insert_with(tokio::time::Instant::now);
            let has_waited = since.elapsed() >= HAND_OVER_WAIT;
            // A window of an instance that tells its starts carries the id, so another is not taken for it too early.
            if start.startup_id.is_none() || has_waited {
                started.windows = opened.others;
            }
            if !opened.shown_again.is_empty() && has_waited {
                started.windows = opened.shown_again;
                started.hint = Some(RAN_ALREADY.to_owned());
            } else if started.windows.is_empty() && has_waited {
                started.windows = of_app(context, &started.name, opened.known).await?;
                started.hint = (!started.windows.is_empty()).then(|| RAN_ALREADY.to_owned());
            }
        }
        if !started.windows.is_empty() {
            return Ok(());
        }
        if let Some(code) = exited.filter(|code| *code != 0) {
            let message = format!(
                "{} ended at once with exit code {code} and showed no window",
                quote(&started.name, 60)
            );
            return Err(
                Error::new(Code::LaunchFailed, message).with_details(serde_json::json!({"exit_code": code}))
            );
        }
        if tokio::time::Instant::now() >= deadline {
            let state = if exited.is_some() { "ended" } else { "still runs" };
            started.hint =
                Some(format!("no window appeared within {} ms; the process {state}", wait.as_millis()));
            return Ok(());
        }
        tokio::select! {
            alive = changes.changed() => if alive.is_err() { return Err(PortError::DesktopLost.into()) },
            () = context.stop().cancelled() => return Err(context.stopped()),
            () = tokio::time::sleep(EXIT_LOOK) => {}
        }
    }
}

/// Those of `windows` that belong to the application called `name`.
async fn of_app(context: &Context, name: &str, windows: Vec<Window>) -> Result<Vec<Window>> {
    let running = context.read(async { Ok(context.desktop().apps.running().await?) }).await?;
    let is_name = |other: &str| other.to_lowercase() == name.to_lowercase();
    let pids: Vec<u32> =
        running.into_iter().filter(|app| is_name(&app.name)).flat_map(|app| app.pids).collect();
    let is_proper = |window: &Window| matches!(window.kind, WindowKind::Normal | WindowKind::Dialog);
    let is_ours = |window: &Window| is_name(&window.app) || window.pid.is_some_and(|pid| pids.contains(&pid));
    Ok(windows.into_iter().filter(|window| is_proper(window) && is_ours(window)).collect())
}

/// Ends a program.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KillArguments {
    /// Process.
    pid: Option<u32>,
    /// Application by name or desktop id, instead of a process.
    app: Option<String>,
    /// Kill it; unsaved work is lost.
    force: Option<bool>,
}

/// What ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct EndedProcess {
    pid: u32,
    result: Ended,
}

/// What ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct EndedProcesses {
    ended: Vec<EndedProcess>,
}

impl Reply for EndedProcesses {
    fn text(&self) -> String {
        let line = |ended: &EndedProcess| match ended.result {
            Ended::Exited => format!("pid {} ended", ended.pid),
            Ended::Killed => format!("pid {} was killed", ended.pid),
            Ended::StillRunning => format!(
                "pid {} still runs: it may be asking something; look at its window, or use `force`",
                ended.pid
            ),
        };
        self.ended.iter().map(line).collect::<Vec<_>>().join("\n")
    }
}

pub(super) struct KillApp;

impl Tool for KillApp {
    const SPEC: Spec = Spec {
        name: "kill_app",
        description: "End an application: closes its windows as a person would, and says if it stays to ask something. With \
                      `force` it is killed, and unsaved work is lost.",
        surface: Surface::Control,
        queue: Some(StepKind::Act),
        destructive: true,
        idempotent: true,
        listed: true,
        example: r#"{"pid": 1234}"#,
    };
    type Arguments = KillArguments;
    type Reply = EndedProcesses;

    fn check(arguments: &KillArguments) -> Result<()> {
        match (arguments.pid, &arguments.app) {
            (Some(_), Some(_)) => Err(Error::argument("app", "give a process or an application, not both")),
            (None, None) => Err(Error::argument("pid", "missing; expected `pid` or `app`")),
            _ => Ok(()),
        }
    }

    async fn run(arguments: KillArguments, context: Context) -> Result<EndedProcesses> {
        let apps = &context.desktop().apps;
        let force = arguments.force.unwrap_or(false);
        let (pids, closed) = context
            .act(async {
                let pids = match (arguments.pid, &arguments.app) {
                    (Some(pid), _) => vec![pid],
                    (None, app) => resolve(apps.running().await?, app.as_deref().unwrap_or_default())?,
                };
                let closed = if force { HashSet::new() } else { close_windows(&context, &pids).await? };
                Ok((pids, closed))
            })
            .await?;
        await_closed(&context, &closed).await?;
        context
            .act(async {
                let asking = windows_of(&context, &closed).await?;
                let mut ended = Vec::new();
                for pid in pids {
                    let result = if asking.iter().any(|window| window.pid == Some(pid)) {
                        Ended::StillRunning
                    } else {
                        match apps.end(pid, force).await {
                            // It went with its windows.
                            Err(PortError::AppGone(_)) if closed.contains(&pid) => Ended::Exited,
                            result => result?,
                        }
                    };
                    ended.push(EndedProcess { pid, result });
                }
                Ok(EndedProcesses { ended })
            })
            .await
    }
}

/// How long an application may take to close its windows before it counts as asking something.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

/// Asks the windows of these processes to close, as a person would; answers the processes that have such windows.
async fn close_windows(context: &Context, pids: &[u32]) -> Result<HashSet<u32>> {
    let windows = &context.desktop().windows;
    let mut asked = HashSet::new();
    for window in windows.list().await?.into_iter().rev() {
        let Some(pid) = window.pid.filter(|pid| pids.contains(pid)) else { continue };
        let is_own = matches!(window.kind, WindowKind::Normal | WindowKind::Dialog);
        match windows.close(window.id).await {
            Ok(true) if is_own => {
                asked.insert(pid);
            }
            // It may have closed with another one.
            Ok(_) | Err(PortError::WindowGone(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(asked)
}

async fn windows_of(context: &Context, pids: &HashSet<u32>) -> Result<Vec<Window>> {
    let mut windows = context.desktop().windows.list().await?;
    windows.retain(|window| window.pid.is_some_and(|pid| pids.contains(&pid)));
    Ok(windows)
}

/// Waits until these processes show no window any more, a bounded time.
async fn await_closed(context: &Context, pids: &HashSet<u32>) -> Result<()> {
    let mut changes = context.desktop().windows.changes().await?;
    let deadline = tokio::time::Instant::now() + CLOSE_WAIT;
    loop {
        changes.borrow_and_update();
        let open = context.read(windows_of(context, pids)).await?;
        if open.is_empty() || tokio::time::Instant::now() >= deadline {
            return Ok(());
        }
        tokio::select! {
            alive = changes.changed() => if alive.is_err() { return Err(PortError::DesktopLost.into()) },
            () = context.stop().cancelled() => return Err(context.stopped()),
            () = tokio::time::sleep_until(deadline) => {}
        }
    }
}

/// The processes of the one application that is called `wanted`.
fn resolve(running: Vec<RunningApp>, wanted: &str) -> Result<Vec<u32>> {
    let wanted = wanted.to_lowercase();
    let is = |app: &RunningApp, name: &str| {
        app.name.to_lowercase() == name || app.desktop_id.as_ref().is_some_and(|id| id.to_lowercase() == name)
    };
    let mut matching: Vec<_> = running.iter().filter(|app| is(app, &wanted)).collect();
    if matching.is_empty() {
        matching = running.iter().filter(|app| app.name.to_lowercase().contains(&wanted)).collect();
    }
    match matching.as_slice() {
        [app] => Ok(app.pids.clone()),
        [] => Err(PortError::AppGone(quote(&wanted, 60)).into()),
        several => {
            let names: Vec<_> = several.iter().map(|app| quote(&app.name, 60)).collect();
            Err(Error::new(Code::Ambiguous, format!("several applications match: {}", names.join(", "))))
        }
    }
}

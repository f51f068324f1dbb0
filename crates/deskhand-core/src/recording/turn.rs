//! One acting call while it is recorded: what it was aimed at, and what was to be seen before and after.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Recording;
use super::secrecy::{self, Secrecy};
use super::trajectory::{Action, ElementRecord, Failure, Shot, Step, WindowRecord};
use crate::backlog::Weight;
use crate::call::Outcome;
use crate::consent::Leave;
use crate::desktop::{Capture, CaptureTarget, Desktop, Node, Stop, TreeRequest, Window};
use crate::engine::{Shared, see, see_holding};
use crate::error::{Code, Result};
use crate::geometry::Point;
use crate::preview::Viewer;
use crate::session::Session;
use crate::subject::Subject;
use crate::timestamp::rfc3339;
use crate::tree::{self, Children, Snapshot};

/// How long an action waits for the picture from before it. One that takes longer is left out.
const BEFORE_WAIT: Duration = Duration::from_secs(1);
/// How long the picture from after it is waited for, beside everything else.
const AFTER_WAIT: Duration = Duration::from_secs(2);
/// How long a tree may be read that the session has no reading of.
const TREE_BUDGET: Duration = Duration::from_millis(500);
/// Elements of a tree that are written down.
const MAX_LINES: usize = 2000;
/// Elements that are read of a tree that the session has no reading of.
const MAX_NODES: usize = 5000;

/// A picture, or why there is none.
pub(super) type Seen = std::result::Result<Capture, String>;

/// A call that is being recorded, previewed or logged.
#[derive(Debug)]
pub(crate) struct Turn {
    tool: &'static str,
    arguments: Map<String, Value>,
    session: Option<String>,
    started: SystemTime,
    begun: Instant,
    /// Who records it; each waits for it at its end.
    recordings: Vec<(Arc<Recording>, TaskTrackerToken)>,
    /// Who shows it while it acts.
    viewer: Option<Viewer>,
    begun_to_look: AtomicBool,
    /// Cancelled when the picture from before has been taken, or given up.
    looked: CancellationToken,
    /// Cancelled when that picture is in the notes, or why there is none.
    kept: CancellationToken,
    notes: Mutex<Notes>,
}

#[derive(Debug)]
struct Notes {
    target: Option<CaptureTarget>,
    before: Seen,
    window: Option<Window>,
    points: Vec<Point>,
    elements: Vec<(Arc<Snapshot>, u32)>,
    secrecy: Secrecy,
}

/// A turn that only has to be written.
#[derive(Debug)]
pub(super) struct Finished {
    /// Without its number and its pictures.
    pub(super) action: Action,
    pub(super) before: Seen,
    pub(super) after: Seen,
    pub(super) tree: Option<TreeText>,
}

impl Weight for Finished {
    fn weight(&self) -> usize {
        let bytes = |seen: &Seen| seen.as_ref().map_or(0, |capture| capture.pixels.rgba.len());
        bytes(&self.before) + bytes(&self.after)
    }
}

/// The tree of the window, to be written out.
#[derive(Debug)]
pub(super) struct TreeText {
    /// When it was read.
    note: &'static str,
    snapshot: Arc<Snapshot>,
}

impl TreeText {
    pub(super) fn text(&self) -> String {
        let Snapshot { nodes, indices, .. } = &*self.snapshot;
        if nodes.is_empty() {
            return format!("# {}: it has no elements\n", self.note);
        }
        let children = Children::of(nodes);
        let selection = tree::select(nodes, &children, 0, MAX_LINES, false, None);
        let outline = tree::render(nodes, indices, &children, 0, &selection, &HashMap::new(), false);
        let left_out = match selection.left_out {
            0 => String::new(),
            more => format!("# and {more} more elements\n"),
        };
        format!("# {}\n{}{left_out}", self.note, outline.text())
    }
}

impl Turn {
    pub(crate) fn new(
        tool: &'static str,
        arguments: Map<String, Value>,
        session: Option<String>,
        (recordings, viewer): (Vec<(Arc<Recording>, TaskTrackerToken)>, Option<Viewer>),
    ) -> Self {
        let notes = Notes {
            target: None,
            before: Err("it had not begun to act".to_owned()),
            window: None,
            points: Vec::new(),
            elements: Vec::new(),
            secrecy: Secrecy::default(),
        };
        let (started, begun) = (SystemTime::now(), Instant::now());
        Self {
            tool,
            arguments,
            session,
            started,
            begun,
            recordings,
            viewer,
            begun_to_look: AtomicBool::new(false),
            looked: CancellationToken::new(),
            kept: CancellationToken::new(),
            notes: Mutex::new(notes),
        }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The window that it is aimed at. What is known of it first counts: that is from before.
    pub(crate) fn at_window(&self, window: &Window) {
        self.notes().window.get_or_insert_with(|| window.clone());
    }

    /// A point that it acts at.
    pub(crate) fn at_point(&self, at: Point) {
        let mut notes = self.notes();
        // An element that is followed, or a drag: the way is its first and its last point.
        if notes.points.len() < 2 {
            notes.points.push(at);
        } else {
            notes.points[1] = at;
        }
    }

    /// An element that its arguments name.
    pub(crate) fn at_element(&self, snapshot: &Arc<Snapshot>, place: u32) {
        let mut notes = self.notes();
        if let Some(node) = snapshot.nodes.get(place as usize) {
            notes.secrecy.note(node);
        }
        notes.elements.push((Arc::clone(snapshot), place));
    }

    /// What text it types goes into; `None`: into something of which nothing can be known.
    pub(crate) fn types_into(&self, node: Option<&Node>) {
        let mut notes = self.notes();
        match node {
            Some(node) => notes.secrecy.note(node),
            None => notes.secrecy.note_opaque(),
        }
    }

    /// What it typed went on into another element than the one that it was meant for, at a place of the text that nobody
    /// knows. `after_it`: the last character led there, so that all others went where they were meant to go.
    pub(crate) fn went_on(&self, after_it: bool) {
        if !after_it {
            self.notes().secrecy = Secrecy::Secret;
        }
    }

    /// Whether it is recorded and may be a key that writes a character, so that what has the focus decides whether it is written
    /// down.
    pub(crate) fn may_write(&self) -> bool {
        !self.recordings.is_empty() && secrecy::text(self.tool, &self.arguments).is_some()
    }

    /// It is about to act: its picture from before is taken, unless there is one. Within its turn on the desktop.
    pub(crate) fn begin(self: &Arc<Self>, shared: &Arc<Shared>, leave: &Arc<Leave>) {
        if let Some(viewer) = &self.viewer {
            let (subject, points) = self.scene();
            viewer.begin(subject, points);
        }
        if self.recordings.is_empty() || self.begun_to_look.swap(true, Ordering::Relaxed) {
            return shared.afterlooks.hurry();
        }
        let (turn, shared, leave) = (Arc::clone(self), Arc::clone(shared), Arc::clone(leave));
        let hold = self.looked.clone().drop_guard();
        let kept = self.kept.clone().drop_guard();
        tokio::spawn(async move {
            let before =
                match tokio::time::timeout(BEFORE_WAIT, turn.look_before(&shared, &leave, hold)).await {
                    Ok(Ok(capture)) => Ok(capture),
                    Ok(Err(error)) => Err(error.message),
                    Err(_) => Err("it could not be taken in time".to_owned()),
                };
            turn.notes().before = before;
            drop(kept);
        });
    }

    /// Takes the picture from before it. `hold` is dropped when something may be done.
    async fn look_before(&self, shared: &Shared, leave: &Leave, hold: DropGuard) -> Result<Capture> {
        let stop = Stop::new();
        let _stops = stop.clone().drop_guard();
        let target = self.subject().target(&shared.desktop).await?;
        self.notes().target = Some(target);
        let sharers = shared.afterlooks.make_way(target).await;
        let capture = see_holding(&shared.desktop, leave, target.into(), hold, &stop).await?;
        sharers.give(&capture);
        Ok(capture)
    }

    /// Whether it is written down where it acts.
    pub(crate) fn is_recorded(&self) -> bool {
        !self.recordings.is_empty()
    }

    /// Waits until its picture from before has been taken, or given up. Nothing may be done earlier.
    pub(crate) async fn looked(&self) {
        if self.begun_to_look.load(Ordering::Relaxed) {
            self.looked.cancelled().await;
        }
    }

    /// What it acts on as far as its arguments say it.
    fn subject(&self) -> Subject {
        Subject::of(self.tool, &self.arguments)
    }

    /// The same, where it names no window that which it was found to act on.
    pub(crate) fn found_subject(&self) -> Subject {
        match (self.subject(), &self.notes().window) {
            (Subject::Display, Some(window)) => Subject::Window(window.id),
            (subject, _) => subject,
        }
    }

    /// What people who look on see, and where it acts.
    fn scene(&self) -> (Subject, Vec<Point>) {
        (self.found_subject(), self.notes().points.clone())
    }

    /// Notes how it ended, and hands it to who records it, beside everything else.
    pub(crate) fn conclude(
        self: Arc<Self>,
        outcome: &Outcome,
        shared: &Arc<Shared>,
        leave: Arc<Leave>,
        session: Arc<Session>,
    ) {
        if matches!(outcome, Err(error) if error.code == Code::ConsentRequired) {
            return;
        }
        if let Some(viewer) = &self.viewer {
            let (subject, points) = self.scene();
            viewer.end(subject, points, outcome);
        }
        if self.recordings.is_empty() {
            return;
        }
        let duration = self.begun.elapsed();
        let (result, error) = match outcome {
            Ok(answer) => (Some(answer.structured.clone()), None),
            Err(error) => {
                let failure = Failure { code: error.code.name().to_owned(), message: error.message.clone() };
                (error.details.clone(), Some(failure))
            }
        };
        // Known before the caller hears of the end and goes on.
        let mut afterlook = shared.afterlooks.add(self.notes().target);
        let desktop = shared.desktop.clone();
        tokio::spawn(async move {
            if self.begun_to_look.load(Ordering::Relaxed) {
                self.kept.cancelled().await;
            }
            let target = self.notes().target;
            let shared_picture = afterlook.wait().await;
            let stop = Stop::new();
            let _stops = stop.clone().drop_guard();
            let look = self.look_after(&desktop, &leave, target, &stop);
            let after = match shared_picture {
                Some(picture) => Ok(picture),
                None => tokio::time::timeout(AFTER_WAIT, look)
                    .await
                    .unwrap_or_else(|_| Err("it could not be taken in time".to_owned())),
            };
            drop(afterlook);
            let tree = self.tree(&desktop, &leave, &session, &stop).await;
            let finished = Arc::new(self.finish(duration, result, error, after, tree));
            for (recording, _under_way) in &self.recordings {
                recording.offer(Arc::clone(&finished));
            }
        });
    }

    async fn look_after(
        &self,
        desktop: &Desktop,
        leave: &Leave,
        target: Option<CaptureTarget>,
        stop: &Stop,
    ) -> Seen {
        let target = match target {
            Some(target) => target,
            None => self.subject().target(desktop).await.map_err(|error| error.message)?,
        };
        match see(desktop, leave, target.into(), stop).await {
            Err(error) if matches!(error.code, Code::WindowGone | Code::UnknownWindow) => {
                Err("the window is gone".to_owned())
            }
            seen => seen.map_err(|error| error.message),
        }
    }

    /// The tree that the call was decided by, or one that is read now.
    async fn tree(
        &self,
        desktop: &Desktop,
        leave: &Leave,
        session: &Session,
        stop: &Stop,
    ) -> Option<TreeText> {
        let (window, snapshot) = {
            let notes = self.notes();
            (notes.window.clone(), notes.elements.first().map(|(snapshot, _)| Arc::clone(snapshot)))
        };
        let snapshot = snapshot.or_else(|| session.newest_snapshot(window.as_ref()?.id).ok());
        if let Some(snapshot) = snapshot {
            return Some(TreeText { note: "the tree as it had been read before the call acted", snapshot });
        }
        let window = window?;
        if leave.require_sight().await.is_err() {
            return None;
        }
        let request = TreeRequest { max_nodes: MAX_NODES, budget: TREE_BUDGET, text_limit: 0 };
        let tree = desktop.accessibility.tree(&window, &request, stop).await.ok()?;
        let snapshot = Arc::new(Snapshot::passing(window, tree.nodes));
        Some(TreeText { note: "the tree as it was read after the call", snapshot })
    }

    fn finish(
        &self,
        duration: Duration,
        mut result: Option<Value>,
        mut error: Option<Failure>,
        after: Seen,
        tree: Option<TreeText>,
    ) -> Finished {
        let notes = self.notes();
        let mut arguments = self.arguments.clone();
        let withheld = secrecy::withhold(self.tool, &mut arguments, notes.secrecy, &mut result, &mut error);
        let effect = result.as_ref().and_then(|result| result["effect"].as_str()).map(str::to_owned);
        let missing = || Shot::Missing { missing: String::new() };
        let action = Action {
            turn: 0,
            session: self.session.clone(),
            tool: self.tool.to_owned(),
            arguments,
            withheld,
            started: rfc3339(self.started),
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            effect,
            result,
            error,
            points: notes.points.clone(),
            window: notes.window.as_ref().map(window_record),
            elements: notes
                .elements
                .iter()
                .map(|(snapshot, place)| element_record(snapshot, *place))
                .collect(),
            before: missing(),
            after: missing(),
        };
        Finished { action, before: notes.before.clone(), after, tree }
    }
}

fn window_record(window: &Window) -> WindowRecord {
    let Window { id, app, title, frame, .. } = window;
    WindowRecord { window_id: *id, app: app.clone(), title: title.clone(), frame: *frame }
}

/// What is needed to find an element again.
fn element_record(snapshot: &Snapshot, place: u32) -> ElementRecord {
    let mut path = path(&snapshot.nodes, place);
    path.reverse();
    let node = snapshot.nodes.get(place as usize);
    ElementRecord {
        element_index: snapshot.index(place),
        role: node.map(|node| node.role.clone()).unwrap_or_default(),
        name: node.map(|node| node.name.clone()).unwrap_or_default(),
        path,
    }
}

/// The steps from an element up to its window.
pub(crate) fn path(nodes: &[Node], place: u32) -> Vec<Step> {
    let line = std::iter::successors(Some(place), |at| nodes.get(*at as usize)?.parent);
    line.filter_map(|at| {
        let node = nodes.get(at as usize)?;
        let twins = nodes[..at as usize].iter().filter(|other| {
            other.parent == node.parent && other.role == node.role && other.name == node.name
        });
        let nth = u32::try_from(twins.count()).unwrap_or(u32::MAX);
        Some(Step { role: node.role.clone(), name: node.name.clone(), nth })
    })
    .collect()
}

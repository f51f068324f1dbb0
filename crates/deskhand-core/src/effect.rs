//! What an action did: watched from just before it, read back after it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::activity::Acting;
use crate::desktop::{Change, ChangeKind, ElementId, State, Window, WindowId, WindowKind};
use crate::engine::{Context, Restored};
use crate::error::Result;
use crate::geometry::Point;
use crate::tools::{Element, Reply, differing};
use crate::tree::{Snapshot, quote};

/// How long a state that must change is waited for. Toolkits answer within a frame or two; what takes longer is better
/// awaited with `wait_for`.
pub(crate) const EFFECT_WAIT: Duration = Duration::from_millis(300);
/// How long an effect is waited for that may be none: a button may write a file, and shows nothing of it.
const POSSIBLE_EFFECT_WAIT: Duration = Duration::from_millis(100);
/// The same where none is likely: a click on a label, or into the text that has the focus.
const UNLIKELY_EFFECT_WAIT: Duration = Duration::from_millis(10);

/// What an application changes by itself, it changes again within this time: a clock with tenths, an animation, a
/// progress bar. Waited for only as long as its habits are not known.
const RECURRENCE: Duration = Duration::from_millis(250);
/// Within so short a time, one change may be told twice.
const SAME_CHANGE: Duration = Duration::from_millis(50);

/// How much is expected of an action.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Expectation {
    /// A state must change.
    Certain,
    /// Something may change.
    #[default]
    Possible,
    /// Hardly anything changes.
    Unlikely,
}

impl Expectation {
    const fn patience(self) -> Duration {
        match self {
            Self::Certain => EFFECT_WAIT,
            Self::Possible => POSSIBLE_EFFECT_WAIT,
            Self::Unlikely => UNLIKELY_EFFECT_WAIT,
        }
    }
}

/// Whether an action's effect was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Read back.
    Confirmed,
    /// Delivered; cannot be read back.
    Unverifiable,
    /// Nothing that should have changed did.
    SuspectedNoop,
}

/// The way an action took.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)] // the names are the tools' documentation
pub enum Route {
    AxAction,
    AxFocus,
    AxScroll,
    AxSelection,
    AxText,
    AxValue,
    Pointer,
    Keyboard,
}

/// How an action may be delivered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The first that works.
    #[default]
    Auto,
    /// Without raising the window, moving the pointer or taking the focus.
    Background,
    /// With real input, after raising the window.
    Foreground,
}

/// The answer of an action.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EffectReport {
    /// Whether its effect was read back.
    pub effect: Effect,
    /// The way it took.
    pub route: Route,
    /// Window it went to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_id: Option<WindowId>,
    /// The element that a query found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
    /// Where the pointer pressed, in screen pixels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub point: Option<Point>,
    /// What was checked, before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// What was checked, after.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Whether focus, stacking and pointer are as they were, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restored: Option<bool>,
    /// What is likelier to work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl EffectReport {
    pub(crate) fn new(effect: Effect, route: Route) -> Self {
        Self {
            effect,
            route,
            window_id: None,
            element: None,
            point: None,
            before: None,
            after: None,
            restored: None,
            hint: None,
        }
    }

    pub(crate) fn in_window(mut self, window: Option<WindowId>) -> Self {
        self.window_id = window;
        self
    }

    /// Names the element that a query found: the caller did not see its number.
    pub(crate) fn on(mut self, element: &Element) -> Self {
        if element.snapshot.seen.is_none() {
            self.element = Some(element.describe());
        }
        self
    }

    pub(crate) fn at(mut self, point: Option<Point>) -> Self {
        self.point = point;
        self
    }

    pub(crate) fn from(mut self, before: impl Into<String>) -> Self {
        self.before = Some(before.into());
        self
    }

    pub(crate) fn to(mut self, after: impl Into<String>) -> Self {
        self.after = Some(after.into());
        self
    }

    /// What a text was and is: whole, or where it differs.
    pub(crate) fn between(self, before: &str, after: &str) -> Self {
        let (before, after) = differing(before, after);
        self.from(before).to(after)
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Says what was seen that proves nothing.
    pub(crate) fn doubtful(self, seen: &str) -> Self {
        self.to(seen).hint(
            "that may be the effect of the action before, which had shown none; look at the window before going on",
        )
    }

    /// Says whether the desktop was put back, and if not, why.
    pub(crate) fn restored(mut self, restored: Restored) -> Self {
        self.restored = Some(restored == Restored::Whole);
        if let Restored::Not(why) = restored {
            self.hint = Some(self.hint.map_or_else(|| why.clone(), |hint| format!("{hint}; {why}")));
        }
        self
    }
}

impl Reply for EffectReport {
    fn text(&self) -> String {
        let word = |value: &dyn erased::Word| value.word();
        let mut text = format!("{} by {}", word(&self.effect), word(&self.route));
        if let Some(element) = &self.element {
            text += &format!(" on {element}");
        }
        match (&self.before, &self.after) {
            (Some(before), Some(after)) => text += &format!(": {before} → {after}"),
            (None, Some(after)) => text += &format!(": {after}"),
            (Some(before), None) => text += &format!(": {before}"),
            (None, None) => {}
        }
        if self.restored == Some(true) {
            text += "; focus and pointer given back";
        }
        if let Some(hint) = &self.hint {
            text += &format!("; {hint}");
        }
        text
    }
}

mod erased {
    /// The word that answers use for a value.
    pub(super) trait Word {
        fn word(&self) -> String;
    }

    impl<T: serde::Serialize> Word for T {
        fn word(&self) -> String {
            serde_json::to_value(self).ok().and_then(|v| v.as_str().map(str::to_owned)).unwrap_or_default()
        }
    }
}

/// What is expected to show that an action worked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    /// The application, if it is known on the accessibility bus.
    pub(crate) owner: Option<&'a Arc<str>>,
    /// The element itself.
    pub(crate) element: Option<&'a ElementId>,
    /// Its window.
    pub(crate) window: Option<&'a Window>,
    /// Whether getting the focus is all that is wanted of the element. (A button gets it and need not have worked.)
    pub(crate) wants_focus: bool,
}

/// The windows as they are before an action, and what tells of their changes.
pub(crate) struct WindowsBefore(Option<(watch::Receiver<u64>, Arc<Vec<Window>>)>);

/// What tells of changes of windows from a moment on: they are looked at after it.
pub(crate) struct Since(Option<watch::Receiver<u64>>);

impl Since {
    /// Begins now.
    pub(crate) async fn now(context: &Context) -> Self {
        let mut since = Self(context.desktop().windows.changes().await.ok());
        since.again();
        since
    }

    /// Begins again.
    pub(crate) fn again(&mut self) {
        if let Some(number) = &mut self.0 {
            number.borrow_and_update();
        }
    }

    /// With the windows as they were at some time since.
    pub(crate) fn with(self, windows: Vec<Window>) -> WindowsBefore {
        WindowsBefore(self.0.map(|number| (number, windows.into())))
    }
}

impl WindowsBefore {
    /// Looks at them.
    async fn look(context: &Context) -> Self {
        let since = Since::now(context).await;
        match context.desktop().windows.list().await {
            Ok(windows) => since.with(windows),
            Err(_) => Self(None),
        }
    }
}

/// Watches an application from just before an action.
pub(crate) struct Observer {
    changes: Option<broadcast::Receiver<Change>>,
    owner: Option<Arc<str>>,
    element: Option<ElementId>,
    wants_focus: bool,
    /// Aim of the action before this one, whose late changes are not of this one.
    aimed_before: Option<ElementId>,
    /// An action before this one showed no effect yet: what is seen now may be that.
    open: bool,
    /// What was seen, and may be of an action before.
    doubtful: Option<String>,
    window: Option<Window>,
    windows: Option<(watch::Receiver<u64>, Arc<Vec<Window>>)>,
    /// A change that is told is not left waiting for a look at the windows.
    prompt: bool,
    /// Of a drag: the elements whose changes count.
    dragged: Option<HashSet<ElementId>>,
    _acting: Option<Acting>,
}

impl Observer {
    /// Says at which element the action is aimed, where that was told only after the observer had begun.
    pub(crate) fn aim_at(&mut self, context: &Context, element: ElementId, wants_focus: bool) {
        let activity = context.activity();
        if self.owner.as_ref() != Some(&element.owner) {
            // An application may show what another one publishes.
            self.owner = Some(Arc::clone(&element.owner));
            self.open = activity.is_open(&element.owner);
            self._acting = Some(activity.acting(&element.owner));
        }
        self.aimed_before = activity.aim(&element);
        self.element = Some(element);
        self.wants_focus = wants_focus;
    }

    /// The same for a drag among `elements`. Pressing selects and focuses, and what is dragged is carried in a window of its
    /// own, whether or not anything takes it: so only content is evidence.
    pub(crate) fn of_drag(self, elements: HashSet<ElementId>) -> Self {
        Self { dragged: Some(elements), ..self }
    }

    /// The same for a real press. What it does in the application is told before it could have opened a window, and is all
    /// that is needed then.
    pub(crate) fn of_press(self) -> Self {
        Self { prompt: true, ..self }
    }

    /// Begins to watch. Call it after the window was raised and before anything is delivered. What cannot be watched is
    /// left out: an action never fails for want of evidence.
    pub(crate) async fn start(context: &Context, target: Target<'_>) -> Self {
        let windows = WindowsBefore::look(context).await;
        Self::start_among(context, target, windows).await
    }

    /// The same, with windows that were looked at just before.
    pub(crate) async fn start_among(context: &Context, target: Target<'_>, windows: WindowsBefore) -> Self {
        let accessibility = &context.desktop().accessibility;
        let owner = target.owner.cloned();
        let acting = owner.as_ref().map(|owner| context.activity().acting(owner));
        let changes = if owner.is_some() {
            context.activity().watch(accessibility).await;
            accessibility.changes().await.ok()
        } else {
            None
        };
        let WindowsBefore(windows) = windows;
        Self {
            changes,
            owner,
            element: target.element.cloned(),
            wants_focus: target.wants_focus,
            aimed_before: target.element.and_then(|element| context.activity().aim(element)),
            open: target.owner.is_some_and(|owner| context.activity().is_open(owner)),
            doubtful: None,
            window: target.window.cloned(),
            windows,
            prompt: false,
            dragged: None,
            _acting: acting,
        }
    }

    /// Waits until something shows that the action worked, a bounded time. The answer says what it was. What may as well be
    /// the effect of an action before is [`Observer::doubtful`], and not the answer.
    pub(crate) async fn evidence(
        &mut self,
        context: &Context,
        snapshot: Option<&Snapshot>,
        expectation: Expectation,
    ) -> Option<String> {
        // An application that tells nothing of itself is not worth waiting for: a look at its windows is all there is.
        let deadline =
            Instant::now() + if self.changes.is_some() { expectation.patience() } else { Duration::ZERO };
        let mut look = self.look_at_windows(context);
        loop {
            if !self.prompt
                && let Some(look) = look.take()
                && let Some(found) = look.await
                && let Some(found) = self.attributed(found, false)
            {
                return Some(found);
            }
            let looking = look.is_some();
            let looked = async {
                match &mut look {
                    Some(look) => look.await,
                    None => std::future::pending().await,
                }
            };
            let changed = async {
                match &mut self.changes {
                    Some(changes) => changes.recv().await.ok(),
                    None => std::future::pending().await,
                }
            };
            let restacked = async {
                match &mut self.windows {
                    Some((number, _)) => number.changed().await.is_ok(),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                change = changed => match change {
                    Some(change) if self.counts(context, &change) => {
                        let itself = self.element.as_ref() == Some(&change.element);
                        if (itself || !self.recurs(context, &change).await)
                            && let Some(found) = self.attributed(describe(&change, snapshot), itself)
                        {
                            return Some(found);
                        }
                    }
                    Some(_) => {}
                    // The stream was lost or overran: nothing can be proved any more by it.
                    None => self.changes = None,
                },
                found = looked => {
                    look = None;
                    if let Some(found) = found.and_then(|found| self.attributed(found, false)) {
                        return Some(found);
                    }
                }
                alive = restacked => {
                    if !alive {
                        self.windows = None;
                    }
                    look = self.look_at_windows(context);
                }
                () = context.stop().cancelled() => return None,
                () = tokio::time::sleep_until(deadline), if !looking => return None,
            }
        }
    }

    /// What was seen, if it can only be of this action: a change of the element itself, or any while no other is open.
    fn attributed(&mut self, found: String, itself: bool) -> Option<String> {
        if itself || !self.open {
            return Some(found);
        }
        self.doubtful.get_or_insert(found);
        None
    }

    /// What was seen and may be the late effect of an action before this one, so that it proves nothing.
    pub(crate) fn doubtful(&self) -> Option<&str> {
        self.doubtful.as_deref()
    }

    /// The application, if it is known on the accessibility bus.
    pub(crate) fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Says that no effect was seen that is this action's own: it may still come, and is then not of the next one.
    pub(crate) fn leave_open(&self, context: &Context) {
        if let Some(owner) = &self.owner {
            context.activity().leave_open(owner);
        }
    }

    /// Whether what changed does so by itself: seen from a second change, as long as it is not known from before.
    async fn recurs(&mut self, context: &Context, first: &Change) -> bool {
        if !context.activity().is_new() {
            return false;
        }
        let Some(changes) = &mut self.changes else { return false };
        let begun = Instant::now();
        let again = async {
            while let Ok(change) = changes.recv().await {
                let is_same = change.element == first.element && change.kind == first.kind;
                if is_same && begun.elapsed() >= SAME_CHANGE {
                    return;
                }
            }
            std::future::pending().await
        };
        let recurs = tokio::time::timeout(RECURRENCE, again).await.is_ok();
        if recurs {
            context.activity().is_a_habit(first);
        }
        recurs
    }

    fn counts(&self, context: &Context, change: &Change) -> bool {
        if self.owner.as_ref() != Some(&change.element.owner) || context.activity().changes_by_itself(change)
        {
            return false;
        }
        let itself = self.element.as_ref() == Some(&change.element);
        if !itself && self.aimed_before.as_ref() == Some(&change.element) {
            return false;
        }
        // Keys that spring back, checked or pressed until then.
        if !itself
            && matches!(change.kind, ChangeKind::State(..))
            && context.activity().was_aimed_at(&change.element)
        {
            return false;
        }
        if let Some(elements) = &self.dragged {
            let is_content = matches!(
                change.kind,
                ChangeKind::Text | ChangeKind::Value | ChangeKind::Name | ChangeKind::Children
            );
            return is_content && elements.contains(&change.element);
        }
        match change.kind {
            ChangeKind::State(State::Focused, set) => itself && set && self.wants_focus,
            // An element that is made is told not to be gone: that is no news.
            ChangeKind::State(State::Defunct, gone) => gone,
            ChangeKind::State(state, _) => !matches!(
                state,
                State::Active
                    | State::Busy
                    | State::Focusable
                    | State::Sensitive
                    | State::Enabled
                    | State::Visible
                    | State::Showing
                    | State::ReadOnly
                    | State::Editable
            ),
            ChangeKind::Caret => itself,
            ChangeKind::Bounds | ChangeKind::Lost => false,
            ChangeKind::Text
            | ChangeKind::Value
            | ChangeKind::Name
            | ChangeKind::Children
            | ChangeKind::Selection
            | ChangeKind::Window => true,
        }
    }

    /// A look for windows that opened, closed or have another title, if they are watched.
    fn look_at_windows<'c>(&self, context: &'c Context) -> Option<BoxFuture<'c, Option<String>>> {
        let (_, before) = self.windows.as_ref()?;
        let (before, window) = (Arc::clone(before), self.window.clone()?);
        Some(window_evidence(context, before, window, self.dragged.is_some()).boxed())
    }
}

/// What of `before` is another now that has to do with `window`.
async fn window_evidence(
    context: &Context,
    before: Arc<Vec<Window>>,
    window: Window,
    dragged: bool,
) -> Option<String> {
    if !context.sees().await {
        return None;
    }
    let after = context.desktop().windows.list().await.ok()?;
    let ours = |other: &&Window| {
        (other.pid.is_some() && other.pid == window.pid || other.parent == Some(window.id))
            && !(dragged && other.kind == WindowKind::Popup)
    };
    let is_in = |list: &[Window], id: WindowId| list.iter().any(|window| window.id == id);
    if let Some(new) = after.iter().filter(ours).find(|new| !is_in(&before, new.id)) {
        return Some(format!("window {} {} opened", new.id, quote(&new.title, 60)));
    }
    if let Some(closed) = before.iter().filter(ours).find(|old| !is_in(&after, old.id)) {
        return Some(format!("window {} {} closed", closed.id, quote(&closed.title, 60)));
    }
    let now = after.iter().find(|other| other.id == window.id)?;
    let then = before.iter().find(|other| other.id == window.id)?;
    (now.title != then.title).then(|| format!("title is now {}", quote(&now.title, 60)))
}

/// A bounded wait for something to become true, which is looked at after each change of any application.
pub(crate) struct Patience {
    changes: broadcast::Receiver<Change>,
    deadline: Instant,
}

impl Patience {
    /// Begins to wait. Call it before the first look.
    pub(crate) async fn start(context: &Context, wait: Duration) -> Result<Self> {
        let changes = context.desktop().accessibility.changes().await?;
        Ok(Self { changes, deadline: Instant::now() + wait })
    }

    /// Waits for the next reason to look; `false` when the time is up: the look after that is the last.
    pub(crate) async fn another_look(&mut self, context: &Context) -> bool {
        tokio::select! {
            // An overrun of the channel is a reason to look as well.
            change = self.changes.recv() => !matches!(change, Err(broadcast::error::RecvError::Closed)),
            () = context.stop().cancelled() => false,
            () = tokio::time::sleep_until(self.deadline) => false,
        }
    }
}

/// What changed, in a few words.
fn describe(change: &Change, snapshot: Option<&Snapshot>) -> String {
    let index = snapshot.and_then(|snapshot| {
        let place = snapshot.nodes.iter().position(|node| node.id == change.element)?;
        snapshot.indices.get(place)
    });
    let element = match index {
        Some(index) => format!("[{index}]"),
        None => "an element".to_owned(),
    };
    let what = match change.kind {
        ChangeKind::State(state, set) => {
            let name = format!("{state:?}").to_lowercase();
            return format!("{element} {}{name}", if set { "is " } else { "is not " });
        }
        ChangeKind::Text => "text changed",
        ChangeKind::Caret => "caret moved",
        ChangeKind::Value => "value changed",
        ChangeKind::Name => "name changed",
        ChangeKind::Children => "children changed",
        ChangeKind::Selection => "selection changed",
        ChangeKind::Bounds => "moved",
        ChangeKind::Window => "window event",
        ChangeKind::Lost => "unknown change",
    };
    format!("{element} {what}")
}

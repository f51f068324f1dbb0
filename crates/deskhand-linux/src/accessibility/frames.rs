//! Which object of which application is a window of the screen.
//!
//! The process alone does not decide: one process may register several applications, and a process in another pid
//! namespace has another number on the bus. Title and geometry do the rest, and a populated object is preferred.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, State, Window, WindowKind};
use deskhand_core::geometry::Rect;

use super::app::{ACCESSIBLE, App, Failure, Silence, Toolkit};
use super::bus::{Bus, CallError, Method, REGISTRY, ROOT};
use super::extents;
use super::process;
use super::walk;
use super::wire::{Facts, Names, Reference, role};

/// Applications of other processes are only asked in case one of them owns the window after all.
const OTHERS: Duration = Duration::from_millis(300);
/// Pixels by which a frame may differ from its window: borders are counted or not.
const NEAR: i64 = 4;
/// Pixels by which a popover's window may be larger than the popover: shadow and arrow.
const SHADOW: i64 = 32;

/// A window's object.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub app: Arc<App>,
    pub root: ElementId,
}

/// Why there is none.
#[derive(Debug)]
pub(super) enum NotFound {
    /// No application of that process is on the bus, nor does any other have such a window.
    NoApplication,
    /// The application is on the bus, but publishes no window like this.
    NoFrame(Arc<App>),
    /// The application that should have it does not answer.
    Silent(Arc<App>, Silence),
    /// The registry does not answer.
    Registry(CallError),
}

/// A top-level object of an application.
#[derive(Clone, Debug)]
struct Frame {
    app: Arc<App>,
    id: ElementId,
    facts: Facts,
    extents: Option<Rect>,
}

/// How well a frame fits a window; greater is better, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// Title and geometry are the same, or at least one of them.
    points: u8,
    showing: bool,
    populated: bool,
}

/// The applications on the bus.
pub(super) async fn applications(bus: &Bus, until: Instant) -> Result<Vec<Arc<App>>, CallError> {
    let method = Method { owner: REGISTRY, object: ROOT, interface: ACCESSIBLE, member: "GetChildren" };
    let reply = bus.call(method, &(), until.saturating_duration_since(Instant::now())).await?;
    let body = reply.body();
    let references: Vec<Reference<'_>> = body.deserialize_unchecked()?;
    let mut names = Names::default();
    let owners = references.into_iter().filter_map(|reference| names.element(reference));
    Ok(owners.map(|id| bus.apps().get(&id.owner)).collect())
}

/// Finds the object of `window`.
pub(super) async fn find(bus: &Bus, window: &Window, until: Instant) -> Result<Found, NotFound> {
    let apps = applications(bus, until).await.map_err(NotFound::Registry)?;
    let pids = futures_util::future::join_all(apps.iter().map(|app| app.pid(bus))).await;
    let (own, others): (Vec<_>, Vec<_>) =
        apps.into_iter().zip(pids).partition(|(_, pid)| pid.is_some() && *pid == window.pid);

    let meeting = own.iter().map(|(app, _)| async move {
        if !app.is_frozen() {
            app.meet(bus, until).await;
        }
    });
    // What an application is comes before its frames: it is asked to announce its changes meanwhile.
    let (_, (frames, silent)) = tokio::join!(
        futures_util::future::join_all(meeting),
        frames_of(bus, own.iter().map(|(app, _)| app), until)
    );
    if let Some(frame) = best(&frames, window, true) {
        return Ok(frame);
    }
    if let Some((app, silence)) = silent.into_iter().next() {
        return Err(NotFound::Silent(app, silence));
    }
    if window.kind == WindowKind::Popup
        && let Some(found) = popup(bus, own.iter().map(|(app, _)| app), window, until).await
    {
        return Ok(found);
    }
    // A program without a toolkit that publishes windows has nobody else publish them.
    if own.is_empty() && window.pid.is_some_and(|pid| !process::has_toolkit(pid)) {
        return Err(NotFound::NoApplication);
    }
    let until_others = until.min(Instant::now() + OTHERS);
    let (frames, _) = frames_of(bus, others.iter().map(|(app, _)| app), until_others).await;
    if let Some(frame) = best(&frames, window, false) {
        return Ok(frame);
    }
    match own.into_iter().next() {
        Some((app, _)) => Err(NotFound::NoFrame(app)),
        None => Err(NotFound::NoApplication),
    }
}

/// The top-level objects of `apps`, and which of these do not answer.
async fn frames_of(
    bus: &Bus,
    apps: impl Iterator<Item = &Arc<App>>,
    until: Instant,
) -> (Vec<Frame>, Vec<(Arc<App>, Silence)>) {
    let asked = apps.map(|app| async move { (app, app_frames(bus, app, until).await) });
    let mut frames = Vec::new();
    let mut silent = Vec::new();
    for (app, answer) in futures_util::future::join_all(asked).await {
        match answer {
            Ok(found) => frames.extend(found),
            Err(Failure::Silent(silence)) => silent.push((Arc::clone(app), silence)),
            Err(Failure::Object(error)) => tracing::debug!(app = %app.owner, %error, "no top-level objects"),
        }
    }
    (frames, silent)
}

async fn app_frames(bus: &Bus, app: &Arc<App>, until: Instant) -> Result<Vec<Frame>, Failure> {
    if app.still_frozen(bus).await {
        return Err(Failure::Silent(Silence::Frozen));
    }
    let reply = app.ask(bus, ROOT, ACCESSIBLE, "GetChildren", &(), until).await?;
    let references = {
        let body = reply.body();
        let references: Vec<Reference<'_>> = body.deserialize_unchecked().map_err(CallError::from)?;
        let mut names = Names::default();
        references.into_iter().filter_map(|reference| names.element(reference)).collect::<Vec<_>>()
    };
    let asked = references.into_iter().map(|id| async move {
        let (facts, extents) =
            tokio::join!(walk::facts(bus, &id, until), extents::ask(bus, app, &id, extents::SCREEN, until));
        match (facts, extents) {
            (Err(Failure::Silent(silence)), _) | (_, Err(Failure::Silent(silence))) => {
                Err(Failure::Silent(silence))
            }
            (Err(Failure::Object(_)), _) => Ok(None),
            (Ok(facts), extents) => {
                Ok(Some(Frame { app: Arc::clone(app), id, facts, extents: extents.ok().flatten() }))
            }
        }
    });
    let frames = futures_util::future::try_join_all(asked).await?;
    Ok(frames.into_iter().flatten().collect())
}

/// The frame that fits best. A frame of the window's own process may be it without fitting at all, if it is the only
/// one; one of another process has to have the title.
fn best(frames: &[Frame], window: &Window, own: bool) -> Option<Found> {
    let popup = window.kind == WindowKind::Popup;
    let fits = frames.iter().map(|frame| (fit(frame, window), frame));
    let (fit, frame) = fits.max_by_key(|(fit, _)| *fit).filter(|(fit, _)| match (own, popup) {
        (true, false) => fit.points > 0 || frames.len() == 1,
        (true, true) => fit.points & 1 != 0,
        (false, _) => fit.points >= 2 && !popup,
    })?;
    tracing::trace!(?fit, root = %frame.id.object, "window matched");
    Some(Found { app: Arc::clone(&frame.app), root: frame.id.clone() })
}

fn fit(frame: &Frame, window: &Window) -> Fit {
    let title = !window.title.is_empty() && frame.facts.name == window.title;
    let place = frame.extents.is_some_and(|extents| {
        let size_only = extents.x == 0 && extents.y == 0;
        same(&extents, &window.client, size_only) || same(&extents, &window.frame, size_only)
    });
    Fit {
        points: u8::from(title) * 2 + u8::from(place),
        showing: frame.facts.states.has(State::Showing),
        populated: frame.facts.count > 0,
    }
}

/// How each top-level object of `app` fits `window`, in words.
pub(super) async fn explain(bus: &Bus, app: &Arc<App>, window: &Window, until: Instant) -> Vec<String> {
    let frames = match app_frames(bus, app, until).await {
        Ok(frames) => frames,
        Err(failure) => return vec![format!("{failure:?}")],
    };
    let words = |frame: &Frame| {
        let Fit { points, showing, populated } = fit(frame, window);
        let place = frame.extents.map_or_else(|| "no place".to_owned(), |extents| extents.to_string());
        let (object, facts) = (&frame.id.object, &frame.facts);
        format!(
            "{object} role {} {:?}, {place}; title fits: {}, place fits: {}, showing: {showing}, populated: {populated}",
            facts.role,
            facts.name,
            points & 2 != 0,
            points & 1 != 0
        )
    };
    frames.iter().map(words).collect()
}

/// Whether two rectangles are the same but for borders; `size_only` for toolkits that give no place.
fn same(one: &Rect, other: &Rect, size_only: bool) -> bool {
    let near = |a: i64, b: i64| (a - b).abs() <= NEAR;
    let size = near(one.width.into(), other.width.into()) && near(one.height.into(), other.height.into());
    size && (size_only || near(one.x.into(), other.x.into()) && near(one.y.into(), other.y.into()))
}

/// Objects that toolkits show in a window of their own without publishing that window.
const POPUP_ROLES: [u32; 7] =
    [role::MENU, role::POPUP_MENU, role::LIST, role::LIST_BOX, role::TOOL_TIP, role::WINDOW, role::COMBO_BOX];

/// What an application may show in a popup, and the first child of each.
async fn popup_candidates(bus: &Bus, app: &Arc<App>, until: Instant) -> Vec<(ElementId, Option<ElementId>)> {
    // GTK 4.8 sets the state on windows only.
    let state = if app.known_toolkit() == Toolkit::Gtk4 { State::Visible } else { State::Showing };
    let mut known = app.memory().mirror.with_roles(&POPUP_ROLES, state);
    if app.known_toolkit() == Toolkit::Gtk4 {
        let mut fillers = app.memory().mirror.with_roles(&[role::FILLER], state);
        fillers.retain(|(id, _)| is_popover(app, id));
        known.extend(fillers);
    }
    let mut candidates: Vec<_> =
        known.into_iter().map(|(id, children)| (id, children.into_iter().next())).collect();
    let announced = app.announced();
    let asked = announced.iter().map(|id| walk::facts(bus, id, until));
    let facts = futures_util::future::join_all(asked).await;
    let is_popup = |facts: &Facts| POPUP_ROLES.contains(&facts.role) && facts.states.has(State::Showing);
    let shown = announced.into_iter().zip(facts).filter(|(_, facts)| facts.as_ref().is_ok_and(is_popup));
    candidates.extend(shown.map(|(id, _)| (id, None)));
    candidates
}

/// Whether this is what GTK 4 shows in a window of its own below the button or combo box that opens it.
fn is_popover(app: &App, id: &ElementId) -> bool {
    let mirror = &app.memory().mirror;
    let is =
        |id: &ElementId, roles: &[u32]| mirror.facts(id).is_some_and(|facts| roles.contains(&facts.role));
    is(id, &[role::FILLER])
        && mirror
            .parent(id)
            .is_some_and(|parent| is(parent, &[role::COMBO_BOX, role::PUSH_BUTTON, role::TOGGLE_BUTTON]))
}

/// Whether `area` is `inner` with a shadow and an arrow around it.
fn surrounds(area: &Rect, inner: &Rect) -> bool {
    let around = |outer: u32, inner: u32| (0..=SHADOW).contains(&(i64::from(outer) - i64::from(inner)));
    around(area.width, inner.width) && around(area.height, inner.height)
}

/// The menu or list that lies where the popup lies, from what is known of the applications.
async fn popup(
    bus: &Bus,
    apps: impl Iterator<Item = &Arc<App>>,
    window: &Window,
    until: Instant,
) -> Option<Found> {
    let mut best: Option<(Reverse<u64>, Found)> = None;
    for app in apps {
        let size_only = app.known_toolkit().extents_start_at_window();
        let candidates = popup_candidates(bus, app, until).await;
        let asked = candidates.iter().map(|(id, child)| async move {
            // A menu item that opens a menu has its own place in the menu bar; its children lie in the popup.
            let own = extents::ask(bus, app, id, extents::SCREEN, until).await.ok().flatten();
            let inside = match child {
                Some(child) => extents::ask(bus, app, child, extents::SCREEN, until).await.ok().flatten(),
                None => None,
            };
            (own, inside)
        });
        let extents = futures_util::future::join_all(asked).await;
        for ((id, _), (own, inside)) in candidates.iter().zip(extents) {
            let within = |rect: &Rect| window.client.intersection(rect).as_ref() == Some(rect);
            let score = match (own, inside) {
                (Some(own), _) if same(&own, &window.client, size_only) => 0,
                (Some(own), _) if is_popover(app, id) && surrounds(&window.client, &own) => 0,
                (_, Some(inside)) if !size_only && within(&inside) => 1,
                _ => continue,
            };
            if best.as_ref().is_none_or(|(Reverse(known), _)| score < *known) {
                best = Some((Reverse(score), Found { app: Arc::clone(app), root: id.clone() }));
            }
        }
    }
    best.map(|(_, found)| found)
}

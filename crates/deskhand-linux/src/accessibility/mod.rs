//! AT-SPI 2: element trees of applications, and what can be done to elements without real input.
//!
//! Bulk first: one `Cache.GetItems` gives an application, its events keep that mirror true, and one round
//! trip before an answer makes sure that none of them is still on its way. Where a toolkit has no bulk answer or does
//! not announce its changes, objects are asked, many at a time. Each application has its own bounds, so one that hangs
//! delays nobody else.

mod acting;
mod app;
mod bus;
mod cells;
mod checks;
mod details;
mod direct;
mod event;
mod extents;
mod facts;
mod frames;
mod labels;
mod layout;
mod mirror;
mod naming;
mod process;
mod reading;
mod table;
mod toolkit;
mod wake;
mod walk;
mod wire;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use tokio::sync::broadcast;
use tokio::time::Instant;

use deskhand_core::desktop::{
    Accessibility, Change, ChangeKind, Check, Details, DetailsRequest, ElementId, Fact, Node, PortError,
    Stop, Tree, TreeNote, TreeRequest, Window, WindowId, WindowKind,
};
use deskhand_core::geometry::Point;

use crate::environment::EnvironmentSource;
use acting::Target;
use app::{App, Failure, Silence, Toolkit};
use bus::{Bus, lock};
use extents::{Place, Shift, Space};
use frames::{Found, NotFound};
use layout::Layout;
use reading::{Reading, SNAPSHOT};

/// Elements whose details are asked at the same time; each takes several questions.
const ELEMENTS_AT_A_TIME: usize = 64;

/// A program that was just started publishes its windows after they are on the screen; most take far less.
const PUBLISH: Duration = Duration::from_secs(2);
/// It is looked for so often even if nothing is announced: a browser is not asked for its events yet.
const PUBLISH_LOOK: Duration = Duration::from_millis(50);

/// The accessibility of one desktop. Connects at the first call, and again when the bus has ended.
pub struct AtSpi {
    source: Arc<dyn EnvironmentSource>,
    bus: tokio::sync::Mutex<Option<Arc<Bus>>>,
    /// Objects of windows that were found before.
    windows: Mutex<HashMap<WindowId, Known>>,
}

/// The object of a window that was found before. A window's number is used again once its client has gone, so it means
/// something only together with the process and while the application is on the bus.
struct Known {
    pid: Option<u32>,
    found: Found,
    /// As they were seen together.
    layout: Option<Layout>,
}

impl std::fmt::Debug for AtSpi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AtSpi").finish_non_exhaustive()
    }
}

impl AtSpi {
    /// For the desktop that `source` names. Does no I/O.
    pub fn new(source: Arc<dyn EnvironmentSource>) -> Self {
        Self { source, bus: tokio::sync::Mutex::new(None), windows: Mutex::default() }
    }

    /// What works of accessibility here; each probe is bounded.
    pub async fn checks(&self) -> Vec<Check> {
        checks::all(self).await
    }

    /// The connection, made anew if there is none that lives. Whoever comes while it is being made waits for it; each step
    /// of making it is bounded.
    async fn bus(&self) -> Result<Arc<Bus>, PortError> {
        let mut slot = self.bus.lock().await;
        if let Some(bus) = slot.as_ref().filter(|bus| !bus.is_closed()) {
            return Ok(Arc::clone(bus));
        }
        lock(&self.windows).clear();
        let environment = self.source.get().await?;
        let bus = Bus::connect(&environment).await?;
        *slot = Some(Arc::clone(&bus));
        Ok(bus)
    }

    async fn target(&self, element: &ElementId) -> Result<(Arc<Bus>, Arc<App>), PortError> {
        let bus = self.bus().await?;
        let app = bus.apps().get(&element.owner);
        Ok((bus, app))
    }

    /// The object of `window`, as found before or anew.
    async fn found(&self, bus: &Bus, window: &Window, until: Instant) -> Result<Found, NotFound> {
        if let Some(found) = self.known(bus, window) {
            return Ok(found);
        }
        // Listens before it looks, or what is published in between goes unnoticed.
        let changes = bus.changes().subscribe();
        let found = match frames::find(bus, window, until).await {
            Err(NotFound::NoFrame(app)) if window.kind == WindowKind::Popup && !app.memory().loaded => {
                // Popups are looked for in what is known, and nothing is known yet.
                app.meet(bus, until).await;
                if app.is_listened_to() {
                    let _ = reading::load(bus, &app, "a popup is looked for", until).await;
                }
                frames::find(bus, window, until).await?
            }
            Err(NotFound::NoFrame(_) | NotFound::NoApplication)
                if window.kind != WindowKind::Popup
                    && window.pid.is_some_and(|pid| process::is_young(pid) && process::has_toolkit(pid)) =>
            {
                Self::published(bus, window, changes, until).await?
            }
            found => found?,
        };
        found.app.meet(bus, until).await;
        lock(&self.windows).insert(window.id, Known { pid: window.pid, found: found.clone(), layout: None });
        Ok(found)
    }

    /// The object found before, if it still can be that of `window`.
    fn known(&self, bus: &Bus, window: &Window) -> Option<Found> {
        let mut windows = lock(&self.windows);
        windows.retain(|_, known| bus.apps().has(&known.found.app));
        let known = windows.get(&window.id).filter(|known| known.pid == window.pid)?;
        Some(known.found.clone())
    }

    /// Waits for a program that was just started to publish its window.
    async fn published(
        bus: &Bus,
        window: &Window,
        mut changes: broadcast::Receiver<Change>,
        until: Instant,
    ) -> Result<Found, NotFound> {
        let patience = until.min(Instant::now() + PUBLISH);
        loop {
            let announced = async {
                loop {
                    match changes.recv().await {
                        Ok(change) if !matches!(change.kind, ChangeKind::Children | ChangeKind::Window) => {}
                        Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => return true,
                        Err(broadcast::error::RecvError::Closed) => return false,
                    }
                }
            };
            let again = tokio::time::timeout(PUBLISH_LOOK, announced).await.unwrap_or(true);
            match frames::find(bus, window, until).await {
                Err(NotFound::NoFrame(app)) if again && Instant::now() < patience => {
                    app.meet(bus, until).await;
                }
                Err(NotFound::NoApplication) if again && Instant::now() < patience => {}
                found => return found,
            }
        }
    }

    fn forget_window(&self, window: WindowId) -> bool {
        lock(&self.windows).remove(&window).is_some()
    }

    /// How extents of `window`'s elements become screen pixels.
    async fn place(
        &self,
        bus: &Bus,
        found: &Found,
        window: &Window,
        until: Instant,
    ) -> Result<Place, Failure> {
        let toolkit = found.app.about(bus, until).await?.toolkit;
        let patience = until.min(Instant::now() + layout::PATIENCE);
        let (frame, shift) = loop {
            let (frame, shift, layout) = tokio::join!(
                extents::ask(bus, &found.app, &found.root, extents::SCREEN, until),
                self.shift(bus, found, toolkit, until),
                Layout::ask(bus, found, window, until),
            );
            if !self.is_behind(window, layout?, toolkit, Instant::now() < patience) {
                break (frame?, shift?);
            }
            tokio::time::sleep(layout::LOOK).await;
        };
        let opener = match toolkit {
            Toolkit::Gtk4 if window.kind == WindowKind::Popup => {
                found.app.memory().mirror.parent(&found.root).cloned()
            }
            _ => None,
        };
        let opener = match opener {
            Some(opener) => extents::ask(bus, &found.app, &opener, extents::WINDOW, until).await?,
            None => None,
        };
        let space = match opener {
            Some(opener) => Space::of_popover(window, frame, opener),
            None => Space::of(toolkit, window, frame),
        };
        Ok(Place { space, shift })
    }
}

impl AtSpi {
    /// Whether the application has yet to lay out `window` for its new frame, and is given time to. Else `layout` is
    /// remembered.
    fn is_behind(&self, window: &Window, layout: Layout, toolkit: Toolkit, in_time: bool) -> bool {
        let mut windows = lock(&self.windows);
        let Some(known) = windows.get_mut(&window.id) else { return false };
        let behind = known.layout.as_ref().is_some_and(|before| layout.is_behind(before, toolkit));
        if behind && in_time {
            return true;
        }
        known.layout = Some(layout);
        false
    }

    /// By how much the extents of a part of the window are off.
    async fn shift(
        &self,
        bus: &Bus,
        found: &Found,
        toolkit: Toolkit,
        until: Instant,
    ) -> Result<Option<Shift>, Failure> {
        if toolkit != Toolkit::LibreOffice {
            return Ok(None);
        }
        let pane = {
            let memory = found.app.memory();
            let pane = memory.mirror.first_with(&found.root, wire::role::ROOT_PANE);
            pane.and_then(|pane| memory.mirror.parent(&pane).cloned().map(|parent| (pane, parent)))
        };
        let Some((pane, container)) = pane else { return Ok(None) };
        let (own, container) = tokio::join!(
            extents::ask(bus, &found.app, &pane, extents::SCREEN, until),
            extents::ask(bus, &found.app, &container, extents::SCREEN, until),
        );
        Ok(own?.zip(container?).and_then(|(own, container)| Shift::between(pane, own, container)))
    }
}

/// The tree of a window that has none.
fn no_tree(window: &Window, reason: &NotFound) -> Tree {
    let app = if window.app.is_empty() { "the application" } else { window.app.as_str() };
    let note = match reason {
        NotFound::NoApplication => TreeNote::NoTree(format!(
            "{app} is not on the accessibility bus: it was started without accessibility, or has none, or has not come up \
             yet; launch_app starts programs with it"
        )),
        NotFound::NoFrame(_) => TreeNote::NoTree(format!(
            "{app} is on the accessibility bus, but has not published this window (yet)"
        )),
        NotFound::Silent(found, Silence::Frozen | Silence::OutOfTime) => {
            TreeNote::NotResponding { app: found.title() }
        }
        NotFound::Silent(found, _) => {
            TreeNote::NoTree(format!("{} has left the accessibility bus", found.title()))
        }
        NotFound::Registry(error) => {
            TreeNote::NoTree(format!("the accessibility registry does not list its applications: {error}"))
        }
    };
    Tree { nodes: Vec::new(), toolkit: None, notes: vec![note] }
}

#[async_trait]
impl Accessibility for AtSpi {
    async fn tree(&self, window: &Window, request: &TreeRequest, stop: &Stop) -> Result<Tree, PortError> {
        let bus = self.bus().await?;
        let until = Instant::now() + request.budget.min(SNAPSHOT);
        // The second time in case that the object found before is gone: windows may get new ones.
        loop {
            let found = match self.found(&bus, window, until).await {
                Ok(found) => found,
                Err(NotFound::Registry(_)) if bus.is_closed() => {
                    return Err(bus::unavailable("accessibility bus", "it has ended; try again".to_owned()));
                }
                Err(reason) => return Ok(no_tree(window, &reason)),
            };
            let reading = Reading { bus: &bus, found: &found, window, request, until, stop };
            let tree = reading.tree().await;
            match tree {
                Some(tree) if tree.nodes.is_empty() && !bus.apps().has(&found.app) => {
                    // The application has gone, but the window is there: somebody else's, or it has come again.
                    if !self.forget_window(window.id) || Instant::now() >= until {
                        return Ok(tree);
                    }
                }
                Some(tree) => return Ok(tree),
                None if self.forget_window(window.id) && Instant::now() < until => {}
                None => return Ok(no_tree(window, &NotFound::NoFrame(found.app))),
            }
        }
    }

    async fn details(
        &self,
        window: &Window,
        elements: &[ElementId],
        request: DetailsRequest,
        stop: &Stop,
    ) -> Result<Vec<Option<Details>>, PortError> {
        let bus = self.bus().await?;
        let until = Instant::now() + SNAPSHOT;
        let what = "the details of elements";
        let found = match self.found(&bus, window, until).await {
            Ok(found) => found,
            Err(NotFound::Silent(app, _)) => return Err(app.not_responding(what)),
            Err(_) => return Ok(vec![None; elements.len()]),
        };
        let app = &found.app;
        if app.still_frozen(&bus).await {
            return Err(app.not_responding(what));
        }
        let place = match request.frames {
            true => Some(self.place(&bus, &found, window, until).await),
            false => None,
        };
        let place = place.transpose().map_err(|failure| app.port_error(&failure, what))?;
        let toolkit = app.about(&bus, until).await.map_err(|failure| app.port_error(&failure, what))?.toolkit;
        let reader = &details::Reader {
            bus: &bus,
            toolkit,
            place,
            request,
            until,
            popup: window.kind == WindowKind::Popup,
        };
        let mut results: Vec<Option<Details>> = vec![None; elements.len()];
        let mut answered = false;
        let mut reading = stream::iter(elements.iter().cloned().enumerate())
            .map(|(place, id)| async move { (place, reader.read(&id).await) })
            .buffer_unordered(ELEMENTS_AT_A_TIME);
        loop {
            let next = tokio::select! {
                next = reading.next() => next,
                () = stop.cancelled() => break,
            };
            match next {
                None => break,
                Some((place, Ok(details))) => {
                    answered = true;
                    results[place] = details;
                }
                Some((_, Err(failure))) => {
                    if !answered {
                        return Err(app.port_error(&failure, what));
                    }
                    break;
                }
            }
        }
        Ok(results)
    }

    async fn facts(&self, window: &Window) -> Vec<Fact> {
        facts::of(self, window).await
    }

    async fn probe(&self, element: &ElementId) -> Result<Node, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.probe().await
    }

    async fn element_at(&self, window: &Window, point: Point) -> Result<Option<ElementId>, PortError> {
        let bus = self.bus().await?;
        let until = Instant::now() + app::ROUND_TRIP;
        let what = "the element at a point";
        let found = match self.found(&bus, window, until).await {
            Ok(found) => found,
            Err(NotFound::Silent(app, _)) => return Err(app.not_responding(what)),
            Err(_) => return Ok(None),
        };
        if found.app.still_frozen(&bus).await {
            return Err(found.app.not_responding(what));
        }
        let deepest = async {
            // Nearly always the place of a window is what can be told without asking, so its objects are asked meanwhile.
            let likely = match window.kind {
                WindowKind::Popup => None,
                _ => Some(Space::of(found.app.about(&bus, until).await?.toolkit, window, None)),
            };
            let (place, deepest) = tokio::join!(self.place(&bus, &found, window, until), async {
                match likely {
                    Some(space) => walk::innermost(&bus, &found.root, space, point, until).await,
                    None => Ok(None),
                }
            });
            let Place { space, shift } = place?;
            if likely == Some(space) && shift.is_none() {
                return deepest;
            }
            if let Some(shift) = shift {
                let inside = Point::new(point.x.saturating_sub(shift.x), point.y.saturating_sub(shift.y));
                let deepest = walk::innermost(&bus, &shift.pane, space, inside, until).await?;
                if deepest.is_some() {
                    return Ok(deepest);
                }
            }
            walk::innermost(&bus, &found.root, space, point, until).await
        };
        deepest.await.map_err(|failure| found.app.port_error(&failure, what))
    }

    async fn owner(&self, window: &Window) -> Result<Option<Arc<str>>, PortError> {
        let bus = self.bus().await?;
        match self.found(&bus, window, Instant::now() + app::ROUND_TRIP).await {
            Ok(found) => Ok(Some(Arc::clone(&found.app.owner))),
            Err(NotFound::Silent(app, _)) => Err(app.not_responding("the application of a window")),
            Err(_) => Ok(None),
        }
    }

    async fn do_action(&self, element: &ElementId, index: u32) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        let index = i32::try_from(index)
            .map_err(|_| PortError::NotSupported(format!("the element has no action {index}")))?;
        Target { bus: &bus, app: &app, element }.act(acting::ACTION, "DoAction", &(index,)).await
    }

    async fn focus(&self, element: &ElementId) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.act(acting::COMPONENT, "GrabFocus", &()).await
    }

    async fn set_number(&self, element: &ElementId, value: f64) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.set_number(value).await
    }

    async fn set_text(&self, element: &ElementId, text: &str) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.act(acting::EDITABLE, "SetTextContents", &(text,)).await
    }

    async fn insert_text(&self, element: &ElementId, position: usize, text: &str) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.insert_text(position, text).await
    }

    async fn select_text(&self, element: &ElementId, start: usize, end: usize) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.select_text(start, end).await
    }

    async fn select_child(&self, container: &ElementId, child: u32) -> Result<bool, PortError> {
        let (bus, app) = self.target(container).await?;
        Target { bus: &bus, app: &app, element: container }.select_child(child).await
    }

    async fn is_selected(&self, container: &ElementId, child: u32) -> Result<bool, PortError> {
        let (bus, app) = self.target(container).await?;
        Target { bus: &bus, app: &app, element: container }.is_selected(child).await
    }

    async fn select(&self, element: &ElementId) -> Result<bool, PortError> {
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.select().await
    }

    async fn scroll_into_view(&self, element: &ElementId) -> Result<bool, PortError> {
        /// AT-SPI's "anywhere in view".
        const ANYWHERE: u32 = 6;
        let (bus, app) = self.target(element).await?;
        Target { bus: &bus, app: &app, element }.act(acting::COMPONENT, "ScrollTo", &(ANYWHERE,)).await
    }

    async fn scroll_to_point(&self, element: &ElementId, point: Point) -> Result<bool, PortError> {
        /// AT-SPI's screen coordinates.
        const SCREEN: u32 = 0;
        let (bus, app) = self.target(element).await?;
        let body = (SCREEN, point.x, point.y);
        Target { bus: &bus, app: &app, element }.act(acting::COMPONENT, "ScrollToPoint", &body).await
    }

    async fn changes(&self) -> Result<broadcast::Receiver<Change>, PortError> {
        Ok(self.bus().await?.changes().subscribe())
    }

    async fn fence(&self, owner: &str) -> Result<(), PortError> {
        let bus = self.bus().await?;
        let app = bus.apps().get(&owner.into());
        Target::fence(&bus, &app).await
    }

    async fn forget_all(&self) {
        // The mirrors live from this connection's events: without it applications are not listened to any more.
        *self.bus.lock().await = None;
        lock(&self.windows).clear();
    }
}

//! Opening the levels of a menu one after the other, as a person does, and closing them when something goes wrong.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::Instant;

use super::evidence::Watch;
use super::levels::{self, Levels, Named};
use super::read;
use crate::desktop::{
    Button, Chord, Click, Details, DetailsRequest, ElementId, Key, Node, PortError, Window, WindowId,
};
use crate::effect::Route;
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Point;
use crate::tools::reading::{Family, Reading};
use crate::tree::quote;

/// How long a menu may take to open. Office programs fill some when they open.
const LEVEL_WAIT: Duration = Duration::from_secs(2);
/// How long an open menu may take to fill up, and to enable what is not.
const FILL_WAIT: Duration = Duration::from_millis(500);
/// What is not announced is looked for so often: GTK 4 tells nothing of its menus.
const LOOK: Duration = Duration::from_millis(60);
/// How long a menu may take to close.
const CLOSE_WAIT: Duration = Duration::from_millis(400);
/// Time between press and release.
const HOLD: Duration = Duration::from_millis(30);

/// A menu that is being opened.
pub(super) struct Opening<'a> {
    context: &'a Context,
    reading: Reading,
    /// The items that were opened.
    opened: Vec<ElementId>,
    /// What the tree had before the last one was.
    before: HashSet<ElementId>,
    /// What is no part of a menu.
    telling: HashSet<ElementId>,
    /// Popups that were there at the start.
    popups: HashSet<WindowId>,
}

/// An item that can be chosen now.
struct Ready {
    item: Node,
    details: Details,
    /// Where to press, if that is known.
    at: Option<Point>,
    /// Whether it opens a menu, as far as the tree shows.
    opens: bool,
}

impl<'a> Opening<'a> {
    pub(super) fn new(context: &'a Context, reading: Reading) -> Self {
        let telling = Levels::of(&reading.tree.nodes).apart_from_menus();
        Self { context, reading, opened: Vec::new(), before: HashSet::new(), telling, popups: HashSet::new() }
    }

    /// Opens each level of `path` and chooses its last.
    pub(super) async fn choose(&mut self, path: &[String]) -> Result<(Node, Route, Watch)> {
        let ready = self.open(path).await?;
        if ready.opens {
            return Err(opens_a_menu(&ready.item.name));
        }
        let watch = self.watch(&ready.item).await;
        let route = self.press(&ready).await?;
        Ok((ready.item, route, watch))
    }

    /// Opens each level of `path`, and leaves its last as it is.
    pub(super) async fn find(&mut self, path: &[String]) -> Result<Node> {
        Ok(self.open(path).await?.item)
    }

    /// Opens the menu that the last of `path` is in.
    async fn open(&mut self, path: &[String]) -> Result<Ready> {
        self.popups = self.open_popups().await?.iter().map(|popup| popup.id).collect();
        let last = path.len().checked_sub(1).ok_or_else(|| Error::argument("path", "is empty"))?;
        for level in 0..last {
            let ready = self.await_item(path, level).await?;
            // What is opened by us is no habit of the application.
            let _watch = self.watch(&ready.item).await;
            self.press(&ready).await?;
            self.before = self.reading.tree.nodes.iter().map(|node| node.id.clone()).collect();
            self.opened.push(ready.item.id);
        }
        self.await_item(path, last).await
    }

    async fn watch(&self, item: &Node) -> Watch {
        Watch::start(self.context, &self.reading.window, self.telling.clone(), item).await
    }

    /// The items of the level that was opened last.
    fn items(&self, levels: &Levels<'_>) -> Vec<u32> {
        let Some(opened) = self.opened.last() else { return levels.top() };
        let place = self.reading.tree.nodes.iter().position(|node| node.id == *opened);
        let place = place.and_then(|place| u32::try_from(place).ok());
        let mut items = place.map(|place| levels.inside(place)).unwrap_or_default();
        if items.is_empty() {
            items = levels.new_since(&self.before);
        }
        items
    }

    /// Waits until the item is there and can be chosen.
    async fn await_item(&mut self, path: &[String], level: usize) -> Result<Ready> {
        let mut changes = self.context.desktop().windows.changes().await?;
        let mut events = self.context.desktop().accessibility.changes().await?;
        let begun = Instant::now();
        loop {
            changes.borrow_and_update();
            let found = {
                let levels = Levels::of(&self.reading.tree.nodes);
                let items = self.items(&levels);
                match levels.called(&items, &path[level]) {
                    Named::One(place) => Ok((place, levels.opens(place))),
                    Named::None | Named::Several => {
                        Err((levels.unknown(path, level, &items), items.is_empty()))
                    }
                }
            };
            let last_look = begun.elapsed() >= LEVEL_WAIT;
            let is_full = begun.elapsed() >= FILL_WAIT;
            match found {
                Ok((place, opens)) => {
                    let item = self.reading.tree.nodes[place as usize].clone();
                    if let Some(ready) = self.ready(place, item, opens, level).await? {
                        // It may be enabled only a moment after its menu has opened.
                        match levels::refuse_disabled(&ready.item) {
                            Ok(()) => return Ok(ready),
                            Err(refused) if is_full || level == 0 => return Err(refused),
                            Err(_) => {}
                        }
                    } else if last_look {
                        let message = format!("{} did not open", quote(&path[level.saturating_sub(1)], 60));
                        return Err(Error::new(Code::NotSupported, message));
                    }
                }
                Err((unknown, is_empty)) if last_look || level == 0 || (is_full && !is_empty) => {
                    return Err(unknown);
                }
                Err(_) => {}
            }
            tokio::select! {
                _ = changes.changed() => {}
                _ = events.recv() => {}
                () = self.context.stop().cancelled() => return Err(self.context.stopped()),
                () = tokio::time::sleep(LOOK) => {}
            }
            self.reading = read(self.context, self.reading.window.id).await?;
        }
    }

    /// Whether an item can be chosen now: `None` if its menu is not open yet.
    async fn ready(&self, place: u32, item: Node, opens: bool, level: usize) -> Result<Option<Ready>> {
        // A menu bar that is hidden has a place all the same.
        if level == 0 && !Levels::of(&self.reading.tree.nodes).is_shown(place) {
            let message = format!(
                "{} is not on the screen; a hidden menu bar comes up with press_key F10 or alt, or use the button that has \
                 its menu",
                quote(&item.name, 60)
            );
            return Err(Error::new(Code::NotSupported, message));
        }
        let request = DetailsRequest { text_limit: 0, frames: true, actions: true };
        let details =
            self.reading.details(self.context, &[place], request).await?.into_iter().next().flatten();
        let Some(details) = details else { return Ok(None) };
        let center = details.frame.filter(|frame| !frame.is_empty()).map(|frame| frame.center());
        let window = &self.reading.window;
        let at = match center {
            Some(at) if level == 0 => Some(at).filter(|at| window.frame.contains(*at)),
            Some(at) => self.open_popups().await?.iter().any(|popup| popup.frame.contains(at)).then_some(at),
            None => None,
        };
        let has_opened =
            level == 0 || self.open_popups().await?.iter().any(|popup| !self.popups.contains(&popup.id));
        let can_be_used = at.is_some() || !details.actions.is_empty();
        // Asked again: a tree may be a moment old.
        let item = match self.context.desktop().accessibility.probe(&item.id).await {
            Ok(now) => Node { parent: item.parent, ..now },
            Err(PortError::ElementGone) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        Ok((has_opened && can_be_used).then_some(Ready { item, details, at, opens }))
    }

    /// Popups of the window.
    async fn open_popups(&self) -> Result<Vec<Window>> {
        let windows = self.context.desktop().windows.list().await?;
        Ok(Family::among(&windows, self.reading.window.clone()).popups)
    }

    /// Makes sure that a press at `at` reaches the window or one of its menus.
    async fn require_reachable(&self, at: Point) -> Result<()> {
        let hit = self.context.desktop().windows.hit_test(at).await?;
        let popups = self.open_popups().await?;
        let is_menu = |top: &Window| popups.iter().any(|popup| popup.id == top.id);
        match &hit.window {
            Some(top) if is_menu(top) => Ok(()),
            Some(top) if top.id == self.reading.window.id && !hit.grabbed => Ok(()),
            _ => {
                let message =
                    format!("something lies over the menu at {},{}; it was closed again", at.x, at.y);
                Err(Error::new(Code::Occluded, message))
            }
        }
    }

    /// Chooses an item with the pointer, or by its action where its place is not known.
    async fn press(&self, ready: &Ready) -> Result<Route> {
        let Ready { item, details, at, .. } = ready;
        let desktop = self.context.desktop();
        if let Some(at) = *at {
            self.require_reachable(at).await?;
            let click =
                Click { at, button: Button::Left, count: 1, modifiers: Vec::new(), hold: HOLD, apart: false };
            let delivered = desktop.pointer.click(&click, self.context.stop()).await?;
            self.context.delivered(delivered, "clicks")?;
            return Ok(Route::Pointer);
        }
        let action = details.actions.first().ok_or_else(|| {
            let message = format!("{} can be neither pointed at nor activated", quote(&item.name, 60));
            Error::new(Code::NotSupported, message)
        })?;
        desktop.accessibility.do_action(&item.id, action.index).await?;
        Ok(Route::AxAction)
    }

    /// The menus that were opened.
    pub(super) fn opened(&self) -> Opened {
        Opened { window: self.reading.window.clone(), popups: self.popups.clone(), levels: self.opened.len() }
    }
}

/// Says that an item opens a menu and does nothing else.
fn opens_a_menu(name: &str) -> Error {
    Error::argument(
        "path",
        format!("{} opens a menu; it was closed again; name an item of it", quote(name, 60)),
    )
}

/// Menus that have been opened, to be closed again.
pub(super) struct Opened {
    window: Window,
    popups: HashSet<WindowId>,
    levels: usize,
}

impl Opened {
    async fn is_open(&self, context: &Context) -> bool {
        let Ok(windows) = context.desktop().windows.list().await else { return false };
        let open = Family::among(&windows, self.window.clone()).popups;
        open.iter().any(|popup| !self.popups.contains(&popup.id))
    }

    /// Refuses an item after which a menu is still open: it has opened one more.
    pub(super) async fn require_closed(&self, context: &Context, item: &Node) -> Result<()> {
        let mut changes = context.desktop().windows.changes().await?;
        let deadline = Instant::now() + FILL_WAIT;
        while self.is_open(context).await {
            if Instant::now() >= deadline {
                self.close(context).await;
                return Err(opens_a_menu(&item.name));
            }
            // It may be closing: on a busy machine that takes its time.
            let _ = tokio::time::timeout(LOOK, changes.changed()).await;
        }
        Ok(())
    }

    /// Closes what was opened.
    pub(super) async fn close(&self, context: &Context) {
        let Ok(mut changes) = context.desktop().windows.changes().await else { return };
        let escape = Chord { modifiers: Vec::new(), key: Some(Key("Escape".to_owned())) };
        // One more than was opened: the last item may have been a menu itself.
        for _ in 0..=self.levels + 1 {
            changes.borrow_and_update();
            if !self.is_open(context).await {
                return;
            }
            // The call may have been stopped; what it opened is closed all the same.
            let stop = crate::desktop::Stop::new();
            if context.desktop().keyboard.press(&escape, 1, HOLD, &stop).await.is_err() {
                return;
            }
            let _ = tokio::time::timeout(CLOSE_WAIT, changes.changed()).await;
        }
        // On a busy machine the keys are still on their way.
        let deadline = Instant::now() + LEVEL_WAIT;
        while self.is_open(context).await && Instant::now() < deadline {
            let _ = tokio::time::timeout(LOOK, changes.changed()).await;
        }
    }
}

//! The ports of a call that people can watch: they tell the overlay where they act, and wait for nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use crate::consent::Leave;
use crate::desktop::{
    Accessibility, Act, AgentCursor, Change, Chord, Click, Delivered, Desktop, Details, DetailsRequest, Drag,
    ElementId, Fact, Keyboard, Node, Overlay, Pointer, PortError, Stop, Tally, Tree, TreeRequest, Wheel,
    Window,
};
use crate::geometry::{Point, Rect};

/// Frames of elements that a call's actions may be about: those it read one by one or a few at a time. Readings of whole
/// windows are not remembered.
const MAX_FRAMES: usize = 16;

/// How long the place of an element may be asked for after it was acted on.
const AFTERWARDS: Duration = Duration::from_secs(1);

/// The ports of `desktop`, as the agent of `cursor` uses them.
pub(super) fn showing(desktop: &Desktop, cursor: AgentCursor, leave: &Arc<Leave>) -> Desktop {
    let shown = Arc::new(Shown { overlay: Arc::clone(&desktop.overlay), cursor });
    let mut desktop = desktop.clone();
    desktop.pointer = Arc::new(Showing { port: desktop.pointer, shown: Arc::clone(&shown) });
    desktop.keyboard = Arc::new(Showing { port: desktop.keyboard, shown: Arc::clone(&shown) });
    desktop.accessibility = Arc::new(ShowingElements {
        port: desktop.accessibility,
        shown,
        leave: Arc::clone(leave),
        known: Mutex::default(),
    });
    desktop
}

struct Shown {
    overlay: Arc<dyn Overlay>,
    cursor: AgentCursor,
}

impl Shown {
    fn show(&self, act: Act) {
        self.overlay.show(&self.cursor, act);
    }
}

struct Showing<P: ?Sized> {
    port: Arc<P>,
    shown: Arc<Shown>,
}

/// A pointer that only moves is not shown: it is on its way to a press, or given back to the person.
#[async_trait]
impl Pointer for Showing<dyn Pointer> {
    async fn position(&self) -> Result<Point, PortError> {
        self.port.position().await
    }

    async fn move_to(&self, to: Point) -> Result<(), PortError> {
        self.port.move_to(to).await
    }

    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError> {
        self.shown.show(Act::Press(click.at));
        self.port.click(click, stop).await
    }

    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError> {
        let &Drag { from, to, duration, .. } = drag;
        self.shown.show(Act::Drag { from, to, duration });
        self.port.drag(drag, stop).await
    }

    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError> {
        self.shown.show(Act::Point(wheel.at));
        self.port.turn_wheel(wheel, stop).await
    }
}

#[async_trait]
impl Keyboard for Showing<dyn Keyboard> {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        self.shown.show(Act::Keys);
        let done = self.port.type_text(text, delay, typed, stop).await;
        self.shown.show(Act::Keys);
        done
    }

    async fn require_typable(&self, text: &str) -> Result<(), PortError> {
        self.port.require_typable(text).await
    }

    async fn press(
        &self,
        chord: &Chord,
        repeat: u32,
        hold: Duration,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        self.shown.show(Act::Keys);
        self.port.press(chord, repeat, hold, stop).await
    }
}

struct ShowingElements {
    port: Arc<dyn Accessibility>,
    shown: Arc<Shown>,
    leave: Arc<Leave>,
    known: Mutex<Known>,
}

/// What a call has read, and so knows without asking.
#[derive(Default)]
struct Known {
    /// The window that was read last.
    window: Option<Window>,
    /// Frames of elements in screen pixels, the newest last.
    frames: VecDeque<(ElementId, Rect)>,
}

impl Known {
    fn learn(&mut self, window: &Window, elements: &[ElementId], details: &[Option<Details>]) {
        self.window = Some(window.clone());
        for (element, details) in elements.iter().zip(details) {
            if let Some(frame) = details.as_ref().and_then(|details| visible(window, details)) {
                self.frames.retain(|(known, _)| known != element);
                if self.frames.len() == MAX_FRAMES {
                    self.frames.pop_front();
                }
                self.frames.push_back((element.clone(), frame));
            }
        }
    }

    fn frame(&self, element: &ElementId) -> Option<Rect> {
        self.frames.iter().find(|(known, _)| known == element).map(|(_, frame)| *frame)
    }
}

/// The part of an element that its window shows; items of menus lie outside of it.
fn visible(window: &Window, details: &Details) -> Option<Rect> {
    let frame = details.frame.filter(|frame| !frame.is_empty())?;
    Some(frame.intersection(&window.frame).unwrap_or(frame))
}

impl ShowingElements {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows that `element` is acted on, if its place is known; else that is asked for once the action has succeeded, and
    /// nobody waits for it.
    async fn acting(
        &self,
        element: &ElementId,
        act: fn(Point) -> Act,
        action: impl Future<Output = Result<bool, PortError>> + Send,
    ) -> Result<bool, PortError> {
        let frame = self.known().frame(element);
        if let Some(frame) = frame {
            self.shown.show(act(frame.center()));
        }
        let done = action.await;
        let window = self.known().window.clone();
        if let (None, Ok(true), Some(window)) = (frame, &done, window) {
            let (port, shown, leave) =
                (Arc::clone(&self.port), Arc::clone(&self.shown), Arc::clone(&self.leave));
            let element = [element.clone()];
            tokio::spawn(async move {
                if !leave.grant().await.sees() {
                    return;
                }
                let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
                let stop = Stop::new();
                let asked = port.details(&window, &element, request, &stop);
                if let Ok(Ok(details)) = tokio::time::timeout(AFTERWARDS, asked).await
                    && let Some(frame) =
                        details.iter().flatten().find_map(|details| visible(&window, details))
                {
                    shown.show(act(frame.center()));
                }
            });
        }
        done
    }
}

#[async_trait]
impl Accessibility for ShowingElements {
    async fn tree(&self, window: &Window, request: &TreeRequest, stop: &Stop) -> Result<Tree, PortError> {
        self.known().window = Some(window.clone());
        self.port.tree(window, request, stop).await
    }

    async fn details(
        &self,
        window: &Window,
        elements: &[ElementId],
        request: DetailsRequest,
        stop: &Stop,
    ) -> Result<Vec<Option<Details>>, PortError> {
        let details = self.port.details(window, elements, request, stop).await?;
        if request.frames && elements.len() <= MAX_FRAMES {
            self.known().learn(window, elements, &details);
        }
        Ok(details)
    }

    async fn facts(&self, window: &Window) -> Vec<Fact> {
        self.port.facts(window).await
    }

    async fn probe(&self, element: &ElementId) -> Result<Node, PortError> {
        self.port.probe(element).await
    }

    async fn element_at(&self, window: &Window, point: Point) -> Result<Option<ElementId>, PortError> {
        self.port.element_at(window, point).await
    }

    async fn owner(&self, window: &Window) -> Result<Option<Arc<str>>, PortError> {
        self.known().window = Some(window.clone());
        self.port.owner(window).await
    }

    async fn do_action(&self, element: &ElementId, index: u32) -> Result<bool, PortError> {
        self.acting(element, Act::Press, self.port.do_action(element, index)).await
    }

    async fn focus(&self, element: &ElementId) -> Result<bool, PortError> {
        self.acting(element, Act::Point, self.port.focus(element)).await
    }

    async fn set_number(&self, element: &ElementId, value: f64) -> Result<bool, PortError> {
        self.acting(element, Act::Press, self.port.set_number(element, value)).await
    }

    async fn set_text(&self, element: &ElementId, text: &str) -> Result<bool, PortError> {
        self.acting(element, Act::Point, self.port.set_text(element, text)).await
    }

    async fn insert_text(&self, element: &ElementId, position: usize, text: &str) -> Result<bool, PortError> {
        self.acting(element, Act::Point, self.port.insert_text(element, position, text)).await
    }

    async fn select_text(&self, element: &ElementId, start: usize, end: usize) -> Result<bool, PortError> {
        self.acting(element, Act::Point, self.port.select_text(element, start, end)).await
    }

    async fn select_child(&self, container: &ElementId, child: u32) -> Result<bool, PortError> {
        self.acting(container, Act::Press, self.port.select_child(container, child)).await
    }

    async fn is_selected(&self, container: &ElementId, child: u32) -> Result<bool, PortError> {
        self.port.is_selected(container, child).await
    }

    async fn select(&self, element: &ElementId) -> Result<bool, PortError> {
        self.acting(element, Act::Press, self.port.select(element)).await
    }

    async fn scroll_into_view(&self, element: &ElementId) -> Result<bool, PortError> {
        self.port.scroll_into_view(element).await
    }

    async fn scroll_to_point(&self, element: &ElementId, point: Point) -> Result<bool, PortError> {
        self.port.scroll_to_point(element, point).await
    }

    async fn changes(&self) -> Result<broadcast::Receiver<Change>, PortError> {
        self.port.changes().await
    }

    async fn fence(&self, owner: &str) -> Result<(), PortError> {
        self.port.fence(owner).await
    }

    async fn forget_all(&self) {
        self.port.forget_all().await;
    }
}

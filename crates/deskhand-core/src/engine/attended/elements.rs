//! The elements of a call that is attended.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use tokio::sync::broadcast;

use super::Audience;
use crate::consent::Leave;
use crate::desktop::{
    Accessibility, Act, Change, Details, DetailsRequest, ElementId, Fact, Node, PortError, Stop, Tree,
    TreeRequest, Window,
};
use crate::geometry::{Point, Rect};

/// Frames of elements that a call's actions may be about: those it read one by one or a few at a time. Readings of whole
/// windows are not remembered.
const MAX_FRAMES: usize = 16;

/// How long the place of an element may be asked for after it was acted on.
const AFTERWARDS: Duration = Duration::from_secs(1);

pub(super) struct AttendedElements {
    port: Arc<dyn Accessibility>,
    audience: Audience,
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

impl AttendedElements {
    pub(super) fn new(port: Arc<dyn Accessibility>, audience: Audience, leave: &Arc<Leave>) -> Self {
        Self { port, audience, leave: Arc::clone(leave), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says that `element` is acted on, if its place is known. Of a call that is recorded it is asked for before the action,
    /// and waited for only as long as the action takes; for people it is asked for once the action has succeeded, and
    /// nobody waits for it.
    async fn acting(
        &self,
        element: &ElementId,
        act: fn(Point) -> Act,
        action: impl Future<Output = Result<bool, PortError>> + Send,
    ) -> Result<bool, PortError> {
        self.audience.seated().await;
        let frame = self.known().frame(element);
        let window = self.known().window.clone();
        if let Some(frame) = frame {
            self.audience.show(act(frame.center()));
            self.audience.note(frame.center());
        }
        let Some(window) = window.filter(|_| frame.is_none()) else { return action.await };
        let place = place(Arc::clone(&self.port), Arc::clone(&self.leave), window, element.clone());
        if self.audience.is_recorded() {
            tokio::pin!(place, action);
            // The question is on its way before the action is; applications answer in that order.
            let (done, at) = tokio::select! {
                biased;
                at = &mut place => ((&mut action).await, at),
                done = &mut action => (done, place.now_or_never().flatten()),
            };
            if let (Ok(true), Some(at)) = (&done, at) {
                self.audience.show(act(at));
                self.audience.note(at);
            }
            return done;
        }
        let done = action.await;
        if matches!(done, Ok(true)) && self.audience.is_shown() {
            let audience = self.audience.clone();
            tokio::spawn(async move {
                if let Some(at) = place.await {
                    audience.show(act(at));
                }
            });
        }
        done
    }
}

/// Asks for the middle of an element, if the screen may be seen.
async fn place(
    port: Arc<dyn Accessibility>,
    leave: Arc<Leave>,
    window: Window,
    element: ElementId,
) -> Option<Point> {
    if !leave.grant().await.sees() {
        return None;
    }
    let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
    let (element, stop) = ([element], Stop::new());
    let _stops = stop.clone().drop_guard();
    let asked = port.details(&window, &element, request, &stop);
    let details = tokio::time::timeout(AFTERWARDS, asked).await.ok()?.ok()?;
    let frame = details.iter().flatten().find_map(|details| visible(&window, details))?;
    Some(frame.center())
}

#[async_trait]
impl Accessibility for AttendedElements {
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
        self.known().window = Some(window.clone());
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
        self.audience.seated().await;
        self.port.scroll_into_view(element).await
    }

    async fn scroll_to_point(&self, element: &ElementId, point: Point) -> Result<bool, PortError> {
        self.audience.seated().await;
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

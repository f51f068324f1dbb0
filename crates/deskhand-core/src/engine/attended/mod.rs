//! The ports of a call that is recorded or that people can watch.
//!
//! Nothing acts before the picture from before the call has been taken, and the overlay is told where the call acts; for
//! the overlay nobody waits.

mod elements;
mod surroundings;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::elements::AttendedElements;
use crate::consent::Leave;
use crate::desktop::{
    Act, AgentCursor, Chord, Click, Delivered, Desktop, Drag, Keyboard, Overlay, Pointer, PortError, Stop,
    Tally, Wheel, Window, Windows,
};
use crate::geometry::Point;
use crate::recording::Turn;

/// How far below its upper edge a window's title is about, in pixels.
const HEAD: u32 = 16;

/// The ports of `desktop` for a call. With `cursor` people see where it acts; with `turn` its pictures are taken.
pub(super) fn attended(
    desktop: &Desktop,
    cursor: Option<AgentCursor>,
    turn: Option<Arc<Turn>>,
    leave: &Arc<Leave>,
) -> Desktop {
    let mut desktop = desktop.clone();
    if cursor.is_none() && turn.is_none() {
        return desktop;
    }
    let shown = cursor.map(|cursor| {
        let (overlay, windows) = (Arc::clone(&desktop.overlay), Arc::clone(&desktop.windows));
        Shown { overlay, cursor, windows, leave: Arc::clone(leave) }
    });
    let audience = Audience(Arc::new(Onlookers { turn, shown }));
    desktop.pointer = Arc::new(Attended { port: desktop.pointer, audience: audience.clone() });
    desktop.keyboard = Arc::new(Attended { port: desktop.keyboard, audience: audience.clone() });
    desktop.windows = Arc::new(Attended { port: desktop.windows, audience: audience.clone() });
    desktop.apps = Arc::new(Attended { port: desktop.apps, audience: audience.clone() });
    desktop.clipboard = Arc::new(Attended { port: desktop.clipboard, audience: audience.clone() });
    desktop.accessibility = Arc::new(AttendedElements::new(desktop.accessibility, audience, leave));
    desktop
}

/// Who looks on.
#[derive(Clone)]
struct Audience(Arc<Onlookers>);

struct Onlookers {
    turn: Option<Arc<Turn>>,
    shown: Option<Shown>,
}

struct Shown {
    overlay: Arc<dyn Overlay>,
    cursor: AgentCursor,
    windows: Arc<dyn Windows>,
    leave: Arc<Leave>,
}

impl Audience {
    /// To be awaited before anything is done.
    async fn seated(&self) {
        if let Some(turn) = &self.0.turn {
            turn.looked().await;
        }
    }

    /// Shows what the agent does.
    fn show(&self, act: Act) {
        if let Some(Shown { overlay, cursor, .. }) = &self.0.shown {
            overlay.show(cursor, act);
        }
    }

    /// Shows that it uses the keyboard: where its cursor is, else at the head of the window that has the focus. Returns at
    /// once.
    fn show_keys(&self) {
        let Some(Shown { overlay, cursor, .. }) = &self.0.shown else { return };
        if overlay.is_shown(&cursor.id) {
            return overlay.show(cursor, Act::Keys);
        }
        let audience = self.clone();
        tokio::spawn(async move {
            let Some(Shown { overlay, cursor, windows, leave }) = &audience.0.shown else { return };
            if !leave.grant().await.sees() {
                return;
            }
            let windows = windows.list().await.unwrap_or_default();
            if let Some(Window { frame, .. }) = windows.iter().find(|window| window.focused) {
                let head = i32::try_from(frame.height.min(2 * HEAD) / 2).unwrap_or(0);
                overlay.show(cursor, Act::Point(Point::new(frame.center().x, frame.y.saturating_add(head))));
            }
        });
    }

    /// An element that lies there is acted on through accessibility.
    fn note(&self, at: Point) {
        if let Some(turn) = &self.0.turn {
            turn.at_point(at);
        }
    }

    /// Whether it is written down where the call acts.
    fn is_recorded(&self) -> bool {
        self.0.turn.as_ref().is_some_and(|turn| turn.is_recorded())
    }

    /// Whether people see it.
    fn is_shown(&self) -> bool {
        self.0.shown.is_some()
    }
}

struct Attended<P: ?Sized> {
    port: Arc<P>,
    audience: Audience,
}

impl<P: ?Sized> Attended<P> {
    /// The port, to do something with it.
    async fn acting(&self) -> &P {
        self.audience.seated().await;
        &self.port
    }
}

/// A pointer that only moves is not shown: it is on its way to a press, or given back to the person.
#[async_trait]
impl Pointer for Attended<dyn Pointer> {
    async fn position(&self) -> Result<Point, PortError> {
        self.port.position().await
    }

    async fn move_to(&self, to: Point) -> Result<(), PortError> {
        self.acting().await.move_to(to).await
    }

    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError> {
        let port = self.acting().await;
        self.audience.show(Act::Press(click.at));
        port.click(click, stop).await
    }

    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError> {
        let &Drag { from, to, duration, .. } = drag;
        let port = self.acting().await;
        self.audience.show(Act::Drag { from, to, duration });
        port.drag(drag, stop).await
    }

    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError> {
        let port = self.acting().await;
        self.audience.show(Act::Point(wheel.at));
        port.turn_wheel(wheel, stop).await
    }
}

#[async_trait]
impl Keyboard for Attended<dyn Keyboard> {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        let port = self.acting().await;
        self.audience.show_keys();
        let done = port.type_text(text, delay, typed, stop).await;
        self.audience.show_keys();
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
        let port = self.acting().await;
        self.audience.show_keys();
        port.press(chord, repeat, hold, stop).await
    }
}

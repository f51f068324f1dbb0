//! The pointer and the keyboard under watch: an operation of theirs that cannot be stopped is the end of the engine, and
//! one whose display server fell silent says that its fate is not known.

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;

use super::Shared;
use crate::desktop::{
    Chord, Click, Delivered, Desktop, Drag, Keyboard, Pointer, PortError, Stop, Tally, Wheel,
};
use crate::geometry::Point;

/// How long an input operation may go on after it was asked to stop. It stops between two keys, gives up a display server
/// that is silent for 2 s, and an input method that has to be put back within another 4 s, so none that is sound takes this
/// long.
pub const UNSTOPPABLE_INPUT: Duration = Duration::from_secs(10);

/// The ports of `desktop`, with its input under watch.
pub(super) fn watched(mut desktop: Desktop, shared: &Weak<Shared>) -> Desktop {
    desktop.pointer = Arc::new(Watched { port: desktop.pointer, shared: Weak::clone(shared) });
    desktop.keyboard = Arc::new(Watched { port: desktop.keyboard, shared: Weak::clone(shared) });
    desktop
}

struct Watched<P: ?Sized> {
    port: Arc<P>,
    shared: Weak<Shared>,
}

impl<P: ?Sized> Watched<P> {
    async fn watch(
        &self,
        what: &'static str,
        stop: &Stop,
        operation: impl Future<Output = Result<Delivered, PortError>>,
    ) -> Result<Delivered, PortError> {
        tokio::pin!(operation);
        let too_long = async {
            stop.cancelled().await;
            tokio::time::sleep(UNSTOPPABLE_INPUT).await;
        };
        let done = tokio::select! {
            biased;
            done = &mut operation => done,
            () = too_long => {
                if let Some(shared) = self.shared.upgrade() {
                    shared.fail(&format!("the {what} cannot be stopped"));
                }
                // The queue stays held: nothing may act beside it.
                operation.await
            }
        };
        done.map_err(|error| match error {
            PortError::DesktopNotResponding => PortError::InputUncertain,
            error => error,
        })
    }
}

#[async_trait]
impl Pointer for Watched<dyn Pointer> {
    async fn position(&self) -> Result<Point, PortError> {
        self.port.position().await
    }

    async fn move_to(&self, to: Point) -> Result<(), PortError> {
        self.port.move_to(to).await
    }

    async fn click(&self, click: &Click, stop: &Stop) -> Result<Delivered, PortError> {
        self.watch("click", stop, self.port.click(click, stop)).await
    }

    async fn drag(&self, drag: &Drag, stop: &Stop) -> Result<Delivered, PortError> {
        self.watch("drag", stop, self.port.drag(drag, stop)).await
    }

    async fn turn_wheel(&self, wheel: &Wheel, stop: &Stop) -> Result<Delivered, PortError> {
        self.watch("wheel", stop, self.port.turn_wheel(wheel, stop)).await
    }
}

#[async_trait]
impl Keyboard for Watched<dyn Keyboard> {
    async fn type_text(
        &self,
        text: &str,
        delay: Duration,
        typed: &Tally,
        stop: &Stop,
    ) -> Result<Delivered, PortError> {
        self.watch("typing", stop, self.port.type_text(text, delay, typed, stop)).await
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
        self.watch("key press", stop, self.port.press(chord, repeat, hold, stop)).await
    }
}

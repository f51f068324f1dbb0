//! When the picture from after a call is taken: late enough that the application has drawn what it did, and before anything
//! else is done.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::desktop::{Capture, CaptureTarget};

/// By then an application has drawn, a menu has opened, and toolkits' transitions, which take up to a quarter of a second,
/// are over. Nobody waits for it.
const SETTLE: Duration = Duration::from_millis(300);

/// The pictures that are still to be taken, of all recordings.
#[derive(Debug, Default)]
pub(crate) struct Afterlooks(Mutex<Vec<Waiting>>);

/// A picture that is still to be taken.
#[derive(Debug)]
struct Waiting {
    target: Option<CaptureTarget>,
    /// `None`: it is being taken already.
    call: Option<oneshot::Sender<Cue>>,
    taken: CancellationToken,
}

/// Why a picture is taken now.
#[derive(Debug)]
enum Cue {
    /// Something is about to be done.
    Now,
    /// The next call takes a picture of the same thing before it does anything: that is the same picture.
    Shared(oneshot::Receiver<Capture>),
}

/// The side of whoever takes such a picture.
pub(super) struct Afterlook {
    cue: oneshot::Receiver<Cue>,
    _taken: DropGuard,
}

/// Those who want the picture that the next call takes before it does anything.
#[derive(Default)]
pub(super) struct Sharers(Vec<oneshot::Sender<Capture>>);

impl Afterlooks {
    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|each| !each.taken.is_cancelled());
        waiting
    }

    /// A picture of `target` is to be taken. Dropping the answer says that it was.
    pub(super) fn add(&self, target: Option<CaptureTarget>) -> Afterlook {
        let (call, cue) = oneshot::channel();
        let taken = CancellationToken::new();
        self.lock().push(Waiting { target, call: Some(call), taken: taken.clone() });
        Afterlook { cue, _taken: taken.drop_guard() }
    }

    /// Something is about to be done: pictures from before it are taken now.
    pub(crate) fn hurry(&self) {
        for waiting in self.lock().iter_mut() {
            if let Some(call) = waiting.call.take() {
                // Whoever takes it may just have begun by itself.
                let _ = call.send(Cue::Now);
            }
        }
    }

    /// The same for a call that takes a picture of `target` itself first. Pictures of something else are taken when this
    /// returns.
    pub(super) async fn make_way(&self, target: CaptureTarget) -> Sharers {
        let mut sharers = Sharers::default();
        let mut others = Vec::new();
        for waiting in self.lock().iter_mut() {
            let is_same = waiting.target == Some(target);
            match waiting.call.take() {
                Some(call) if is_same => {
                    let (give, given) = oneshot::channel();
                    match call.send(Cue::Shared(given)) {
                        Ok(()) => sharers.0.push(give),
                        Err(_) => others.push(waiting.taken.clone()),
                    }
                }
                Some(call) => {
                    let _ = call.send(Cue::Now);
                    others.push(waiting.taken.clone());
                }
                None => others.push(waiting.taken.clone()),
            }
        }
        for taken in others {
            taken.cancelled().await;
        }
        sharers
    }
}

impl Afterlook {
    /// Waits until the picture is to be taken; `Some`: it has been taken already.
    pub(super) async fn wait(&mut self) -> Option<Capture> {
        let cue = match tokio::time::timeout(SETTLE, &mut self.cue).await {
            Ok(cue) => cue.ok(),
            Err(_) => {
                // From now on whoever is about to do something waits for the picture itself.
                self.cue.close();
                self.cue.try_recv().ok()
            }
        };
        match cue {
            // Not given: it could not be taken, and why is found out once more.
            Some(Cue::Shared(given)) => given.await.ok(),
            Some(Cue::Now) | None => None,
        }
    }
}

impl Sharers {
    /// Gives them the picture.
    pub(super) fn give(self, capture: &Capture) {
        for sharer in self.0 {
            // One that was given up waits no more.
            let _ = sharer.send(capture.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::desktop::{Pixels, WindowId};
    use crate::geometry::Rect;

    const ONE: CaptureTarget = CaptureTarget::Window(WindowId(1));
    const TWO: CaptureTarget = CaptureTarget::Window(WindowId(2));

    fn capture() -> Capture {
        let pixels = Pixels { width: 1, height: 1, rgba: vec![7; 4] };
        Capture { pixels, frame: Rect::new(0, 0, 1, 1), stale: false }
    }

    #[tokio::test(start_paused = true)]
    async fn it_waits_until_the_application_has_drawn() {
        let begun = tokio::time::Instant::now();
        assert!(Afterlooks::default().add(Some(ONE)).wait().await.is_none());
        assert_eq!(begun.elapsed(), SETTLE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_call_shares_its_picture_or_waits() {
        let afterlooks = Arc::new(Afterlooks::default());
        let (mut same, mut other) = (afterlooks.add(Some(ONE)), afterlooks.add(Some(TWO)));
        let same = tokio::spawn(async move { same.wait().await });
        let other = tokio::spawn(async move {
            assert!(other.wait().await.is_none(), "it looks for itself");
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
        let begun = tokio::time::Instant::now();
        let sharers = afterlooks.make_way(ONE).await;
        assert_eq!(begun.elapsed(), Duration::from_millis(20), "as long as the other one took");
        sharers.give(&capture());
        assert!(same.await.unwrap().is_some());
        other.await.unwrap();
        assert!(afterlooks.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_picture_that_is_being_taken_is_waited_for() {
        let afterlooks = Arc::new(Afterlooks::default());
        let mut late = afterlooks.add(Some(ONE));
        assert!(late.wait().await.is_none());
        let taking = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            drop(late);
        });
        let begun = tokio::time::Instant::now();
        afterlooks.make_way(ONE).await.give(&capture());
        assert_eq!(begun.elapsed(), Duration::from_millis(20));
        taking.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_whose_picture_is_not_given_looks_for_itself() {
        let afterlooks = Afterlooks::default();
        let mut waiting = afterlooks.add(Some(ONE));
        drop(afterlooks.make_way(ONE).await);
        assert!(waiting.wait().await.is_none());
    }
}

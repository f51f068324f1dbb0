//! A call between the line it came in and the handler that answers it.

use std::sync::{Arc, Mutex, PoisonError};

use deskhand_core::{Code, Error, Outcome};
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::flow::Place;

/// A call that has been submitted. It travels inside of its request, because the SDK starts the handlers of several
/// requests in no particular order, while the places in the desktop's queue are given when the lines are read.
#[derive(Clone)]
pub(crate) struct Submitted(Arc<Mutex<Option<Pending>>>);

struct Pending {
    outcome: BoxFuture<'static, Outcome>,
    place: Place,
    cancel: CancellationToken,
}

impl Submitted {
    pub(crate) fn new(outcome: BoxFuture<'static, Outcome>, place: Place, cancel: CancellationToken) -> Self {
        Self(Arc::new(Mutex::new(Some(Pending { outcome, place, cancel }))))
    }

    /// Runs the call when its turn has come. `abandon` ends it wherever it is.
    pub(crate) async fn run(self, abandon: &CancellationToken) -> Outcome {
        let pending = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Pending { outcome, place, cancel }) = pending else {
            return Err(Error::new(Code::InternalError, "the call has been run already"));
        };
        let running = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Error::new(Code::Cancelled, "cancelled before it started")),
            running = place.turn() => running,
        };
        let Some(_running) = running else {
            return Err(Error::new(
                Code::SessionEnded,
                "the client left before this call started; nothing was done",
            ));
        };
        // A cancelled call is awaited all the same: it releases what it holds.
        tokio::select! {
            biased;
            outcome = outcome => outcome,
            () = abandon.cancelled() => Err(Error::new(
                Code::SessionEnded,
                "the client left and the call did not end in time; what it did is not known",
            )),
        }
    }
}

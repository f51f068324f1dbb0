//! How much of a client's work is held at once, and which of its calls may start.
//!
//! A client may send faster than it reads answers, or stop reading altogether. Nothing it sent is lost, and nothing
//! grows without bound: above a limit its input is not read any further, and its calls do not start.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

/// What is held at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Requests that have been read and not answered.
    pub requests: usize,
    /// Bytes of their lines.
    pub request_bytes: usize,
    /// Calls that run at the same time; those that wait inside of their tool are among them.
    pub running: usize,
    /// Bytes of answers that the client has not read.
    pub answer_bytes: usize,
}

impl Default for Limits {
    /// A client that writes 10,000 requests before it reads the first answer is served, because short answers are kept
    /// by the thousand; one that goes on for ever costs a few hundred megabytes at worst.
    fn default() -> Self {
        Self {
            requests: 1000,
            request_bytes: 128 * 1024 * 1024,
            running: 128,
            answer_bytes: 64 * 1024 * 1024,
        }
    }
}

/// Counts what is held; shared by reader, calls and writer.
#[derive(Debug)]
pub(crate) struct Flow {
    limits: Limits,
    state: Mutex<State>,
    /// Wakes the reader, its only waiter.
    changed: Notify,
    /// Calls give up at once: the process is about to end.
    pub(crate) abandon: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    requests: usize,
    request_bytes: usize,
    running: usize,
    answer_bytes: usize,
    /// Calls that have not started, in the order in which they were read. They start in it: a later call that ran while
    /// an earlier one waits for its turn could hold up what the earlier one waits for.
    waiting: VecDeque<oneshot::Sender<Running>>,
    closing: bool,
}

impl Flow {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            state: Mutex::default(),
            changed: Notify::new(),
            abandon: CancellationToken::new(),
        })
    }

    /// Counts a request in. It is held until the answer's [`Held`] is dropped.
    pub(crate) fn hold(self: &Arc<Self>, bytes: usize) -> Held {
        let mut state = self.lock();
        state.requests += 1;
        state.request_bytes += bytes;
        Held { flow: Arc::clone(self), bytes }
    }

    /// Puts a call in line. Calls start in the order in which this was called.
    pub(crate) fn line_up(self: &Arc<Self>) -> Place {
        let (start, started) = oneshot::channel();
        let mut state = self.lock();
        if !state.closing {
            state.waiting.push_back(start);
            self.start_waiting(&mut state);
        }
        Place(started)
    }

    pub(crate) fn answer_queued(&self, bytes: usize) {
        self.lock().answer_bytes += bytes;
    }

    pub(crate) fn answer_bytes(&self) -> usize {
        self.lock().answer_bytes
    }

    pub(crate) fn answer_written(self: &Arc<Self>, bytes: usize) {
        let mut state = self.lock();
        state.answer_bytes = state.answer_bytes.saturating_sub(bytes);
        self.start_waiting(&mut state);
        self.changed.notify_one();
    }

    /// Waits until another line may be read.
    pub(crate) async fn room(&self) {
        self.until(|state| {
            state.requests < self.limits.requests
                && state.request_bytes < self.limits.request_bytes
                && state.answer_bytes < self.limits.answer_bytes
        })
        .await;
    }

    /// From now on no call starts.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closing = true;
        state.waiting.clear();
    }

    /// Waits until every request has been dealt with.
    pub(crate) async fn idle(&self) {
        self.until(|state| state.requests == 0).await;
    }

    async fn until(&self, holds: impl Fn(&State) -> bool) {
        // `notify_one` leaves a permit if nobody waits, so a change between look and wait is not missed.
        while !holds(&self.lock()) {
            self.changed.notified().await;
        }
    }

    fn start_waiting(self: &Arc<Self>, state: &mut State) {
        while state.running < self.limits.running && state.answer_bytes < self.limits.answer_bytes {
            let Some(start) = state.waiting.pop_front() else { return };
            match start.send(Running { flow: Some(Arc::clone(self)) }) {
                Ok(()) => state.running += 1,
                // The call was cancelled while it waited. It has not been counted, so its guard must not count it out.
                Err(mut running) => running.flow = None,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The counters are right even if a holder panicked: each is changed in one step.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that counts as held until this is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    flow: Arc<Flow>,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.flow.lock();
        state.requests -= 1;
        state.request_bytes -= self.bytes;
        self.flow.changed.notify_one();
    }
}

/// A call's place in line.
#[derive(Debug)]
pub(crate) struct Place(oneshot::Receiver<Running>);

impl Place {
    /// Waits for the call's turn. `None`: the client has left, and the call must not start.
    pub(crate) async fn turn(self) -> Option<Running> {
        self.0.await.ok()
    }
}

/// A call that runs, until this is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    flow: Option<Arc<Flow>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(flow) = self.flow.take() {
            let mut state = flow.lock();
            state.running -= 1;
            flow.start_waiting(&mut state);
        }
    }
}

//! A thread of its own for one connection, so that a display server that does not answer holds up nobody.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use deskhand_core::desktop::{PortError, Stop};
use tokio::sync::oneshot;

use super::connection::Trouble;
use crate::environment::{EnvironmentSource, SessionEnvironment};

/// A server that has not answered one request in this time counts as not responding. A busy one answers in
/// milliseconds; the longest that a healthy one was seen to take is a mode switch of real monitors, below a second.
pub(super) const SERVER_PATIENCE: Duration = Duration::from_secs(2);

/// A thread that is started at the first call and owns a `S`, which is opened there as well.
pub(super) struct Worker<S> {
    name: &'static str,
    source: Arc<dyn EnvironmentSource>,
    open: Open<S>,
    /// What a call gets while an earlier one still waits for the server.
    overdue_error: PortError,
    inbox: Mutex<Option<mpsc::Sender<Job<S>>>>,
    pulse: Arc<Pulse>,
    patience: Duration,
}

struct Job<S> {
    /// Its number; jobs are worked off in the order of their numbers.
    ticket: u64,
    environment: Arc<SessionEnvironment>,
    work: Work<S>,
}

type Open<S> = Arc<dyn Fn(&SessionEnvironment) -> Result<S, PortError> + Send + Sync>;

type Work<S> = Box<dyn FnOnce(Result<&mut S, PortError>) -> Fate + Send>;

/// Whether the connection is still good after a job.
#[derive(PartialEq, Eq)]
enum Fate {
    Well,
    Lost,
}

/// When the thread last made progress.
pub(super) struct Pulse {
    start: Instant,
    last_millis: AtomicU64,
    issued: AtomicU64,
    finished: AtomicU64,
    /// The newest ticket that somebody has given up waiting for.
    given_up: AtomicU64,
    lost: AtomicBool,
}

impl Pulse {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            last_millis: AtomicU64::new(0),
            issued: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            lost: AtomicBool::new(false),
        }
    }

    /// Says that the server has answered, or that what comes next is not a wait for it. A job longer than
    /// [`SERVER_PATIENCE`] has to call this between its round trips.
    pub(super) fn beat(&self) {
        let millis = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_millis.store(millis, Ordering::Relaxed);
    }

    /// Whether a job that somebody gave up is still on the thread.
    fn overdue(&self) -> bool {
        self.given_up.load(Ordering::Acquire) > self.finished.load(Ordering::Acquire)
    }

    fn last(&self) -> Instant {
        self.start + Duration::from_millis(self.last_millis.load(Ordering::Relaxed))
    }
}

impl<S: Send + 'static> Worker<S> {
    /// A worker that has not started yet.
    pub(super) fn new(
        name: &'static str,
        source: Arc<dyn EnvironmentSource>,
        overdue_error: PortError,
        open: impl Fn(&SessionEnvironment) -> Result<S, PortError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            source,
            open: Arc::new(open),
            overdue_error,
            inbox: Mutex::new(None),
            pulse: Arc::new(Pulse::new()),
            patience: SERVER_PATIENCE,
        }
    }

    /// Runs `work` on the thread and waits for its answer, but not longer than the server's silence may last.
    ///
    /// `work` gets a token that is cancelled when nobody waits for it any more: when `stop` was asked, when its time
    /// ran out, or when the returned future was dropped. Work that has not begun by then is never begun. With
    /// `abandon`, `stop` ends the waiting at once; without, the work itself has to see it.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        stop: &Stop,
        abandon: bool,
        work: impl FnOnce(&mut S, &Pulse, &Stop) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, PortError> {
        let environment = self.source.get().await?;
        if self.pulse.lost.load(Ordering::Acquire) {
            return Err(PortError::DesktopLost);
        }
        if self.pulse.overdue() {
            return Err(self.overdue_error.clone());
        }
        let wanted = stop.child_token();
        let _unwanted_when_dropped = wanted.clone().drop_guard();
        let (answer, mut answered) = oneshot::channel();
        let pulse = Arc::clone(&self.pulse);
        let work = move |state: Result<&mut S, PortError>| {
            if wanted.is_cancelled() {
                let _ = answer.send(Err(PortError::Stopped));
                return Fate::Well;
            }
            let result = match state {
                Ok(state) => work(state, &pulse, &wanted),
                Err(error) => Err(Trouble::Port(error)),
            };
            let fate = if matches!(result, Err(Trouble::Lost)) { Fate::Lost } else { Fate::Well };
            if fate == Fate::Lost {
                pulse.lost.store(true, Ordering::Release);
            }
            // Nobody listens any more: then nobody needs the answer.
            let _ = answer.send(result.map_err(PortError::from));
            fate
        };
        let ticket = self.send(environment, Box::new(work))?;
        self.await_answer(ticket, stop, abandon, &mut answered).await
    }

    async fn await_answer<T>(
        &self,
        ticket: u64,
        stop: &Stop,
        abandon: bool,
        answered: &mut oneshot::Receiver<Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let mut since = Instant::now();
        loop {
            tokio::select! {
                biased;
                answer = &mut *answered => {
                    return answer.unwrap_or_else(|_| Err(PortError::Internal(format!("the {} thread broke down", self.name))));
                }
                () = stop.cancelled(), if abandon => {
                    self.pulse.given_up.fetch_max(ticket, Ordering::AcqRel);
                    return Err(PortError::Stopped);
                }
                () = tokio::time::sleep_until((since + self.patience).into()) => {
                    let last = self.pulse.last();
                    if last > since {
                        since = last;
                        continue;
                    }
                    let waited_in_line = self.pulse.overdue();
                    self.pulse.given_up.fetch_max(ticket, Ordering::AcqRel);
                    if waited_in_line {
                        return Err(self.overdue_error.clone());
                    } else {
                        tracing::warn!(thread = self.name, "the display server does not answer");
                        return Err(PortError::DesktopNotResponding);
                    }
                }
            }
        }
    }

    /// Hands a job to the thread, which is started if there is none, and returns its ticket.
    fn send(&self, environment: Arc<SessionEnvironment>, work: Work<S>) -> Result<u64, PortError> {
        let mut inbox = self.inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let ticket = self.pulse.issued.fetch_add(1, Ordering::AcqRel) + 1;
        let job = match &*inbox {
            Some(sender) => match sender.send(Job { ticket, environment, work }) {
                Ok(()) => return Ok(ticket),
                // The thread has ended with a panic of an earlier job: a new one starts afresh.
                Err(mpsc::SendError(job)) => job,
            },
            None => Job { ticket, environment, work },
        };
        let (sender, receiver) = mpsc::channel();
        let (open, pulse) = (Arc::clone(&self.open), Arc::clone(&self.pulse));
        std::thread::Builder::new()
            .name(self.name.to_owned())
            .spawn(move || work_off(&receiver, &*open, &pulse))
            .map_err(|error| PortError::Internal(format!("no thread for {}: {error}", self.name)))?;
        let sent = sender.send(job);
        *inbox = Some(sender);
        sent.map_err(|_| PortError::Internal(format!("the {} thread broke down", self.name)))?;
        Ok(ticket)
    }
}

fn work_off<S>(
    jobs: &mpsc::Receiver<Job<S>>,
    open: &dyn Fn(&SessionEnvironment) -> Result<S, PortError>,
    pulse: &Pulse,
) {
    let mut state = None;
    for Job { ticket, environment, work } in jobs {
        pulse.beat();
        let opened = match &mut state {
            Some(state) => Ok(state),
            None => open(&environment).map(|opened| state.insert(opened)),
        };
        pulse.beat();
        if work(opened) == Fate::Lost {
            state = None;
        }
        pulse.beat();
        pulse.finished.store(ticket, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker() -> Worker<u32> {
        let source: Arc<dyn EnvironmentSource> = Arc::new(Arc::new(SessionEnvironment::default()));
        let mut worker = Worker::new("test", source, PortError::CaptureBusy, |_| Ok(1));
        worker.patience = Duration::from_millis(20);
        worker
    }

    #[tokio::test]
    async fn a_silent_server_is_told_and_later_calls_fail_at_once_until_it_answers() {
        let worker = Arc::new(worker());
        let (release, wait) = mpsc::channel::<()>();
        let stop = Stop::new();
        let stuck = worker.run(&stop, false, move |_, _, _| {
            let _ = wait.recv();
            Ok(())
        });
        assert!(matches!(stuck.await, Err(PortError::DesktopNotResponding)));
        let next = worker.run(&Stop::new(), false, |_, _, _| Ok(())).await;
        assert!(matches!(next, Err(PortError::CaptureBusy)), "{next:?}");
        release.send(()).unwrap();
        // The thread ends its job on its own time; the worker says so by taking calls again.
        while worker.run(&Stop::new(), false, |_, _, _| Ok(())).await.is_err() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn work_that_is_not_wanted_any_more_is_never_begun() {
        let worker = worker();
        let stop = Stop::new();
        stop.cancel();
        let result = worker.run(&stop, false, |_, _, _| -> Result<(), Trouble> { panic!("begun") }).await;
        assert!(matches!(result, Err(PortError::Stopped)));
    }

    #[tokio::test]
    async fn a_lost_server_stays_lost() {
        let worker = worker();
        let lost =
            worker.run(&Stop::new(), false, |_, _, _| -> Result<(), Trouble> { Err(Trouble::Lost) }).await;
        assert!(matches!(lost, Err(PortError::DesktopLost)));
        let next = worker.run(&Stop::new(), false, |_, _, _| Ok(())).await;
        assert!(matches!(next, Err(PortError::DesktopLost)));
    }
}

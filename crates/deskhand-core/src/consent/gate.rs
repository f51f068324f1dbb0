//! The gate: asks the source, and watches for a revoke while something runs that needs leave.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{ConsentSource, Grant, Refusal, Report};
use crate::desktop::Accessibility;
use crate::error::{Code, Error, Result};
use crate::tools::Surface;

/// How often a revoke is looked for while something runs. It has to stop within half a second, and an input operation
/// takes up to one key to do so.
const INTERVAL: Duration = Duration::from_millis(200);

/// Starts a task that outlives the call that asks for it.
#[derive(Clone)]
pub struct Background(Arc<dyn Fn(BoxFuture<'static, ()>) -> bool + Send + Sync>);

impl Background {
    /// `start` answers whether the task was started.
    pub fn new(start: impl Fn(BoxFuture<'static, ()>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(start))
    }
}

impl Default for Background {
    /// On the runtime of the caller, if there is one.
    fn default() -> Self {
        Self::new(|task| {
            let runtime = tokio::runtime::Handle::try_current();
            runtime.is_ok_and(|runtime| {
                runtime.spawn(task);
                true
            })
        })
    }
}

impl fmt::Debug for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Background")
    }
}

/// Asks for leave. One for each engine.
#[derive(Debug)]
pub(crate) struct Gate {
    source: Arc<dyn ConsentSource>,
    mirrors: Mirrors,
    background: Background,
    watched: Mutex<Watched>,
    ended: CancellationToken,
    /// The watcher's end, when the engine is dropped.
    _end: DropGuard,
}

/// What adapters keep of the screen, and whether it may be anything since it was last dropped.
struct Mirrors {
    accessibility: Arc<dyn Accessibility>,
    filled: AtomicBool,
}

impl fmt::Debug for Mirrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mirrors").field("filled", &self.filled).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Watched {
    /// Whether the watcher runs.
    watching: bool,
    next: u64,
    running: HashMap<u64, Running>,
}

/// Something that may only go on with leave.
#[derive(Clone, Debug)]
struct Running {
    need: Surface,
    revoked: CancellationToken,
}

impl Gate {
    pub(crate) fn new(
        source: Arc<dyn ConsentSource>,
        accessibility: Arc<dyn Accessibility>,
        background: Background,
    ) -> Self {
        let ended = CancellationToken::new();
        Self {
            source,
            mirrors: Mirrors { accessibility, filled: AtomicBool::new(false) },
            background,
            watched: Mutex::default(),
            _end: ended.clone().drop_guard(),
            ended,
        }
    }

    /// What is allowed now.
    pub(crate) async fn look(&self) -> Grant {
        let grant = self.source.grant().await;
        self.heed(grant).await;
        grant
    }

    /// The same for a person who wonders why.
    pub(crate) async fn report(&self) -> Report {
        let report = self.source.report().await;
        self.heed(report.grant).await;
        report
    }

    /// Stops and forgets what is no longer allowed.
    async fn heed(&self, grant: Grant) {
        if let Some(mirrors) = self.apply(grant) {
            mirrors.forget_all().await;
        }
    }

    /// The error for a call that was refused, of which the person is told.
    pub(crate) async fn refuse(&self, refusal: Refusal) -> Error {
        tracing::info!(tool = refusal.tool, surface = refusal.surface.name(), "refused for want of consent");
        self.source.refused(refusal).await;
        self.error(refusal)
    }

    /// The error for a call that was refused.
    pub(crate) fn error(&self, refusal: Refusal) -> Error {
        if self.is_set_by_command() { refusal.error() } else { refusal.error_of_host() }
    }

    /// Whether the person can say what they allow with `deskhand consent`.
    pub(crate) fn is_set_by_command(&self) -> bool {
        self.source.is_set_by_command()
    }

    /// Stops what is no longer allowed; the answer is what has to be forgotten.
    fn apply(&self, grant: Grant) -> Option<Arc<dyn Accessibility>> {
        for running in self.lock().running.values() {
            if grant.lacks(running.need).is_some() {
                running.revoked.cancel();
            }
        }
        let had = self.mirrors.filled.swap(grant.sees(), Ordering::Relaxed);
        (had && !grant.sees()).then(|| Arc::clone(&self.mirrors.accessibility))
    }

    /// Watches for a revoke of `need` until the answer is dropped.
    ///
    /// # Errors
    /// `consent_watch_unavailable` if the watcher cannot be started: what would run on its own must not begin then.
    pub(crate) fn watch(self: &Arc<Self>, need: Surface) -> Result<Watch> {
        let mut watched = self.lock();
        if !watched.watching {
            let task = watcher(Arc::downgrade(self), self.ended.clone());
            if !(self.background.0)(Box::pin(task)) {
                let message = "a revoke of consent could not be watched for, so that nothing was started";
                return Err(Error::new(Code::ConsentWatchUnavailable, message));
            }
            watched.watching = true;
        }
        let number = watched.next;
        watched.next += 1;
        let running = Running { need, revoked: CancellationToken::new() };
        watched.running.insert(number, running.clone());
        Ok(Watch { gate: Arc::downgrade(self), number, running })
    }

    /// The source, as long as something runs. Otherwise the watcher has ended with this answer.
    fn needed(&self) -> Option<Arc<dyn ConsentSource>> {
        let mut watched = self.lock();
        watched.watching = !watched.running.is_empty();
        watched.watching.then(|| Arc::clone(&self.source))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks for a revoke. Keeps nothing of the engine alive, not even while it waits for an answer.
async fn watcher(gate: Weak<Gate>, ended: CancellationToken) {
    let watch = async {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let Some(source) = gate.upgrade().and_then(|gate| gate.needed()) else { return };
            let grant = source.grant().await;
            let Some(mirrors) = gate.upgrade().map(|gate| gate.apply(grant)) else { return };
            if let Some(mirrors) = mirrors {
                mirrors.forget_all().await;
            }
        }
    };
    ended.run_until_cancelled(watch).await;
}

/// Something that is watched. Dropping it ends that.
#[derive(Debug)]
pub(crate) struct Watch {
    gate: Weak<Gate>,
    number: u64,
    running: Running,
}

impl Watch {
    /// Cancelled when what was needed is no longer allowed.
    pub(crate) fn revoked(&self) -> &CancellationToken {
        &self.running.revoked
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.upgrade() {
            gate.lock().running.remove(&self.number);
        }
    }
}

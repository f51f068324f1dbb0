//! The sessions of an engine: how they begin, and their end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::calls::CallLog;
use super::{Lease, Session, SessionInfo};
use crate::agent_cursor::Cursors;
use crate::call::SessionId;
use crate::error::{Code, Error, Result};
use crate::limits::{self, Limits};
use crate::recording::trajectory::Reason;

/// How long a session without a lease may do nothing. Long enough for a person between two commands.
pub const IDLE_END: Duration = Duration::from_secs(300);
/// Ended sessions that are remembered, so that their ids stay refused.
pub const MAX_ENDED: usize = 1024;
/// How long the end of a session waits for its calls. Each answers within its own grace time after it was cancelled; one
/// that does not is left to itself.
const CALLS_END: Duration = Duration::from_millis(2500);
/// How long the end of a session waits for its recordings: an encoder that hangs has been given up by then.
const RECORDINGS_END: Duration = Duration::from_secs(15);
/// Characters kept of a label.
const MAX_LABEL: usize = 80;

/// The sessions of an engine.
#[derive(Debug)]
pub struct Sessions {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    table: Mutex<Table>,
    /// How many named sessions there are, those that are being cleaned up included.
    named: watch::Sender<usize>,
    limits: Limits,
    idle_end: Duration,
    /// Wakes the timer, to look again.
    wake: Arc<Notify>,
    /// Calls that name no session.
    anonymous: Arc<CallLog>,
    cursors: Arc<Cursors>,
}

#[derive(Debug, Default)]
struct Table {
    live: HashMap<SessionId, Arc<Session>>,
    ending: HashMap<SessionId, Arc<Session>>,
    ended: VecDeque<SessionId>,
    /// Whether the task runs that ends idle sessions.
    timer: bool,
}

impl Sessions {
    /// No sessions.
    pub(crate) fn new(limits: Limits, idle_end: Duration, cursors: Arc<Cursors>) -> Self {
        let inner = Inner {
            table: Mutex::default(),
            named: watch::Sender::new(0),
            limits,
            idle_end,
            wake: Arc::default(),
            anonymous: CallLog::new(),
            cursors,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Begins the session called `id`, or finds it. With `lease`, it lives by that from now on.
    ///
    /// # Errors
    /// `session_ended`, `session_in_use` if it has a lease already, `limit_exceeded`.
    pub fn open(&self, id: &SessionId, lease: bool, label: Option<&str>) -> Result<Option<Lease>> {
        let mut table = self.inner.lock();
        let session = self.find(&mut table, id, None)?;
        let lease = lease.then(Lease::new);
        session.with_about(|about| {
            if let Some(label) = label {
                about.label = Some(label.chars().filter(|c| !c.is_control()).take(MAX_LABEL).collect());
            }
            about.lease.clone_from(&lease);
        });
        session.log.touch();
        self.watch_idle(&mut table);
        drop(table);
        self.inner.wake.notify_one();
        Ok(lease)
    }

    /// The session of a call. A named one without a lease is made if it is new; a call that names none gets one of its own.
    ///
    /// # Errors
    /// `session_ended`, `session_in_use` for a leased session without its lease, `limit_exceeded`.
    pub fn of_call(&self, id: Option<&SessionId>, lease: Option<&Lease>) -> Result<Arc<Session>> {
        let Some(id) = id else {
            let log = Arc::clone(&self.inner.anonymous);
            return Ok(Arc::new(Session::with(Arc::from(""), log, true, self.inner.limits)));
        };
        let mut table = self.inner.lock();
        let session = self.find(&mut table, id, lease)?;
        // Under the table's lock, so that its idle end does not come between.
        session.log.touch();
        self.watch_idle(&mut table);
        Ok(session)
    }

    fn find(&self, table: &mut Table, id: &SessionId, lease: Option<&Lease>) -> Result<Arc<Session>> {
        if let Some(session) = table.live.get(id) {
            let allowed = session.with_about(|about| match (&about.lease, lease) {
                (None, _) => true,
                (Some(needed), Some(lease)) => needed.is(lease),
                (Some(_), None) => false,
            });
            return if allowed {
                Ok(Arc::clone(session))
            } else {
                let message = "this session belongs to another connection; name one of your own";
                Err(Error::new(Code::SessionInUse, message))
            };
        }
        // A lease outlives its session, never begins one.
        if lease.is_some() || table.ended.contains(id) {
            return Err(Error::new(
                Code::SessionEnded,
                "this session has ended, and its id stays refused; start a new one under another id",
            ));
        }
        let limit = self.inner.limits.sessions;
        if table.live.len() >= limit {
            return Err(limits::exceeded("sessions", limit, "so many live; end one first"));
        }
        let session = Arc::new(Session::new(id, self.inner.limits));
        table.live.insert(id.clone(), Arc::clone(&session));
        self.inner.count(table);
        Ok(session)
    }

    /// The session's client leaves.
    pub fn leave(&self, id: &SessionId) {
        if let Some(session) = self.inner.lock().live.get(id) {
            session.leaving.cancel();
        }
    }

    /// Ends a session: refuses its id from now on, cancels its calls, waits for them a bounded time, and drops what it
    /// owned. All who end one wait for the same clean-up, which goes on without them. `false` if there is no such session;
    /// that one has ended already is not an error.
    pub async fn end(&self, id: &SessionId) -> bool {
        let Some(cleaned) = self.inner.begin_end(id, false) else { return false };
        cleaned.cancelled().await;
        true
    }

    /// Ends them all.
    pub async fn end_all(&self) {
        let ids: Vec<_> = {
            let table = self.inner.lock();
            table.live.keys().chain(table.ending.keys()).cloned().collect()
        };
        futures_util::future::join_all(ids.iter().map(|id| self.end(id))).await;
    }

    /// The session called `id`, if it lives.
    pub fn get(&self, id: &SessionId) -> Option<Arc<Session>> {
        self.inner.lock().live.get(id).cloned()
    }

    /// Those that live, and those that are being cleaned up.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        let table = self.inner.lock();
        table.live.values().chain(table.ending.values()).cloned().collect()
    }

    /// What can be said about the named sessions, in the order of their ids.
    pub fn list(&self) -> Vec<SessionInfo> {
        let mut sessions: Vec<_> = self.inner.lock().live.values().cloned().collect();
        sessions.sort_by(|a, b| a.lane.cmp(&b.lane));
        sessions.iter().map(|session| session.info()).collect()
    }

    /// How many named sessions there are, those included that are being cleaned up.
    pub fn named(&self) -> watch::Receiver<usize> {
        self.inner.named.subscribe()
    }

    /// When all of them, and calls that name none, will have been idle for `time`, at the earliest.
    pub(crate) fn idle_end(&self, time: Duration) -> Instant {
        let anonymous = self.inner.anonymous.idle_since().unwrap_or_else(Instant::now) + time;
        let table = self.inner.lock();
        let sessions = table.live.values().map(|session| session.idle_end(time));
        sessions.fold(anonymous, Instant::max)
    }

    /// Drops what all sessions own.
    pub(crate) fn clear(&self) {
        for session in self.inner.lock().live.values() {
            session.clear();
        }
    }

    /// Starts the task that ends idle sessions if there is one to watch and none that watches.
    fn watch_idle(&self, table: &mut Table) {
        if !table.timer && table.live.values().any(|session| !session.leased()) {
            table.timer = true;
            tokio::spawn(end_idle(Arc::downgrade(&self.inner), Arc::clone(&self.inner.wake)));
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        self.inner.wake.notify_one();
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Table> {
        // Each change is one step, so the table is whole even if a holder panicked.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, table: &Table) {
        self.named.send_replace(table.live.len() + table.ending.len());
    }

    /// Begins the end of a session if it lives, or if it has been idle; the token is cancelled when it is complete.
    fn begin_end(self: &Arc<Self>, id: &SessionId, if_idle: bool) -> Option<CancellationToken> {
        let session = {
            let mut table = self.lock();
            if let Some(session) = table.ending.get(id) {
                return Some(session.cleaned.clone());
            }
            let idle = table.live.get(id)?.idle_end(self.idle_end);
            if if_idle && idle > Instant::now() {
                return None;
            }
            let session = table.live.remove(id)?;
            table.ending.insert(id.clone(), Arc::clone(&session));
            if table.ended.len() == MAX_ENDED {
                table.ended.pop_front();
            }
            table.ended.push_back(id.clone());
            session
        };
        self.wake.notify_one();
        session.ended.cancel();
        let cleaned = session.cleaned.clone();
        tokio::spawn(clean_up(Arc::clone(self), id.clone(), session));
        Some(cleaned)
    }

    /// When the next session is due to end, and those that are due now; `None` if there is none to watch.
    fn due(&self) -> Option<(Instant, Vec<SessionId>)> {
        let mut table = self.lock();
        let now = Instant::now();
        let ends: Vec<_> = table
            .live
            .iter()
            .filter(|(_, session)| !session.leased())
            .map(|(id, session)| (session.idle_end(self.idle_end), id.clone()))
            .collect();
        let Some(next) = ends.iter().map(|(at, _)| *at).min() else {
            table.timer = false;
            return None;
        };
        Some((next, ends.into_iter().filter(|(at, _)| *at <= now).map(|(_, id)| id).collect()))
    }
}

async fn clean_up(inner: Arc<Inner>, id: SessionId, session: Arc<Session>) {
    session.calls.close();
    if tokio::time::timeout(CALLS_END, session.calls.wait()).await.is_err() {
        tracing::error!(session = %id, calls = session.calls.len(), "calls of an ended session go on");
    }
    if tokio::time::timeout(RECORDINGS_END, session.recordings.stop(Reason::SessionEnd)).await.is_err() {
        tracing::error!(session = %id, "recordings of an ended session are still being written");
    }
    session.clear();
    inner.cursors.end(&session);
    {
        let mut table = inner.lock();
        table.ending.remove(&id);
        inner.count(&table);
    }
    session.cleaned.cancel();
}

/// Ends sessions without a lease that have been idle. Sleeps until the next one is due, and lives as long as there are any.
async fn end_idle(inner: Weak<Inner>, wake: Arc<Notify>) {
    loop {
        let next = {
            let Some(inner) = inner.upgrade() else { return };
            let Some((next, due)) = inner.due() else { return };
            for id in &due {
                tracing::debug!(session = %id, "ended: it was idle");
                inner.begin_end(id, true);
            }
            if !due.is_empty() {
                continue;
            }
            next
        };
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = wake.notified() => {}
        }
    }
}

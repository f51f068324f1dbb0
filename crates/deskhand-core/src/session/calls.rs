//! The calls of a session: those under way, and what became of the last ones.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::call::{Gist, Outcome};
use crate::limits;
use crate::queue::StepKind;

/// Calls whose outcome is remembered. An agent asks for that of a call that it has just cancelled; a burst of others
/// may lie in between.
pub const MAX_PAST_CALLS: usize = 32;

/// A call that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallInFlight {
    /// Its number among the session's calls.
    pub id: u64,
    /// The tool.
    pub tool: String,
    /// How long ago it came.
    pub running_ms: u64,
}

/// What became of a call. Says nothing that a caller typed and nothing of the screen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastCall {
    /// Its number among the session's calls.
    pub id: u64,
    /// The tool.
    pub tool: String,
    /// Names of the arguments that it had.
    pub arguments: Vec<String>,
    /// `confirmed`, `unverifiable` or `suspected_noop`, if it acted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
    /// Code of the error, if it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// How far the input of a failed call got: `not_delivered`, `partial` or `uncertain`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<String>,
    /// Of `partial`: characters or presses that were delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
    /// Of `partial`: how many there were to be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// From its coming to its answer.
    pub duration_ms: u64,
    /// How long ago it was answered.
    pub ago_ms: u64,
}

/// Who calls, as it were: the log of one session.
#[derive(Debug)]
pub(super) struct CallLog {
    state: Mutex<Log>,
}

#[derive(Debug)]
struct Log {
    last_id: u64,
    running: BTreeMap<u64, Begun>,
    past: VecDeque<(Instant, PastCall)>,
    active: Instant,
}

#[derive(Debug)]
struct Begun {
    tool: &'static str,
    kind: Option<StepKind>,
    arguments: Vec<String>,
    at: Instant,
}

impl CallLog {
    pub(super) fn new() -> Arc<Self> {
        let log = Log { last_id: 0, running: BTreeMap::new(), past: VecDeque::new(), active: Instant::now() };
        Arc::new(Self { state: Mutex::new(log) })
    }

    /// Notes a call that has come.
    ///
    /// # Errors
    /// `limit_exceeded` if `limit` are under way.
    pub(super) fn begin(
        self: &Arc<Self>,
        tool: &'static str,
        kind: Option<StepKind>,
        arguments: Vec<String>,
        limit: usize,
    ) -> crate::error::Result<Entry> {
        let mut log = self.lock();
        log.active = Instant::now();
        if log.running.len() >= limit {
            return Err(limits::exceeded("calls", limit, "so many are under way; await some first"));
        }
        log.last_id += 1;
        let id = log.last_id;
        log.running.insert(id, Begun { tool, kind, arguments, at: Instant::now() });
        drop(log);
        Ok(Entry { log: Arc::clone(self), id })
    }

    /// When the session did something last; `None`: a call is under way.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let log = self.lock();
        log.running.is_empty().then_some(log.active)
    }

    pub(super) fn touch(&self) {
        self.lock().active = Instant::now();
    }

    pub(super) fn last_active(&self) -> Instant {
        self.lock().active
    }

    pub(super) fn in_flight(&self) -> Vec<CallInFlight> {
        let log = self.lock();
        let calls = log.running.iter().map(|(&id, begun)| CallInFlight {
            id,
            tool: begun.tool.to_owned(),
            running_ms: millis(begun.at.elapsed()),
        });
        calls.collect()
    }

    /// The newest last.
    pub(super) fn past(&self) -> Vec<PastCall> {
        let log = self.lock();
        let calls = log.past.iter();
        calls.map(|(at, call)| PastCall { ago_ms: millis(at.elapsed()), ..call.clone() }).collect()
    }

    fn settle(&self, id: u64, outcome: Option<&Outcome>) {
        let mut log = self.lock();
        let Some(Begun { tool, kind, arguments, at }) = log.running.remove(&id) else { return };
        let Gist { effect, code, delivery } =
            outcome.map_or_else(|| Gist::never_begun(kind == Some(StepKind::Act)), Gist::of);
        let details = outcome.and_then(|outcome| outcome.as_ref().err()?.details.as_ref());
        let number = |name: &str| details?[name].as_u64();
        let past = PastCall {
            id,
            tool: tool.to_owned(),
            arguments,
            effect,
            code,
            delivery,
            done: number("done"),
            total: number("total"),
            duration_ms: millis(at.elapsed()),
            ago_ms: 0,
        };
        if log.past.len() == MAX_PAST_CALLS {
            log.past.pop_front();
        }
        let now = Instant::now();
        log.past.push_back((now, past));
        log.active = now;
    }

    fn lock(&self) -> MutexGuard<'_, Log> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in the log. One that is dropped without an outcome was never begun.
#[derive(Debug)]
pub(crate) struct Entry {
    log: Arc<CallLog>,
    id: u64,
}

impl Entry {
    /// Its number among the session's calls.
    pub(crate) const fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn settle(self, outcome: &Outcome) {
        self.log.settle(self.id, Some(outcome));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.log.settle(self.id, None);
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! What a caller hears of a long call before its answer.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Least time between two reports of a call, and before the first. Short calls report nothing; a person who watches a long
/// one sees it move.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// By how much the measure grows when a call waits for something that has none.
const WAITING: f64 = 0.001;

/// How far a call has got.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// Grows with each report of a call.
    pub done: f64,
    /// What `done` reaches at the end, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// For a person.
    pub message: String,
}

/// Where a call's progress goes. Called from any thread; must not block.
#[derive(Clone)]
pub struct ProgressSink(Arc<dyn Fn(Progress) + Send + Sync>);

impl ProgressSink {
    /// A sink that calls `report`.
    pub fn new(report: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        Self(Arc::new(report))
    }

    /// Hands a report on.
    pub fn report(&self, progress: Progress) {
        (self.0)(progress);
    }
}

impl std::fmt::Debug for ProgressSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ProgressSink")
    }
}

/// What a part of a call tells of itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Part {
    /// It waits, nobody knows how long.
    Waiting(String),
    /// It has done so much of it.
    Done { done: f64, total: f64, message: String },
}

impl Part {
    /// So many of a number of things.
    pub(crate) fn of(done: usize, total: usize, message: String) -> Self {
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        Self::Done { done: number(done), total: number(total), message }
    }
}

/// Reports the progress of one call: seldom, and never backwards.
#[derive(Clone, Debug)]
pub(crate) struct Reporter {
    sink: ProgressSink,
    last: Arc<Mutex<Last>>,
}

#[derive(Debug)]
struct Last {
    at: Instant,
    done: f64,
}

impl Reporter {
    pub(crate) fn new(sink: ProgressSink) -> Self {
        Self { sink, last: Arc::new(Mutex::new(Last { at: Instant::now(), done: 0.0 })) }
    }

    /// Does `work`, and reports what `part` says of it meanwhile.
    pub(crate) async fn during<T>(&self, part: impl Fn() -> Part, work: impl Future<Output = T>) -> T {
        tokio::pin!(work);
        loop {
            let due = self.lock().at + PROGRESS_INTERVAL;
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep_until(due) => self.report(part()),
            }
        }
    }

    fn report(&self, part: Part) {
        let mut last = self.lock();
        // Parts of a call may run side by side: whoever comes second comes too soon.
        if last.at.elapsed() < PROGRESS_INTERVAL {
            return;
        }
        last.at = Instant::now();
        let progress = match part {
            Part::Waiting(message) => Progress { done: last.done + WAITING, total: None, message },
            Part::Done { done, total, message } => Progress { done, total: Some(total), message },
        };
        if progress.done > last.done {
            last.done = progress.done;
            // Under the lock, so that two reports cannot pass each other.
            self.sink.report(progress);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reports_are_seldom_and_never_go_back() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&seen);
        let sink = ProgressSink::new(move |progress| into.lock().unwrap().push((Instant::now(), progress)));
        let reporter = Reporter::new(sink);
        let short = tokio::time::sleep(Duration::from_millis(400));
        reporter.during(|| Part::Waiting("w".to_owned()), short).await;
        assert!(seen.lock().unwrap().is_empty());
        let part = |message: &str, done| Part::Done { done, total: 9.0, message: message.to_owned() };
        reporter.during(|| Part::Waiting("w".to_owned()), tokio::time::sleep(Duration::from_secs(2))).await;
        reporter.during(|| part("five", 5.0), tokio::time::sleep(Duration::from_secs(2))).await;
        reporter.during(|| part("one", 1.0), tokio::time::sleep(Duration::from_secs(2))).await;
        reporter.during(|| Part::Waiting("w".to_owned()), tokio::time::sleep(Duration::from_secs(1))).await;
        let seen = seen.lock().unwrap();
        assert!(seen.len() >= 5 && seen.iter().all(|(_, progress)| progress.message != "one"), "{seen:?}");
        for pair in seen.windows(2) {
            assert!(pair[1].1.done > pair[0].1.done, "{seen:?}");
            assert!(pair[1].0 - pair[0].0 >= PROGRESS_INTERVAL, "{seen:?}");
        }
    }
}

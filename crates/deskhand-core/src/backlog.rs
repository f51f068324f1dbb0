//! What waits for a thread that writes: so many entries at most, and so many bytes. Whoever hands one over never waits.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Something that takes room while it waits.
pub(crate) trait Weight {
    /// Bytes, as far as they matter: those of pixels.
    fn weight(&self) -> usize;
}

impl<T: Weight> Weight for Arc<T> {
    fn weight(&self) -> usize {
        T::weight(self)
    }
}

/// The end where entries are handed over.
#[derive(Debug)]
pub(crate) struct Backlog<T> {
    entries: Mutex<Option<SyncSender<T>>>,
    waiting: Arc<AtomicUsize>,
    max_bytes: usize,
}

/// The end where they are taken.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    entries: Receiver<T>,
    waiting: Arc<AtomicUsize>,
}

/// Makes both ends. Of the entries, so many may wait, and so many bytes.
pub(crate) fn backlog<T: Weight>(max_entries: usize, max_bytes: usize) -> (Backlog<T>, Waiting<T>) {
    let (sender, entries) = sync_channel(max_entries);
    let waiting = Arc::<AtomicUsize>::default();
    let backlog = Backlog { entries: Mutex::new(Some(sender)), waiting: Arc::clone(&waiting), max_bytes };
    (backlog, Waiting { entries, waiting })
}

impl<T: Weight> Backlog<T> {
    /// Hands an entry over. Once the backlog is closed it goes nowhere.
    ///
    /// # Errors
    /// There is no room for it: here it is again.
    pub(crate) fn offer(&self, entry: T) -> Result<(), T> {
        let weight = entry.weight();
        let entries = self.lock();
        let Some(sender) = entries.as_ref() else { return Ok(()) };
        let waiting = self.waiting.fetch_add(weight, Ordering::Relaxed) + weight;
        // One alone is always taken, however large, and what weighs nothing is in nobody's way.
        let sent = match weight == 0 || waiting <= self.max_bytes.max(weight) {
            true => sender.try_send(entry).map_err(|refused| match refused {
                std::sync::mpsc::TrySendError::Full(entry)
                | std::sync::mpsc::TrySendError::Disconnected(entry) => entry,
            }),
            false => Err(entry),
        };
        if sent.is_err() {
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
        }
        sent
    }

    /// No more entries come.
    pub(crate) fn close(&self) {
        self.lock().take();
    }

    fn lock(&self) -> MutexGuard<'_, Option<SyncSender<T>>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Weight> Waiting<T> {
    /// Does `work` with each entry, one after the other, until the backlog is closed and empty. An entry takes room until
    /// that is done.
    pub(crate) fn each(&self, mut work: impl FnMut(T)) {
        for entry in &self.entries {
            let weight = entry.weight();
            work(entry);
            self.waiting.fetch_sub(weight, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Weight for usize {
        fn weight(&self) -> usize {
            *self
        }
    }

    #[test]
    fn what_finds_no_room_comes_back_and_what_was_done_makes_room() {
        let (backlog, waiting) = backlog::<usize>(2, 10);
        assert_eq!(backlog.offer(50), Ok(()), "one alone is taken");
        assert_eq!(backlog.offer(1), Err(1), "too many bytes");
        assert_eq!(backlog.offer(0), Ok(()));
        assert_eq!(backlog.offer(0), Err(0), "too many entries");
        let mut done = Vec::new();
        backlog.close();
        assert_eq!(backlog.offer(0), Ok(()), "nobody waits for it");
        waiting.each(|entry| done.push(entry));
        assert_eq!(done, [50, 0]);
        assert_eq!(backlog.waiting.load(Ordering::Relaxed), 0);
    }
}

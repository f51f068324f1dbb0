//! Batches of JSON-RPC, which the early versions of the protocol have: the answers go out together.

use std::sync::{Arc, Mutex, PoisonError};

use crate::output::Output;

/// Most messages of one batch. Its answers are held until the last is there, so this bounds them.
pub(crate) const MAX_BATCH: usize = 1000;

/// Whether that version of the protocol has batches.
pub(crate) fn has_batches(version: &str) -> bool {
    matches!(version, "2024-10-07" | "2024-11-05" | "2025-03-26")
}

/// The answers of one batch.
#[derive(Clone, Debug)]
pub(crate) struct Batch(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    missing: usize,
    answers: Vec<Vec<u8>>,
}

impl Batch {
    /// A batch of which `expected` messages are answered.
    pub(crate) fn new(expected: usize) -> Self {
        Self(Arc::new(Mutex::new(State { missing: expected, answers: Vec::new() })))
    }

    /// Adds an answer, or the fact that there will be none. The last one sends them all.
    pub(crate) fn settle(&self, answer: Option<Vec<u8>>, output: &Output) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.missing = state.missing.saturating_sub(1);
        state.answers.extend(answer);
        if state.missing == 0 && !state.answers.is_empty() {
            let mut line = vec![b'['];
            line.extend(state.answers.join(&b','));
            line.push(b']');
            state.answers.clear();
            output.put(line);
        }
    }
}

//! `notifications/progress` for calls whose request has a `progressToken`.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use deskhand_core::{Progress, ProgressSink};
use serde_json::{Value, json};

use crate::output::Output;

/// Where the progress of one request goes, as long as the request is open.
#[derive(Clone, Debug)]
pub(crate) struct Notifier(Arc<Mutex<Option<Output>>>);

impl Notifier {
    pub(crate) fn new(output: Output) -> Self {
        Self(Arc::new(Mutex::new(Some(output))))
    }

    /// Ends it: after this has returned nothing more is put.
    pub(crate) fn end(&self) {
        self.lock().take();
    }

    /// The sink of the call that has this token.
    pub(crate) fn sink(&self, token: Value) -> ProgressSink {
        let notifier = self.clone();
        ProgressSink::new(move |progress| notifier.put(&token, &progress))
    }

    fn put(&self, token: &Value, Progress { done, total, message }: &Progress) {
        let slot = self.lock();
        let Some(output) = slot.as_ref().filter(|output| !output.is_behind()) else { return };
        let mut params = json!({"progressToken": token, "progress": done, "message": message});
        if let Some(total) = total {
            params["total"] = json!(total);
        }
        let line = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params});
        output.put(line.to_string().into_bytes());
    }

    fn lock(&self) -> MutexGuard<'_, Option<Output>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The other end of the wire: one connection to a service, and a driver that outlives the service behind it.

mod proxy;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskhand_core::call::{self, Outcome, SessionId};
use deskhand_core::progress::ProgressSink;
use deskhand_core::{Code, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::lines::Lines;
use crate::wire::{self, Method, Reply};

pub use proxy::{Connect, OnLoss, Proxy};

/// Calls that are with the service at a time; later ones wait here, in order. Each may come back with a picture of a
/// megabyte or two that nobody has taken yet, and the service closes a connection with too much unread (64 MiB, unless it was told otherwise).
const CALLS_WITH_SERVICE: usize = 32;

/// A call that takes longer than this is usual: then it is asked whether the service lives.
const ASK_AFTER: Duration = Duration::from_secs(10);

/// A service says hello within milliseconds, whatever else it does.
const HELLO: Duration = Duration::from_secs(5);

/// One connection to a service. Cheap to clone; closes when the last clone is dropped and no call is under way.
#[derive(Clone, Debug)]
pub struct Client {
    shared: Arc<Shared>,
    _open: Arc<DropGuard>,
}

#[derive(Debug)]
struct Shared {
    socket: PathBuf,
    outgoing: mpsc::UnboundedSender<Vec<u8>>,
    state: Mutex<State>,
    /// Cancelled when the connection is gone.
    lost: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    waiting: HashMap<u64, Waiting>,
    calls: usize,
    /// Calls that have not been sent.
    backlog: VecDeque<(u64, Vec<u8>)>,
    /// What the service said to nobody in particular: usually why it closes the connection.
    refusal: Option<Error>,
}

/// A request whose answer has not come.
#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Result<Value, Error>>,
    progress: Option<ProgressSink>,
}

impl Client {
    /// A connection over `stream`, which leads to `socket`. Says nothing yet.
    pub fn new(stream: UnixStream, socket: &Path) -> Self {
        let (reader, writer) = stream.into_split();
        let (outgoing, queued) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            socket: socket.to_owned(),
            outgoing,
            state: Mutex::default(),
            lost: CancellationToken::new(),
        });
        let closed = CancellationToken::new();
        tokio::spawn(write(writer, queued, shared.lost.clone()));
        tokio::spawn(read(reader, Arc::clone(&shared), closed.clone()));
        Self { shared, _open: Arc::new(closed.drop_guard()) }
    }

    /// Resolves when the connection is gone.
    pub async fn lost(&self) {
        self.shared.lost.cancelled().await;
    }

    /// Whether the connection is gone.
    pub fn is_lost(&self) -> bool {
        self.shared.lost.is_cancelled()
    }

    /// Asks for something other than a call.
    ///
    /// # Errors
    /// `service_unreachable` if the connection is gone, and those of the method.
    pub async fn request<M: Method>(
        &self,
        session: Option<&SessionId>,
        parameters: M::Parameters,
    ) -> Result<M::Answer, Error> {
        let (id, answer) = self.shared.expect(None);
        let line = wire::request_line(id, M::NAME, session.map(|session| &*session.0), parameters);
        self.shared.send(line.map_err(|error| unwritten(&error))?);
        let value = answer.await.unwrap_or_else(|_| Err(self.shared.unreachable()))?;
        serde_json::from_value(value).map_err(|error| {
            Error::new(Code::InternalError, format!("the service's answer to {} is odd: {error}", M::NAME))
        })
    }

    /// Says that the session's client is leaving, without waiting for an answer.
    pub fn leave(&self, session: &SessionId) {
        let (id, _) = self.shared.expect(None);
        match wire::request_line(id, wire::Leave::NAME, Some(&session.0), wire::Empty {}) {
            Ok(line) => self.shared.send(line),
            Err(error) => tracing::error!(%error, "a request could not be written"),
        }
    }

    /// Submits a call; it is on its way when this returns, after all that were submitted before. Dropping the future
    /// cancels it.
    pub fn submit(&self, call: call::Call) -> BoxFuture<'static, Outcome> {
        let shared = Arc::clone(&self.shared);
        let progress = call.progress.is_some();
        let (id, answer) = shared.expect(call.progress);
        let parameters = wire::CallParameters { tool: call.tool, arguments: call.arguments, progress };
        let session = call.session.as_ref().map(|session| &*session.0);
        let line = match wire::request_line(id, wire::Call::NAME, session, parameters) {
            Ok(line) => line,
            Err(error) => return std::future::ready(Err(unwritten(&error))).boxed(),
        };
        shared.line_up(id, line);
        let mut sent = Sent { shared, id, answered: false, client: self.clone() };
        async move {
            let mut answer = answer;
            let client = sent.client.clone();
            let outcome = tokio::select! {
                biased;
                outcome = &mut answer => outcome,
                // Calls are bounded by the service, as long as that lives.
                error = client.falls_silent() => return Err(error),
                () = call.cancel.cancelled() => {
                    sent.cancel();
                    tokio::select! {
                        biased;
                        outcome = answer => outcome,
                        error = client.falls_silent() => return Err(error),
                    }
                }
            };
            sent.answered = true;
            let value = outcome.unwrap_or_else(|_| Err(sent.shared.unreachable()))?;
            let called: wire::Called = serde_json::from_value(value).map_err(|error| {
                Error::new(Code::InternalError, format!("the service's answer is odd: {error}"))
            })?;
            called.try_into()
        }
        .boxed()
    }
}

impl Client {
    /// Resolves when the service does not even say hello any more: it is stopped, or worse.
    async fn falls_silent(&self) -> Error {
        loop {
            tokio::time::sleep(ASK_AFTER).await;
            let hello = self.request::<wire::Hello>(None, wire::HelloParameters::default());
            if tokio::time::timeout(HELLO, hello).await.is_err() {
                let message = format!(
                    "the service at {} does not answer, not even a greeting; whether input that was under way has landed is not \
                     known. `deskhand status` says more",
                    self.shared.socket.display()
                );
                return Error::new(Code::ServiceUnreachable, message);
            }
        }
    }
}

/// A call that has been submitted, until its answer has been taken.
struct Sent {
    shared: Arc<Shared>,
    id: u64,
    answered: bool,
    /// Keeps the connection.
    client: Client,
}

impl Sent {
    fn cancel(&self) {
        if self.shared.leave_line(self.id) {
            return;
        }
        let (id, _) = self.shared.expect(None);
        match wire::request_line(id, wire::Cancel::NAME, None, wire::CancelParameters { target: self.id }) {
            Ok(line) => self.shared.send(line),
            Err(error) => tracing::error!(%error, "a request could not be written"),
        }
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if !self.answered {
            self.cancel();
        }
        self.shared.call_over(self.id);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An id, and where its answer will come.
    fn expect(&self, progress: Option<ProgressSink>) -> (u64, oneshot::Receiver<Result<Value, Error>>) {
        let (sender, answer) = oneshot::channel();
        let mut state = self.lock();
        state.last_id += 1;
        let id = state.last_id;
        // Of a lost connection nothing comes any more: the sender is dropped, and the answer says so.
        if !self.lost.is_cancelled() {
            state.waiting.insert(id, Waiting { answer: sender, progress });
        }
        (id, answer)
    }

    fn send(&self, line: Vec<u8>) {
        // Fails when the connection is gone, which every answer then says.
        let _ = self.outgoing.send(line);
    }

    fn line_up(&self, id: u64, line: Vec<u8>) {
        let mut state = self.lock();
        if state.calls < CALLS_WITH_SERVICE {
            state.calls += 1;
            self.send(line);
        } else {
            state.backlog.push_back((id, line));
        }
    }

    /// Takes a call back that has not been sent. Its answer says so.
    fn leave_line(&self, id: u64) -> bool {
        let mut state = self.lock();
        let before = state.backlog.len();
        state.backlog.retain(|(waiting, _)| *waiting != id);
        if state.backlog.len() == before {
            return false;
        }
        // It has no place among those with the service, so that its end must not free one.
        state.calls += 1;
        if let Some(waiting) = state.waiting.remove(&id) {
            let error = Error::new(Code::Cancelled, "nothing was delivered")
                .with_details(serde_json::json!({"delivery": "not_delivered"}));
            // Nobody waits if the call's future was dropped.
            let _ = waiting.answer.send(Err(error));
        }
        true
    }

    /// A call's answer has been taken, or nobody wants it.
    fn call_over(&self, id: u64) {
        let mut state = self.lock();
        state.waiting.remove(&id);
        state.calls = state.calls.saturating_sub(1);
        while state.calls < CALLS_WITH_SERVICE {
            let Some((_, line)) = state.backlog.pop_front() else { return };
            state.calls += 1;
            self.send(line);
        }
    }

    fn unreachable(&self) -> Error {
        self.lock().refusal.clone().unwrap_or_else(|| unreachable(&self.socket))
    }
}

/// The error of a call whose service is not there.
pub(crate) fn unreachable(socket: &Path) -> Error {
    let message = format!(
        "the service at {} is not there any more; whether input that was under way has landed is not known. `deskhand serve` \
         starts one",
        socket.display()
    );
    Error::new(Code::ServiceUnreachable, message)
}

fn unwritten(error: &serde_json::Error) -> Error {
    Error::new(Code::InternalError, format!("the request could not be written: {error}"))
}

async fn write(
    mut writer: OwnedWriteHalf,
    mut queued: mpsc::UnboundedReceiver<Vec<u8>>,
    lost: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            () = lost.cancelled() => return,
            line = queued.recv() => line,
        };
        // No sender any more: the client is dropped, and the connection closes with this task.
        let Some(line) = line else { return };
        if let Err(error) = writer.write_all(&line).await {
            tracing::debug!(%error, "the service is gone");
            // What it has sent is still read: it may have said why.
            return;
        }
    }
}

async fn read(reader: OwnedReadHalf, shared: Arc<Shared>, closed: CancellationToken) {
    let mut lines = Lines::new(reader, wire::MAX_LINE_BYTES);
    loop {
        let line = tokio::select! {
            biased;
            () = closed.cancelled() => break,
            line = lines.next() => line,
        };
        match line {
            Ok(Some(line)) => match serde_json::from_slice::<Reply>(line) {
                Ok(reply) => take(&shared, reply),
                Err(error) => tracing::warn!(%error, "the service sent a line that is no answer"),
            },
            Ok(None) => break,
            Err(error) => {
                tracing::debug!(%error, "the service is gone");
                break;
            }
        }
    }
    shared.lost.cancel();
    // Every answer that is waited for says that the connection is gone.
    let mut state = shared.lock();
    state.waiting.clear();
    state.backlog.clear();
}

fn take(shared: &Shared, reply: Reply) {
    let outcome = match reply {
        Reply { ok: Some(value), .. } => Ok(value),
        Reply { error: Some(failure), .. } => Err(Error::from(failure)),
        Reply { id: Some(id), progress: Some(progress), .. } => {
            let sink = shared.lock().waiting.get(&id).and_then(|waiting| waiting.progress.clone());
            return sink.into_iter().for_each(|sink| sink.report(progress.clone().into()));
        }
        Reply { .. } => return,
    };
    let Some(id) = reply.id else {
        if let Err(error) = outcome {
            tracing::debug!(%error, "the service refused a line, or the connection");
            shared.lock().refusal = Some(error);
        }
        return;
    };
    if let Some(waiting) = shared.lock().waiting.remove(&id) {
        // Nobody waits for it if the call's future was dropped.
        let _ = waiting.answer.send(outcome);
    }
}

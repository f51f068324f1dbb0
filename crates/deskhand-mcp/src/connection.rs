//! The connection to the client: lines in, lines out, and what the SDK's service loop must not decide.
//!
//! The loop spawns a task per request, so all that depends on the order of lines happens here, where they are read: a
//! call is submitted, a cancellation reaches its call, a batch is taken apart.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::call::Call;
use deskhand_core::{Driver, SessionId};
use rmcp::model::{
    ClientJsonRpcMessage, ErrorData, GetExtensions, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use tokio::io::AsyncRead;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::batch::{Batch, MAX_BATCH, has_batches};
use crate::call::Submitted;
use crate::flow::{Flow, Held};
use crate::line::{Line, LineReader};
use crate::message::{Invalid, Message, Parsed, Request, message, parse};
use crate::output::Output;
use crate::progress::Notifier;

/// How long calls that run when the client leaves may take to finish and answer.
const FINISH: Duration = Duration::from_millis(1500);

/// How long they then have to let go of what they hold.
const RELEASE: Duration = Duration::from_millis(150);

/// A request that has not been answered.
struct Open {
    cancel: CancellationToken,
    batch: Option<Batch>,
    /// Its answer shows that the session has begun.
    begins: bool,
    notifier: Option<Notifier>,
}

impl Open {
    /// The request is settled: nothing is told of it any more.
    fn close(&self) {
        if let Some(notifier) = &self.notifier {
            notifier.end();
        }
    }
}

/// Where the end of the connection stands.
enum Ending {
    No,
    Finishing { until: Instant },
    Releasing { until: Instant },
    Over,
}

pub(crate) struct Connection<R> {
    driver: Arc<dyn Driver>,
    session: SessionId,
    lines: LineReader<R>,
    output: Option<Output>,
    flow: Arc<Flow>,
    shutdown: CancellationToken,
    open: HashMap<RequestId, Open>,
    /// What is left of a batch.
    batch: VecDeque<(Message, Option<Batch>)>,
    /// Set once a handshake or a first request has begun the session.
    begun: bool,
    /// As the handshake agreed on it.
    version: Option<String>,
    ending: Ending,
}

impl<R: AsyncRead + Unpin + Send> Connection<R> {
    pub(crate) fn new(
        driver: Arc<dyn Driver>,
        session: SessionId,
        lines: LineReader<R>,
        output: Output,
        flow: Arc<Flow>,
        shutdown: CancellationToken,
    ) -> Self {
        Self {
            driver,
            session,
            lines,
            output: Some(output),
            flow,
            shutdown,
            open: HashMap::new(),
            batch: VecDeque::new(),
            begun: false,
            version: None,
            ending: Ending::No,
        }
    }

    /// The next message for the service loop. Safe to drop while it waits.
    async fn next(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !matches!(self.ending, Ending::No) {
                self.end().await;
                return None;
            }
            // Handlers of what has been read run first: a burst is answered while it is read.
            tokio::task::yield_now().await;
            tokio::select! {
                biased;
                () = self.shutdown.cancelled() => self.begin_end(),
                () = self.flow.room() => {
                    if let Some((message, batch)) = self.batch.pop_front() {
                        if let Some(message) = self.take(message, batch, 0) {
                            return Some(message);
                        }
                        continue;
                    }
                    let line = tokio::select! {
                        biased;
                        () = self.shutdown.cancelled() => None,
                        line = self.lines.next() => line,
                    };
                    match line {
                        None => self.begin_end(),
                        Some(line) => if let Some(message) = self.line(line) {
                            return Some(message);
                        }
                    }
                }
            }
        }
    }

    fn line(&mut self, line: Line) -> Option<ClientJsonRpcMessage> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong { bytes } => {
                let limit = crate::MAX_LINE_BYTES;
                let reason = format!("the line has {bytes} bytes; at most {limit} are read. It was skipped");
                self.refuse(None, ErrorData::invalid_request(reason, None));
                return None;
            }
        };
        if line.iter().all(u8::is_ascii_whitespace) {
            return None;
        }
        match parse(&line) {
            Parsed::One(message) => self.take(*message, None, line.len()),
            Parsed::Batch(values) => {
                self.unpack(values);
                None
            }
        }
    }

    fn unpack(&mut self, values: Vec<serde_json::Value>) {
        let reason = match &self.version {
            _ if values.is_empty() => "a batch must not be empty".to_owned(),
            _ if values.len() > MAX_BATCH => format!("a batch holds at most {MAX_BATCH} messages"),
            None => "a batch cannot come before the handshake".to_owned(),
            Some(version) if !has_batches(version) => format!("protocol {version} has no batches"),
            Some(_) => {
                let messages: Vec<_> = values.into_iter().map(message).collect();
                let answered = |m: &&Message| matches!(m, Message::Request(_) | Message::Invalid(_));
                let batch = Batch::new(messages.iter().filter(answered).count());
                self.batch.extend(messages.into_iter().map(|message| (message, Some(batch.clone()))));
                return;
            }
        };
        self.refuse(None, ErrorData::invalid_request(reason, None));
    }

    /// Deals with a message, and gives the service loop what it must see.
    fn take(&mut self, message: Message, batch: Option<Batch>, bytes: usize) -> Option<ClientJsonRpcMessage> {
        let refused = match message {
            Message::Request(request) => match self.admit(*request, batch.as_ref(), bytes) {
                Ok(message) => return Some(message),
                Err(refused) => refused,
            },
            Message::Cancel(id, message) => {
                // Its answer is not sent, whatever becomes of it.
                if let Some(open) = self.open.remove(&id) {
                    open.close();
                    open.cancel.cancel();
                    self.settle(open.batch, None);
                }
                return self.begun.then_some(message);
            }
            Message::Other(message) => return self.begun.then_some(message),
            Message::Invalid(invalid) => invalid,
            Message::Ignored => return None,
        };
        let line = encode(&ServerJsonRpcMessage::error(*refused.error, refused.id));
        self.settle_or_put(batch, line);
        None
    }

    fn admit(
        &mut self,
        request: Request,
        batch: Option<&Batch>,
        bytes: usize,
    ) -> Result<ClientJsonRpcMessage, Invalid> {
        let id = request.id.clone();
        let refuse = |reason: String, id| {
            Err(Invalid { id: Some(id), error: Box::new(ErrorData::invalid_request(reason, None)) })
        };
        if !self.begun && !request.may_open() {
            return refuse("the session has not begun: send `initialize` first".to_owned(), id);
        }
        if self.open.contains_key(&id) {
            return refuse(format!("a request with the id {id} has not been answered yet"), id);
        }
        let cancel = CancellationToken::new();
        let begins = !request.is_probe();
        let token = request.call.as_ref().and_then(|call| call.progress_token.clone());
        let notifier = token.as_ref().and(self.output.clone()).map(Notifier::new);
        let progress = notifier.as_ref().zip(token).map(|(notifier, token)| notifier.sink(token));
        self.open
            .insert(id.clone(), Open { cancel: cancel.clone(), batch: batch.cloned(), begins, notifier });
        let mut client_request = request.request;
        let extensions = client_request.extensions_mut();
        extensions.insert::<Arc<Held>>(Arc::new(self.flow.hold(bytes)));
        if let Some(call) = request.call {
            let place = self.flow.line_up();
            let outcome = self.driver.submit(Call {
                tool: call.name,
                arguments: call.arguments,
                session: Some(self.session.clone()),
                cancel: cancel.clone(),
                progress,
                ..Call::default()
            });
            extensions.insert(Submitted::new(outcome, place, cancel));
        }
        Ok(ClientJsonRpcMessage::request(client_request, id))
    }

    fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        self.put(encode(&ServerJsonRpcMessage::error(error, id)));
    }

    fn put(&self, line: Vec<u8>) {
        if let Some(output) = &self.output {
            output.put(line);
        }
    }

    fn settle(&self, batch: Option<Batch>, line: Option<Vec<u8>>) {
        if let (Some(batch), Some(output)) = (batch, &self.output) {
            batch.settle(line, output);
        }
    }

    fn settle_or_put(&self, batch: Option<Batch>, line: Vec<u8>) {
        match batch {
            Some(_) => self.settle(batch, Some(line)),
            None => self.put(line),
        }
    }

    /// The client has left, or is to be left: calls that run may finish, others never start.
    fn begin_end(&mut self) {
        self.flow.close();
        self.driver.leave(&self.session);
        self.ending = Ending::Finishing { until: Instant::now() + FINISH };
    }

    async fn end(&mut self) {
        if let Ending::Finishing { until } = self.ending {
            if tokio::time::timeout_at(until, self.flow.idle()).await.is_err() {
                for open in self.open.values() {
                    open.cancel.cancel();
                }
            }
            self.ending = Ending::Releasing { until: Instant::now() + RELEASE };
        }
        if let Ending::Releasing { until } = self.ending {
            // Whatever does not end by then is dropped where it stands.
            let _ = tokio::time::timeout_at(until, self.flow.idle()).await;
            self.flow.abandon.cancel();
            self.ending = Ending::Over;
        }
    }

    fn answer(&mut self, item: &ServerJsonRpcMessage) {
        let id = match item {
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        let Some(id) = id else { return self.put(encode(item)) };
        // Not open any more: the client cancelled it and gets no answer.
        let Some(open) = self.open.remove(id) else { return };
        open.close();
        if let JsonRpcMessage::Response(response) = item {
            self.begun |= open.begins;
            if let ServerResult::InitializeResult(result) = &response.result {
                self.version = Some(result.protocol_version.to_string());
            }
        }
        self.settle_or_put(open.batch, encode(item));
    }
}

fn encode(message: &ServerJsonRpcMessage) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_else(|error| {
        // Values that have no JSON form; none of ours is one.
        tracing::error!(%error, "an answer could not be encoded");
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"an answer could not be encoded"}}"#
            .to_vec()
    })
}

impl<R: AsyncRead + Unpin + Send> Transport<RoleServer> for Connection<R> {
    type Error = Infallible;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.answer(&item);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.next().await
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.output = None;
        // Calls that do not end in time must not keep the output open.
        self.open.values().for_each(Open::close);
        Ok(())
    }
}

//! A driver that does as the tool's name says, and a client that speaks raw lines.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use deskhand_core::call::{Answer, Call, Image};
use deskhand_core::driver::{Profile, ToolListing};
use deskhand_core::{Code, Driver, Error, Outcome, Progress, ProgressSink, SessionId};
use deskhand_mcp::{Guide, Limits, Options, ServeError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// What happened, in order.
#[derive(Default)]
pub(crate) struct Stub {
    pub(crate) submitted: Mutex<Vec<Value>>,
    pub(crate) started: Mutex<Vec<Value>>,
    pub(crate) left: Mutex<Vec<SessionId>>,
    pub(crate) ended: Mutex<Vec<SessionId>>,
    /// Lets calls of `hold` finish.
    pub(crate) go: Arc<Notify>,
    /// Told when a `hold` has started.
    pub(crate) holding: Arc<Notify>,
    /// Told when a `hold` has seen its cancellation.
    pub(crate) cancelled: Arc<Notify>,
    /// Where the progress of the last `report` goes; it can be used after the answer.
    pub(crate) progress: Mutex<Option<ProgressSink>>,
}

pub(crate) struct StubDriver(pub(crate) Arc<Stub>);

impl Driver for StubDriver {
    fn tools(&self, _profile: Profile) -> BoxFuture<'_, Result<Vec<ToolListing>, Error>> {
        let schema: Map<String, Value> = serde_json::from_value(
            json!({"type": "object", "properties": {}, "additionalProperties": false}),
        )
        .unwrap();
        let tool = move |name: &str, read_only| ToolListing {
            name: name.to_owned(),
            description: "does it".to_owned(),
            input_schema: Arc::new(schema.clone()),
            read_only,
            destructive: true,
            idempotent: false,
        };
        async move { Ok(vec![tool("echo", true), tool("hold", false)]) }.boxed()
    }

    fn submit(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let stub = Arc::clone(&self.0);
        let n = call.arguments.get("n").cloned().unwrap_or(Value::Null);
        stub.submitted.lock().unwrap().push(n.clone());
        async move {
            stub.started.lock().unwrap().push(n);
            match call.tool.as_str() {
                "echo" => Ok(answer(json!(call.arguments))),
                "big" => Ok(Answer { text: "x".repeat(100_000), ..Answer::default() }),
                "picture" => Ok(Answer {
                    text: "a picture".to_owned(),
                    structured: json!({"width": 1}),
                    images: vec![Image { mime: "image/png", bytes: b"png".to_vec() }],
                }),
                "hold" => {
                    stub.holding.notify_one();
                    tokio::select! {
                        () = stub.go.notified() => Ok(answer(json!({"held": true}))),
                        () = call.cancel.cancelled() => {
                            stub.cancelled.notify_one();
                            Err(Error::new(Code::Cancelled, "cancelled"))
                        }
                    }
                }
                "report" => {
                    if let Some(progress) = &call.progress {
                        progress.report(Progress { done: 1.0, total: Some(2.0), message: "half".to_owned() });
                        progress.report(Progress { done: 2.0, total: None, message: "all".to_owned() });
                    }
                    *stub.progress.lock().unwrap() = call.progress;
                    stub.holding.notify_one();
                    stub.go.notified().await;
                    Ok(answer(json!({"reported": true})))
                }
                "deaf" => std::future::pending().await,
                "fail" => Err(Error::argument("x", "expected a number")),
                "lost" => Err(Error::new(Code::ServiceUnreachable, "no service at /run/x")),
                other => Err(Error::new(Code::UnknownTool, format!("there is no tool {other}"))),
            }
        }
        .boxed()
    }

    fn leave(&self, session: &SessionId) {
        self.0.left.lock().unwrap().push(session.clone());
    }

    fn end_session(&self, session: SessionId) -> BoxFuture<'_, ()> {
        self.0.ended.lock().unwrap().push(session);
        async {}.boxed()
    }
}

fn answer(structured: Value) -> Answer {
    Answer { text: "done".to_owned(), structured, images: Vec::new() }
}

/// What the server offers to read.
pub(crate) fn guide() -> Guide {
    Guide {
        name: "the-guide".to_owned(),
        uri: "stub://the-guide".to_owned(),
        title: "The guide".to_owned(),
        description: "How it is done.".to_owned(),
        text: "# How it is done\n\n“Well”.\n".to_owned(),
    }
}

/// A client, and the server it talks to.
pub(crate) struct Client {
    pub(crate) stub: Arc<Stub>,
    pub(crate) input: Option<DuplexStream>,
    pub(crate) output: Option<BufReader<DuplexStream>>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) server: JoinHandle<Result<(), ServeError>>,
}

/// An answer that does not come within this is taken for lost. Long, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(20);

impl Client {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::default())
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let stub = Arc::<Stub>::default();
        let (input, server_input) = tokio::io::duplex(64 * 1024);
        let (server_output, output) = tokio::io::duplex(64 * 1024);
        let shutdown = CancellationToken::new();
        let options = Options {
            profile: Profile::Default,
            session: SessionId::new("s1"),
            version: "9.9.9".to_owned(),
            instructions: "Read the guide.".to_owned(),
            guide: guide(),
            limits,
        };
        let driver: Arc<dyn Driver> = Arc::new(StubDriver(Arc::clone(&stub)));
        let server =
            tokio::spawn(deskhand_mcp::serve(driver, options, server_input, server_output, shutdown.clone()));
        Self { stub, input: Some(input), output: Some(BufReader::new(output)), shutdown, server }
    }

    /// A client that has shaken hands.
    pub(crate) async fn ready(version: &str) -> Self {
        let mut client = Self::new();
        client.handshake(version).await;
        client
    }

    pub(crate) async fn handshake(&mut self, version: &str) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}))
            .await;
        let answer = self.receive().await;
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        answer
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).await.unwrap();
    }

    pub(crate) async fn call(&mut self, id: i64, tool: &str, arguments: Value) {
        self.send(call(id, tool, arguments)).await;
    }

    /// The next line.
    pub(crate) async fn receive(&mut self) -> Value {
        self.next().await.expect("the output ended")
    }

    /// The next line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.output.as_mut().unwrap().read_line(&mut line);
        tokio::time::timeout(PATIENCE, read).await.expect("no answer").unwrap();
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Sends a ping, and what comes before its answer.
    pub(crate) async fn until_ping(&mut self) -> Vec<Value> {
        self.send(json!({"jsonrpc": "2.0", "id": "ping", "method": "ping"})).await;
        let mut seen = Vec::new();
        loop {
            let answer = self.receive().await;
            if answer["id"] == "ping" {
                return seen;
            }
            seen.push(answer);
        }
    }

    /// Closes the input and waits for the server's end.
    pub(crate) async fn close(mut self) -> Arc<Stub> {
        self.input = None;
        tokio::time::timeout(PATIENCE, self.server).await.expect("did not end").unwrap().unwrap();
        self.stub
    }
}

pub(crate) fn call(id: i64, tool: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": arguments}})
}

//! Runs calls against an engine and writes down what came of them: `tool {json}` lines in, a transcript out.

use deskhand_core::{Call, Engine, Host, Lease, Outcome, SessionId};
use tokio_util::sync::CancellationToken;

use crate::fake::FakeDesktop;

/// A session on a fake desktop.
#[derive(Clone, Debug)]
pub struct Script {
    /// The desktop.
    pub desktop: FakeDesktop,
    /// The engine on it.
    pub engine: Engine,
    /// Whose calls they are.
    pub session: Option<SessionId>,
    /// Its lease, if it has one.
    pub lease: Option<Lease>,
}

impl Script {
    /// A session called `test` on the desktop that `text` describes.
    pub fn new(text: &str) -> Self {
        Self::on(text, Host::default())
    }

    /// The same, with surroundings of one's own.
    pub fn on(text: &str, host: Host) -> Self {
        let desktop = FakeDesktop::new(text);
        let engine = Engine::new(desktop.desktop(), host);
        Self { desktop, engine, session: Some(SessionId::new("test")), lease: None }
    }

    /// The same desktop and engine, used by another session.
    #[must_use]
    pub fn as_session(&self, name: &str) -> Self {
        Self { session: Some(SessionId::new(name)), lease: None, ..self.clone() }
    }

    /// The same desktop and engine, used by a caller that names no session.
    #[must_use]
    pub fn anonymous(&self) -> Self {
        Self { session: None, lease: None, ..self.clone() }
    }

    /// A call from `tool {json}`.
    ///
    /// # Panics
    /// If the arguments are not a JSON object.
    pub fn parse(&self, line: &str) -> Call {
        let (tool, arguments) = line.trim().split_once(' ').unwrap_or((line.trim(), "{}"));
        let arguments = match serde_json::from_str(arguments) {
            Ok(arguments) => arguments,
            Err(error) => panic!("the test's arguments are not JSON: {error}: {line}"),
        };
        Call {
            tool: tool.to_owned(),
            arguments,
            session: self.session.clone(),
            lease: self.lease.clone(),
            cancel: CancellationToken::new(),
            ..Call::default()
        }
    }

    /// Runs one call.
    pub async fn call(&self, line: &str) -> Outcome {
        self.engine.invoke(self.parse(line)).await
    }

    /// Runs the lines of `calls` one after another. The transcript has each call, its answer, and what reached the desktop.
    pub async fn run(&self, calls: &str) -> String {
        let mut transcript = String::new();
        for line in calls.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let outcome = self.call(line).await;
            transcript += &format!("> {line}\n");
            match outcome {
                Ok(answer) => transcript += &format!("{}\n", answer.text),
                Err(error) => transcript += &format!("{}: {}\n", error.code, error.message),
            }
            for entry in self.desktop.take_journal() {
                transcript += &format!("  * {entry}\n");
            }
        }
        transcript
    }
}

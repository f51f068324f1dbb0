//! A service on a fake desktop, and the hosts that a test starts.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::consent::{ConsentSource, Grant};
use deskhand_core::{Call, Code, Engine, Outcome};
use deskhand_service::build::Build;
use deskhand_service::client::Client;
use deskhand_service::consent::{HostConsent, HostRule, HostToken, digest_of};
use deskhand_service::desktop::{DesktopName, DesktopNames};
use deskhand_service::election::Candidate;
use deskhand_service::folder::Folder;
use deskhand_service::holder::Lifetime;
use deskhand_service::server::{self, Served};
use deskhand_service::starting::elect_until;
use deskhand_testkit::fake::FakeDesktop;
use tokio::net::UnixStream;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::host;

/// The right token.
pub(crate) const TOKEN: &str = "canary-0123456789-0123456789-0123456789";

/// What needs no waiting has happened by then, on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_millis(1000);

pub(crate) const ALL: Grant = Grant { joined: true, screen: true, control: true };
pub(crate) const SCREEN: Grant = Grant { joined: true, screen: true, control: false };

const DESKTOP: &str = "window 1 \"Editor\" app=editor pid=100 800x600+100+50 focused\n  push button \"Save\" @10,10 80x30 changes=2\n";

pub(crate) struct Stage {
    place: tempfile::TempDir,
    pub(crate) socket: PathBuf,
    pub(crate) consent: Arc<HostConsent>,
    pub(crate) desktop: FakeDesktop,
    stop: CancellationToken,
}

impl Stage {
    /// A service on the runtime of the caller, of which the rule allows this very program as a host.
    pub(crate) async fn new() -> Self {
        Self::with_token(Some(HostToken::new(TOKEN.as_bytes()).unwrap())).await
    }

    pub(crate) async fn with_token(token: Option<HostToken>) -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::at(&place.path().join("run")).unwrap();
        let build = Build::running(&folder, "test").unwrap();
        let names = DesktopNames::new(":0".parse::<DesktopName>().unwrap());
        let candidate = Candidate::service(folder, names, build, Lifetime::Persistent, None).unwrap();
        let elected = elect_until(&candidate, Instant::now() + SOON).await.unwrap();
        let socket = elected.holder().socket().unwrap().to_owned();
        let digest = digest_of(&std::env::current_exe().unwrap()).unwrap();
        let rule = HostRule { digest: Some(digest), paths: Vec::new() };
        let consent = Arc::new(HostConsent::new(token, rule));
        let desktop = FakeDesktop::new(DESKTOP);
        let surroundings = deskhand_core::Host { consent: Arc::clone(&consent) as _, ..Default::default() };
        let engine = Engine::new(desktop.desktop(), surroundings);
        let served = Served { engine, consent: Arc::clone(&consent) };
        let stop = CancellationToken::new();
        tokio::spawn(server::serve(elected, served, CancellationToken::new(), stop.clone()));
        Self { place, socket, consent, desktop, stop }
    }

    pub(crate) async fn client(&self) -> Client {
        // The service's task may not have made its socket yet.
        let stream = loop {
            match UnixStream::connect(&self.socket).await {
                Ok(stream) => break stream,
                Err(_) => tokio::task::yield_now().await,
            }
        };
        Client::new(stream, &self.socket)
    }

    pub(crate) async fn call(&self, tool: &str, arguments: serde_json::Value) -> Outcome {
        let serde_json::Value::Object(arguments) = arguments else { panic!() };
        self.client().await.submit(Call::anonymous(tool, arguments)).await
    }

    /// What is allowed, and how long it took to be told.
    pub(crate) async fn asked(&self) -> (Grant, Duration) {
        let begun = Instant::now();
        (self.consent.grant().await, begun.elapsed())
    }

    /// Asserts that nothing is granted, without waiting.
    #[track_caller]
    pub(crate) fn nothing_soon(&self) -> impl Future<Output = ()> + use<'_> {
        let caller = std::panic::Location::caller();
        async move {
            let (grant, took) = self.asked().await;
            assert!(grant == Grant::NOTHING && took < SOON, "{caller}: {grant:?} after {took:?}");
        }
    }

    /// Another program that can do all that this one can.
    pub(crate) fn other_program(&self) -> PathBuf {
        let path = self.place.path().join("other");
        if !path.exists() {
            std::fs::copy(std::env::current_exe().unwrap(), &path).unwrap();
            let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
            file.write_all(b"other").unwrap();
        }
        path
    }

    pub(crate) async fn host(&self, manner: &str) -> Host {
        self.host_of(&std::env::current_exe().unwrap(), TOKEN, manner).await
    }

    pub(crate) async fn host_of(&self, program: &Path, token: &str, manner: &str) -> Host {
        drop(self.client().await);
        let mut command = Command::new(program);
        command.arg(host::HOST).arg(&self.socket).arg(manner);
        command.env(host::TOKEN, token).env(host::OTHER, self.other_program());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        Host { lines: BufReader::new(child.stdout.take().unwrap()), child }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn is_refused(outcome: &Outcome) -> bool {
    matches!(outcome, Err(error) if error.code == Code::ConsentRequired)
}

/// A started host. It is killed when this is dropped.
pub(crate) struct Host {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Host {
    /// The next thing that it says. Blocks: the service must run on another thread.
    pub(crate) fn next(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn expect(&mut self, start: &str) {
        let line = self.next();
        assert!(line.starts_with(start), "{start} expected, not: {line}");
    }

    /// Reads on to a line.
    pub(crate) fn await_line(&mut self, start: &str) -> String {
        loop {
            let line = self.next();
            assert!(!line.is_empty(), "it ended without {start}");
            if line.starts_with(start) {
                return line;
            }
        }
    }

    /// From the next question on it is of that manner.
    pub(crate) fn be(&mut self, manner: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{manner}").unwrap();
        self.await_line(&format!("now {manner}"));
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.kill();
    }
}

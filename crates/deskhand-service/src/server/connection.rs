//! One client of the service.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use deskhand_core::call::{self, SessionId};
use deskhand_core::progress::ProgressSink;
use deskhand_core::session::Lease;
use deskhand_core::{Code, Driver, Error};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;
use serde_json::json;
use tokio::net::UnixStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Service;
use super::output::{Output, output};
use crate::holder::{Holder, Lifetime};
use crate::lines::{LineError, Lines};
use crate::wire::{self, Method, Request};

/// How long calls at work may take to finish after their client has said its last word.
const FINISH: Duration = Duration::from_millis(1500);

/// Whether a client that sends no more may still read. One that was killed has closed both ways at once.
fn still_reads(stream: &UnixStream) -> bool {
    let mut peer = [PollFd::new(stream, PollFlags::empty())];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    match poll(&mut peer, Some(&now)) {
        Ok(_) => !peer[0].revents().intersects(PollFlags::HUP | PollFlags::ERR),
        Err(error) => {
            tracing::debug!(%error, "a client's end cannot be looked at");
            false
        }
    }
}

/// What the tasks of a connection share.
struct Shared {
    service: Arc<Service>,
    output: Output,
    /// Its calls that have not been answered.
    calls: Mutex<HashMap<u64, CancellationToken>>,
}

impl Shared {
    fn calls(&self) -> MutexGuard<'_, HashMap<u64, CancellationToken>> {
        // Each change is one statement.
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T: Serialize>(&self, id: u64, outcome: Result<T, Error>) {
        self.output.put(match outcome {
            Ok(answer) => wire::answer_line(id, answer),
            Err(error) => wire::error_line(Some(id), &error),
        });
    }
}

/// One client, while it is connected.
pub(super) struct Connection {
    shared: Arc<Shared>,
    /// The session whose life this connection is.
    lease: Option<(SessionId, Lease)>,
    tasks: TaskTracker,
    #[cfg(feature = "host-consent")]
    hosting: Hosting,
}

/// Whether a connection is a client's or wants to be the consent host's.
#[cfg(feature = "host-consent")]
#[derive(Clone, Copy)]
enum Hosting {
    /// Nothing has been said yet; when it was taken.
    Silent(u64),
    Client,
    Wanted(crate::consent::Newcomer),
}

impl Connection {
    /// Serves a client until it leaves, and cleans up after it.
    pub(super) async fn run(stream: UnixStream, service: Arc<Service>) {
        #[cfg(feature = "host-consent")]
        let hosting = Hosting::Silent(crate::consent::boot_ticks());
        let (reader, writer) = stream.into_split();
        let closed = service.closing.child_token();
        let unread = service.engine.limits().output_bytes;
        let (output, writing) = output(writer, unread, closed.clone());
        let writing = tokio::spawn(writing);
        let shared = Arc::new(Shared { service, output, calls: Mutex::default() });
        let mut connection = Self {
            shared,
            lease: None,
            tasks: TaskTracker::new(),
            #[cfg(feature = "host-consent")]
            hosting,
        };
        let room = Arc::clone(&connection.shared.service.long_lines);
        let mut lines = Lines::new(reader, wire::MAX_LINE_BYTES).with_room(room);
        connection.read(&mut lines, &closed).await;
        #[cfg(feature = "host-consent")]
        if let Hosting::Wanted(newcomer) = connection.hosting {
            let consent = &connection.shared.service.consent;
            // Nothing has been put out yet, so that the stream is the host's alone.
            crate::consent::serve(lines.get_ref().as_ref(), newcomer, consent, &closed).await;
        }
        if still_reads(lines.get_ref().as_ref()) {
            connection.finish(&closed).await;
        }
        connection.end().await;
        drop(connection);
        // Ends when all is written or the client does not read it: the service's end does not wait for it.
        if writing.await.is_err() {
            tracing::error!("the writer of a connection failed");
        }
    }

    async fn read<R: tokio::io::AsyncRead + Unpin>(
        &mut self,
        lines: &mut Lines<R>,
        closed: &CancellationToken,
    ) {
        loop {
            let line = tokio::select! {
                biased;
                () = closed.cancelled() => return,
                line = async {
                    self.shared.output.room().await;
                    lines.next().await
                } => line,
            };
            match line {
                Ok(Some(line)) if line.iter().all(u8::is_ascii_whitespace) => {}
                Ok(Some(line)) => match Request::read(line) {
                    #[cfg(feature = "host-consent")]
                    Ok(request) if request.method == wire::MachineConsentHost::NAME => {
                        if self.wants_to_host(request.id, lines.is_drained()) {
                            return;
                        }
                    }
                    Ok(request) => self.take(request),
                    Err(refused) => {
                        #[cfg(feature = "host-consent")]
                        {
                            self.hosting = Hosting::Client;
                        }
                        let error = Error::new(Code::InvalidArgument, refused.reason);
                        self.shared.output.put(wire::error_line(refused.id, &error));
                    }
                },
                Ok(None) => return,
                Err(error @ (LineError::TooLong { .. } | LineError::TooSlow { .. })) => {
                    let error = Error::new(Code::LimitExceeded, error.to_string());
                    return self.shared.output.put(wire::error_line(None, &error));
                }
                Err(LineError::Io(error)) => return tracing::debug!(%error, "a client is gone"),
            }
        }
    }

    /// The client says no more and still reads: calls that are at work may finish and answer.
    async fn finish(&self, closed: &CancellationToken) {
        let engine = &self.shared.service.engine;
        if let Some((session, _)) = &self.lease {
            engine.leave(session);
        }
        self.tasks.close();
        tokio::select! {
            () = closed.cancelled() => {}
            () = self.tasks.wait() => {}
            () = tokio::time::sleep(FINISH) => {}
        }
    }

    /// The client has left: what it began is stopped, and its session ends with its lease.
    async fn end(&mut self) {
        for cancel in self.shared.calls().values() {
            cancel.cancel();
        }
        if let Some((session, _)) = self.lease.take() {
            self.shared.service.engine.close_session(&session).await;
        }
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Whether the connection is given over to the consent host.
    #[cfg(feature = "host-consent")]
    fn wants_to_host(&mut self, id: u64, drained: bool) -> bool {
        if let (Hosting::Silent(accepted), true) = (self.hosting, drained) {
            self.hosting = Hosting::Wanted(crate::consent::Newcomer { id, accepted });
            return true;
        }
        let message = "must be the first line of its connection, with nothing behind it";
        self.shared.answer::<()>(id, Err(Error::argument("method", message)));
        self.hosting = Hosting::Client;
        false
    }

    fn take(&mut self, request: Request) {
        #[cfg(feature = "host-consent")]
        {
            self.hosting = Hosting::Client;
        }
        let id = request.id;
        if let Err(error) = self.dispatch(request) {
            self.shared.answer::<()>(id, Err(error));
        }
    }

    /// Answers a request, or sees to it that it will be.
    fn dispatch(&mut self, request: Request) -> Result<(), Error> {
        let id = request.id;
        let shared = Arc::clone(&self.shared);
        match request.method.as_str() {
            wire::Hello::NAME => shared.answer(id, self.hello(request)),
            wire::Call::NAME => self.call(request)?,
            wire::Cancel::NAME => {
                let wire::CancelParameters { target } = request.parameters()?;
                if let Some(cancel) = shared.calls().get(&target) {
                    cancel.cancel();
                }
                shared.answer(id, Ok(wire::Empty {}));
            }
            wire::List::NAME => {
                let wire::ListParameters { profile } = request.parameters()?;
                let tools =
                    deskhand_core::tools::listing(profile.into()).into_iter().map(Into::into).collect();
                shared.answer(id, Ok(wire::Listed { tools }));
            }
            wire::Leave::NAME => {
                if let Some((session, _)) = self.own(request.session_id.as_deref()) {
                    shared.service.engine.leave(&session);
                }
                shared.answer(id, Ok(wire::Empty {}));
            }
            wire::SessionEnd::NAME => self.end_session(request)?,
            wire::Sessions::NAME => {
                shared.answer(id, Ok(wire::SessionsListed { sessions: shared.service.sessions() }));
            }
            wire::Status::NAME => shared.answer(id, Ok(shared.service.status())),
            // Some sources have to be waited for.
            wire::Consent::NAME => drop(self.tasks.spawn(async move {
                let consent = shared.service.engine.consent().await;
                shared.answer(id, Ok(wire::ConsentReport::from(consent)));
            })),
            wire::Shutdown::NAME => {
                shared.answer(id, Ok(wire::Stopping { pid: shared.service.facts.pid }));
                shared.service.stopping.cancel();
            }
            other => {
                let name: String = other.chars().filter(|c| !c.is_control()).take(64).collect();
                return Err(Error::new(Code::UnknownMethod, format!("there is no method `{name}`")));
            }
        }
        Ok(())
    }

    fn hello(&mut self, request: Request) -> Result<wire::Welcome, Error> {
        let session = request.session_id.clone();
        let parameters: wire::HelloParameters = request.parameters()?;
        let service = &self.shared.service;
        let facts = &service.facts;
        if let Some(build) = parameters.build.filter(|build| *build != facts.build.digest) {
            return Err(service.build_conflict(&build));
        }
        if parameters.lease {
            let Some(session) = session else {
                return Err(Error::argument("session_id", "a lease needs the session's id"));
            };
            if self.lease.is_some() {
                return Err(Error::argument("lease", "this connection has one already"));
            }
            let id = SessionId::new(&session);
            let lease = service.engine.open_session(&id, true, parameters.label.as_deref())?;
            self.lease = lease.map(|lease| (id, lease));
            service.life.used();
        }
        if parameters.lifetime == Some(Lifetime::Persistent) && service.life.make_persistent() {
            tracing::info!("a client made this service persistent");
        }
        let limits = service.engine.limits();
        Ok(wire::Welcome {
            protocol: wire::PROTOCOL,
            version: facts.build.version.clone(),
            build: facts.build.digest.clone(),
            pid: facts.pid,
            desktop: facts.desktop.to_string(),
            lifetime: service.life.lifetime(),
            limits: wire::Limits {
                line_bytes: wire::MAX_LINE_BYTES,
                unread_bytes: limits.output_bytes,
                connections: limits.connections,
                calls: limits.calls,
            },
        })
    }

    /// The session that a request names, if it is the one whose life this connection is.
    fn own(&self, named: Option<&str>) -> Option<(SessionId, Lease)> {
        self.lease.clone().filter(|(session, _)| named == Some(&*session.0))
    }

    /// Begins a call. Its place in the desktop's queue is taken here.
    fn call(&self, request: Request) -> Result<(), Error> {
        let id = request.id;
        let session = request.session_id.as_deref().map(SessionId::new);
        let lease = self.own(request.session_id.as_deref()).map(|(_, lease)| lease);
        let parameters: wire::CallParameters = request.parameters()?;
        let shared = Arc::clone(&self.shared);
        if shared.service.stopping.is_cancelled() {
            return Err(Error::new(Code::ServiceUnreachable, "the service is ending; nothing was done"));
        }
        let cancel = CancellationToken::new();
        if shared.calls().contains_key(&id) {
            return Err(Error::argument("id", format!("the call {id} has not been answered yet")));
        }
        shared.calls().insert(id, cancel.clone());
        shared.service.life.used();
        let call = call::Call {
            tool: parameters.tool,
            arguments: parameters.arguments,
            session,
            lease,
            cancel,
            progress: parameters.progress.then(|| progress(Arc::clone(&shared), id)),
        };
        let outcome = shared.service.engine.invoke(call);
        self.tasks.spawn(async move {
            let outcome = outcome.await;
            shared.calls().remove(&id);
            shared.answer(id, outcome.map(wire::Called::from));
        });
        Ok(())
    }

    fn end_session(&mut self, request: Request) -> Result<(), Error> {
        let id = request.id;
        let own = request.session_id.clone();
        let wire::SessionEndParameters { session } = request.parameters()?;
        let Some(ended) = session.or(own).map(|session| SessionId::new(&session)) else {
            return Err(Error::argument("session_id", "which session?"));
        };
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            let ended = shared.service.engine.close_session(&ended).await;
            shared.answer(id, Ok(wire::SessionEnded { ended }));
        });
        Ok(())
    }
}

/// Where the progress of the call `id` goes.
fn progress(shared: Arc<Shared>, id: u64) -> ProgressSink {
    ProgressSink::new(move |progress| match wire::progress_line(id, &progress.into()) {
        Ok(line) => shared.output.put(line),
        Err(error) => tracing::error!(%error, "progress could not be written"),
    })
}

impl Service {
    fn sessions(&self) -> Vec<wire::SessionReport> {
        self.engine.sessions().into_iter().map(Into::into).collect()
    }

    fn status(&self) -> wire::StatusReport {
        let facts = &self.facts;
        wire::StatusReport {
            version: facts.build.version.clone(),
            build: facts.build.digest.clone(),
            path: facts.build.path.display().to_string(),
            pid: facts.pid,
            desktop: facts.desktop.to_string(),
            socket: self.socket.display().to_string(),
            lifetime: self.life.lifetime(),
            age_ms: u64::try_from(self.life.age().as_millis()).unwrap_or(u64::MAX),
            connections: self.life.connections(),
            waiting: self.engine.waiting(),
            sessions: self.sessions(),
            activity_log: self.engine.activity_log().map(Into::into),
        }
    }

    fn build_conflict(&self, client: &str) -> Error {
        let Holder { pid, build, .. } = &self.facts;
        let message = format!(
            "the desktop belongs to another build of deskhand: {}; `deskhand stop --socket {}` ends it",
            self.facts,
            self.socket.display(),
        );
        Error::new(Code::BuildConflict, message).with_details(json!({
            "pid": pid,
            "build": build.digest,
            "path": build.path.display().to_string(),
            "client_build": client,
        }))
    }
}

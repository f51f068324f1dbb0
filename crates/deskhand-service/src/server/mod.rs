//! The service: an engine behind a socket.

mod connection;
mod life;
mod output;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use deskhand_core::{Code, Engine, Error};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::election::Elected;
use crate::holder::{Holder, Lifetime, Role};
use crate::wire;
use connection::Connection;
use life::Life;

/// Lines of more than a megabyte that are read at a time: an unfinished one of each connection would be gigabytes.
const LONG_LINES: usize = 4;

/// How long the sessions may take to end when the service does: a call that was asked to stop has 2 s.
const END_SESSIONS: Duration = Duration::from_secs(9);

/// How long the last answers may take to be written.
const FLUSH: Duration = Duration::from_millis(500);

/// Why a service ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// Nobody used it any more.
    Unused,
    /// It could not be trusted any more: something of its own did not stop.
    Failed,
    /// The desktop went away.
    DesktopLost,
}

/// What the connections of a service share.
#[derive(Debug)]
struct Service {
    engine: Engine,
    /// What the service is, as its lock files say it.
    facts: Holder,
    socket: PathBuf,
    life: Arc<Life>,
    /// Turns for lines that are long.
    long_lines: Arc<Semaphore>,
    /// Cancelled when no new calls are taken any more.
    stopping: CancellationToken,
    /// Cancelled when the connections have to end.
    closing: CancellationToken,
    /// Who may become the consent host.
    #[cfg(feature = "host-consent")]
    consent: crate::consent::Source,
}

/// What is served.
#[derive(Clone, Debug)]
pub struct Served {
    /// What runs the calls.
    pub engine: Engine,
    /// The engine's source of consent, to which a connection can become the way.
    #[cfg(feature = "host-consent")]
    pub consent: Arc<crate::consent::HostConsent>,
}

/// Serves the engine of `served` on the socket of `elected`, until `stop` is cancelled, somebody asks it to end, the
/// desktop is `lost`, or nobody uses a managed service any more. When it returns, sessions have ended, answers are
/// written and the socket is removed; the locks are the caller's to keep until the process ends.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve(
    mut elected: Elected,
    served: Served,
    lost: CancellationToken,
    stop: CancellationToken,
) -> io::Result<(Ended, Elected)> {
    let Served { engine, .. } = served;
    let listener = elected.bind()?;
    listener.set_nonblocking(true)?;
    let listener = UnixListener::from_std(listener)?;
    let facts = elected.holder().clone();
    let Role::Service { socket, lifetime } = facts.role.clone() else {
        return Err(io::Error::other("an in-process owner serves nobody"));
    };
    let service = Arc::new(Service {
        life: Arc::new(Life::new(lifetime)),
        long_lines: Arc::new(Semaphore::new(LONG_LINES)),
        facts,
        socket,
        stopping: stop,
        closing: CancellationToken::new(),
        #[cfg(feature = "host-consent")]
        consent: served.consent,
        engine,
    });
    let connections = TaskTracker::new();
    let failed = service.engine.failed();
    let ended = tokio::select! {
        biased;
        () = failed.cancelled() => Ended::Failed,
        () = service.stopping.cancelled() => Ended::Stopped,
        () = lost.cancelled() => Ended::DesktopLost,
        () = service.life.over(service.engine.named_sessions(), service.engine.recordings()) => Ended::Unused,
        never = accept(&listener, &service, &connections) => match never {},
        never = tell_lifetime(&service.life, &mut elected) => match never {},
    };
    tracing::info!(?ended, "the service ends");
    service.stopping.cancel();
    elected.unlink();
    if ended == Ended::DesktopLost {
        service.engine.lose_desktop();
    }
    // Whoever is in the line of the socket is turned away and tries again.
    drop(listener);
    if tokio::time::timeout(END_SESSIONS, service.engine.end_sessions()).await.is_err() {
        tracing::error!("sessions did not end in time");
    }
    service.closing.cancel();
    connections.close();
    if tokio::time::timeout(FLUSH, connections.wait()).await.is_err() {
        tracing::debug!("some clients did not read their last answers");
    }
    Ok((ended, elected))
}

/// Writes into the lock files that a managed service has become persistent.
async fn tell_lifetime(life: &Life, elected: &mut Elected) -> std::convert::Infallible {
    life.persistent().await;
    if let Err(error) = elected.set_lifetime(Lifetime::Persistent) {
        tracing::warn!(%error, "the lock files still say that this service is managed");
    }
    std::future::pending().await
}

async fn accept(
    listener: &UnixListener,
    service: &Arc<Service>,
    connections: &TaskTracker,
) -> std::convert::Infallible {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => admit(stream, service, connections),
            Err(error) => {
                // Usually: too many open files. They become fewer when connections close.
                tracing::warn!(%error, "a connection could not be taken");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// Pause after a connection that could not be taken, so that a lasting cause does not take a processor.
const RETRY: Duration = Duration::from_millis(50);

fn admit(stream: UnixStream, service: &Arc<Service>, connections: &TaskTracker) {
    let own = rustix::process::getuid().as_raw();
    match stream.peer_cred() {
        Ok(peer) if peer.uid() == own => {}
        Ok(peer) => return tracing::warn!(uid = peer.uid(), "another user was turned away"),
        Err(error) => return tracing::warn!(%error, "a client whose user is not known was turned away"),
    }
    let limit = service.engine.limits().connections;
    if service.life.connections() >= limit {
        let message = format!("there are {limit} connections, the limit `connections`");
        let error = Error::new(Code::LimitExceeded, message);
        // It fits into the socket's buffer, or the client is not worth it.
        let _ = stream.try_write(&wire::error_line(None, &error));
        return;
    }
    let counted = service.life.connected();
    let service = Arc::clone(service);
    connections.spawn(async move {
        Connection::run(stream, service).await;
        drop(counted);
    });
}

//! The end of the client.
//!
//! Usually stdin ends with the client. It does not when something else holds the pipe open: a launcher between the two,
//! or another child of the client that inherited it. So the processes themselves are watched, by pidfd: no polling, and
//! no death signal, which would follow the thread that happened to start us.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};
use tokio::io::Interest;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::ancestors::{Process, line_to_client};
use super::descriptor::watched;

/// A parent that ends this soon after our start only passed us on: a shell that starts something in the background, or
/// the middle of a double fork.
const SETTLING: Duration = Duration::from_millis(100);

/// The processes whose end is the client's: the parent first.
#[derive(Debug)]
pub(crate) struct Client {
    /// Name of the client's program.
    name: Option<String>,
    line: Vec<Watched>,
    found: Instant,
}

#[derive(Debug)]
struct Watched {
    pid: i32,
    pidfd: OwnedFd,
}

impl Client {
    /// Looks for the client. To be called first thing: a parent that has ended cannot be found any more.
    pub(crate) fn find() -> Self {
        let line = line_to_client(Pid::as_raw(getppid()), Process::read);
        let name = line.last().map(|client| client.name.clone());
        Self { name, line: line.iter().filter_map(Watched::open).collect(), found: Instant::now() }
    }

    /// Name of the client's program, for people: at most 15 bytes.
    pub(crate) fn name(&self) -> Option<String> {
        self.name.clone()
    }

    /// Cancels `shutdown` when the client has ended.
    pub(crate) async fn watch(self, shutdown: CancellationToken) {
        let mut parent = self.line.first().map(|watched| watched.pid);
        let (ended, mut ends) = mpsc::unbounded_channel();
        let mut watch = |watched: Watched| {
            let ended = ended.clone();
            let pid = watched.pid;
            tokio::spawn(async move {
                if watched.end().await {
                    let _ = ended.send(pid);
                }
            });
        };
        self.line.into_iter().for_each(&mut watch);
        while let Some(pid) = ends.recv().await {
            if Some(pid) == parent && self.found.elapsed() < SETTLING {
                tracing::debug!(pid, "passed on by a parent that ended at once");
                let adopted = Self::find().line;
                parent = adopted.first().map(|watched| watched.pid);
                adopted.into_iter().for_each(&mut watch);
                continue;
            }
            tracing::debug!(pid, "the client has ended");
            shutdown.cancel();
            return;
        }
    }
}

impl Watched {
    fn open(process: &Process) -> Option<Self> {
        let pidfd = pidfd_open(Pid::from_raw(process.pid)?, PidfdFlags::empty());
        let pidfd = pidfd.inspect_err(|error| tracing::debug!(%error, "a process cannot be watched")).ok()?;
        // Still the same process, and not one that has got its number.
        let same = Process::read(process.pid).is_some_and(|now| now.parent == process.parent);
        same.then_some(Self { pid: process.pid, pidfd })
    }

    /// Waits for the process's end. `false`: it cannot be seen.
    async fn end(self) -> bool {
        // A pidfd is readable once its process has ended.
        match watched(self.pidfd, Interest::READABLE) {
            Ok(pidfd) => pidfd.readable().await.is_ok(),
            Err(error) => {
                tracing::debug!(%error, "a process cannot be watched");
                false
            }
        }
    }
}

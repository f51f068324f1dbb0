//! Processes as the kernel shows them: who we are, whether another one still lives, and its end.

use std::io;
use std::os::fd::OwnedFd;

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// What `/proc/PID/stat` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `T` and so on.
    pub(crate) state: char,
    /// When it started, in clock ticks since the machine did. With the pid it names one process for good.
    pub(crate) started: u64,
}

/// Place of the start time among the fields behind the name.
const STARTED_FIELD: usize = 19;

/// State and start of a process, if there is one with that number.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold spaces and parentheses: the last one ends it.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(text.get(after + 1..)?).ok()?;
    let state = fields.split_ascii_whitespace().next()?.chars().next()?;
    let started = fields.split_ascii_whitespace().nth(STARTED_FIELD)?.parse().ok()?;
    Some(Stat { state, started })
}

/// The pid namespace that this process lives in: numbers of processes of another one mean nothing here.
pub(crate) fn namespace() -> String {
    let link = std::fs::read_link("/proc/self/ns/pid");
    link.map(|link| link.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The end of a process, to be awaited.
#[derive(Debug)]
pub(crate) struct End(AsyncFd<OwnedFd>);

impl End {
    /// Watches the process with this number.
    ///
    /// # Errors
    /// There is none (any more), or the kernel knows no pidfd.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        watched(pidfd_open(pid, PidfdFlags::empty())?).map(Self)
    }

    /// Watches the process that `pidfd` stands for.
    ///
    /// # Errors
    /// It is no pidfd.
    #[cfg(feature = "host-consent")]
    pub(crate) fn watching(pidfd: OwnedFd) -> io::Result<Self> {
        watched(pidfd).map(Self)
    }

    /// Whether the process has ended. If that cannot be told, it has.
    #[cfg(feature = "host-consent")]
    pub(crate) fn has_ended(&self) -> bool {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(self.0.get_ref(), PollFlags::IN)], Some(&now)) != Ok(0)
    }

    /// Waits for the end. Can be called again afterwards, and be dropped half-way.
    ///
    /// # Errors
    /// The runtime is shutting down.
    pub(crate) async fn wait(&self) -> io::Result<()> {
        // The readiness is not cleared: an ended process stays ended.
        self.0.readable().await.map(|_| ())
    }
}

#[allow(unsafe_code)]
fn watched(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and names one descriptor until it is dropped, which the `AsyncFd` that takes it
    // does after it has deregistered it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_run_and_started_before_our_children() {
        let own = stat(std::process::id()).unwrap();
        assert!(matches!(own.state, 'R' | 'S'), "{own:?}");
        assert!(own.started > 0);
        assert_eq!(stat(0), None);
        assert!(namespace().starts_with("pid:["));
    }

    #[tokio::test]
    async fn the_end_of_a_process_is_seen() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let end = End::of(child.id()).unwrap();
        drop(child.stdin.take());
        end.wait().await.unwrap();
        end.wait().await.unwrap();
        child.wait().unwrap();
    }
}

//! What ends the process: a signal, a broken output, the client's end.

mod ancestors;
mod client;
mod descriptor;

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

pub(crate) use client::Client;
#[cfg(feature = "host-consent")]
pub(crate) use descriptor::inherited;

/// Resolves when the process `pid` has ended. It is that process even if it ends before the future is polled.
pub(crate) fn end_of(pid: u32) -> impl Future<Output = ()> {
    let pidfd = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok())
        // A pidfd is readable once its process has ended.
        .and_then(|pidfd| descriptor::watched(pidfd, Interest::READABLE).ok());
    async move {
        // What cannot be watched is not there any more.
        if let Some(pidfd) = pidfd {
            let _ = pidfd.readable().await;
        }
    }
}

/// Resolves when nobody writes into our input any more, without reading what is in it. Never, if that cannot be seen.
pub(crate) async fn end_of_input() {
    let stdin = io::stdin().as_fd().try_clone_to_owned();
    let watched = stdin.and_then(|fd| descriptor::watched(fd, Interest::READABLE));
    if let Ok(input) = watched {
        while let Ok(mut guard) = input.ready(Interest::READABLE).await {
            if guard.ready().is_read_closed() {
                return;
            }
            guard.clear_ready(); // it can be read from: no news
        }
    }
    std::future::pending().await
}

/// Cancels `shutdown` when one of them happens. (The end of the input is seen by who reads it.)
///
/// # Errors
/// When signals cannot be had.
pub(crate) fn watch(shutdown: &CancellationToken, client: Client) -> io::Result<()> {
    on_signal(shutdown)?;
    on_broken_output(shutdown.clone());
    tokio::spawn(client.watch(shutdown.clone()));
    Ok(())
}

/// Cancels `token` at SIGTERM, SIGINT or SIGHUP.
///
/// # Errors
/// When signals cannot be had.
pub(crate) fn on_signal(token: &CancellationToken) -> io::Result<()> {
    let hangup_ignored = ignores_hangup();
    let mut signals = vec![signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?];
    if !hangup_ignored {
        signals.push(signal(SignalKind::hangup())?);
    }
    for mut signal in signals {
        let token = token.clone();
        tokio::spawn(async move {
            signal.recv().await;
            tracing::debug!("ended by a signal");
            token.cancel();
        });
    }
    Ok(())
}

/// Whether the process was started with SIGHUP ignored (nohup): it is then meant to outlive its terminal.
fn ignores_hangup() -> bool {
    const SIGHUP: u32 = 1;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).map(str::trim);
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or(0);
    mask & (1 << (SIGHUP - 1)) != 0
}

/// Watches stdout for the moment at which nobody can read it any more, so that it need not be found out by writing.
fn on_broken_output(shutdown: CancellationToken) {
    let registered = io::stdout().as_fd().try_clone_to_owned().and_then(|fd| descriptor::watched(fd, BROKEN));
    match registered {
        Ok(output) => drop(tokio::spawn(async move {
            broken(&output).await;
            tracing::debug!("nobody reads the output");
            shutdown.cancel();
        })),
        // A file cannot be watched, and does not break.
        Err(error) => tracing::debug!(%error, "the output is not watched"),
    }
}

/// What a broken output raises: a pipe an error, a socket a hang-up, which is passed on to those who wait to write. (Who
/// waits to read is also told of a peer that only closed its sending half, and may still read.)
const BROKEN: Interest = Interest::WRITABLE.add(Interest::ERROR);

/// Resolves when the other end of `output` is closed.
async fn broken(output: &AsyncFd<OwnedFd>) {
    loop {
        let Ok(mut guard) = output.ready(BROKEN).await else {
            // The runtime ends.
            return std::future::pending().await;
        };
        if guard.ready().is_write_closed() || guard.ready().is_error() {
            return;
        }
        guard.clear_ready(); // it can be written to: no news
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    fn watched(fd: OwnedFd) -> AsyncFd<OwnedFd> {
        descriptor::watched(fd, BROKEN).unwrap()
    }

    #[tokio::test]
    async fn a_pipe_breaks_when_its_reader_closes() {
        let (reader, writer) = io::pipe().unwrap();
        let output = watched(writer.into());
        let watching = tokio::spawn(async move { broken(&output).await });
        tokio::task::yield_now().await;
        assert!(!watching.is_finished());
        drop(reader);
        tokio::time::timeout(Duration::from_secs(10), watching).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_socket_breaks_when_it_is_closed_and_not_when_it_is_half_closed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let output = watched(ours.into());
        let watching = tokio::spawn(async move { broken(&output).await });
        theirs.shutdown(std::net::Shutdown::Write).unwrap();
        // The half-close has been seen once the runtime has polled its events.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert!(!watching.is_finished());
        drop(theirs);
        tokio::time::timeout(Duration::from_secs(10), watching).await.unwrap().unwrap();
    }
}

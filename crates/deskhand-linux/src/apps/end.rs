//! Ending a process, and which ones must not be ended.

use std::os::fd::OwnedFd;
use std::time::Duration;

use deskhand_core::desktop::{Ended, PortError};
use rustix::process::{PidfdFlags, Signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::timeout;

use crate::process;

/// How long a program has after it was asked to end. Those that do not show a question by then are gone.
const ASKED: Duration = Duration::from_secs(3);

/// How long the kernel has to end a killed process; only uninterruptible sleep needs more.
const KILLED: Duration = Duration::from_secs(2);

/// Processes that hold a user's session together. Ending one would end the desktop that we act on.
const SESSION_PROCESSES: [&str; 18] = [
    "Xorg",
    "Xvfb",
    "Xwayland",
    "at-spi-bus-laun",
    "at-spi2-registr",
    "cinnamon-sessio",
    "dbus-broker",
    "dbus-broker-lau",
    "dbus-daemon",
    "gnome-session-b",
    "gnome-shell",
    "init",
    "kwin_wayland",
    "lxsession",
    "plasmashell",
    "sway",
    "systemd",
    "xfce4-session",
];

/// Ends process `pid`; `components` are those of a private desktop.
///
/// # Errors
/// `AppGone`, `NotSupported`.
pub(super) async fn end(pid: u32, force: bool, components: &[u32]) -> Result<Ended, PortError> {
    let gone = || PortError::AppGone(format!("process {pid}"));
    let typed = process::id(pid).ok_or_else(|| refused(pid, "it names no process"))?;
    if pid == 1 {
        return Err(refused(pid, "it is the first process of the system"));
    }
    // Held from before the checks, so that what was checked is what is ended.
    let handle = rustix::process::pidfd_open(typed, PidfdFlags::NONBLOCK).map_err(|_| gone())?;
    if !process::is_running(pid) {
        return Err(gone());
    }
    check(pid, components)?;
    // SAFETY: the value owns its descriptor and is neither replaced nor given out mutably.
    let ended = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) }
        .map_err(|error| PortError::Internal(format!("process {pid} cannot be watched: {error}")))?;
    if ask(&ended, Signal::TERM, ASKED).await.map_err(|error| refused(pid, &error.to_string()))? {
        return Ok(Ended::Exited);
    }
    if !force {
        return Ok(Ended::StillRunning);
    }
    match ask(&ended, Signal::KILL, KILLED).await {
        Ok(true) => Ok(Ended::Killed),
        Ok(false) => Ok(Ended::StillRunning),
        Err(error) => Err(refused(pid, &error.to_string())),
    }
}

/// Sends a signal and waits for the end.
async fn ask(process: &AsyncFd<OwnedFd>, signal: Signal, limit: Duration) -> rustix::io::Result<bool> {
    match rustix::process::pidfd_send_signal(process.get_ref(), signal) {
        Err(rustix::io::Errno::SRCH) => return Ok(true),
        result => result?,
    }
    Ok(timeout(limit, process.readable()).await.is_ok())
}

fn check(pid: u32, components: &[u32]) -> Result<(), PortError> {
    let own = std::process::id();
    if pid == own {
        return Err(refused(pid, "it is deskhand itself"));
    }
    if process::Table::read().descends(own, pid) {
        return Err(refused(pid, "deskhand was started by it and would end with it"));
    }
    if components.contains(&pid) {
        return Err(refused(pid, "it is a part of the private desktop"));
    }
    if process::owner(pid) != Some(rustix::process::geteuid().as_raw()) {
        return Err(refused(pid, "it belongs to another user"));
    }
    match process::name(pid) {
        Some(name) if SESSION_PROCESSES.contains(&name.as_str()) => {
            Err(refused(pid, &format!("it is {name}, which the desktop session cannot do without")))
        }
        _ => Ok(()),
    }
}

fn refused(pid: u32, why: &str) -> PortError {
    PortError::NotSupported(format!("process {pid} is not ended: {why}"))
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn sleeper(script: &str) -> Child {
        use std::io::Read;

        let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        // The script says when its traps are set.
        child.stdout.take().unwrap().read_exact(&mut [0; 2]).unwrap();
        child
    }

    fn end_now(pid: u32, force: bool, components: &[u32]) -> Result<Ended, PortError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(end(pid, force, components))
    }

    #[test]
    fn a_process_that_obeys_exits() {
        let mut child = sleeper("echo 1; exec sleep 1000");
        assert_eq!(end_now(child.id(), false, &[]).unwrap(), Ended::Exited);
        child.wait().unwrap();
        assert!(matches!(end_now(child.id(), false, &[]), Err(PortError::AppGone(_))));
    }

    #[test]
    fn a_process_that_does_not_obey_is_killed_if_asked_for() {
        let mut child = sleeper("trap '' TERM; echo 1; while :; do sleep 1000; done");
        let below = || process::Table::read().below(child.id());
        assert_eq!(end_now(child.id(), false, &[]).unwrap(), Ended::StillRunning);
        let left = below();
        assert_eq!(end_now(child.id(), true, &[]).unwrap(), Ended::Killed);
        child.wait().unwrap();
        left.into_iter().for_each(|pid| process::signal(pid, Signal::KILL));
    }

    #[test]
    fn some_are_never_ended() {
        let own = std::process::id();
        let parent = process::stat(own).unwrap().parent;
        let mut child = sleeper("echo 1; exec sleep 1000");
        for pid in [0, 1, u32::MAX, own, parent, child.id()] {
            let result = end_now(pid, true, &[child.id()]);
            assert!(matches!(result, Err(PortError::NotSupported(_))), "{pid}: {result:?}");
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

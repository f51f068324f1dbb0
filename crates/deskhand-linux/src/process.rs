//! Processes as the kernel shows them in `/proc`, and the descriptors that a child must not inherit.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};

/// Every process of the machine with its parent, read once.
#[derive(Debug, Default)]
pub(crate) struct Table {
    parents: HashMap<u32, u32>,
}

impl Table {
    /// Reads `/proc`. Processes that end meanwhile are left out.
    pub(crate) fn read() -> Self {
        Self { parents: pids().filter_map(|pid| Some((pid, stat(pid)?.parent))).collect() }
    }

    /// Whether `pid` is `ancestor` or descends from it.
    pub(crate) fn descends(&self, pid: u32, ancestor: u32) -> bool {
        self.line(pid).any(|each| each == ancestor)
    }

    /// `pid`, its parent, and so on up to the first process.
    pub(crate) fn line(&self, pid: u32) -> impl Iterator<Item = u32> {
        // A table that is not read in one instant could hold a circle, so the walk is bounded by its size.
        std::iter::successors(Some(pid), |pid| self.parents.get(pid).copied().filter(|parent| *parent != 0))
            .take(self.parents.len() + 1)
    }

    /// All processes below `ancestor`, without itself.
    pub(crate) fn below(&self, ancestor: u32) -> Vec<u32> {
        let mut below: Vec<u32> = self
            .parents
            .keys()
            .copied()
            .filter(|pid| *pid != ancestor && self.descends(*pid, ancestor))
            .collect();
        below.sort_unstable();
        below
    }
}

/// A line of parents longer than this is not followed; real ones have some ten.
const MAX_LINE: usize = 256;

/// What is read of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stat {
    /// `R`, `S`, `Z` and so on.
    pub(crate) state: char,
    /// Its parent.
    pub(crate) parent: u32,
    /// Its process group.
    pub(crate) group: u32,
    /// Its session.
    pub(crate) session: u32,
}

/// The numbers of all processes.
pub(crate) fn pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// State and parent of a process, if there is one with that number.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may itself hold spaces and parentheses: the last one ends it.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(text.get(after + 1..)?).ok()?.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse().ok();
    Some(Stat { state, parent: number()?, group: number()?, session: number()? })
}

/// Whether `pid` is `ancestor` or was started by it, directly or through others. Survives the end of those between,
/// as long as they stayed in the ancestor's process group or session.
pub(crate) fn descends_from(pid: u32, ancestor: u32) -> bool {
    let mut each = pid;
    for _ in 0..MAX_LINE {
        if each == ancestor {
            return true;
        }
        let Some(stat) = stat(each) else { return false };
        if stat.group == ancestor || stat.session == ancestor {
            return true;
        }
        each = stat.parent;
    }
    false
}

/// Whether the process exists and is no zombie.
pub(crate) fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

/// The kernel's name of the process: at most 15 bytes.
pub(crate) fn name(pid: u32) -> Option<String> {
    Some(String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/comm")).ok()?).trim_end().to_owned())
}

/// The user that the process runs as.
pub(crate) fn owner(pid: u32) -> Option<u32> {
    Some(std::fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// Processes of ours whose environment at their start held `variable` (`NAME=value`).
pub(crate) fn with_variable(variable: &[u8]) -> Vec<u32> {
    let holds = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|environment| environment.split(|byte| *byte == 0).any(|each| each == variable))
    };
    let own = std::process::id();
    pids().filter(|pid| *pid != own).filter(holds).collect()
}

/// Whether the environment of the process at its start had a variable called `name`.
pub(crate) fn has_variable(pid: u32, name: &[u8]) -> bool {
    std::fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
        environment.split(|byte| *byte == 0).any(|each| each.split(|byte| *byte == b'=').next() == Some(name))
    })
}

/// The typed number of a process; `None` for what can be none (0, or beyond the kernel's range).
pub(crate) fn id(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Sends `signal`; a process that has ended already is no error.
pub(crate) fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = id(pid)
        && let Err(error) = rustix::process::kill_process(pid, signal)
    {
        tracing::debug!(?pid, ?signal, %error, "signal not sent");
    }
}

/// The exit code, or 128 plus the signal.
pub(crate) fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Marks every descriptor above standard error as closed on execution. What Rust opens is so marked from the
/// beginning; what this process inherited may not be, and a child that holds a host's pipe keeps that host waiting.
pub(crate) fn keep_descriptors_to_ourselves() {
    for descriptor in open_descriptors() {
        // SAFETY: the number is not dereferenced and nothing is closed; if another thread closes it meanwhile, the call
        // fails or marks that thread's next file, which is so marked already.
        let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
        let _ = rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC);
    }
}

/// The descriptors above standard error.
fn open_descriptors() -> Vec<RawFd> {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|descriptor| *descriptor > 2)
        .collect()
}

/// Closes every descriptor above standard error.
///
/// # Safety
/// Nothing in this process may own one of them: only for the first lines of a `main`.
pub(crate) unsafe fn close_inherited_descriptors() {
    for descriptor in open_descriptors() {
        // SAFETY: the caller promises that nothing owns it, so nobody closes it between these two lines.
        unsafe {
            // The folder that was listed is in its own list and closed already.
            if rustix::io::fcntl_getfd(BorrowedFd::borrow_raw(descriptor)).is_ok() {
                rustix::io::close(descriptor);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_descend_from_ourselves_and_from_our_parent() {
        let table = Table::read();
        let own = std::process::id();
        let parent = stat(own).unwrap().parent;
        assert!(table.descends(own, own));
        assert!(table.descends(own, parent));
        assert!(!table.descends(parent, own));
        assert!(table.below(parent).contains(&own));
    }

    #[test]
    fn a_circle_does_not_hang() {
        let table = Table { parents: HashMap::from([(5, 6), (6, 5)]) };
        assert!(!table.descends(5, 7));
    }
}

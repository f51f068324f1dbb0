//! The supervisor's children: started with a death signal, reaped by it alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus};

use rustix::io::FdFlags;
use rustix::process::{Signal, WaitOptions};

use crate::process::{self, Table};

/// A part of the desktop that is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Component {
    DisplayServer,
    SessionBus,
    WindowManager,
}

impl Component {
    /// In words.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::DisplayServer => "the display server (Xvfb)",
            Self::SessionBus => "the session bus (dbus-daemon)",
            Self::WindowManager => "the window manager (openbox)",
        }
    }
}

/// A child that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum Ended {
    Component(Component, u32),
    /// A program that was started on the owner's order.
    Program(u32),
    /// A process that lost its own parent and came to us.
    Adopted,
}

/// Knows every direct child. All children must be started here, on the main thread: the death signal follows the
/// *thread* that started the child.
#[derive(Debug, Default)]
pub(super) struct Children {
    components: RefCell<BTreeMap<u32, Component>>,
    programs: RefCell<BTreeSet<u32>>,
}

impl Children {
    /// Starts a part of the desktop. `inherited` stays open in it under the same number.
    pub(super) fn component(
        &self,
        kind: Component,
        command: &mut Command,
        inherited: Option<&OwnedFd>,
    ) -> io::Result<u32> {
        let pid = spawn(command, inherited)?;
        self.components.borrow_mut().insert(pid, kind);
        Ok(pid)
    }

    /// Starts a program.
    pub(super) fn program(&self, command: &mut Command) -> io::Result<u32> {
        let pid = spawn(command, None)?;
        self.programs.borrow_mut().insert(pid);
        Ok(pid)
    }

    /// Whether a program with this number was started here and has not been reaped.
    pub(super) fn is_program(&self, pid: u32) -> bool {
        self.programs.borrow().contains(&pid)
    }

    /// Processes of the components, lowest first.
    pub(super) fn components(&self) -> Vec<u32> {
        self.components.borrow().keys().copied().collect()
    }

    /// Collects children that have ended.
    pub(super) fn reap(&self) -> Vec<(Ended, ExitStatus)> {
        let mut ended = Vec::new();
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
            let pid = pid.as_raw_nonzero().get().unsigned_abs();
            let which = if let Some(component) = self.components.borrow_mut().remove(&pid) {
                Ended::Component(component, pid)
            } else if self.programs.borrow_mut().remove(&pid) {
                Ended::Program(pid)
            } else {
                Ended::Adopted
            };
            ended.push((which, std::os::unix::process::ExitStatusExt::from_raw(status.as_raw())));
        }
        ended
    }

    /// All processes below us that are programs: neither components nor services that a bus has started. (Buses start
    /// services by way of a process that ends, so those are adopted and stand beside the bus.)
    pub(super) fn foreign(&self) -> Vec<u32> {
        let table = Table::read();
        let components = self.components();
        let mut below = table.below(std::process::id());
        below.retain(|pid| !table.line(*pid).any(|each| components.contains(&each)));
        below.retain(|pid| !process::has_variable(*pid, SERVICE_MARK));
        below
    }
}

/// Every bus daemon sets this for what it starts.
const SERVICE_MARK: &[u8] = b"DBUS_STARTER_ADDRESS";

fn spawn(command: &mut Command, inherited: Option<&OwnedFd>) -> io::Result<u32> {
    let inherited = inherited.map(AsRawFd::as_raw_fd);
    let supervisor = rustix::process::getpid();
    let prepare = move || {
        // The second line behind the supervisor: if it is killed itself, its children are asked to end.
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        if rustix::process::getppid() != Some(supervisor) {
            return Err(io::ErrorKind::BrokenPipe.into()); // it ended before the signal was set
        }
        if let Some(descriptor) = inherited {
            // SAFETY: the parent keeps it open until this function has returned in the child.
            rustix::io::fcntl_setfd(unsafe { BorrowedFd::borrow_raw(descriptor) }, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: the closure makes plain system calls and allocates nothing.
    unsafe { command.pre_exec(prepare) };
    Ok(command.spawn()?.id())
}

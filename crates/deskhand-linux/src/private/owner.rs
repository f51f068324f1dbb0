//! The owner's end: starts the supervisor and speaks with it.

use std::collections::HashMap;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deskhand_core::desktop::PortError;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::PrivateOptions;
use super::folder::{self, Folder};
use super::variables::MARKER;
use super::wire::{self, Order, Program, Ready, Report, Setup};
use crate::apps::Exits;
use crate::process;

/// Longer than the supervisor's own limit for starting.
const START_LIMIT: Duration = Duration::from_secs(20);

/// The supervisor starts a program within milliseconds unless the machine is thrashing.
const ORDER_LIMIT: Duration = Duration::from_secs(10);

/// Longer than all grace periods of the supervisor together.
const END_LIMIT: Duration = Duration::from_secs(5);

/// How long what a killed supervisor left behind has between `SIGTERM` and `SIGKILL`.
const LEFTOVER_GRACE: Duration = Duration::from_millis(1000);

/// Processes of a killed supervisor are not ours, so their end is not announced to us: it is looked for this often.
const LEFTOVER_LOOK: Duration = Duration::from_millis(20);

/// A desktop's end as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// It can be used.
    Up,
    /// It has ended and nothing is left of it; the reason, unless the owner asked for it.
    Over(Option<String>),
}

/// A running private desktop.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) ready: Ready,
    pub(super) supervisor: u32,
    shared: Arc<Shared>,
    life: watch::Receiver<Life>,
    /// `None` once the desktop was asked to end: closing our end of the socket asks for it.
    orders: tokio::sync::Mutex<Option<OwnedWriteHalf>>,
    next: AtomicU64,
}

/// What the task that reads reports shares with the owner.
#[derive(Debug, Default)]
struct Shared {
    exits: Exits,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<u32, String>>>>,
    /// Wakes whoever waits for the exit of a program.
    exited: tokio::sync::Notify,
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Result<u32, String>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether one program gets the owner's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streams {
    None,
    Ours,
}

impl Owner {
    /// Starts the supervisor (`program`) and waits until its desktop can be used.
    pub(super) async fn start(
        options: PrivateOptions,
        program: &Path,
        streams: Streams,
    ) -> Result<Self, PortError> {
        let setup = new_setup(options, streams).map_err(|error| unavailable(error.to_string()))?;
        let (ours, theirs) = StdUnixStream::pair().map_err(|error| unavailable(error.to_string()))?;
        let mut child = spawn(program, theirs.into(), streams)
            .map_err(|error| unavailable(format!("{} could not be executed: {error}", program.display())))?;
        let supervisor = child.id().unwrap_or(0);
        let first = send_setup(&ours, &setup, streams)
            .and_then(|()| ours.set_nonblocking(true))
            .and_then(|()| UnixStream::from_std(ours));
        let leftover = Leftover { id: setup.id, folder: Folder::at(setup.folder) };
        let (reader, orders) = match first {
            Ok(socket) => socket.into_split(),
            Err(error) => {
                let _ = child.start_kill();
                return Err(unavailable(format!("its supervisor cannot be reached: {error}")));
            }
        };
        let mut reports = BufReader::new(reader).lines();
        let ready = match timeout(START_LIMIT, first_report(&mut reports)).await {
            Ok(Ok(ready)) => ready,
            failure => {
                let why = match failure {
                    Ok(Err(why)) => why,
                    _ => format!("it did not start within {} s", START_LIMIT.as_secs()),
                };
                drop(orders);
                finish(&mut child, &leftover).await;
                return Err(unavailable(why));
            }
        };
        let shared = Arc::new(Shared::default());
        let (sender, life) = watch::channel(Life::Up);
        tokio::spawn(follow(reports, child, leftover, Arc::clone(&shared), sender));
        let orders = tokio::sync::Mutex::new(Some(orders));
        Ok(Self { ready, supervisor, shared, life, orders, next: AtomicU64::new(1) })
    }

    /// Starts a program on the desktop. `Err(text)` says why that program does not run.
    pub(super) async fn start_program(&self, program: Program) -> Result<Result<u32, String>, PortError> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, receiver) = oneshot::channel();
        self.shared.waiting().insert(number, sender);
        let answer = async {
            self.send(&Order::Start { number, program }).await?;
            receiver.await.map_err(|_| PortError::DesktopLost)
        };
        let answer = timeout(ORDER_LIMIT, answer).await;
        self.shared.waiting().remove(&number);
        answer.unwrap_or_else(|_| Err(unavailable("its supervisor does not answer".to_owned())))
    }

    /// Sends a signal to a started program.
    pub(super) async fn signal(&self, pid: u32, signal: Signal) -> Result<(), PortError> {
        self.send(&Order::Signal { pid, signal: signal.as_raw() }).await
    }

    /// Exit code of a started program, if it has ended.
    pub(super) fn exit(&self, pid: u32) -> Option<i32> {
        self.shared.exits.get(pid)
    }

    /// Waits for the end of a started program.
    ///
    /// # Errors
    /// `DesktopLost`.
    pub(super) async fn wait(&self, pid: u32) -> Result<i32, PortError> {
        let mut life = self.life.clone();
        loop {
            let exited = self.shared.exited.notified();
            if let Some(code) = self.exit(pid) {
                return Ok(code);
            }
            tokio::select! {
                () = exited => {}
                _ = life.wait_for(|life| *life != Life::Up) => {
                    return self.exit(pid).ok_or(PortError::DesktopLost);
                }
            }
        }
    }

    /// Whether it can be used.
    pub(super) fn life(&self) -> Life {
        self.life.borrow().clone()
    }

    /// Ends the desktop and waits until nothing is left of it; bounded.
    pub(super) async fn end(&self) {
        drop(self.orders.lock().await.take());
        let mut life = self.life.clone();
        // The task that follows the supervisor bounds this.
        let _ = life.wait_for(|life| *life != Life::Up).await;
    }

    async fn send(&self, order: &Order) -> Result<(), PortError> {
        let line = wire::line(order).map_err(|error| PortError::Internal(error.to_string()))?;
        let mut orders = self.orders.lock().await;
        let socket = orders.as_mut().ok_or(PortError::DesktopLost)?;
        let written = timeout(ORDER_LIMIT, socket.write_all(&line)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(PortError::DesktopLost),
            Err(_) => {
                // Half a line may be out: nothing can follow it.
                orders.take();
                Err(PortError::DesktopLost)
            }
        }
    }
}

/// What is said when the desktop cannot be used.
pub(super) fn unavailable(why: String) -> PortError {
    PortError::Unavailable { what: "the private desktop", why }
}

fn new_setup(options: PrivateOptions, streams: Streams) -> std::io::Result<Setup> {
    let mut random = [0; 8];
    folder::random(&mut random)?;
    let id = format!("{:016x}", u64::from_ne_bytes(random));
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    Ok(Setup {
        folder: Folder::name(&std::env::temp_dir(), &id),
        id,
        size: (options.size.width, options.size.height),
        keep_home: options.keep_home,
        process_group: (streams == Streams::Ours).then_some(group),
    })
}

fn spawn(program: &Path, socket: OwnedFd, streams: Streams) -> std::io::Result<tokio::process::Child> {
    let mut command = tokio::process::Command::new(program);
    command.arg0("deskhand").arg("supervise").stdin(socket).stdout(Stdio::null()).stderr(Stdio::null());
    if streams == Streams::Ours {
        // Beside the owner's process group, which the terminal's signals go to. The other kind makes a session of its own.
        command.process_group(0);
    }
    // No death signal: it would follow the runtime's thread that runs this. The socket tells the supervisor of our end.
    command.spawn()
}

fn send_setup(socket: &StdUnixStream, setup: &Setup, streams: Streams) -> std::io::Result<()> {
    let line = wire::line(setup)?;
    let ours = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if streams == Streams::Ours {
        ancillary.push(SendAncillaryMessage::ScmRights(&ours));
    }
    let sent =
        rustix::net::sendmsg(socket.as_fd(), &[IoSlice::new(&line)], &mut ancillary, SendFlags::NOSIGNAL)?;
    // The line is far smaller than a socket's buffer.
    if sent == line.len() { Ok(()) } else { Err(std::io::ErrorKind::WriteZero.into()) }
}

async fn next_report(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Option<Report> {
    loop {
        let line = reports.next_line().await.ok()??;
        match serde_json::from_str(&line) {
            Ok(report) => return Some(report),
            Err(error) => tracing::warn!(%error, "report of the supervisor not understood"),
        }
    }
}

async fn first_report(reports: &mut Lines<BufReader<OwnedReadHalf>>) -> Result<Ready, String> {
    match next_report(reports).await {
        Some(Report::Ready(ready)) => Ok(ready),
        Some(Report::Failed(why) | Report::Lost(why)) => Err(why),
        _ => Err("its supervisor ended while it started".to_owned()),
    }
}

/// Reads reports until the supervisor has ended, then sees to it that nothing is left.
async fn follow(
    mut reports: Lines<BufReader<OwnedReadHalf>>,
    mut child: tokio::process::Child,
    leftover: Leftover,
    shared: Arc<Shared>,
    life: watch::Sender<Life>,
) {
    let mut reason = None;
    while let Some(report) = next_report(&mut reports).await {
        match report {
            Report::Started { number, result } => {
                if let Ok(pid) = result {
                    shared.exits.forget(pid);
                }
                if let Some(sender) = shared.waiting().remove(&number) {
                    let _ = sender.send(result);
                }
            }
            Report::Exited { pid, code } => {
                shared.exits.add(pid, code);
                shared.exited.notify_waiters();
            }
            Report::Lost(why) | Report::Failed(why) => {
                tracing::error!(%why, "the private desktop is lost");
                reason = Some(why);
            }
            Report::Ready(_) => {}
        }
    }
    finish(&mut child, &leftover).await;
    shared.waiting().clear();
    life.send_replace(Life::Over(reason));
}

/// Waits for the end of the supervisor, kills it if it does not come, and removes what one that was killed has left.
async fn finish(child: &mut tokio::process::Child, leftover: &Leftover) {
    let in_order = match timeout(END_LIMIT, child.wait()).await {
        Ok(Ok(status)) => status.success(),
        _ => {
            let _ = child.kill().await;
            false
        }
    };
    if !in_order {
        leftover.remove().await;
    }
}

/// What a supervisor that did not end in order may have left.
struct Leftover {
    id: String,
    folder: Folder,
}

impl Leftover {
    async fn remove(&self) {
        let mark = format!("{MARKER}={}", self.id);
        let deadline = tokio::time::Instant::now() + LEFTOVER_GRACE;
        for pid in process::with_variable(mark.as_bytes()) {
            process::signal(pid, Signal::TERM);
            process::signal(pid, Signal::CONT);
        }
        loop {
            let remaining = process::with_variable(mark.as_bytes());
            let late = tokio::time::Instant::now() >= deadline;
            if late {
                remaining.iter().for_each(|pid| process::signal(*pid, Signal::KILL));
            }
            if late || remaining.is_empty() {
                break;
            }
            tokio::time::sleep(LEFTOVER_LOOK).await;
        }
        if let Err(error) = self.folder.remove() {
            tracing::warn!(%error, "the folder of the private desktop could not be removed");
        }
    }
}

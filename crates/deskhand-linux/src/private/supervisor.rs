//! The process that starts a private desktop and ends it, whatever becomes of its owner.
//!
//! Nothing here may run on another thread than the main one: children get their death signal from the thread that
//! started them, so a helper thread that ends would take its children along.

use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, timeout, timeout_at};

use super::children::{Children, Component, Ended};
use super::components;
use super::folder::Folder;
use super::wire::{self, Order, Program, Ready, Report, Setup};
use crate::process;

/// How long programs have between `SIGTERM` and `SIGKILL` at the end of the desktop: enough to write a file, and
/// short enough that everything is gone 3 s after the owner.
const PROGRAMS_GRACE: Duration = Duration::from_millis(1000);

/// The same for the parts of the desktop, which end within some 20 ms.
const COMPONENTS_GRACE: Duration = Duration::from_millis(700);

/// How long killed processes may take to disappear; only one in uninterruptible sleep needs more.
const KILL_GRACE: Duration = Duration::from_millis(500);

/// An owner that does not read (it was stopped) does not keep us from our work.
const REPORT_LIMIT: Duration = Duration::from_secs(1);

/// How long the cause of a part's end is looked for.
const CAUSE_WAIT: Duration = Duration::from_millis(200);

/// The first line is far below this.
const MAX_SETUP: usize = 64 * 1024;

/// The body of `deskhand supervise`: call it on the main thread before any other thread or runtime exists.
pub fn supervise() -> ExitCode {
    // SAFETY: these are the first lines of the process; it owns no descriptor yet.
    unsafe { process::close_inherited_descriptors() };
    let Ok((socket, setup, streams)) = receive_setup() else {
        eprintln!("deskhand supervise: only for deskhand itself, which passes a socket as standard input");
        return ExitCode::from(2);
    };
    if setup.process_group.is_none() {
        // Away from the owner's terminal and process group; fails only where that is so already.
        let _ = rustix::process::setsid();
    }
    let prepared = rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(io::Error::from)
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
    let Ok(runtime) = prepared else { return ExitCode::FAILURE };
    let result = runtime.block_on(async { Supervisor::new(socket, setup, streams)?.run().await });
    runtime.shutdown_background();
    if result.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Reads the first line and the descriptors that came with it, and frees standard input for good.
fn receive_setup() -> io::Result<(StdUnixStream, Setup, Vec<OwnedFd>)> {
    let socket = StdUnixStream::from(rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut text = Vec::new();
    let mut streams = Vec::new();
    while text.last() != Some(&b'\n') {
        let mut part = [0; 4096];
        let received = rustix::net::recvmsg(
            socket.as_fd(),
            &mut [IoSliceMut::new(&mut part)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(descriptors) = message {
                streams.extend(descriptors);
            }
        }
        if received.bytes == 0 || text.len() > MAX_SETUP {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        text.extend_from_slice(&part[..received.bytes]);
    }
    let null = std::fs::File::open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    Ok((socket, serde_json::from_slice(&text)?, streams))
}

struct Supervisor {
    setup: Setup,
    folder: Folder,
    streams: Option<[OwnedFd; 3]>,
    children: Children,
    orders: Option<Lines<BufReader<OwnedReadHalf>>>,
    owner: OwnedWriteHalf,
    ended: tokio::signal::unix::Signal,
    ready: Option<Ready>,
}

impl Supervisor {
    fn new(socket: StdUnixStream, setup: Setup, streams: Vec<OwnedFd>) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let (reader, owner) = UnixStream::from_std(socket)?.into_split();
        Ok(Self {
            folder: Folder::at(setup.folder.clone()),
            setup,
            streams: streams.try_into().ok(),
            children: Children::default(),
            orders: Some(BufReader::new(reader).lines()),
            owner,
            ended: signal(SignalKind::child())?,
            ready: None,
        })
    }

    /// Starts the desktop, serves its owner, ends the desktop.
    async fn run(mut self) -> io::Result<()> {
        let Some(mut orders) = self.orders.take() else { return Ok(()) };
        let reason = self.serve(&mut orders).await;
        if let Err(report) = reason {
            self.report(&report).await;
        }
        self.end_everything().await;
        // The socket closes with this process, which says to the owner that nothing is left.
        Ok(())
    }

    /// Serves until the owner closes its end (`Ok`) or something happens that the owner has to be told.
    async fn serve(&mut self, orders: &mut Lines<BufReader<OwnedReadHalf>>) -> Result<(), Report> {
        let signals = (|| {
            Ok::<_, io::Error>([
                signal(SignalKind::terminate())?,
                signal(SignalKind::interrupt())?,
                signal(SignalKind::hangup())?,
            ])
        })();
        let mut signals = signals.map_err(|error| Report::Failed(format!("signals: {error}")))?;
        self.start(orders, &mut signals).await?;
        loop {
            let [terminate, interrupt, hangup] = &mut signals;
            tokio::select! {
                line = orders.next_line() => match line {
                    Ok(Some(line)) => self.obey(&line).await,
                    _ => return Ok(()),
                },
                _ = self.ended.recv() => self.reap().await?,
                _ = terminate.recv() => return Err(Report::Lost("its supervisor was sent SIGTERM".to_owned())),
                _ = interrupt.recv() => return Err(Report::Lost("its supervisor was sent SIGINT".to_owned())),
                _ = hangup.recv() => return Err(Report::Lost("its supervisor was sent SIGHUP".to_owned())),
            }
        }
    }

    /// Starts the parts; gives up when the owner ends or a signal asks for it.
    async fn start(
        &mut self,
        orders: &mut Lines<BufReader<OwnedReadHalf>>,
        signals: &mut [tokio::signal::unix::Signal; 3],
    ) -> Result<(), Report> {
        let [terminate, interrupt, hangup] = signals;
        let stopped = || Report::Failed("it was stopped while it started".to_owned());
        let ready = tokio::select! {
            ready = components::start(&self.setup, &self.folder, &self.children) => ready.map_err(Report::Failed)?,
            _ = orders.next_line() => return Err(stopped()),
            _ = terminate.recv() => return Err(stopped()),
            _ = interrupt.recv() => return Err(stopped()),
            _ = hangup.recv() => return Err(stopped()),
        };
        self.report(&Report::Ready(ready.clone())).await;
        self.ready = Some(ready);
        self.reap().await // a part may have ended meanwhile
    }

    /// Collects children that have ended. Fails when one of them was a part of the desktop.
    async fn reap(&mut self) -> Result<(), Report> {
        let mut lost = self.reap_once().await;
        // A display server that dies closes its connections before it counts as dead, so its clients may be seen to end
        // first: it is the one to name.
        let deadline = Instant::now() + CAUSE_WAIT;
        while lost.is_some_and(|(component, _)| component != Component::DisplayServer)
            && timeout_at(deadline, self.ended.recv()).await.is_ok()
        {
            lost = self.reap_once().await.or(lost);
        }
        let Some((component, status)) = lost else { return Ok(()) };
        Err(Report::Lost(format!("{} has ended ({status})", component.name())))
    }

    /// Collects children that have ended; answers the part of the desktop that was among them, the display server before
    /// the others.
    async fn reap_once(&mut self) -> Option<(Component, ExitStatus)> {
        let mut lost = None;
        for (ended, status) in self.children.reap() {
            match ended {
                Ended::Program(pid) => {
                    self.report(&Report::Exited { pid, code: process::exit_code(status) }).await;
                }
                // Somebody may have put another window manager in its place, which makes it exit.
                Ended::Component(Component::WindowManager, _) if status.success() => {}
                Ended::Component(component, pid) if self.is_essential(pid) => {
                    if lost.is_none() || component == Component::DisplayServer {
                        lost = Some((component, status));
                    }
                }
                Ended::Component(..) | Ended::Adopted => {}
            }
        }
        lost
    }

    /// Whether the component belongs to the running desktop (a display server that lost the race for its display
    /// does not).
    fn is_essential(&self, pid: u32) -> bool {
        self.ready.as_ref().is_some_and(|ready| ready.components.contains(&pid))
    }

    async fn obey(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Order::Start { number, program }) => {
                let result = self.start_program(program);
                self.report(&Report::Started { number, result }).await;
            }
            Ok(Order::Signal { pid, signal }) => {
                // Only a child that was not reaped: its number cannot have become another process's.
                if self.children.is_program(pid)
                    && let Some(signal) = Signal::from_named_raw(signal)
                {
                    process::signal(pid, signal);
                }
            }
            Err(error) => tracing::warn!(%error, "order not understood"),
        }
    }

    fn start_program(&mut self, program: Program) -> Result<u32, String> {
        let Some(ready) = &self.ready else { return Err("the desktop is not ready".to_owned()) };
        let mut command = Command::new(&program.path);
        command.args(&program.args).env_clear();
        match program.variables {
            Some(variables) => command.envs(variables),
            None => command.envs(ready.variables()),
        };
        if let Some(folder) = &program.folder {
            command.current_dir(folder);
        }
        let streams = if program.standard_streams { self.streams.take() } else { None };
        if let Some([input, output, error]) = streams {
            command.stdin(input).stdout(output).stderr(error);
            command.process_group(self.setup.process_group.unwrap_or(0));
        } else {
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        }
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound if program.folder.as_ref().is_some_and(|folder| !folder.is_dir()) => {
                "the working folder does not exist".to_owned()
            }
            io::ErrorKind::NotFound => "no such program".to_owned(),
            _ => error.to_string(),
        };
        self.children.program(&mut command).map_err(failed)
    }

    async fn report(&mut self, report: &Report) {
        let Ok(line) = wire::line(report) else { return };
        // An owner that has gone is noticed where orders are read.
        let _ = timeout(REPORT_LIMIT, self.owner.write_all(&line)).await;
    }

    /// Ends programs, then the parts of the desktop, and removes what they left.
    async fn end_everything(&mut self) {
        let programs = |children: &Children| children.foreign();
        self.end(programs, PROGRAMS_GRACE).await;
        let all = |_: &Children| process::Table::read().below(std::process::id());
        self.end(all, COMPONENTS_GRACE).await;
        if let Some(ready) = &self.ready {
            remove_display(ready);
        }
        if let Err(error) = self.folder.remove() {
            tracing::warn!(%error, "the folder of the desktop could not be removed");
        }
    }

    /// Asks `which` to end, waits, kills what remains, waits.
    async fn end(&mut self, which: impl Fn(&Children) -> Vec<u32>, grace: Duration) {
        let phases = [(Signal::TERM, grace), (Signal::KILL, KILL_GRACE)];
        for (kind, grace) in phases {
            let deadline = Instant::now() + grace;
            let mut told = std::collections::BTreeSet::new();
            loop {
                self.children.reap();
                let remaining = which(&self.children);
                if remaining.is_empty() {
                    return;
                }
                for pid in remaining {
                    // Whoever was forked since the last look is told as well.
                    if told.insert(pid) {
                        process::signal(pid, kind);
                        process::signal(pid, Signal::CONT); // a stopped process cannot end otherwise
                    }
                }
                // The last of a family to end is our child, by birth or adoption, so each end is heard of here.
                if timeout_at(deadline, self.ended.recv()).await.is_err() {
                    break;
                }
            }
        }
    }
}

/// Removes lock and socket of a display whose server did not come to it. (A server that chose its display itself, as
/// with `-displayfd`, has no lock file.)
fn remove_display(ready: &Ready) {
    let socket = format!("/tmp/.X11-unix/X{}", ready.display);
    // Refused: nobody listens there any more. Another server that has taken the display over would answer.
    let refused =
        StdUnixStream::connect(&socket).is_err_and(|e| e.kind() == io::ErrorKind::ConnectionRefused);
    if refused {
        let _ = std::fs::remove_file(socket);
    }
    let lock = format!("/tmp/.X{}-lock", ready.display);
    let ours = std::fs::read_to_string(&lock)
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .is_some_and(|pid: u32| ready.components.contains(&pid) && !process::is_running(pid));
    if ours {
        let _ = std::fs::remove_file(lock);
    }
}

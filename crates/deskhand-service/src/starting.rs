//! The way of a starter to the service: to become it, to reach it, or to have one launched.
//!
//! A starter that loses does not give up at once: the owner may only just be starting, or about to end. It goes on trying
//! both until its deadline, and is woken by the owner's end.

use std::fmt;
use std::future::Future;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use deskhand_core::error::Code;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::election::{Candidate, Elected, Lost, elect};
use crate::holder::{Condition, Holder, Lifetime, Role};
use crate::launch::Launched;
use crate::process::End;

/// How long a starter tries. A service starts within 0.1 s, and one that ends has its grace times.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An owner whose last client has left ends within 2 s; a host that restarts its server, or comes right after a command,
/// meets the old one. (Whether a managed service has clients is not asked: a connection would keep it alive.)
const CLIENT_LEFT: Duration = Duration::from_millis(2500);

/// A socket that appears, and a lock that is let go without its process's end, wake nobody: they are looked for, at first
/// after this time, and then after ever longer ones.
const FIRST_LOOK: Duration = Duration::from_millis(2);

/// A start that takes long is not made noticeably longer by this.
const LAST_LOOK: Duration = Duration::from_millis(50);

/// Services that each of so many launches met, and that had all ended before they could be reached, do not exist: then
/// what is launched does not do what it should.
const MAX_LAUNCHES: usize = 5;

/// How a starter that wants to own the desktop fared.
#[derive(Debug)]
pub enum Outcome<C> {
    /// It is the owner.
    Elected(Elected),
    /// Another one is, and this is the connection to it.
    Connected(C, Holder),
}

/// Why a starter gave up.
#[derive(Debug)]
pub enum StartError {
    /// Somebody owns the desktop with whom it cannot be shared, or the locks cannot be used.
    Lost(Lost),
    /// The service could not be reached in time.
    OutOfTime {
        /// How long it was tried.
        waited: Duration,
        /// Where.
        socket: Option<PathBuf>,
        /// Who owned the desktop at the last look.
        holder: Option<Box<Holder>>,
        /// Why the last connection failed, if one was tried.
        connection: Option<io::Error>,
    },
    /// The service that was launched ended at once.
    Ended {
        /// How.
        status: ExitStatus,
        /// What it said last.
        log: String,
        /// Where it said the rest.
        log_file: PathBuf,
    },
    /// No service could be launched.
    Launch(io::Error),
}

impl StartError {
    /// The code that answers carry.
    pub fn code(&self) -> Code {
        match self {
            Self::Lost(lost) => lost.code(),
            _ => Code::ServiceUnreachable,
        }
    }
}

impl std::error::Error for StartError {}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lost(lost) => lost.fmt(f),
            Self::OutOfTime { waited, socket, holder, connection } => {
                write!(f, "the service could not be reached within {:.1} s", waited.as_secs_f64())?;
                if let Some(socket) = socket {
                    write!(f, " at {}", socket.display())?;
                }
                match holder {
                    Some(holder) => write!(f, "; the desktop belongs to {holder}")?,
                    None => f.write_str("; nobody owns the desktop")?,
                }
                if let Some(error) = connection {
                    write!(f, "; the last connection failed: {error}")?;
                }
                match holder {
                    Some(holder) if holder.is_stopped() => Ok(()),
                    Some(holder) => write!(f, ". `kill {}` ends it", holder.pid),
                    None => Ok(()),
                }
            }
            Self::Ended { status, log, log_file } => {
                write!(f, "the service that was launched ended at once ({status})")?;
                match log.as_str() {
                    "" => write!(f, " and said nothing"),
                    log => write!(f, "; the end of its log {}:\n{log}", log_file.display()),
                }
            }
            Self::Launch(error) => write!(f, "the service could not be launched: {error}"),
        }
    }
}

/// Becomes the owner of the desktop, or connects to the service of the same build that is.
///
/// Tries both in turn until `deadline`. `connect` gets who owns the desktop; it should speak with it (`hello`), and may
/// take as long as it likes: it is dropped at the deadline.
///
/// # Errors
/// The desktop belongs to another build or to an in-process owner, or the time is over: then the error names the owner, and
/// says if it is stopped.
pub async fn connect_or_elect<C, F>(
    candidate: &Candidate,
    deadline: Instant,
    mut connect: impl FnMut(Holder) -> F,
) -> Result<Outcome<C>, StartError>
where
    F: Future<Output = io::Result<C>>,
{
    let mut attempts = Attempts::new(candidate, deadline);
    loop {
        match elect(candidate) {
            Ok(elected) => return Ok(Outcome::Elected(elected)),
            Err(Lost::SameBuild(holder)) => {
                if let Some(connection) = attempts.connect(&holder, &mut connect).await {
                    return Ok(Outcome::Connected(connection, *holder));
                }
            }
            Err(Lost::Unidentified(_)) => {}
            Err(lost) => attempts.refuse_unless_ending(lost)?,
        }
        attempts.wait(None).await?;
    }
}

/// Becomes the owner of the desktop, and waits until `deadline` only for one that is about to end or has not said yet who
/// it is.
///
/// # Errors
/// The desktop has an owner.
pub async fn elect_until(candidate: &Candidate, deadline: Instant) -> Result<Elected, StartError> {
    let mut attempts = Attempts::new(candidate, deadline);
    loop {
        match elect(candidate) {
            Ok(elected) => return Ok(elected),
            Err(Lost::Unidentified(_)) => {}
            Err(lost) => attempts.refuse_unless_ending(lost)?,
        }
        attempts.wait(None).await?;
    }
}

/// Connects to the service of the desktop and of this build; has one launched if there is none.
///
/// `candidate` says who is looked for. `launch` starts a process that does [`connect_or_elect`]; of several that are launched
/// at the same moment one becomes the service, and the others end with success, which is not an error here.
///
/// # Errors
/// As [`connect_or_elect`], and: the launched process could not be started, or failed.
pub async fn connect_or_launch<C, F>(
    candidate: &Candidate,
    deadline: Instant,
    mut connect: impl FnMut(Holder) -> F,
    mut launch: impl FnMut() -> io::Result<Launched>,
) -> Result<(C, Holder), StartError>
where
    F: Future<Output = io::Result<C>>,
{
    let mut attempts = Attempts::new(candidate, deadline);
    let mut launched: Option<Launched> = None;
    let mut launches = 0;
    loop {
        match candidate.folder.holder(&candidate.desktop).map(|holder| candidate.judge(holder)) {
            Some(Lost::SameBuild(holder)) => {
                if let Some(connection) = attempts.connect(&holder, &mut connect).await {
                    if let Some(launched) = launched {
                        launched.leave();
                    }
                    return Ok((connection, *holder));
                }
            }
            Some(lost) => attempts.refuse_unless_ending(lost)?,
            None => {
                attempts.holder = None;
                if let Some(process) = &mut launched
                    && let Some(status) = process.has_ended()
                {
                    // Who kills it does not mean the next one.
                    let failed = !status.success() && status.signal().is_none();
                    if failed || launches == MAX_LAUNCHES {
                        return Err(ended(process, status));
                    }
                    // It was killed, or lost to another one, which has ended since.
                    launched = None;
                }
                if launched.is_none() {
                    launched = Some(launch().map_err(StartError::Launch)?);
                    launches += 1;
                }
            }
        }
        attempts.wait(launched.as_mut()).await?;
    }
}

fn ended(process: &Launched, status: ExitStatus) -> StartError {
    StartError::Ended { status, log: process.log_tail(), log_file: process.log().to_owned() }
}

/// What is the same in all of these loops.
struct Attempts {
    begun: Instant,
    deadline: Instant,
    pause: Duration,
    socket: Option<PathBuf>,
    holder: Option<Box<Holder>>,
    connection: Option<io::Error>,
}

impl Attempts {
    fn new(candidate: &Candidate, deadline: Instant) -> Self {
        let socket = match &candidate.role {
            Role::Service { socket, .. } => Some(socket.clone()),
            Role::InProcess => None,
        };
        Self { begun: Instant::now(), deadline, pause: FIRST_LOOK, socket, holder: None, connection: None }
    }

    async fn connect<C, F>(&mut self, holder: &Holder, connect: &mut impl FnMut(Holder) -> F) -> Option<C>
    where
        F: Future<Output = io::Result<C>>,
    {
        self.holder = Some(Box::new(holder.clone()));
        self.socket = holder.socket().map(ToOwned::to_owned);
        match timeout_at(self.deadline, connect(holder.clone())).await {
            Ok(Ok(connection)) => return Some(connection),
            Ok(Err(error)) => self.connection = Some(error),
            Err(_) => self.connection = Some(io::Error::new(io::ErrorKind::TimedOut, "it does not answer")),
        }
        None
    }

    /// An owner that cannot be shared is told at once, unless it is about to end: a service that has removed its socket,
    /// an in-process owner or a managed service whose last client may just have left.
    fn refuse_unless_ending(&mut self, lost: Lost) -> Result<(), StartError> {
        let Some(holder) = lost.holder() else { return Err(StartError::Lost(lost)) };
        let may_have_been_left = || self.begun.elapsed() < CLIENT_LEFT;
        let no_socket = |socket| std::fs::symlink_metadata(socket).is_err();
        let may_end = match (&lost, &holder.role) {
            (Lost::InUse(_), Role::InProcess) => may_have_been_left(),
            (Lost::InUse(_), Role::Service { lifetime: Lifetime::Managed, socket }) => {
                no_socket(socket) || may_have_been_left()
            }
            (Lost::OtherBuild { .. } | Lost::InUse(_), Role::Service { socket, .. }) => no_socket(socket),
            _ => false,
        };
        if !may_end || Instant::now() >= self.deadline {
            return Err(StartError::Lost(lost));
        }
        self.holder = Some(Box::new(holder.clone()));
        Ok(())
    }

    /// Waits until it is worth trying again: the owner or the launched process has ended, or some time has passed.
    async fn wait(&mut self, launched: Option<&mut Launched>) -> Result<(), StartError> {
        if Instant::now() >= self.deadline {
            return Err(self.out_of_time());
        }
        let look = self.deadline.min(Instant::now() + self.pause);
        self.pause = (self.pause * 2).min(LAST_LOOK);
        // One that has ended is not waited for: if the lock is still taken, a child of it has inherited it.
        let lives = |holder: &&Holder| matches!(holder.condition(), Condition::Running | Condition::Stopped);
        let owner_end = self.holder.as_deref().filter(lives).and_then(|holder| End::of(holder.pid).ok());
        let owner_ended = async {
            match &owner_end {
                Some(end) => end.wait().await,
                None => std::future::pending().await,
            }
        };
        let launched_ended = async {
            match launched {
                Some(process) => match process.has_ended() {
                    None => process.ended().await.map(|_| ()),
                    Some(_) => std::future::pending().await,
                },
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep_until(look) => {}
            _ = owner_ended => {}
            _ = launched_ended => {}
        }
        Ok(())
    }

    fn out_of_time(&mut self) -> StartError {
        StartError::OutOfTime {
            waited: self.begun.elapsed(),
            socket: self.socket.take(),
            holder: self.holder.take(),
            connection: self.connection.take(),
        }
    }
}

//! Who owns a desktop: the one who holds its locks.
//!
//! A starter takes, in this order and none of them waiting, the *desktop lock* (one owner for a desktop, whatever the
//! build), the *version lock* (the service of a build) and the *path lock* (builds published at one path never run
//! together), each under all names of the desktop in sorted order; a service also takes the lock of its socket's path. If
//! one is taken it lets all go. Whoever has all of them is the owner until its process ends: liveness is the lock, so that
//! an owner that is slow, or stopped, is never replaced.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use deskhand_core::error::Code;
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::build::Build;
use crate::desktop::DesktopNames;
use crate::folder::{Folder, FolderError, check_socket_path};
use crate::holder::{Holder, Lifetime, Role};
use crate::lock::{self, Lock};

/// Clients that connect at the same moment wait here until the service has accepted them. The kernel's own bound
/// (`net.core.somaxconn`) may be lower.
const BACKLOG: i32 = 1024;

/// Marks a socket that is being made. One byte: [`crate::folder::MAX_SOCKET_PATH`] leaves room for it.
const NEW: &str = "~";

/// Someone who wants to own a desktop.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Where the locks are.
    pub folder: Folder,
    /// The desktop.
    pub desktop: DesktopNames,
    /// The build that runs.
    pub build: Build,
    /// As what it wants to own it, with the socket it would listen on.
    pub role: Role,
    /// Whether the socket was asked for by name (`--socket`): then a service on another one will not do.
    pub socket_is_fixed: bool,
}

impl Candidate {
    /// A service. `socket` is what `--socket` says; without, it is [`Folder::socket`].
    ///
    /// # Errors
    /// The socket's path cannot be used.
    pub fn service(
        folder: Folder,
        desktop: DesktopNames,
        build: Build,
        lifetime: Lifetime,
        socket: Option<PathBuf>,
    ) -> Result<Self, FolderError> {
        let socket_is_fixed = socket.is_some();
        let socket = match socket {
            Some(socket) => socket,
            None => folder.socket(&desktop)?,
        };
        check_socket_path(&socket)?;
        Ok(Self { folder, desktop, build, role: Role::Service { socket, lifetime }, socket_is_fixed })
    }

    /// A process that wants the desktop for itself.
    pub fn in_process(folder: Folder, desktop: DesktopNames, build: Build) -> Self {
        Self { folder, desktop, build, role: Role::InProcess, socket_is_fixed: false }
    }

    /// The locks, in the order in which they are taken.
    fn locks(&self) -> Vec<PathBuf> {
        let names = || self.desktop.iter();
        let desktop = names().map(|name| self.folder.desktop_lock(name));
        let version = names().map(|name| self.folder.version_lock(&self.build.digest, name));
        let path = names().map(|name| self.folder.path_lock(&self.build.path, name));
        let socket = match &self.role {
            Role::Service { socket, .. } => Some(self.folder.socket_lock(socket)),
            Role::InProcess => None,
        };
        desktop.chain(version).chain(path).chain(socket).collect()
    }

    /// What it means for this candidate that `holder` owns the desktop.
    pub fn judge(&self, holder: Holder) -> Lost {
        let holder = Box::new(holder);
        match (&self.role, &holder.role) {
            (Role::InProcess, _) | (_, Role::InProcess) => Lost::InUse(holder),
            // Another desktop's service has the socket that was asked for.
            _ if !self.desktop.overlaps(&holder.desktop) => Lost::SocketInUse(holder),
            _ if holder.build.digest != self.build.digest => {
                Lost::OtherBuild { holder, loser: Box::new(self.build.clone()) }
            }
            (Role::Service { socket: wanted, .. }, Role::Service { socket, .. })
                if self.socket_is_fixed && wanted != socket =>
            {
                Lost::OtherSocket { wanted: wanted.clone(), holder }
            }
            _ => Lost::SameBuild(holder),
        }
    }
}

/// Why a candidate does not own the desktop.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// A service of the same build owns it: connect to it.
    #[error("{0} owns the desktop")]
    SameBuild(Box<Holder>),
    /// A service of another build owns it.
    #[error(
        "another build of deskhand owns the desktop: {holder}; this one is {}. End it with `deskhand stop` or \
         `kill {}`, or use that build", loser.describe(), holder.pid
    )]
    OtherBuild {
        /// Who owns it.
        holder: Box<Holder>,
        /// The build that lost.
        loser: Box<Build>,
    },
    /// A service of the same build owns it, and listens on another socket than the one that was asked for.
    #[error(
        "{holder} listens on another socket than {}; leave --socket out, give that one, or end it with \
         `deskhand stop` or `kill {}`", wanted.display(), holder.pid
    )]
    OtherSocket {
        /// What was asked for.
        wanted: PathBuf,
        /// Who owns the desktop.
        holder: Box<Holder>,
    },
    /// The service of another desktop listens on the socket that was asked for.
    #[error("{0} has that socket; give another one with --socket")]
    SocketInUse(Box<Holder>),
    /// Somebody owns it who shares it with nobody, or the candidate wanted it for itself.
    #[error("the desktop is in use by {0}; end it with {way} first", way = way_to_end(.0))]
    InUse(Box<Holder>),
    /// Somebody has taken a lock and not (yet) said who it is: a starter that is about to say so or to let go.
    #[error("somebody holds the lock {} and has not said who it is", .0.display())]
    Unidentified(PathBuf),
    /// A lock file cannot be used.
    #[error("the lock file {} cannot be used: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

fn way_to_end(holder: &Holder) -> String {
    match holder.socket() {
        Some(socket) => format!("`deskhand stop --socket {}`", socket.display()),
        None => format!("`kill {}`", holder.pid),
    }
}

impl Lost {
    /// Who owns the desktop, if that is the reason and it is known.
    pub fn holder(&self) -> Option<&Holder> {
        match self {
            Self::SameBuild(holder)
            | Self::OtherBuild { holder, .. }
            | Self::OtherSocket { holder, .. }
            | Self::SocketInUse(holder)
            | Self::InUse(holder) => Some(holder),
            Self::Unidentified(_) | Self::Io { .. } => None,
        }
    }

    /// The code that answers carry.
    pub fn code(&self) -> Code {
        match self {
            Self::OtherBuild { .. } => Code::BuildConflict,
            Self::InUse(_) | Self::OtherSocket { .. } | Self::SocketInUse(_) => Code::DesktopInUse,
            Self::SameBuild(_) | Self::Unidentified(_) | Self::Io { .. } => Code::ServiceUnreachable,
        }
    }
}

/// The owner of a desktop. To be kept until the process ends: whoever drops it gives the desktop up.
#[derive(Debug)]
pub struct Elected {
    holder: Holder,
    locks: Vec<Lock>,
    socket: Option<Socket>,
}

#[derive(Debug)]
struct Socket {
    path: PathBuf,
    device: u64,
    inode: u64,
}

/// Tries once to become the owner, without waiting for anybody.
///
/// # Errors
/// Says who owns the desktop instead.
pub fn elect(candidate: &Candidate) -> Result<Elected, Lost> {
    let mut locks = Vec::new();
    for path in candidate.locks() {
        match Lock::take(&path) {
            Ok(Some(lock)) => locks.push(lock),
            Ok(None) => {
                return Err(match lock::holder_of_taken(&path) {
                    Some(holder) => candidate.judge(holder),
                    None => Lost::Unidentified(path),
                });
            }
            Err(error) => return Err(Lost::Io { path, error }),
        }
    }
    let holder = Holder::own(candidate.build.clone(), candidate.desktop.clone(), candidate.role.clone());
    write_all(&locks, &holder)?;
    Ok(Elected { holder, locks, socket: None })
}

fn write_all(locks: &[Lock], holder: &Holder) -> Result<(), Lost> {
    for lock in locks {
        lock.write(holder).map_err(|error| Lost::Io { path: lock.path().to_owned(), error })?;
    }
    Ok(())
}

impl Elected {
    /// What the lock files say of us.
    pub fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Makes a managed service persistent, or the other way round, and says so in the lock files. Nothing happens to an
    /// in-process owner.
    ///
    /// # Errors
    /// A lock file could not be written; the lifetime is the new one all the same.
    pub fn set_lifetime(&mut self, new: Lifetime) -> Result<(), Lost> {
        if let Role::Service { lifetime, .. } = &mut self.holder.role {
            *lifetime = new;
        }
        write_all(&self.locks, &self.holder)
    }

    /// Makes the socket and listens on it, mode 0600. A socket that an earlier owner has left there is replaced in one
    /// step: a client finds the old one or the new one. The listener blocks; set it to non-blocking for a runtime.
    ///
    /// # Errors
    /// An in-process owner has no socket. Something else than a socket of ours is in its place, or its folder is missing.
    pub fn bind(&mut self) -> io::Result<UnixListener> {
        let path =
            self.holder.socket().ok_or_else(|| io::Error::other("an in-process owner has no socket"))?;
        let path = path.to_owned();
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("the socket {} cannot be made: {error}", path.display()))
        };
        check_replaceable(&path).map_err(named)?;
        let mut new = path.clone().into_os_string();
        new.push(NEW);
        let new = PathBuf::from(new);
        let listener = listen(&new).map_err(named)?;
        let there = std::fs::symlink_metadata(&new).map_err(named)?;
        if let Err(error) = std::fs::rename(&new, &path) {
            let _ = std::fs::remove_file(&new);
            return Err(named(error));
        }
        self.socket = Some(Socket { path, device: there.dev(), inode: there.ino() });
        Ok(listener)
    }

    /// Removes the socket, if it is still ours. To be called before the process ends, while the locks are held. Can be
    /// called again.
    pub fn unlink(&mut self) {
        let Some(Socket { path, device, inode }) = self.socket.take() else { return };
        let there = std::fs::symlink_metadata(&path);
        if there.is_ok_and(|there| (there.dev(), there.ino()) == (device, inode))
            && let Err(error) = std::fs::remove_file(&path)
        {
            tracing::warn!(path = %path.display(), %error, "the socket is left behind");
        }
    }
}

/// Only a socket of this user that nobody listens on may be replaced. (In the runtime folder the locks make that sure;
/// elsewhere, a process with another runtime folder could have been given the same path.)
fn check_replaceable(path: &Path) -> io::Result<()> {
    let there = match std::fs::symlink_metadata(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !there.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "there is something else than a socket"));
    }
    if there.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "there is somebody else's socket"));
    }
    // Without waiting: the queue of a listener that is stopped may be full.
    let socket = socket(SocketFlags::NONBLOCK)?;
    match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
        Err(Errno::CONNREFUSED | Errno::NOENT) => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there")),
    }
}

fn socket(flags: SocketFlags) -> io::Result<OwnedFd> {
    let flags = flags | SocketFlags::CLOEXEC;
    Ok(rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?)
}

/// A listening socket at a path that is ours to use.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = socket(SocketFlags::empty())?;
    // Linux makes the file with the mode of the socket, so it is never open to others, whatever the umask.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

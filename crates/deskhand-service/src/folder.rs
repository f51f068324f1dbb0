//! The runtime folder: where locks, sockets and logs are, the same for every process of one user.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::desktop::{DesktopName, DesktopNames, short_hash};
use crate::holder::Holder;
use crate::lock;

/// Name of our folder below the user's runtime folder.
const NAME: &str = "deskhand";

/// The folder's mode: what is inside is nobody else's business.
const MODE: u32 = 0o700;

/// `sun_path` holds 108 bytes, of which one is the final zero; one more is taken by the mark of a socket that is just
/// being made ([`crate::election::Elected::bind`]).
pub const MAX_SOCKET_PATH: usize = 106;

/// What decides where the folder is, gathered by whoever reads the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderFacts {
    /// `$XDG_RUNTIME_DIR`. Empty or relative counts as not set, as its specification has it.
    pub runtime: Option<OsString>,
    /// Effective user.
    pub uid: u32,
    /// Whether `/run/user/<uid>` is a folder that belongs to that user.
    pub user_folder: bool,
}

impl FolderFacts {
    /// The facts of this process; `runtime` is its `$XDG_RUNTIME_DIR`.
    pub fn gather(runtime: Option<OsString>) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        let user_folder = std::fs::symlink_metadata(format!("/run/user/{uid}"))
            .is_ok_and(|there| there.is_dir() && there.uid() == uid);
        Self { runtime, uid, user_folder }
    }

    /// `$XDG_RUNTIME_DIR`, if it is set to something usable.
    pub fn runtime_folder(&self) -> Option<&Path> {
        self.runtime.as_deref().map(Path::new).filter(|path| path.is_absolute())
    }

    /// Where the folder is.
    pub fn path(&self) -> PathBuf {
        if let Some(runtime) = self.runtime_folder() {
            return runtime.join(NAME);
        }
        if self.user_folder {
            return Path::new("/run/user").join(self.uid.to_string()).join(NAME);
        }
        temporary_folder(self.uid)
    }
}

fn temporary_folder(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/{NAME}-{uid}"))
}

/// Why the folder, or a socket path, is not used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// It cannot be made or looked at.
    #[error("the runtime folder {} cannot be used: {error}; set XDG_RUNTIME_DIR to a folder of your own", path.display())]
    Io {
        /// The folder.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It would not be safe to use.
    #[error("the runtime folder {} is refused: {why}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it and what to do.
        why: String,
    },
    /// A socket cannot have such a path.
    #[error(
        "the socket path {} is too long: {} bytes, and {MAX_SOCKET_PATH} are possible; give a shorter one",
        path.display(), path.as_os_str().len()
    )]
    SocketPath {
        /// The path.
        path: PathBuf,
    },
}

/// The runtime folder: there, a real folder, ours, and closed to others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    path: PathBuf,
    uid: u32,
}

impl Folder {
    /// Makes the folder if it is missing, and checks it.
    ///
    /// # Errors
    /// It cannot be made, or is a link, somebody else's, or open to others.
    pub fn open(facts: &FolderFacts) -> Result<Self, FolderError> {
        Self::secured(facts.path(), facts.uid)
    }

    /// The folder if it is there: for those who only want to look. `None`: then there is no service.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn existing(facts: &FolderFacts) -> Result<Option<Self>, FolderError> {
        let path = facts.path();
        match std::fs::symlink_metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(FolderError::Io { path, error }),
            Ok(_) => Self::secured(path, facts.uid).map(Some),
        }
    }

    /// The folder at a given path, made if it is missing. It must belong to the effective user.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn at(path: &Path) -> Result<Self, FolderError> {
        Self::secured(path.to_owned(), rustix::process::geteuid().as_raw())
    }

    fn secured(path: PathBuf, uid: u32) -> Result<Self, FolderError> {
        secure(&path, uid)?;
        Ok(Self { path, uid })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The user whose folder it is, and whose processes alone may connect.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The socket of the service of a desktop, unless it was told another path. Where that would be too long for a
    /// socket, it is a short hashed name in `/tmp/deskhand-<uid>`, which is made and checked like this folder.
    ///
    /// # Errors
    /// As [`Folder::open`], about the short folder.
    pub fn socket(&self, desktop: &DesktopNames) -> Result<PathBuf, FolderError> {
        let path = self.path.join(format!("{}.sock", desktop.primary().file_name()));
        if path.as_os_str().len() <= MAX_SOCKET_PATH {
            return Ok(path);
        }
        let short = temporary_folder(self.uid);
        secure(&short, self.uid)?;
        Ok(short.join(format!("{}.sock", short_hash(path.as_os_str().as_bytes()))))
    }

    /// The log of the launched service of a desktop.
    pub fn log(&self, desktop: &DesktopNames) -> PathBuf {
        self.path.join(format!("{}.log", desktop.primary().file_name()))
    }

    /// The cache of digests.
    pub(crate) fn digests(&self) -> PathBuf {
        self.path.join("digests")
    }

    /// The lock of one name of a desktop.
    pub(crate) fn desktop_lock(&self, name: &DesktopName) -> PathBuf {
        self.path.join(format!("{DESKTOP_LOCK}{}{LOCK}", name.file_name()))
    }

    /// The lock of a build on a desktop.
    pub(crate) fn version_lock(&self, digest: &str, name: &DesktopName) -> PathBuf {
        let digest = short_hash(digest.as_bytes());
        self.path.join(format!("version-{digest}-{}{LOCK}", name.file_name()))
    }

    /// The lock of an executable's path on a desktop.
    pub(crate) fn path_lock(&self, path: &Path, name: &DesktopName) -> PathBuf {
        let digits = short_hash(path.as_os_str().as_bytes());
        self.path.join(format!("path-{digits}-{}{LOCK}", name.file_name()))
    }

    /// The lock of a socket's path, which keeps two desktops' services from taking one socket from each other.
    pub(crate) fn socket_lock(&self, socket: &Path) -> PathBuf {
        self.path.join(format!("socket-{}{LOCK}", short_hash(socket.as_os_str().as_bytes())))
    }

    /// Who owns a desktop now, by the locks that are held: services and in-process owners, each once, by desktop.
    /// A holder that has just taken its locks and not yet said who it is, is left out.
    pub fn holders(&self) -> Vec<Holder> {
        let Ok(entries) = std::fs::read_dir(&self.path) else { return Vec::new() };
        let is_lock = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(DESKTOP_LOCK) && name.ends_with(LOCK))
        };
        let locks = entries.flatten().map(|entry| entry.path()).filter(is_lock);
        let mut holders: Vec<Holder> = locks.filter_map(|path| lock::holder(&path)).collect();
        holders.sort_by(|a, b| (a.desktop.primary(), a.pid).cmp(&(b.desktop.primary(), b.pid)));
        holders.dedup();
        holders
    }

    /// The services among [`Folder::holders`].
    pub fn services(&self) -> Vec<Holder> {
        let mut holders = self.holders();
        holders.retain(|holder| holder.socket().is_some());
        holders
    }

    /// Who owns this desktop now, by whichever of its names.
    pub fn holder(&self, desktop: &DesktopNames) -> Option<Holder> {
        desktop.iter().find_map(|name| lock::holder(&self.desktop_lock(name)))
    }
}

const DESKTOP_LOCK: &str = "desktop-";

const LOCK: &str = ".lock";

/// Checks a path that somebody gave for a socket.
///
/// # Errors
/// It is too long.
pub fn check_socket_path(path: &Path) -> Result<(), FolderError> {
    if path.as_os_str().len() > MAX_SOCKET_PATH {
        return Err(FolderError::SocketPath { path: path.to_owned() });
    }
    Ok(())
}

/// Makes a folder of the user's, mode 0700, if it is missing, and checks it.
fn secure(path: &Path, uid: u32) -> Result<(), FolderError> {
    let failed = |error| FolderError::Io { path: path.to_owned(), error };
    check_parent(path, uid)?;
    match DirBuilder::new().mode(MODE).create(path) {
        // The umask may have taken something away.
        Ok(()) => {
            opened(path)
                .and_then(|folder| folder.set_permissions(std::fs::Permissions::from_mode(MODE)))
                .map_err(failed)?;
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(failed(error)),
    }
    check(path, uid)
}

/// Others must not be able to put a folder of theirs in the place of ours.
fn check_parent(path: &Path, uid: u32) -> Result<(), FolderError> {
    let Some(parent) = path.parent() else { return Ok(()) };
    let there =
        std::fs::metadata(parent).map_err(|error| FolderError::Io { path: path.to_owned(), error })?;
    let refused = |why| Err(FolderError::Unsafe { path: path.to_owned(), why });
    if there.uid() != uid && there.uid() != 0 {
        return refused(format!(
            "{} belongs to user {}, and this is user {uid}; set XDG_RUNTIME_DIR to a folder of your own",
            parent.display(),
            there.uid()
        ));
    }
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    if there.mode() & OTHERS_WRITE != 0 && there.mode() & STICKY == 0 {
        return refused(format!(
            "others may write to {} (mode {:04o}); run `chmod 700 {}`",
            parent.display(),
            there.mode() & 0o7777,
            parent.display()
        ));
    }
    Ok(())
}

fn check(path: &Path, uid: u32) -> Result<(), FolderError> {
    let refused = |why| Err(FolderError::Unsafe { path: path.to_owned(), why });
    let failed = |error| FolderError::Io { path: path.to_owned(), error };
    let named = std::fs::symlink_metadata(path).map_err(failed)?;
    if !named.is_dir() {
        let what = if named.is_symlink() { "a link" } else { "no folder" };
        return refused(format!("it is {what}; remove it"));
    }
    // Looked at again through a descriptor that cannot have followed a link.
    let there = opened(path).and_then(|folder| folder.metadata()).map_err(failed)?;
    if there.uid() != uid {
        return refused(format!(
            "it belongs to user {}, and this is user {uid}; remove it, or set XDG_RUNTIME_DIR to a folder of your own",
            there.uid()
        ));
    }
    if there.mode() & 0o777 != MODE {
        return refused(format!(
            "its mode is {:04o}, and must be 0700; run `chmod 700 {}`",
            there.mode() & 0o777,
            path.display()
        ));
    }
    Ok(())
}

fn opened(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(runtime: Option<&str>, user_folder: bool) -> FolderFacts {
        FolderFacts { runtime: runtime.map(OsString::from), uid: 7, user_folder }
    }

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn the_variable_comes_first_then_the_users_folder_then_the_temporary_one() {
        for (runtime, user_folder, path) in [
            (Some("/run/x"), true, "/run/x/deskhand"),
            (None, true, "/run/user/7/deskhand"),
            (Some(""), true, "/run/user/7/deskhand"),
            (Some("relative"), false, "/tmp/deskhand-7"),
            (None, false, "/tmp/deskhand-7"),
        ] {
            assert_eq!(facts(runtime, user_folder).path(), Path::new(path));
        }
    }

    #[test]
    fn it_is_made_closed_to_others_and_found_again() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("deskhand");
        let mut facts = FolderFacts::gather(Some(above.path().into()));
        assert_eq!(Folder::existing(&facts).unwrap(), None);
        let folder = Folder::open(&facts).unwrap();
        assert_eq!(folder.path(), path);
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(Folder::open(&facts).unwrap(), folder);
        assert_eq!(Folder::existing(&facts).unwrap(), Some(folder));
        facts.uid += 1;
        let error = Folder::open(&facts).unwrap_err().to_string();
        assert!(error.contains("belongs to user"), "{error}");
    }

    #[test]
    fn f75_what_is_not_safe_is_refused_with_the_way_out() {
        let above = tempfile::tempdir().unwrap();
        let path = above.path().join("deskhand");
        let refusal = || match Folder::at(&path) {
            Err(FolderError::Unsafe { why, .. }) => why,
            other => panic!("{other:?}"),
        };
        std::fs::create_dir(&path).unwrap();
        set_mode(&path, 0o755);
        assert!(refusal().contains("chmod 700"), "{}", refusal());
        std::fs::remove_dir(&path).unwrap();

        std::os::unix::fs::symlink(above.path(), &path).unwrap();
        assert!(refusal().contains("it is a link"), "{}", refusal());
        std::fs::remove_file(&path).unwrap();

        std::fs::write(&path, "").unwrap();
        assert!(refusal().contains("no folder"), "{}", refusal());
        std::fs::remove_file(&path).unwrap();

        set_mode(above.path(), 0o777);
        assert!(refusal().contains("others may write"), "{}", refusal());
        set_mode(above.path(), 0o1777);
        Folder::at(&path).unwrap();
    }

    #[test]
    fn f11_a_missing_runtime_folder_is_named() {
        let error = Folder::at(Path::new("/nowhere/at/all")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/at/all") && error.contains("XDG_RUNTIME_DIR"), "{error}");
    }

    #[test]
    fn f11_a_long_path_gets_a_short_socket() {
        let above = tempfile::tempdir().unwrap();
        let long = above.path().join("r".repeat(150));
        let folder = Folder::at(&long).unwrap();
        let desktop = DesktopNames::new(DesktopName::x11(":0").unwrap());
        let socket = folder.socket(&desktop).unwrap();
        assert!(socket.as_os_str().len() <= MAX_SOCKET_PATH, "{}", socket.display());
        assert_eq!(socket, folder.socket(&desktop).unwrap());
        let other = Folder::at(&above.path().join("s".repeat(150))).unwrap();
        assert_ne!(socket, other.socket(&desktop).unwrap());

        let short = Folder::at(&above.path().join("r")).unwrap();
        assert_eq!(short.socket(&desktop).unwrap(), short.path().join("x0.sock"));
        assert!(check_socket_path(&long).is_err());
        assert!(check_socket_path(Path::new("/run/x.sock")).is_ok());
    }
}

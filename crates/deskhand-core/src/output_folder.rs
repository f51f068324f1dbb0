//! A folder that one process writes into and nobody else may read, and files in it that appear whole.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Ends the name of what is being written, which begins with a dot.
pub(crate) const UNFINISHED: &str = ".part";

/// A folder, locked: nothing else of ours writes into it.
#[derive(Debug)]
pub(crate) struct OutputFolder {
    pub(crate) path: PathBuf,
    /// Whether it was made just now.
    pub(crate) made: bool,
    /// Holds the lock, which the kernel drops with the last process that has it.
    lock: File,
}

impl OutputFolder {
    /// Makes the folder, for this user alone, with what is missing above it; or takes one that is there, whatever is in it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let made = match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => return Err("it is a link; name what it leads to".to_owned()),
            Ok(found) if !found.is_dir() => return Err("it exists and is no folder".to_owned()),
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                private_folder(path, true).map_err(|error| error.to_string())?;
                true
            }
            Err(error) => return Err(error.to_string()),
        };
        let lock = File::open(path).map_err(|error| error.to_string())?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { path: path.to_owned(), made, lock }),
            Err(TryLockError::WouldBlock) => Err("something writes into it already".to_owned()),
            Err(TryLockError::Error(error)) => Err(error.to_string()),
        }
    }

    /// Whether nothing is in it but what a process that was killed had not finished.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        for entry in fs::read_dir(&self.path)? {
            let name = entry?.file_name();
            let name = name.to_string_lossy();
            if !(name.starts_with('.') && name.ends_with(UNFINISHED)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Writes and removes a file, so that it is known beforehand whether that is possible. Whether files in the folder belong
    /// to whom the folder belongs to.
    pub(crate) fn probe(&self) -> io::Result<bool> {
        let probe = self.path.join(format!(".probe{UNFINISHED}"));
        // Left by a process that was killed.
        remove_if_there(&probe)?;
        write_new(&probe, b"")?;
        let owners = fs::metadata(&probe).and_then(|file| Ok((owner(&file), owner(&self.lock.metadata()?))));
        fs::remove_file(&probe)?;
        owners.map(|(file, folder)| file == folder)
    }

    /// Closes the folder to other users.
    #[cfg_attr(not(unix), allow(clippy::unused_self, clippy::unnecessary_wraps))]
    pub(crate) fn make_private(&self) -> io::Result<()> {
        #[cfg(unix)]
        self.lock.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(PRIVATE))?;
        Ok(())
    }
}

/// Mode of folders: what is on the screen is nobody else's business.
#[cfg(unix)]
const PRIVATE: u32 = 0o700;

#[cfg(unix)]
fn owner(found: &fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(found)
}

#[cfg(not(unix))]
fn owner(_found: &fs::Metadata) {}

/// Makes a folder for this user alone.
pub(crate) fn private_folder(path: &Path, recursive: bool) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(recursive);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, PRIVATE);
    builder.create(path)
}

/// Options for files of this user alone.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Writes a file that must not be there.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    private_file().write(true).create_new(true).open(path)?.write_all(bytes)
}

/// Writes a file, or puts another in its place: whoever reads it sees the old one or the new one.
pub(crate) fn write_whole(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let unfinished = folder.join(format!(".{name}{UNFINISHED}"));
    remove_if_there(&unfinished)?;
    let written = write_new(&unfinished, bytes).and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if written.is_err() {
        // On a full disk it takes room.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

pub(crate) fn remove_if_there(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whether there is no room for more.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}

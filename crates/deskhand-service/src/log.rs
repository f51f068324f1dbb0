//! The log of a launched service: a file that stays short, however long the service lives and however much it is told to
//! say.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use rustix::fs::OFlags;

/// A log that is longer than this is put aside, so that two such files are the most that services of a desktop leave
/// behind. Thousands of lines: enough to see what led to the last of them.
pub const MAX_LOG: u64 = 1024 * 1024;

/// The log at `path`, to be appended to, and how long it is. One that has grown too long is put aside.
///
/// # Errors
/// It is a link, or cannot be made or written.
pub(crate) fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = append(path)?;
    let length = file.metadata()?.len();
    if length <= MAX_LOG {
        return Ok((file, length));
    }
    std::fs::rename(path, aside(path))?;
    Ok((append(path)?, 0))
}

fn append(path: &Path) -> io::Result<File> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).map_err(io::Error::other)?;
    OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_link).open(path)
}

/// Where a log goes that is too long.
fn aside(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

/// The standard error of a process whose launcher has made it a log. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Log {
    /// `None`: it is not that log, and is left as it is.
    path: Option<Arc<Mutex<PathBuf>>>,
}

impl Log {
    /// This process's, if its standard error is the log at `path`.
    pub fn at(path: PathBuf) -> Self {
        // Another launch may have put it aside since.
        let is_log = |path: &Path| {
            let there = std::fs::symlink_metadata(path);
            there.is_ok_and(|there| standard_error().is_ok_and(|file| is_same(&file, &there)))
        };
        let path = (is_log(&path) || is_log(&aside(&path))).then_some(path);
        Self { path: path.map(|path| Arc::new(Mutex::new(path))) }
    }

    /// Whatever standard error is.
    pub const fn none() -> Self {
        Self { path: None }
    }

    /// Makes room for `more` bytes.
    fn keep_short(&self, more: usize) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        // One thread is enough: others write on meanwhile.
        let path = match path.try_lock() {
            Ok(path) => path,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let current = standard_error()?;
        if current.len().saturating_add(u64::try_from(more).unwrap_or(u64::MAX)) <= MAX_LOG {
            return Ok(());
        }
        if std::fs::symlink_metadata(&*path).is_ok_and(|there| is_same(&current, &there)) {
            std::fs::rename(&*path, aside(&path))?;
        }
        let fresh = append(&path)?;
        // Whatever else this process writes there, a panic for one, goes with it.
        rustix::stdio::dup2_stdout(&fresh)?;
        Ok(rustix::stdio::dup2_stderr(&fresh)?)
    }
}

impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if self.keep_short(line.len()).is_err() {
            // The folder is gone or the disk is full. Better to lose what was said than to go on for ever.
            let _ = rustix::fs::ftruncate(rustix::stdio::stderr(), 0);
        }
        io::stderr().write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn standard_error() -> io::Result<Metadata> {
    File::from(io::stderr().as_fd().try_clone_to_owned()?).metadata()
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_error_that_is_no_such_log_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x0.log");
        std::fs::write(&path, "another's").unwrap();
        assert!(Log::at(path.clone()).path.is_none());
        assert!(Log::at(folder.path().join("none.log")).path.is_none());
        Log::none().keep_short(usize::MAX).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "another's");
    }
}

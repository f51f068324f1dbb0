//! One lock file: who has it locked is its owner, until that process ends. It is never deleted.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;

use crate::holder::{Condition, Holder};
use crate::process;

/// A record is some hundred bytes; what is longer is none.
const MAX_RECORD: u64 = 16 * 1024;

/// A file that is not at its path any more was removed by somebody between open and lock. Nobody does that twice.
const ATTEMPTS: usize = 3;

/// A lock that this process holds. It is released when this value is dropped, or with the process.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock if it is free; `None` if somebody has it.
    ///
    /// # Errors
    /// The file cannot be made or locked, or is a link.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        for _ in 0..ATTEMPTS {
            // Rust marks what it opens as closed on execution: no child keeps a lock.
            let file = options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
            if !lock(&file, FlockOperation::NonBlockingLockExclusive)? {
                return Ok(None);
            }
            let (locked, named) = (file.metadata()?, std::fs::symlink_metadata(path));
            if named.is_ok_and(|named| (named.dev(), named.ino()) == (locked.dev(), locked.ino())) {
                // From here on the last holder's record is nobody's.
                file.set_len(0)?;
                return Ok(Some(Self { path: path.to_owned(), file }));
            }
        }
        Err(io::Error::other("the lock file is removed again and again; nothing should do that"))
    }

    /// Writes who holds it. Readers may see a part; it ends with a line end, so they notice.
    ///
    /// # Errors
    /// The file system is full, for instance.
    pub(crate) fn write(&self, holder: &Holder) -> io::Result<()> {
        let mut line = serde_json::to_vec(holder)?;
        line.push(b'\n');
        self.file.write_all_at(&line, 0)?;
        self.file.set_len(u64::try_from(line.len()).map_err(io::Error::other)?)
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0));
    options
}

/// `false`: somebody else has it.
fn lock(file: &File, operation: FlockOperation) -> io::Result<bool> {
    loop {
        match rustix::fs::flock(file, operation) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Who holds a lock that could not be taken. `None`: it has not said so yet, or has just let go.
pub(crate) fn holder_of_taken(path: &Path) -> Option<Holder> {
    let (record, inode) = read(path)?;
    if record.namespace != process::namespace() {
        return Some(record);
    }
    match lockers(inode) {
        // The record of one that has ended, while another takes the lock and has not emptied the file yet.
        Some(pids) if !pids.is_empty() && !pids.contains(&record.pid) => None,
        _ => Some(record),
    }
}

/// Who holds a lock, if anybody does.
pub(crate) fn holder(path: &Path) -> Option<Holder> {
    let (record, inode) = read(path)?;
    let here = record.namespace == process::namespace();
    match lockers(inode) {
        Some(pids) if here && !pids.is_empty() => return pids.contains(&record.pid).then_some(record),
        _ if here && record.condition() == Condition::Gone => return None,
        _ => {}
    }
    // The kernel's list does not show locks of other pid namespaces, and may miss one while it changes. What is left
    // is to try, with a shared lock: several may look at once, and a starter that is hindered by it tries again.
    let file = options().open(path).ok()?;
    let free = lock(&file, FlockOperation::NonBlockingLockShared).ok()?;
    (!free).then_some(record)
}

/// The complete record in a lock file and the file's inode.
fn read(path: &Path) -> Option<(Holder, u64)> {
    let file = options().open(path).ok()?;
    let inode = file.metadata().ok()?.ino();
    let mut text = Vec::new();
    file.take(MAX_RECORD).read_to_end(&mut text).ok()?;
    // A shorter record over a longer one leaves its rest behind for a moment.
    let line = text.split_inclusive(|byte| *byte == b'\n').next()?.strip_suffix(b"\n")?;
    Some((serde_json::from_slice(line).ok()?, inode))
}

/// The processes that hold an exclusive lock on a file with this inode; `None` if the kernel does not tell. Device
/// numbers are not compared: on some file systems the list has another one than `stat`.
fn lockers(inode: u64) -> Option<Vec<u32>> {
    // 1: FLOCK  ADVISORY  WRITE 1234 fe:00:10011209 0 EOF
    let text = std::fs::read_to_string("/proc/locks").ok()?;
    let locker = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if (words.next()?, words.nth(1)?) != ("FLOCK", "WRITE") {
            return None;
        }
        let pid = words.next()?.parse().ok()?;
        (words.next()?.rsplit(':').next()?.parse::<u64>().ok()? == inode).then_some(pid)
    };
    Some(text.lines().filter_map(locker).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Build;
    use crate::desktop::DesktopName;
    use crate::holder::Role;

    fn record(version: &str) -> Holder {
        let build = Build { digest: "d".into(), path: "/p".into(), version: version.into() };
        Holder::own(build, DesktopName::x11(":0").unwrap().into(), Role::InProcess)
    }

    #[test]
    fn one_takes_it_the_other_learns_who_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        assert_eq!(holder_of_taken(&path), None, "it has not said who it is");
        lock.write(&record("a longer version")).unwrap();
        lock.write(&record("1")).unwrap();
        assert_eq!(holder_of_taken(&path), Some(record("1")));
        assert_eq!(holder(&path), Some(record("1")));
        drop(lock);
        assert_eq!(holder(&path), None, "the record stays, the holder does not");
        let next = Lock::take(&path).unwrap().unwrap();
        assert_eq!(holder(&path), None, "the last holder's record is nobody's");
        assert_eq!(next.path(), path);
    }

    #[test]
    fn the_record_of_one_that_has_ended_is_not_taken_for_the_holders() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let _lock = Lock::take(&path).unwrap().unwrap();
        let mut old = record("1");
        old.pid = 1; // lives, but is not who has the lock
        let mut line = serde_json::to_vec(&old).unwrap();
        line.push(b'\n');
        std::fs::write(&path, line).unwrap();
        assert_eq!(holder_of_taken(&path), None);
        assert_eq!(holder(&path), None);
    }

    #[test]
    fn a_part_of_a_record_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        lock.write(&record("1")).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(holder_of_taken(&path), None, "{length}");
        }
    }

    #[test]
    fn a_holder_of_another_namespace_is_found_by_trying() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        let mut other = record("1");
        other.namespace = "pid:[1]".to_owned();
        lock.write(&other).unwrap();
        assert_eq!(holder(&path), Some(other.clone()));
        assert_eq!(holder_of_taken(&path), Some(other.clone()));
        assert_eq!(other.condition(), Condition::Unknown);
        drop(lock);
        assert_eq!(holder(&path), None);
    }

    #[test]
    fn a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        std::os::unix::fs::symlink(folder.path().join("target"), &path).unwrap();
        assert!(Lock::take(&path).is_err());
    }
}

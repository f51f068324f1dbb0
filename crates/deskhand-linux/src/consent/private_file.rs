//! Files that count only if nobody else can have written them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::Trouble;
use crate::private::random;

/// What is read of a file. The records have some hundred bytes; a bound against one that is made to fill the memory.
pub(super) const MAX_BYTES: usize = 64 * 1024;

/// Permissions that would let others change a file.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The content of a regular file of the user `uid` that nobody else can write to. Everything is checked on the open
/// descriptor: the name may mean another file a moment later.
pub(super) fn read(path: &Path, uid: u32) -> Result<Vec<u8>, Trouble> {
    // NONBLOCK: opening a FIFO would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => Trouble::Missing,
        Errno::LOOP => Trouble::Link,
        _ => Trouble::Unreadable,
    })?;
    let stat = rustix::fs::fstat(&file).map_err(|_| Trouble::Unreadable)?;
    if !FileType::from_raw_mode(stat.st_mode).is_file() {
        return Err(Trouble::NotAFile);
    }
    if stat.st_uid != uid {
        return Err(Trouble::NotOwned);
    }
    if stat.st_mode & WRITABLE_BY_OTHERS != 0 {
        return Err(Trouble::Shared);
    }
    // Read with a bound, not by the size that it had a moment ago.
    let mut content = Vec::new();
    let mut bounded = File::from(file).take(MAX_BYTES as u64 + 1);
    bounded.read_to_end(&mut content).map_err(|_| Trouble::Unreadable)?;
    if content.len() > MAX_BYTES {
        return Err(Trouble::TooLarge);
    }
    Ok(content)
}

/// Puts a file of this user alone in the place of `name` in `folder`: whole or not at all, and never through a link.
pub(super) fn replace(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let mut number = [0; 8];
    random(&mut number)?;
    let beside = folder.join(format!(".{name}.{:016x}", u64::from_ne_bytes(number)));
    let written = write_new(&beside, content).and_then(|()| std::fs::rename(&beside, folder.join(name)));
    if written.is_err() {
        // It may not even be there.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // `create_new` follows no link. The mode is less only by the umask, which takes nothing from the owner that counts.
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?.write_all(content)
}

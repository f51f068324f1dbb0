//! Files that anybody may have put there: read only if they are files themselves, and not without end.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::path::Path;

/// The content of a plain file of at most `limit` bytes.
///
/// # Errors
/// Those of the system; `InvalidInput` for a link, a pipe and the like; `FileTooLarge`.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let bytes = beginning(path, limit.saturating_add(1))?;
    if bytes.len() as u64 > limit {
        let message = format!("it has more than {limit} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The first `limit` bytes of a plain file.
///
/// # Errors
/// Those of the system; `InvalidInput` for a link, a pipe and the like.
pub(crate) fn beginning(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    // Opening a pipe waits for somebody who writes into it, so what it is comes first.
    let found = fs::symlink_metadata(path)?;
    require_plain(&found)?;
    let open = File::open(path)?;
    // It may have been exchanged meanwhile: by a link, or for something that is read without end.
    let opened = open.metadata()?;
    require_plain(&opened)?;
    if !same(&found, &opened) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it was replaced while it was opened"));
    }
    let mut bytes = Vec::new();
    open.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn require_plain(found: &Metadata) -> io::Result<()> {
    let why = match found.file_type() {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_symlink() => "it is a link, and what it leads to is not read",
        kind if kind.is_dir() => "it is a folder",
        _ => "it is no plain file",
    };
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

#[cfg(unix)]
fn same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn same(_: &Metadata, _: &Metadata) -> bool {
    true
}

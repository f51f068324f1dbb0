//! Waiting for events of a file descriptor without reading from it.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the runtime.
///
/// # Errors
/// A descriptor that the kernel cannot watch, such as a file's.
#[allow(unsafe_code)]
pub(super) fn watched(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and names one descriptor until it is dropped, which the `AsyncFd` that takes it
    // does after it has deregistered it.
    Ok(unsafe { AsyncFd::register_with_interest(fd, interest) }?)
}

/// A descriptor that whoever started this process has left to it. It is closed when the answer is dropped.
///
/// # Errors
/// It is a standard one, or not open.
#[cfg(feature = "host-consent")]
#[allow(unsafe_code)]
pub(crate) fn inherited(number: i32) -> io::Result<OwnedFd> {
    use std::os::fd::{BorrowedFd, FromRawFd};

    /// Below are those of standard input, output and error.
    const FIRST: i32 = 3;
    if number < FIRST {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "expected a descriptor from 3 on"));
    }
    // SAFETY: the number is only asked about; the kernel says so if it is not open.
    rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(number) })?;
    // SAFETY: it is open, and at the start of the process, when this is called, nothing of it owns a descriptor from 3 on.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

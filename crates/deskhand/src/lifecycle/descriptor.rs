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

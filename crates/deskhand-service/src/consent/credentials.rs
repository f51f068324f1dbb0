//! Who sent what was read: the kernel's word, with each piece of a stream.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// Clock ticks of `/proc` in a second: a constant of the kernel's interface (`USER_HZ`).
const TICKS: u64 = 100;

/// The peer's pidfd (Linux 6.5), missing in `libc`. The number of `asm-generic/socket.h`, which all architectures but
/// SPARC and PA-RISC have.
const SO_PEERPIDFD: libc::c_int = 77;

/// Descriptors that one message can bring, as the kernel bounds it.
const MAX_DESCRIPTORS: usize = 253;

/// Room for the credentials and all descriptors, in words so that it is aligned.
const CONTROL_WORDS: usize = 64 + MAX_DESCRIPTORS;

/// A process and its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sender {
    pub(super) pid: u32,
    pub(super) uid: u32,
}

/// Reads a piece of the stream, and who sent it; all of one piece was sent by one process, and `SO_PASSCRED` must have
/// been set before. `None`: the kernel does not say. Descriptors that come along are closed.
pub(super) fn receive(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, Option<Sender>)> {
    let mut control = [0_u64; CONTROL_WORDS];
    let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    receive_into(socket, &mut piece, &mut control)
}

#[allow(unsafe_code)]
fn receive_into(
    socket: impl AsFd,
    piece: &mut libc::iovec,
    control: &mut [u64; CONTROL_WORDS],
) -> io::Result<(usize, Option<Sender>)> {
    // SAFETY: all-zero bytes are a valid `msghdr`.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = piece;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = size_of_val(control) as _;
    let flags = libc::MSG_CMSG_CLOEXEC | libc::MSG_DONTWAIT;
    // SAFETY: the header points to a buffer and to control space of the lengths that it says, both borrowed for longer
    // than the call.
    let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut header, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let mut told: Option<libc::ucred> = None;
    // SAFETY: the kernel has filled the control space and set its length; the macros walk within it.
    let mut message = unsafe { libc::CMSG_FIRSTHDR(&header) };
    while !message.is_null() {
        // SAFETY: `message` is a header within the control space, which is aligned for it.
        let (head, data) = unsafe { (*message, libc::CMSG_DATA(message)) };
        let bytes = payload(&head);
        match (head.cmsg_level, head.cmsg_type) {
            (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) if bytes >= size_of::<libc::ucred>() => {
                // SAFETY: there are as many bytes, and any bytes are a `ucred`.
                told = Some(unsafe { data.cast::<libc::ucred>().read_unaligned() });
            }
            (libc::SOL_SOCKET, libc::SCM_RIGHTS) => {
                for number in 0..bytes / size_of::<libc::c_int>() {
                    // SAFETY: the kernel has put so many new descriptors there, which are nobody's but ours.
                    drop(unsafe {
                        OwnedFd::from_raw_fd(data.cast::<libc::c_int>().add(number).read_unaligned())
                    });
                }
            }
            _ => {}
        }
        // SAFETY: as above.
        message = unsafe { libc::CMSG_NXTHDR(&header, message) };
    }
    if header.msg_flags & libc::MSG_CTRUNC != 0 {
        return Ok((length, None));
    }
    let sender = told.and_then(|told| {
        // 0: the process has no number here, or none was recorded.
        let pid = u32::try_from(told.pid).ok().filter(|pid| *pid > 0)?;
        Some(Sender { pid, uid: told.uid })
    });
    Ok((length, sender))
}

/// Bytes of a control message behind its header.
#[allow(unsafe_code)]
#[allow(clippy::unnecessary_cast)] // the length's type is another one in another C library
fn payload(head: &libc::cmsghdr) -> usize {
    // SAFETY: plain arithmetic.
    (head.cmsg_len as usize).saturating_sub(unsafe { libc::CMSG_LEN(0) } as usize)
}

/// The process at the other end as a descriptor; `None` if the kernel is too old to give it.
///
/// # Errors
/// It has ended.
#[allow(unsafe_code)]
pub(super) fn peer_pidfd(socket: impl AsFd) -> io::Result<Option<OwnedFd>> {
    let mut descriptor: libc::c_int = -1;
    let mut length = libc::socklen_t::try_from(size_of::<libc::c_int>()).map_err(io::Error::other)?;
    // SAFETY: the value is as long as the length says; both are borrowed for longer than the call.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &raw mut length,
        )
    };
    if done == 0 {
        // SAFETY: the kernel has just made this descriptor for us.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }));
    }
    match io::Error::last_os_error() {
        error if error.raw_os_error() == Some(libc::ENOPROTOOPT) => Ok(None),
        error => Err(error),
    }
}

/// Now, in clock ticks since the machine started, as `/proc` counts the start of processes. Never too late.
pub(crate) fn boot_ticks() -> u64 {
    let text = std::fs::read_to_string("/proc/uptime").unwrap_or_default();
    parse_uptime(&text).unwrap_or(0)
}

/// Seconds with two decimals, which are ticks.
fn parse_uptime(text: &str) -> Option<u64> {
    let (seconds, hundredths) = text.split_ascii_whitespace().next()?.split_once('.')?;
    Some(seconds.parse::<u64>().ok()? * TICKS + hundredths.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn uptime_is_read_in_ticks() {
        assert_eq!(parse_uptime("12345.67 9.1\n"), Some(1_234_567));
        assert_eq!(parse_uptime(""), None);
        let own = crate::process::stat(std::process::id()).unwrap().started;
        assert!(own <= boot_ticks() && boot_ticks() - own < 3600 * TICKS);
    }

    #[test]
    fn what_is_sent_before_credentials_are_asked_for_is_nobodys() {
        use std::io::Write;
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        theirs.write_all(b"early").unwrap();
        rustix::net::sockopt::set_socket_passcred(&ours, true).unwrap();
        theirs.write_all(b"late").unwrap();
        let mut buffer = [0; 64];
        assert_eq!(receive(&ours, &mut buffer).unwrap(), (5, None));
        let own = Sender { pid: std::process::id(), uid: rustix::process::getuid().as_raw() };
        assert_eq!(receive(&ours, &mut buffer).unwrap(), (4, Some(own)));
    }
}

//! The process at the other end of a connection, by a descriptor of it: its number may be another one's some day.

use tokio::net::UnixStream;

use super::credentials::{Sender, peer_pidfd};
use super::executable::{HostRule, Identity};
use crate::process::{self, End};

/// An identified process.
#[derive(Debug)]
pub(super) struct Peer {
    who: Sender,
    end: End,
}

impl Peer {
    /// Who opened the connection that was taken at `accepted` (in ticks since the machine started).
    ///
    /// # Errors
    /// In words: it has ended, is another user's, or is not known.
    pub(super) fn of(stream: &UnixStream, accepted: u64) -> Result<Self, &'static str> {
        let unknown = |_| "its process is not known";
        let told = stream.peer_cred().map_err(unknown)?;
        let pid = told.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let who = Sender { pid: pid.ok_or("its process is not known")?, uid: told.uid() };
        if who.uid != rustix::process::getuid().as_raw() {
            return Err("it is another user's");
        }
        let end = match peer_pidfd(stream).map_err(unknown)? {
            Some(descriptor) => End::watching(descriptor).map_err(unknown)?,
            None => Self::by_number(who.pid, accepted)?,
        };
        let peer = Self { who, end };
        if peer.is_gone() { Err("its process has ended") } else { Ok(peer) }
    }

    /// On a kernel that does not tell the peer's descriptor: the number's owner now, if it has run since before the
    /// connection was taken.
    fn by_number(pid: u32, accepted: u64) -> Result<End, &'static str> {
        let end = End::of(pid).map_err(|_| "its process has ended")?;
        // Read after the descriptor is there: if that process lives still, this is its own.
        let started = process::stat(pid).ok_or("its process has ended")?.started;
        if started > accepted || end.has_ended() {
            return Err("its process has ended, and another one has its number");
        }
        Ok(end)
    }

    /// Whether a message came from it, and not from somebody who has the connection's other end from it, or its number.
    pub(super) fn sent(&self, sender: Option<Sender>) -> bool {
        sender == Some(self.who) && !self.is_gone()
    }

    /// Which file it executes, if `rule` allows that. Takes as long as reading that file does.
    pub(super) fn executable(&self, rule: &HostRule) -> Result<Identity, &'static str> {
        let identity = rule.identify(self.who.pid)?;
        // Whatever was read was its own only if it lives still.
        if self.is_gone() { Err("its process has ended") } else { Ok(identity) }
    }

    /// Whether it still executes `identity`.
    pub(super) fn still_is(&self, identity: Identity) -> bool {
        Identity::of_process(self.who.pid).is_ok_and(|now| now == identity) && !self.is_gone()
    }

    pub(super) fn pid(&self) -> u32 {
        self.who.pid
    }

    fn is_gone(&self) -> bool {
        self.end.has_ended()
    }

    /// Waits for its end.
    pub(super) async fn gone(&self) {
        // Fails when the runtime ends, and everything with it.
        let _ = self.end.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::boot_ticks;
    use super::*;

    #[tokio::test]
    async fn a_number_that_was_given_again_is_another_process() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let started = process::stat(child.id()).unwrap().started;
        // The connection was taken before the process with this number began.
        assert!(Peer::by_number(child.id(), started - 1).unwrap_err().contains("another one"));
        let end = Peer::by_number(child.id(), boot_ticks()).unwrap();
        let who = Sender { pid: child.id(), uid: 1000 };
        let peer = Peer { who, end };
        assert!(peer.sent(Some(who)));
        assert!(!peer.sent(Some(Sender { uid: 1001, ..who })) && !peer.sent(None));
        drop(child.stdin.take());
        peer.gone().await;
        // Its number is still taken until it is waited for, and would be somebody else's after that.
        assert!(!peer.sent(Some(who)));
        child.wait().unwrap();
        assert!(!peer.sent(Some(who)));
        assert!(Peer::by_number(who.pid, boot_ticks()).is_err());
    }

    #[tokio::test]
    async fn the_peer_of_a_connection_is_known() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(&ours, boot_ticks()).unwrap();
        assert_eq!(peer.pid(), std::process::id());
        assert!(peer_pidfd(&ours).is_ok());
    }
}

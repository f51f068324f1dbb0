//! Consent from a verified host application, over a connection of its own to the service.
//!
//! Whoever is the host was admitted by its token, its process and its executable ([`peer`], [`executable`]); the
//! [`link`] asks it, and every answer carries the sender's credentials from the kernel and the question's nonce. What
//! is not answered in time, by the admitted process and to the letter, grants nothing.

mod credentials;
mod executable;
mod link;
mod message;
mod peer;
mod token;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use deskhand_core::consent::{ConsentSource, Grant, Refusal};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

pub(crate) use credentials::boot_ticks;
pub use executable::{HostRule, digest_of};
pub(crate) use link::{Newcomer, serve};
pub use token::HostToken;

/// How long a host may take to answer. A call waits that long at most before it is refused.
pub const ANSWER: Duration = Duration::from_millis(1500);

/// Questions that wait to be sent, and as many again that were sent and are not answered. Above the calls that a busy
/// service has under way, small enough to be sent at once into a socket's buffer.
pub const MAX_QUESTIONS: usize = 512;

/// What goes to a host.
#[derive(Debug)]
enum Word {
    /// What is allowed now?
    Ask(oneshot::Sender<Grant>),
    /// A call was refused.
    Refused(Refusal),
}

/// The way to the host of the moment.
#[derive(Clone, Debug)]
struct Way {
    words: mpsc::Sender<Word>,
    /// Cancelled when it has departed, or another one has taken its place.
    over: CancellationToken,
}

/// Asks the host application. Without one nothing is granted.
#[derive(Debug)]
pub struct HostConsent {
    /// `None`: nobody can be admitted.
    token: Option<HostToken>,
    rule: HostRule,
    host: Mutex<Option<Way>>,
}

impl HostConsent {
    /// Nobody is the host yet; who has `token` and fits `rule` can become it.
    pub fn new(token: Option<HostToken>, rule: HostRule) -> Self {
        Self { token, rule, host: Mutex::default() }
    }

    /// A source for a process that has no socket, and so no host.
    pub fn nobody() -> Self {
        Self::new(None, HostRule::default())
    }

    /// Whether anybody can be admitted.
    pub fn can_have_host(&self) -> bool {
        self.token.is_some()
    }

    /// Makes a connection the host's. The one before has been replaced: its open questions fail.
    fn install(&self, way: Way) {
        if let Some(before) = self.lock().replace(way) {
            tracing::info!("another host takes the place of the one before");
            before.over.cancel();
        }
    }

    fn way(&self) -> Option<Way> {
        self.lock().clone().filter(|way| !way.over.is_cancelled())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Way>> {
        // Each change is one statement.
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl ConsentSource for HostConsent {
    async fn grant(&self) -> Grant {
        let Some(way) = self.way() else { return Grant::NOTHING };
        let (sender, answer) = oneshot::channel();
        if way.words.try_send(Word::Ask(sender)).is_err() {
            tracing::warn!("too many questions wait for the host, or it has gone");
            return Grant::NOTHING;
        }
        match tokio::time::timeout(ANSWER, answer).await {
            // An answer of a host that has been replaced meanwhile is nobody's.
            Ok(Ok(grant)) if !way.over.is_cancelled() => grant,
            Ok(_) => Grant::NOTHING,
            Err(_) => {
                tracing::warn!("the host did not answer in time");
                Grant::NOTHING
            }
        }
    }

    async fn refused(&self, refusal: Refusal) {
        // Only the host's wish to ask the person; its absence changes nothing.
        if let Some(way) = self.way() {
            let _ = way.words.try_send(Word::Refused(refusal));
        }
    }

    fn is_set_by_command(&self) -> bool {
        false
    }
}

/// Which host a service listens to.
pub(crate) type Source = Arc<HostConsent>;

//! How long a service lives.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::holder::Lifetime;

/// How long a managed service waits for its first client, which started it and is about to connect.
const FIRST_CLIENT: Duration = Duration::from_secs(10);

/// Who keeps a service alive.
#[derive(Debug)]
pub(super) struct Life {
    state: watch::Sender<State>,
    began: Instant,
}

#[derive(Clone, Copy, Debug)]
struct State {
    lifetime: Lifetime,
    /// Connections, and those that have closed and are being cleaned up.
    connections: usize,
    /// Whether anybody has made use of the service. Who only looks whether it is there (a starter that lost against it does)
    /// has not: the client that it was started for is still to come.
    used: bool,
}

impl Life {
    pub(super) fn new(lifetime: Lifetime) -> Self {
        Self {
            state: watch::Sender::new(State { lifetime, connections: 0, used: false }),
            began: Instant::now(),
        }
    }

    pub(super) fn lifetime(&self) -> Lifetime {
        self.state.borrow().lifetime
    }

    /// From now on it lives until it is stopped. Whether that is news.
    pub(super) fn make_persistent(&self) -> bool {
        let mut was_managed = false;
        self.state.send_if_modified(|state| {
            was_managed = state.lifetime == Lifetime::Managed;
            state.lifetime = Lifetime::Persistent;
            was_managed
        });
        was_managed
    }

    /// Resolves once the service is persistent.
    pub(super) async fn persistent(&self) {
        let mut state = self.state.subscribe();
        // The sender is our own.
        let _ = state.wait_for(|state| state.lifetime == Lifetime::Persistent).await;
    }

    pub(super) fn connections(&self) -> usize {
        self.state.borrow().connections
    }

    pub(super) fn age(&self) -> Duration {
        self.began.elapsed()
    }

    /// Counts a connection in, until its guard is dropped, which is after its clean-up.
    pub(super) fn connected(self: &std::sync::Arc<Self>) -> Connected {
        self.state.send_modify(|state| state.connections += 1);
        Connected(std::sync::Arc::clone(self))
    }

    /// Somebody makes use of the service.
    pub(super) fn used(&self) {
        self.state.send_if_modified(|state| !std::mem::replace(&mut state.used, true));
    }

    /// Resolves when nobody keeps a managed service alive. `sessions`: how many live that need no connection; `recordings`:
    /// how many recordings run that belong to none.
    pub(super) async fn over(
        &self,
        mut sessions: watch::Receiver<usize>,
        mut recordings: watch::Receiver<usize>,
    ) {
        let mut state = self.state.subscribe();
        let first = self.began + FIRST_CLIENT;
        loop {
            let now = *state.borrow_and_update();
            let kept = *sessions.borrow_and_update() + *recordings.borrow_and_update();
            let idle = now.lifetime == Lifetime::Managed && now.connections == 0 && kept == 0;
            if idle && (now.used || Instant::now() >= first) {
                return;
            }
            tokio::select! {
                // No sender goes before the service does.
                _ = state.changed() => {}
                changed = sessions.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                changed = recordings.changed() => if changed.is_err() {
                    return std::future::pending().await;
                },
                () = tokio::time::sleep_until(first), if idle => {}
            }
        }
    }
}

/// A connection that keeps a managed service alive.
#[derive(Debug)]
pub(super) struct Connected(std::sync::Arc<Life>);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.connections -= 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;

    use super::*;

    type Kept = watch::Sender<usize>;

    fn life(lifetime: Lifetime) -> (Arc<Life>, Kept, Kept) {
        (Arc::new(Life::new(lifetime)), Kept::new(0), Kept::new(0))
    }

    #[tokio::test(start_paused = true)]
    async fn a_managed_service_waits_for_its_first_client_and_then_for_the_last() {
        let (life, sessions, recordings) = life(Lifetime::Managed);
        let over = tokio::spawn({
            let (life, sessions, recordings) =
                (Arc::clone(&life), sessions.subscribe(), recordings.subscribe());
            async move { life.over(sessions, recordings).await }
        });
        tokio::time::sleep(FIRST_CLIENT / 2).await;
        drop(life.connected()); // a starter that only looked
        tokio::time::sleep(FIRST_CLIENT / 4).await;
        assert!(!over.is_finished(), "its first client is still to come");
        let (first, second) = (life.connected(), life.connected());
        life.used();
        tokio::time::sleep(2 * FIRST_CLIENT).await;
        drop(first);
        tokio::time::sleep(FIRST_CLIENT).await;
        assert!(!over.is_finished());
        sessions.send_replace(1);
        drop(second);
        tokio::time::sleep(FIRST_CLIENT).await;
        assert!(!over.is_finished(), "a named session waits for its idle end");
        recordings.send_replace(1);
        sessions.send_replace(0);
        tokio::time::sleep(FIRST_CLIENT).await;
        assert!(!over.is_finished(), "a recording of the operator's goes on");
        recordings.send_replace(0);
        over.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_nobody_comes_to_ends() {
        let (life, sessions, recordings) = life(Lifetime::Managed);
        let start = Instant::now();
        life.over(sessions.subscribe(), recordings.subscribe()).await;
        assert_eq!(start.elapsed().as_secs(), FIRST_CLIENT.as_secs());
    }

    #[tokio::test(start_paused = true)]
    async fn a_persistent_one_stays() {
        let (life, sessions, recordings) = life(Lifetime::Managed);
        drop(life.connected());
        assert!(life.make_persistent() && !life.make_persistent());
        assert!(life.over(sessions.subscribe(), recordings.subscribe()).now_or_never().is_none());
    }
}

//! A driver whose engine is in a service, and which outlives it.

use std::sync::{Arc, Mutex, PoisonError};

use deskhand_core::call::{Call, Outcome, SessionId};
use deskhand_core::driver::{Driver, Profile, ToolListing};
use deskhand_core::{Code, Error};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Client;
use crate::wire;

/// What a proxy does when its service is gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnLoss {
    /// Uses a service that somebody started again.
    #[default]
    Reconnect,
    /// Starts one, if there is none.
    Relaunch,
    /// Fails from then on.
    Fail,
}

/// Finds the way to a service.
pub trait Connect: Send + Sync + 'static {
    /// A connection that holds the lease of `session`; starts a service if there is none and `launch` is set.
    fn connect(&self, session: SessionId, launch: bool) -> BoxFuture<'static, Result<Client, Error>>;
}

/// Forwards each call to a service. It repeats none: what was under way when the service went may have landed.
pub struct Proxy {
    connector: Arc<dyn Connect>,
    on_loss: OnLoss,
    profile: Profile,
    tools: Vec<ToolListing>,
    state: Arc<Mutex<State>>,
    /// Held by the call that looks for a new service; the others that found the old one gone wait for what it finds.
    reconnecting: Arc<tokio::sync::Mutex<()>>,
}

struct State {
    client: Client,
    /// The session in the service, which is another one after each loss.
    session: SessionId,
    /// The first session's id, and how many have followed it.
    first: SessionId,
    followed: u32,
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("on_loss", &self.on_loss).finish_non_exhaustive()
    }
}

impl Proxy {
    /// Connects, and fetches the list of tools: a client must never be welcomed and then find no tools.
    ///
    /// # Errors
    /// Those of the connector and of the list.
    pub async fn new(
        connector: Arc<dyn Connect>,
        session: SessionId,
        profile: Profile,
        on_loss: OnLoss,
    ) -> Result<Self, Error> {
        let client = connector.connect(session.clone(), true).await?;
        let parameters = wire::ListParameters { profile: profile.into() };
        let listed = client.request::<wire::List>(None, parameters).await?;
        let tools = listed.tools.into_iter().map(Into::into).collect();
        let state = State { client, session: session.clone(), first: session, followed: 0 };
        Ok(Self {
            connector,
            on_loss,
            profile,
            tools,
            state: Arc::new(Mutex::new(state)),
            reconnecting: Arc::default(),
        })
    }

    fn current(&self) -> (Client, SessionId) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.client.clone(), state.session.clone())
    }

    /// The answer to a call that finds its service gone: a new one, which the next call can use, or none.
    fn after_loss(&self, lost: &Client) -> BoxFuture<'static, Outcome> {
        let unreachable = lost.shared.unreachable();
        if self.on_loss == OnLoss::Fail {
            return std::future::ready(Err(unreachable)).boxed();
        }
        let (connector, state) = (Arc::clone(&self.connector), Arc::clone(&self.state));
        let (launch, reconnecting) = (self.on_loss == OnLoss::Relaunch, Arc::clone(&self.reconnecting));
        async move {
            let _turn = reconnecting.lock().await;
            let next = {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if !state.client.is_lost() {
                    // Another call found it while this one waited. This one was sent to what was before all the same.
                    return Err(restarted());
                }
                state.followed += 1;
                SessionId::new(&format!("{}.{}", state.first, state.followed + 1))
            };
            match connector.connect(next.clone(), launch).await {
                Ok(client) => {
                    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                    state.client = client;
                    state.session = next;
                    Err(restarted())
                }
                Err(error) if error.code == Code::ServiceUnreachable => Err(unreachable),
                Err(error) => Err(Error::new(Code::ServiceUnreachable, error.message)),
            }
        }
        .boxed()
    }
}

fn restarted() -> Error {
    let message = "the service was started again: this call was not run, and all windows, snapshots and settings of before \
                   are gone. Check what the last input did, then go on";
    Error::new(Code::ServiceRestarted, message)
}

impl Driver for Proxy {
    fn tools(&self, profile: Profile) -> BoxFuture<'_, Result<Vec<ToolListing>, Error>> {
        if profile == self.profile {
            return std::future::ready(Ok(self.tools.clone())).boxed();
        }
        let (client, _) = self.current();
        async move {
            let parameters = wire::ListParameters { profile: profile.into() };
            let listed = client.request::<wire::List>(None, parameters).await?;
            Ok(listed.tools.into_iter().map(Into::into).collect())
        }
        .boxed()
    }

    fn submit(&self, call: Call) -> BoxFuture<'static, Outcome> {
        let (client, session) = self.current();
        if client.is_lost() {
            return self.after_loss(&client);
        }
        client.submit(Call { session: Some(session), ..call })
    }

    fn leave(&self, _: &SessionId) {
        let (client, session) = self.current();
        client.leave(&session);
    }

    fn end_session(&self, _: SessionId) -> BoxFuture<'_, ()> {
        let (client, session) = self.current();
        async move {
            let ended =
                client.request::<wire::SessionEnd>(Some(&session), wire::SessionEndParameters::default());
            if let Err(error) = ended.await {
                tracing::debug!(%error, "the session's end was not acknowledged");
            }
        }
        .boxed()
    }
}

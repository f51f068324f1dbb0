//! A line to an application that does not go over the bus.
//!
//! An action may open a modal dialogue that GTK 3 runs inside of the handler of the message. The application then reads
//! nothing more from that connection until the dialogue closes, so an action that went over the bus would cut the
//! application's tree off. Applications with GTK's bridge offer a socket of their own; each action gets a fresh connection
//! to it, since one that carried an action may be one of those that nobody reads.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use zbus::message::Message;
use zbus::zvariant::DynamicType;

use super::app::{APPLICATION, App, Failure};
use super::bus::{Bus, CallError, Method, ROOT};

/// An application that is well takes about a millisecond; if it takes longer the bus has to do.
const CONNECT: Duration = Duration::from_millis(300);
/// A connection is kept so long after its action, lest the application sees its caller go in mid-action.
const LINGER: Duration = Duration::from_secs(5);

/// A connection for one action.
#[derive(Debug)]
pub(super) struct Line(zbus::Connection);

impl Line {
    /// A line to `app`, if it offers one.
    pub(super) async fn to(app: &App, bus: &Bus) -> Option<Self> {
        let until = Instant::now() + CONNECT;
        let address = app
            .line_address(|| async {
                let asked =
                    app.ask_for::<String, _>(bus, ROOT, APPLICATION, "GetApplicationBusAddress", &(), until);
                match asked.await {
                    Ok(address) => Ok(Some(address).filter(|address| !address.is_empty())),
                    Err(Failure::Object(_)) => Ok(None),
                    Err(failure) => Err(failure),
                }
            })
            .await?;
        let opening = zbus::connection::Builder::address(address.as_str()).ok()?.p2p().build();
        match tokio::time::timeout_at(until, opening).await {
            Ok(Ok(connection)) => Some(Self(connection)),
            Ok(Err(error)) => {
                tracing::debug!(app = %app.owner, %error, "no direct line");
                None
            }
            Err(_) => None,
        }
    }

    /// Calls a method and hands the line over to its own end.
    pub(super) async fn call<B>(
        self,
        method: Method<'_>,
        body: &B,
        limit: Duration,
    ) -> Result<Message, CallError>
    where
        B: Serialize + DynamicType,
    {
        let Self(connection) = self;
        let call =
            connection.call_method(None::<&str>, method.object, Some(method.interface), method.member, body);
        let answer = tokio::time::timeout(limit, call).await;
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            drop(connection);
        });
        match answer {
            Err(_) => Err(CallError::TimedOut),
            Ok(Ok(message)) => Ok(message),
            Ok(Err(zbus::Error::MethodError(name, text, _))) => {
                Err(CallError::Refused { name: name.to_string(), text: text.unwrap_or_default() })
            }
            // The application went while it was asked: what it did is as uncertain as without an answer.
            Ok(Err(zbus::Error::InputOutput(_))) => Err(CallError::OwnerGone),
            Ok(Err(error)) => Err(error.into()),
        }
    }
}

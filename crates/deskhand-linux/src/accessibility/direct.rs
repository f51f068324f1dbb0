//! A line to an application that does not go over the bus.
//!
//! An action may open a modal dialogue that GTK 3 runs inside of the handler of the message. The application then reads
//! nothing more from that connection until the dialogue closes, so an action that went over the bus would cut the
//! application's tree off. Applications with GTK's bridge offer a socket of their own; each action gets a fresh connection
//! to it, since one that carried an action may be one of those that nobody reads.

use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::Serialize;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use zbus::message::Message;
use zbus::zvariant::DynamicType;

use deskhand_core::desktop::{Change, ChangeKind, State};

use super::app::{APPLICATION, App, Failure, Silence};
use super::bus::{Bus, CallError, Calls, Method, ROOT};
use super::walk;
use super::wire::{Facts, role};

/// An application that is well takes about a millisecond; if it takes longer the bus has to do.
const CONNECT: Duration = Duration::from_millis(300);
/// A connection is kept so long after its action, lest the application sees its caller go in mid-action.
const LINGER: Duration = Duration::from_secs(5);
/// Asking for an application's windows, to see whether one of them is a dialogue.
const LOOK: Duration = Duration::from_secs(2);

/// A connection for one action.
#[derive(Debug)]
pub(super) struct Line(zbus::Connection);

impl Line {
    /// A line to `app`, if it offers one.
    pub(super) async fn to(app: &App, bus: &Bus) -> Option<Self> {
        connect(app, bus).await.map(Self)
    }

    /// Calls a method, and keeps the line for as long as `app` may still be inside of it.
    pub(super) async fn call<B>(
        self,
        bus: &Arc<Bus>,
        app: &Arc<App>,
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
        tokio::spawn(hold(connection, Arc::downgrade(bus), Arc::clone(app)));
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

/// Opens the line that a browser is read on. It takes a third of the time that it takes over the bus, and browsers have
/// thousands of objects. Nothing is ever done on it but reading.
pub(super) async fn open_reader(app: &App, bus: &Bus) {
    app.open_reader(|| async { Some(Calls::direct(connect(app, bus).await?)) }).await;
}

/// A connection to `app`, if it offers one.
async fn connect(app: &App, bus: &Bus) -> Option<zbus::Connection> {
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
        Ok(Ok(connection)) => Some(connection),
        Ok(Err(error)) => {
            tracing::debug!(app = %app.owner, %error, "no direct line");
            None
        }
        Err(_) => None,
    }
}

/// Keeps `line` open until no dialogue of `app` is.
///
/// The application may have answered the action and be inside of its handler still: that of a button which opened a modal
/// dialogue returns when the dialogue closes. If the line ended there, the application would hang for good at the next
/// key: GTK's bridge then takes up all of its connections anew, and waits on the one whose end it has not read for the
/// handler to return. For the same reason nothing more is sent on it.
async fn hold(line: zbus::Connection, bus: Weak<Bus>, app: Arc<App>) {
    tokio::time::sleep(LINGER).await;
    while let Some(mut changes) = dialogue_is_open(&bus, &app).await {
        let news = async {
            loop {
                match changes.recv().await {
                    Ok(change) if change.element.owner != app.owner => {}
                    Ok(change)
                        if !matches!(
                            change.kind,
                            ChangeKind::Children | ChangeKind::Window | ChangeKind::Lost
                        ) => {}
                    Ok(_) | Err(RecvError::Lagged(_)) => return true,
                    Err(RecvError::Closed) => return false,
                }
            }
        };
        if !news.await {
            break;
        }
        // The window goes before the handler returns.
        tokio::time::sleep(LINGER).await;
    }
    drop(line);
}

/// Changes to wait for if the application shows a dialogue, or does not say.
async fn dialogue_is_open(bus: &Weak<Bus>, app: &Arc<App>) -> Option<broadcast::Receiver<Change>> {
    let bus = bus.upgrade()?;
    if !bus.apps().has(app) {
        return None;
    }
    let changes = bus.changes().subscribe();
    let until = Instant::now() + LOOK;
    let windows = match walk::children_of(&bus, &app.root(), until).await {
        Ok(windows) => windows,
        Err(Failure::Silent(Silence::Gone | Silence::BusClosed)) => return None,
        Err(_) => return Some(changes),
    };
    let asked = windows.iter().map(|window| walk::facts(&bus, window, until));
    let is_dialogue = |facts: &Facts| {
        matches!(facts.role, role::DIALOG | role::ALERT | role::FILE_CHOOSER)
            || facts.states.has(State::Modal)
    };
    let facts = futures_util::future::join_all(asked).await;
    facts.iter().any(|facts| facts.as_ref().is_ok_and(is_dialogue)).then_some(changes)
}

//! One connection to the accessibility bus.
//!
//! One task reads it and never waits for anybody: it applies events to the mirrors and hands replies to their
//! callers in the order in which they came. Whoever holds a reply therefore knows that every event which its
//! application sent before it has been applied.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use serde::Serialize;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};
use zbus::message::Type;
use zbus::zvariant::DynamicType;
use zbus::{Message, MessageStream};

use deskhand_core::desktop::{Change, PortError};

use super::app::Apps;
use super::event;
use crate::environment::SessionEnvironment;

/// Connecting, authentication and the hello on a bus: a healthy daemon takes a few milliseconds.
const CONNECT: Duration = Duration::from_secs(3);
/// The session bus may have to start the accessibility bus for the first question.
const ADDRESS: Duration = Duration::from_secs(5);
/// Set-up calls on the accessibility bus; the first of them may have to start the registry.
const SETUP: Duration = Duration::from_secs(5);
/// Messages that the connection holds for the reading task, which takes them out at once.
const QUEUED_MESSAGES: usize = 4096;
/// Changes that a receiver may lag behind before it is told that it lost some.
const QUEUED_CHANGES: usize = 4096;

pub(super) const REGISTRY: &str = "org.a11y.atspi.Registry";
pub(super) const ROOT: &str = "/org/a11y/atspi/accessible/root";
const BUS: &str = "org.freedesktop.DBus";
const BUS_PATH: &str = "/org/freedesktop/DBus";

/// What the mirrors and waiting receivers live from. `object:` alone makes every toolkit emit all of its events. Asked of
/// one application at a time, when it is first looked at: a browser must have a page by then (see [`super::wake`]).
const EVENTS: [&str; 3] = ["object:", "window:", "document:"];
const RULES: [&str; 5] = [
    "type='signal',interface='org.a11y.atspi.Event.Object'",
    "type='signal',interface='org.a11y.atspi.Event.Window'",
    "type='signal',interface='org.a11y.atspi.Event.Document'",
    "type='signal',interface='org.a11y.atspi.Cache'",
    "type='signal',sender='org.freedesktop.DBus',interface='org.freedesktop.DBus',member='NameOwnerChanged'",
];

/// Why a call brought no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum CallError {
    /// No reply in time.
    #[error("no reply in time")]
    TimedOut,
    /// The application has left the bus.
    #[error("the application has left the bus")]
    OwnerGone,
    /// The bus itself has ended.
    #[error("the accessibility bus has ended")]
    BusClosed,
    /// The other side answered with an error.
    #[error("{name}: {text}")]
    Refused { name: String, text: String },
    /// The answer was not what the interface promises, or the question could not be put.
    #[error("malformed: {0}")]
    Malformed(String),
}

impl From<zbus::Error> for CallError {
    fn from(error: zbus::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

impl From<zbus::zvariant::Error> for CallError {
    fn from(error: zbus::zvariant::Error) -> Self {
        Self::Malformed(error.to_string())
    }
}

/// A question to an object: its place, interface and method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Method<'a> {
    pub owner: &'a str,
    pub object: &'a str,
    pub interface: &'static str,
    pub member: &'static str,
}

type Waiting = Mutex<HashMap<u32, oneshot::Sender<Message>>>;

/// The connection to the bus.
#[derive(Debug)]
pub(super) struct Bus {
    calls: Calls,
    apps: Arc<Apps>,
    changes: broadcast::Sender<Change>,
}

/// Calls over one connection. Dropping it ends its tasks.
#[derive(Debug)]
pub(super) struct Calls {
    outgoing: mpsc::UnboundedSender<Message>,
    waiting: Arc<Waiting>,
    closed: CancellationToken,
    _end: DropGuard,
}

/// A reply that has not come yet. Dropping it forgets the call; the reply is then ignored.
#[derive(Debug)]
pub(super) struct Reply<'a> {
    serial: u32,
    waiting: &'a Waiting,
    receiver: oneshot::Receiver<Message>,
}

impl Drop for Reply<'_> {
    fn drop(&mut self) {
        lock(self.waiting).remove(&self.serial);
    }
}

impl Reply<'_> {
    /// Waits until `until`; may be called again after a time-out.
    pub(super) async fn wait(&mut self, until: Instant) -> Result<Message, CallError> {
        let message = match tokio::time::timeout_at(until, &mut self.receiver).await {
            Err(_) => return Err(CallError::TimedOut),
            Ok(Err(_)) => return Err(CallError::BusClosed),
            Ok(Ok(message)) => message,
        };
        message_or_refusal(message)
    }
}

/// Tells answers from errors.
pub(super) fn message_or_refusal(message: Message) -> Result<Message, CallError> {
    if message.message_type() != Type::Error {
        return Ok(message);
    }
    let name = message.header().error_name().map(ToString::to_string).unwrap_or_default();
    let gone = ["ServiceUnknown", "NameHasNoOwner", "Disconnected", "NoReply"];
    if gone.iter().any(|end| name.strip_prefix("org.freedesktop.DBus.Error.") == Some(end)) {
        return Err(CallError::OwnerGone);
    }
    let text = message.body().deserialize::<&str>().map(str::to_owned).unwrap_or_default();
    Err(CallError::Refused { name, text })
}

/// Short critical sections that cannot panic half-way: a poisoned lock is still good.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bus {
    /// Finds the accessibility bus of `environment`, connects and subscribes.
    pub(super) async fn connect(environment: &SessionEnvironment) -> Result<Arc<Self>, PortError> {
        let address = accessibility_address(environment).await?;
        let stream = open("accessibility bus", &address).await?;
        let bus = Arc::new(Self::over(stream));
        bus.subscribe().await.map_err(|error| match error {
            CallError::TimedOut => unavailable(
                "accessibility registry",
                "it does not answer; is at-spi2-registryd stopped or hanging?".to_owned(),
            ),
            error => unavailable("accessibility registry", error.to_string()),
        })?;
        Ok(bus)
    }

    fn over(stream: MessageStream) -> Self {
        let (changes, _) = broadcast::channel(QUEUED_CHANGES);
        let apps = Arc::new(Apps::default());
        let signals = Signals { apps: Arc::clone(&apps), changes: changes.clone() };
        Self { calls: Calls::over(stream, Some(signals)), apps, changes }
    }

    /// Rules in one go, and a question that starts the registry if it does not run yet.
    async fn subscribe(&self) -> Result<(), CallError> {
        let until = Instant::now() + SETUP;
        let mut replies = Vec::new();
        for rule in RULES {
            let method = Method { owner: BUS, object: BUS_PATH, interface: BUS, member: "AddMatch" };
            replies.push(self.send(method, &(rule,))?);
        }
        let ping =
            Method { owner: REGISTRY, object: ROOT, interface: "org.freedesktop.DBus.Peer", member: "Ping" };
        replies.push(self.send(ping, &())?);
        for mut reply in replies {
            reply.wait(until).await?;
        }
        Ok(())
    }

    /// Makes `owner` announce its changes. When this returns the application has the news in its queue, before all that
    /// it is asked from now on.
    pub(super) async fn register(&self, owner: &str, limit: Duration) -> Result<(), CallError> {
        let until = Instant::now() + limit;
        let mut replies = Vec::new();
        for event in EVENTS {
            let method = Method {
                owner: REGISTRY,
                object: "/org/a11y/atspi/registry",
                interface: REGISTRY,
                member: "RegisterEvent",
            };
            replies.push(self.send(method, &(event, [""; 0].as_slice(), owner))?);
        }
        for mut reply in replies {
            reply.wait(until).await?;
        }
        Ok(())
    }

    /// Puts a question on its way.
    pub(super) fn send<B>(&self, method: Method<'_>, body: &B) -> Result<Reply<'_>, CallError>
    where
        B: Serialize + DynamicType,
    {
        self.calls.send(method, body)
    }

    /// Asks and waits at most `limit`.
    pub(super) async fn call<B>(
        &self,
        method: Method<'_>,
        body: &B,
        limit: Duration,
    ) -> Result<Message, CallError>
    where
        B: Serialize + DynamicType,
    {
        self.send(method, body)?.wait(Instant::now() + limit).await
    }

    /// Process of the connection `owner`, as the bus daemon sees it.
    pub(super) async fn process_of(&self, owner: &str, limit: Duration) -> Result<u32, CallError> {
        let method =
            Method { owner: BUS, object: BUS_PATH, interface: BUS, member: "GetConnectionUnixProcessID" };
        let reply = self.call(method, &(owner,), limit).await?;
        Ok(reply.body().deserialize::<u32>()?)
    }

    /// Whether the bus has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.calls.is_closed()
    }

    pub(super) fn apps(&self) -> &Apps {
        &self.apps
    }

    pub(super) fn changes(&self) -> &broadcast::Sender<Change> {
        &self.changes
    }
}

impl Calls {
    /// Without `signals` those that come are not heeded.
    fn over(stream: MessageStream, signals: Option<Signals>) -> Self {
        let connection = zbus::Connection::from(&stream);
        let (outgoing, queue) = mpsc::unbounded_channel();
        let waiting = Arc::new(Waiting::default());
        let closed = CancellationToken::new();
        tokio::spawn(closed.clone().run_until_cancelled_owned(write(connection, queue, closed.clone())));
        let reader = Reader { waiting: Arc::clone(&waiting), signals };
        tokio::spawn(closed.clone().run_until_cancelled_owned(reader.read(stream, closed.clone())));
        Self { outgoing, waiting, _end: closed.clone().drop_guard(), closed }
    }

    /// Calls over a connection that does not go over a bus.
    pub(super) fn direct(connection: zbus::Connection) -> Self {
        Self::over(MessageStream::from(connection), None)
    }

    /// Puts a question on its way.
    pub(super) fn send<B>(&self, method: Method<'_>, body: &B) -> Result<Reply<'_>, CallError>
    where
        B: Serialize + DynamicType,
    {
        let message = Message::method_call(method.object, method.member)?
            .destination(method.owner)?
            .interface(method.interface)?
            .build(body)?;
        let serial = message.primary_header().serial_num().get();
        let (sender, receiver) = oneshot::channel();
        lock(&self.waiting).insert(serial, sender);
        let reply = Reply { serial, waiting: &self.waiting, receiver };
        // Looked at after the insertion: the reader clears what waits once it has cancelled the token.
        if self.closed.is_cancelled() || self.outgoing.send(message).is_err() {
            return Err(CallError::BusClosed);
        }
        Ok(reply)
    }

    /// Whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.is_cancelled()
    }
}

/// Writing has a task of its own: a caller that gives up must not leave half a message on the socket.
async fn write(
    connection: zbus::Connection,
    mut queue: mpsc::UnboundedReceiver<Message>,
    closed: CancellationToken,
) {
    while let Some(message) = queue.recv().await {
        if let Err(error) = connection.send(&message).await {
            tracing::debug!(%error, "the connection takes no more messages");
            break;
        }
    }
    closed.cancel();
}

struct Reader {
    waiting: Arc<Waiting>,
    signals: Option<Signals>,
}

/// Where signals go.
struct Signals {
    apps: Arc<Apps>,
    changes: broadcast::Sender<Change>,
}

impl Reader {
    async fn read(self, mut stream: MessageStream, closed: CancellationToken) {
        // Callers that wait are released however this task ends.
        let _release = Release { waiting: Arc::clone(&self.waiting), closed };
        while let Some(message) = stream.next().await {
            let Ok(message) = message else { break };
            match message.message_type() {
                Type::MethodReturn | Type::Error => self.hand_over(message),
                Type::Signal => {
                    if let Some(signals) = &self.signals {
                        signals.apply(&message);
                    }
                }
                Type::MethodCall => {}
            }
        }
        if let Some(signals) = &self.signals {
            tracing::debug!("the accessibility bus has ended");
            let _ = signals.changes.send(event::lost());
        }
    }

    fn hand_over(&self, message: Message) {
        let serial = message.header().reply_serial().map(std::num::NonZeroU32::get);
        let caller = serial.and_then(|serial| lock(&self.waiting).remove(&serial));
        if let Some(caller) = caller {
            let _ = caller.send(message);
        }
    }
}

impl Signals {
    fn apply(&self, message: &Message) {
        match event::parse(message) {
            Some(event::Signal::Left(owner)) => self.apps.forget(&owner),
            Some(event::Signal::Event(event)) => {
                let event = self.apps.apply(event, message.recv_position());
                if let Some(change) = event.change() {
                    let _ = self.changes.send(change); // nobody may be listening
                }
            }
            None => {}
        }
    }
}

struct Release {
    waiting: Arc<Waiting>,
    closed: CancellationToken,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.closed.cancel();
        lock(&self.waiting).clear();
    }
}

async fn open(what: &'static str, address: &str) -> Result<MessageStream, PortError> {
    let builder = zbus::connection::Builder::address(address)
        .map_err(|error| unavailable(what, format!("bad address {address:?}: {error}")))?;
    let opening = builder.max_queued(QUEUED_MESSAGES).build();
    match tokio::time::timeout(CONNECT, opening).await {
        // Nothing is subscribed yet, so nothing is missed before the stream exists.
        Ok(Ok(connection)) => Ok(MessageStream::from(connection)),
        Ok(Err(error)) => Err(unavailable(what, format!("{address}: {error}"))),
        Err(_) => Err(unavailable(
            what,
            format!("{address} takes connections but does not answer within {} s", CONNECT.as_secs()),
        )),
    }
}

/// Opens the session bus and asks it for the accessibility bus.
async fn accessibility_address(environment: &SessionEnvironment) -> Result<String, PortError> {
    let session = Session::connect(environment).await?;
    session.accessibility_address().await
}

/// The session bus, for as long as one of its few questions takes.
#[derive(Debug)]
pub(super) struct Session(zbus::Connection);

impl Session {
    pub(super) async fn connect(environment: &SessionEnvironment) -> Result<Self, PortError> {
        let Some(address) = &environment.session_bus else {
            return Err(unavailable(
                "session bus",
                "DBUS_SESSION_BUS_ADDRESS is not set; start deskhand from within the desktop session, or \
                 with --private"
                    .to_owned(),
            ));
        };
        let stream = open("session bus", address).await?;
        Ok(Self(zbus::Connection::from(stream)))
    }

    async fn ask<B>(&self, interface: &'static str, member: &'static str, body: &B) -> Result<Message, String>
    where
        B: Serialize + DynamicType,
    {
        let call = self.0.call_method(Some("org.a11y.Bus"), "/org/a11y/bus", Some(interface), member, body);
        match tokio::time::timeout(ADDRESS, call).await {
            Ok(Ok(message)) => Ok(message),
            Ok(Err(error)) => Err(format!("{error} (is at-spi2-core installed?)")),
            Err(_) => Err(format!(
                "org.a11y.Bus does not answer within {} s; is at-spi-bus-launcher stopped?",
                ADDRESS.as_secs()
            )),
        }
    }

    pub(super) async fn accessibility_address(&self) -> Result<String, PortError> {
        let what = "accessibility bus";
        let reply =
            self.ask("org.a11y.Bus", "GetAddress", &()).await.map_err(|why| unavailable(what, why))?;
        let address: String =
            reply.body().deserialize().map_err(|error| unavailable(what, error.to_string()))?;
        if address.is_empty() {
            return Err(unavailable(what, "org.a11y.Bus gives no address".to_owned()));
        }
        Ok(address)
    }

    /// Whether applications are told that assistive technology is in use. Read only: writing it changes how every
    /// application of the desktop starts.
    pub(super) async fn is_enabled(&self) -> Result<bool, String> {
        let reply =
            self.ask("org.freedesktop.DBus.Properties", "Get", &("org.a11y.Status", "IsEnabled")).await?;
        let body = reply.body();
        let value: zbus::zvariant::Value<'_> = body.deserialize().map_err(|error| error.to_string())?;
        bool::try_from(value).map_err(|error| error.to_string())
    }
}

pub(super) fn unavailable(what: &'static str, why: String) -> PortError {
    PortError::Unavailable { what, why }
}

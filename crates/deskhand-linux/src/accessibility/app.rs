//! Applications on the bus: how to ask one, and what is remembered of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, OnceCell, Semaphore};
use tokio::time::Instant;
use zbus::Message;
use zbus::message::Sequence;
use zbus::zvariant::{DynamicType, Type, Value};

use deskhand_core::desktop::{ElementId, PortError};

use super::bus::{Bus, CallError, Calls, Method, ROOT, Reply, lock};
use super::cells::{self, Cells, Present};
use super::event::{Event, What};
use super::mirror::Mirror;
use super::naming;
use super::process;
pub(super) use super::toolkit::Toolkit;
use super::wire::{InterfaceBits, StateBits, role};

/// One round trip to an application (document 04 of the specification).
pub(super) const ROUND_TRIP: Duration = Duration::from_secs(2);
/// After a time-out, one `Ping` within this decides between slow and frozen, unless the application has answered
/// something else meanwhile: a `Ping` stands in line behind all that was asked before.
const PING: Duration = Duration::from_millis(500);
/// An application that was found frozen is asked again at each call, but not for long.
const STILL_FROZEN: Duration = Duration::from_millis(100);
/// Objects that were shown, as far back as they are remembered: a menu with its submenus, and what was open before.
const SHOWN: usize = 16;
/// Calls in flight to one application. More brings no speed and fills its queue.
const IN_FLIGHT: usize = 128;

pub(super) const ACCESSIBLE: &str = "org.a11y.atspi.Accessible";
pub(super) const APPLICATION: &str = "org.a11y.atspi.Application";
pub(super) const PROPERTIES: &str = "org.freedesktop.DBus.Properties";

/// What an application says of itself once and for all.
#[derive(Clone, Debug, Default)]
pub(super) struct About {
    pub name: String,
    pub toolkit: Toolkit,
    /// Toolkit name and version in words.
    pub toolkit_words: Option<String>,
}

/// One application: a connection to the bus that publishes objects.
#[derive(Debug)]
pub(super) struct App {
    pub owner: Arc<str>,
    about: OnceCell<About>,
    pid: OnceCell<Option<u32>>,
    line: OnceCell<Option<String>>,
    /// A connection of its own for reading, where that is offered and worth it.
    reader: OnceCell<Option<Calls>>,
    /// Interfaces of a browser's objects, by role and states: they follow from these for the roles in [`role::is_plain`].
    interfaces: Mutex<HashMap<(u32, StateBits), InterfaceBits>>,
    slots: Semaphore,
    frozen: AtomicBool,
    /// When the application last answered anything.
    answered: Mutex<Option<Instant>>,
    pinging: tokio::sync::Mutex<()>,
    /// Held while the mirror is being filled or completed.
    pub reading: tokio::sync::Mutex<()>,
    memory: Mutex<Memory>,
    woken: Mutex<HashSet<ElementId>>,
    /// Objects that announced that they are shown, the latest first: Qt lists its menus nowhere.
    announced: Mutex<VecDeque<ElementId>>,
    cells: Mutex<Cells>,
    listening: OnceCell<()>,
    /// Wakes whoever waits for this application to publish something.
    pub published: Notify,
}

/// The mirror and how it came to be.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub mirror: Mirror,
    /// The mirror holds what the application published, and its events since.
    pub loaded: bool,
    /// The bulk answer lacks most of what there is: a browser's bridge lists what it had when somebody asked for events
    /// first, which may have been before there was this page.
    pub poor: bool,
    /// While a bulk answer is on its way: events, which apply to it if they came after it.
    arriving: Option<Vec<(Sequence, Event)>>,
}

/// Why an application could not be read.
#[derive(Clone, Debug)]
pub(super) enum Silence {
    /// It does not answer.
    Frozen,
    /// It has left the bus.
    Gone,
    /// The bus has ended.
    BusClosed,
    /// The time of the whole operation is used up.
    OutOfTime,
}

/// A failed question: silence, or an error for this object alone.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    Silent(Silence),
    Object(CallError),
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::TimedOut => Self::Silent(Silence::OutOfTime),
            CallError::OwnerGone => Self::Silent(Silence::Gone),
            CallError::BusClosed => Self::Silent(Silence::BusClosed),
            error => Self::Object(error),
        }
    }
}

impl App {
    fn new(owner: Arc<str>) -> Self {
        Self {
            owner,
            about: OnceCell::new(),
            pid: OnceCell::new(),
            line: OnceCell::new(),
            reader: OnceCell::new(),
            interfaces: Mutex::default(),
            slots: Semaphore::new(IN_FLIGHT),
            frozen: AtomicBool::new(false),
            answered: Mutex::new(None),
            pinging: tokio::sync::Mutex::new(()),
            reading: tokio::sync::Mutex::new(()),
            memory: Mutex::new(Memory::default()),
            woken: Mutex::new(HashSet::new()),
            announced: Mutex::default(),
            cells: Mutex::default(),
            listening: OnceCell::new(),
            published: Notify::new(),
        }
    }

    pub(super) fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        lock(&self.memory)
    }

    pub(super) fn cells(&self) -> std::sync::MutexGuard<'_, Cells> {
        lock(&self.cells)
    }

    pub(super) fn root(&self) -> ElementId {
        ElementId { owner: Arc::clone(&self.owner), object: ROOT.into() }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen.load(Ordering::Relaxed)
    }

    /// Remembers that the application did not answer.
    pub(super) fn set_frozen(&self) {
        self.frozen.store(true, Ordering::Relaxed);
    }

    /// Learns what the application is and makes it announce its changes. A browser is only made to when it is read, by
    /// [`super::wake`].
    pub(super) async fn meet(&self, bus: &Bus, until: Instant) {
        match self.about(bus, until).await {
            Ok(about) if about.toolkit == Toolkit::Chromium => {}
            Ok(_) => self.listen(bus).await,
            Err(_) => {} // whoever needs to know asks again
        }
    }

    /// Makes the application announce its changes, if it does not yet. Without its events it is read all the same, and
    /// asked again the next time.
    pub(super) async fn listen(&self, bus: &Bus) {
        let asked = self.listening.get_or_try_init(|| bus.register(&self.owner, ROUND_TRIP)).await;
        if let Err(error) = asked {
            tracing::debug!(app = %self.owner, %error, "the registry takes no registration");
        }
    }

    /// Whether it was asked to announce its changes.
    pub(super) fn is_listened_to(&self) -> bool {
        self.listening.initialized()
    }

    /// Whether the window's tree has been asked to be built before; it has from now on.
    pub(super) fn was_woken(&self, root: &ElementId) -> bool {
        !lock(&self.woken).insert(root.clone())
    }

    /// Remembers an object that is shown, known or not: Qt uses the names of objects again that are no more.
    fn remember_shown(&self, event: &Event) {
        let is_shown = matches!(&event.what, What::State(name, true) if name == "showing");
        if !is_shown || self.known_toolkit().has_bulk() {
            return;
        }
        let mut shown = lock(&self.announced);
        shown.retain(|known| *known != event.source);
        shown.push_front(event.source.clone());
        shown.truncate(SHOWN);
    }

    /// Objects that announced that they are shown, the latest first.
    pub(super) fn announced(&self) -> Vec<ElementId> {
        lock(&self.announced).iter().cloned().collect()
    }

    /// Asks the application, with no more than [`IN_FLIGHT`] questions under way. A slow application is waited for until
    /// `until`, a frozen one for one round trip.
    pub(super) async fn ask<B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<Message, Failure>
    where
        B: Serialize + DynamicType,
    {
        if !cells::is_place(object) {
            return self.ask_object(bus, object, interface, member, body, until).await;
        }
        let cell = Present::find(bus, self, object, until).await?;
        let answer = self.ask_object(bus, &cell.object, interface, member, body, until).await;
        let Err(failure) = answer else { return answer };
        // What it says that it does not have, it has not done anything with.
        match cell.again(bus, &failure, until).await {
            Some(cell) => self.ask_object(bus, &cell.object, interface, member, body, until).await,
            None => Err(failure),
        }
    }

    /// As [`App::ask`], of an object of the bus.
    pub(super) async fn ask_object<B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<Message, Failure>
    where
        B: Serialize + DynamicType,
    {
        let _slot = self.slot(until).await?;
        let method = Method { owner: &self.owner, object, interface, member };
        self.answer(bus, bus.send(method, body)?, until).await
    }

    /// Asks for something that changes nothing, on the line for reading if there is one. An answer on it says nothing about
    /// which events have been applied.
    pub(super) async fn read<B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<Message, Failure>
    where
        B: Serialize + DynamicType,
    {
        let Some(line) = self.reader.get().and_then(Option::as_ref).filter(|line| !line.is_closed()) else {
            return self.ask(bus, object, interface, member, body, until).await;
        };
        let asked = {
            let _slot = self.slot(until).await?;
            let method = Method { owner: &self.owner, object, interface, member };
            match line.send(method, body) {
                Ok(reply) => self.answer(bus, reply, until).await,
                Err(error) => Err(error.into()),
            }
        };
        match asked {
            // The line, not the bus: whether the application has gone is for the bus to say.
            Err(Failure::Silent(Silence::BusClosed)) => {
                self.ask(bus, object, interface, member, body, until).await
            }
            asked => asked,
        }
    }

    /// Waits for one of the [`IN_FLIGHT`] places.
    async fn slot(&self, until: Instant) -> Result<tokio::sync::SemaphorePermit<'_>, Failure> {
        let Ok(Ok(slot)) = tokio::time::timeout_at(until, self.slots.acquire()).await else {
            return Err(Failure::Silent(Silence::OutOfTime));
        };
        if self.is_frozen() {
            return Err(Failure::Silent(Silence::Frozen));
        }
        Ok(slot)
    }

    /// Waits for a reply.
    async fn answer(&self, bus: &Bus, mut reply: Reply<'_>, until: Instant) -> Result<Message, Failure> {
        let first = until.min(Instant::now() + ROUND_TRIP);
        let mut answer = reply.wait(first).await;
        if matches!(answer, Err(CallError::TimedOut)) {
            if !self.answers(bus, PING).await {
                return Err(Failure::Silent(Silence::Frozen));
            }
            answer = reply.wait(until).await;
        }
        if !matches!(answer, Err(CallError::TimedOut)) {
            *lock(&self.answered) = Some(Instant::now());
        }
        Ok(answer?)
    }

    /// Asks for something that may take the application long, up to `until`. It does nothing else meanwhile, so no
    /// `Ping` can tell how it is; whether its process is stopped can.
    pub(super) async fn ask_patiently<B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<Message, Failure>
    where
        B: Serialize + DynamicType,
    {
        let method = Method { owner: &self.owner, object, interface, member };
        let mut reply = bus.send(method, body)?;
        loop {
            let answer = reply.wait(until.min(Instant::now() + ROUND_TRIP)).await;
            if !matches!(answer, Err(CallError::TimedOut)) {
                *lock(&self.answered) = Some(Instant::now());
                return Ok(answer?);
            }
            if self.pid(bus).await.is_some_and(process::is_stopped) {
                self.set_frozen();
                return Err(Failure::Silent(Silence::Frozen));
            }
            if Instant::now() >= until {
                return Err(Failure::Silent(Silence::OutOfTime));
            }
        }
    }

    /// Asks, and takes the body apart.
    pub(super) async fn ask_for<T, B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<T, Failure>
    where
        T: DeserializeOwned + Type,
        B: Serialize + DynamicType,
    {
        let reply = self.ask(bus, object, interface, member, body, until).await?;
        Ok(reply.body().deserialize::<T>().map_err(CallError::from)?)
    }

    /// As [`App::read`], and takes the body apart.
    pub(super) async fn read_for<T, B>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        member: &'static str,
        body: &B,
        until: Instant,
    ) -> Result<T, Failure>
    where
        T: DeserializeOwned + Type,
        B: Serialize + DynamicType,
    {
        let reply = self.read(bus, object, interface, member, body, until).await?;
        Ok(reply.body().deserialize::<T>().map_err(CallError::from)?)
    }

    /// Reads one property.
    pub(super) async fn property<T>(
        &self,
        bus: &Bus,
        object: &str,
        interface: &'static str,
        name: &'static str,
        until: Instant,
    ) -> Result<T, Failure>
    where
        T: for<'v> TryFrom<Value<'v>>,
    {
        let reply = self.ask(bus, object, PROPERTIES, "Get", &(interface, name), until).await?;
        let body = reply.body();
        let value: Value<'_> = body.deserialize().map_err(CallError::from)?;
        let value = match value {
            Value::Value(inner) => *inner,
            value => value,
        };
        T::try_from(value)
            .map_err(|_| Failure::Object(CallError::Malformed(format!("{name} is of another type"))))
    }

    /// Whether the application answers a `Ping`; remembers if it does not. Many callers share one question.
    async fn answers(&self, bus: &Bus, limit: Duration) -> bool {
        let _one = self.pinging.lock().await;
        if self.is_frozen() {
            return false;
        }
        let recently = |at: &Option<Instant>| at.is_some_and(|at| at.elapsed() < ROUND_TRIP);
        if recently(&lock(&self.answered)) {
            return true;
        }
        let answers = self.ping(bus, limit).await || recently(&lock(&self.answered));
        if !answers {
            tracing::info!(app = %self.owner, "application does not answer");
            self.frozen.store(true, Ordering::Relaxed);
        }
        answers
    }

    /// Whether the application's main loop runs. Any answer proves it, also an error.
    pub(super) async fn ping(&self, bus: &Bus, limit: Duration) -> bool {
        let method = Method {
            owner: &self.owner,
            object: ROOT,
            interface: "org.freedesktop.DBus.Peer",
            member: "Ping",
        };
        !matches!(bus.call(method, &(), limit).await, Err(CallError::TimedOut))
    }

    /// Whether an application that was found frozen still is. Costs nothing for the others.
    pub(super) async fn still_frozen(&self, bus: &Bus) -> bool {
        if !self.is_frozen() {
            return false;
        }
        let thawed = self.ping(bus, STILL_FROZEN).await;
        if thawed {
            self.frozen.store(false, Ordering::Relaxed);
        }
        !thawed
    }

    /// Address of the application's own socket, asked for until it has given one or said that it has none.
    pub(super) async fn line_address<F: Future<Output = Result<Option<String>, Failure>>>(
        &self,
        ask: impl FnOnce() -> F,
    ) -> Option<&String> {
        self.line.get_or_try_init(ask).await.ok()?.as_ref()
    }

    /// The interfaces of an object, if another one told them that has the same.
    pub(super) fn known_interfaces(&self, role: u32, states: StateBits) -> Option<InterfaceBits> {
        let plain = self.known_toolkit() == Toolkit::Chromium && role::is_plain(role);
        plain.then(|| lock(&self.interfaces).get(&(role, states.of_interfaces())).copied()).flatten()
    }

    /// Remembers the interfaces that an object told.
    pub(super) fn learn_interfaces(&self, role: u32, states: StateBits, interfaces: InterfaceBits) {
        if self.known_toolkit() == Toolkit::Chromium && role::is_plain(role) {
            lock(&self.interfaces).insert((role, states.of_interfaces()), interfaces);
        }
    }

    /// Opens the line for reading, unless that was tried before.
    pub(super) async fn open_reader<F: Future<Output = Option<Calls>>>(&self, open: impl FnOnce() -> F) {
        self.reader.get_or_init(open).await;
    }

    /// The process behind the connection.
    pub(super) async fn pid(&self, bus: &Bus) -> Option<u32> {
        *self.pid.get_or_init(|| async { bus.process_of(&self.owner, ROUND_TRIP).await.ok() }).await
    }

    /// What the application says of itself; asked once.
    pub(super) async fn about(&self, bus: &Bus, until: Instant) -> Result<&About, Failure> {
        self.about
            .get_or_try_init(|| async {
                let text = |interface, name| self.property::<String>(bus, ROOT, interface, name, until);
                let (name, toolkit, version) = tokio::join!(
                    text(ACCESSIBLE, "Name"),
                    text(APPLICATION, "ToolkitName"),
                    text(APPLICATION, "Version"),
                );
                if let Err(Failure::Silent(silence)) = &toolkit {
                    return Err(Failure::Silent(silence.clone()));
                }
                let (toolkit, version) = (toolkit.unwrap_or_default(), version.unwrap_or_default());
                let words = format!("{toolkit} {version}").trim().to_owned();
                let name = name.unwrap_or_default();
                Ok(About {
                    toolkit: Toolkit::named(&name, &toolkit, &version),
                    name,
                    toolkit_words: (!words.is_empty()).then_some(words),
                })
            })
            .await
    }

    /// The toolkit, as far as it is known without asking.
    pub(super) fn known_toolkit(&self) -> Toolkit {
        self.about.get().map(|about| about.toolkit).unwrap_or_default()
    }

    /// Toolkit name and version in words, as far as they are known without asking.
    pub(super) fn toolkit_words(&self) -> Option<String> {
        self.about.get().and_then(|about| about.toolkit_words.clone())
    }

    /// The application's name for messages.
    pub(super) fn title(&self) -> String {
        match self.about.get() {
            Some(about) if !about.name.is_empty() => about.name.clone(),
            _ => format!("the application {}", self.owner),
        }
    }

    pub(super) fn not_responding(&self, waiting_for: impl Into<String>) -> PortError {
        PortError::AppNotResponding { app: self.title(), waiting_for: waiting_for.into() }
    }

    /// The port's error for a failed question about an element.
    pub(super) fn port_error(&self, failure: &Failure, waiting_for: &str) -> PortError {
        match failure {
            Failure::Silent(Silence::Frozen | Silence::OutOfTime) => self.not_responding(waiting_for),
            Failure::Silent(Silence::Gone) => PortError::ElementGone,
            Failure::Silent(Silence::BusClosed) => {
                super::bus::unavailable("accessibility bus", "it has ended; try again".to_owned())
            }
            Failure::Object(CallError::Refused { name, text }) => {
                // Toolkits do not agree on how to say that an object is no more.
                let gone = ["UnknownObject", "UnknownMethod", "UnknownInterface", "ObjectNotFound"];
                if gone.iter().any(|end| name.ends_with(end)) {
                    PortError::ElementGone
                } else {
                    PortError::NotSupported(format!("{} refuses {waiting_for}: {text}", self.title()))
                }
            }
            Failure::Object(error) => {
                PortError::NotSupported(format!("{} refuses {waiting_for}: {error}", self.title()))
            }
        }
    }
}

impl Memory {
    /// From now on events are kept for [`Memory::arrived`].
    pub(super) fn expect(&mut self) {
        self.arriving = Some(Vec::new());
    }

    /// Replaces the mirror by a bulk answer, and applies the events that came after it.
    pub(super) fn arrived(&mut self, mirror: Mirror, position: Sequence) {
        let events = self.arriving.take().unwrap_or_default();
        let later = events.iter().filter(|(at, _)| *at > position).map(|(_, event)| event);
        self.mirror = mirror.succeed(&self.mirror, later);
        self.loaded = true;
    }

    fn apply(&mut self, event: &Event, position: Sequence) {
        if self.mirror.apply(event)
            && let Some(events) = &mut self.arriving
        {
            events.push((position, event.clone()));
        }
    }
}

/// The applications that somebody asked about.
#[derive(Debug, Default)]
pub(super) struct Apps(Mutex<HashMap<Arc<str>, Arc<App>>>);

impl Apps {
    /// The application `owner`, known or new.
    pub(super) fn get(&self, owner: &Arc<str>) -> Arc<App> {
        let mut apps = lock(&self.0);
        Arc::clone(apps.entry(Arc::clone(owner)).or_insert_with(|| Arc::new(App::new(Arc::clone(owner)))))
    }

    /// Whether `app` is still on the bus.
    pub(super) fn has(&self, app: &Arc<App>) -> bool {
        lock(&self.0).get(&app.owner).is_some_and(|known| Arc::ptr_eq(known, app))
    }

    /// Applies what an application announced. Gives the event with the name that its source has here.
    pub(super) fn apply(&self, event: Event, position: Sequence) -> Event {
        let app = lock(&self.0).get(&event.source.owner).cloned();
        let Some(app) = app else { return event };
        let event = app.cells().named(event);
        app.remember_shown(&event);
        app.memory().apply(&naming::plainly(app.known_toolkit(), &event), position);
        app.published.notify_waiters();
        event
    }

    pub(super) fn forget(&self, owner: &Arc<str>) {
        if let Some(app) = lock(&self.0).remove(owner) {
            app.published.notify_waiters();
        }
    }
}

//! Reading objects by asking them: where there is no bulk answer, and what a bulk answer left open.
//!
//! Everything that can be asked is asked at once; what an answer opens up is asked as soon as it is there.

use std::collections::{HashMap, HashSet};

use futures_util::StreamExt;
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::FuturesUnordered;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use zbus::zvariant::Value;

use deskhand_core::desktop::{ElementId, State};
use deskhand_core::geometry::Point;

use super::app::{ACCESSIBLE, App, Failure, PROPERTIES, Silence, Toolkit};
use super::bus::{Bus, CallError};
use super::cells;
use super::extents::{self, Space};
use super::mirror::Missing;
use super::naming;
use super::table;
use super::wire::{Facts, Interface, InterfaceBits, Names, Reference, StateBits, role};

/// With more children than this, a container that can tell which cells are visible is read only there.
const MANY_CHILDREN: i32 = 500;
/// With more children than this, only the first [`FIRST_CHILDREN`] are read: `GetChildren` would make the application
/// create an object for each of them.
const TOO_MANY_CHILDREN: i32 = 10_000;
const FIRST_CHILDREN: i32 = 200;
/// The application may change while it is read; what changed is read again, but not for ever.
const PASSES: usize = 4;

/// The bounds of one reading.
#[derive(Debug)]
pub(super) struct Walk<'a> {
    pub bus: &'a Bus,
    pub app: &'a App,
    pub until: Instant,
    pub max_nodes: usize,
    pub stop: &'a CancellationToken,
}

/// How a reading ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Objects that were asked about themselves.
    pub read: usize,
    /// Objects that answered with an error.
    pub broken: usize,
    /// The application stopped answering, or the time was up.
    pub silence: Option<Silence>,
    /// It changed as often as it was read.
    pub unsettled: bool,
}

/// The children of an object.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub children: Vec<ElementId>,
    /// How many more there are.
    pub unread: u64,
    /// What was read of the children along with them.
    pub facts: Vec<(ElementId, Facts)>,
}

enum Answer {
    Facts(ElementId, Result<Facts, Failure>),
    Children(ElementId, Result<Listing, Failure>),
}

/// What was asked and found in one pass.
#[derive(Default)]
struct Pass {
    asked: HashSet<ElementId>,
    /// Whose children were asked.
    opened: HashSet<ElementId>,
    listed: HashSet<ElementId>,
    reads: usize,
}

impl Walk<'_> {
    /// Completes the mirror below `root`.
    pub(super) async fn complete(&self, root: &ElementId) -> Ended {
        let mut ended = Ended::default();
        let mut listed = HashSet::new();
        for _ in 0..PASSES {
            let missing = {
                let mut memory = self.app.memory();
                let missing = memory.mirror.missing(root, self.max_nodes);
                if !missing.is_empty() {
                    memory.mirror.watch();
                }
                missing
            };
            if missing.is_empty() {
                return ended;
            }
            let mut pass = Pass { listed, ..Pass::default() };
            let start = Instant::now();
            let asked = missing.len();
            ended.silence = self.pass(missing, &mut pass, &mut ended.broken).await;
            tracing::debug!(
                app = %self.app.title(), asked, read = pass.reads, took = ?start.elapsed(), "asked for what was missing"
            );
            ended.read += pass.reads;
            if ended.silence.is_some() {
                return ended;
            }
            listed = pass.listed;
        }
        ended.unsettled = !self.app.memory().mirror.missing(root, self.max_nodes).is_empty();
        ended
    }

    async fn pass(&self, missing: Vec<Missing>, pass: &mut Pass, broken: &mut usize) -> Option<Silence> {
        let mut waiting = FuturesUnordered::new();
        for missing in missing {
            match missing {
                Missing::Facts(id) => self.ask_facts(id, pass, &waiting),
                Missing::Children(id) => self.open(id, pass, &waiting),
            }
        }
        loop {
            let answer = tokio::select! {
                answer = waiting.next() => answer?,
                () = self.stop.cancelled() => return Some(Silence::OutOfTime),
            };
            match answer {
                Answer::Facts(_, Err(Failure::Silent(silence)))
                | Answer::Children(_, Err(Failure::Silent(silence))) => return Some(silence),
                Answer::Facts(id, Ok(facts)) => {
                    let counted = facts.count;
                    let mut memory = self.app.memory();
                    memory.mirror.set_facts(&id, facts);
                    let opens = counted != 0 && memory.mirror.asks_children(&id);
                    drop(memory);
                    if opens {
                        self.open(id, pass, &waiting);
                    }
                }
                Answer::Facts(id, Err(Failure::Object(error))) => {
                    // An object that is only remembered may be gone; one that was just listed is broken.
                    if pass.listed.contains(&id) {
                        tracing::debug!(object = %id.object, %error, "object cannot be read");
                        *broken += 1;
                    }
                    self.app.memory().mirror.remove(&id);
                }
                Answer::Children(id, Ok(listing)) => {
                    let children = listing.children.clone();
                    let (unknown, closed) = {
                        let mut memory = self.app.memory();
                        let unknown = memory.mirror.set_listing(&id, listing);
                        // GTK 4 announces its objects with their facts while it answers which children there are.
                        let closed = children.into_iter().filter(|child| memory.mirror.asks_children(child));
                        (unknown, closed.collect::<Vec<_>>())
                    };
                    for child in closed {
                        self.open(child, pass, &waiting);
                    }
                    for child in unknown {
                        pass.listed.insert(child.clone());
                        self.ask_facts(child, pass, &waiting);
                    }
                }
                Answer::Children(id, Err(Failure::Object(error))) => {
                    tracing::debug!(object = %id.object, %error, "children cannot be read");
                    *broken += 1;
                    self.app.memory().mirror.set_children(&id, Vec::new(), 0);
                }
            }
        }
    }

    fn ask_facts<'w>(
        &'w self,
        id: ElementId,
        pass: &mut Pass,
        waiting: &FuturesUnordered<BoxFuture<'w, Answer>>,
    ) {
        if pass.reads < self.max_nodes && pass.asked.insert(id.clone()) {
            pass.reads += 1;
            waiting.push(
                async move {
                    let facts = facts(self.bus, &id, self.until).await;
                    Answer::Facts(id, facts)
                }
                .boxed(),
            );
        }
    }

    /// Asks for the children of an object, once in a pass.
    fn open<'w>(&'w self, id: ElementId, pass: &mut Pass, waiting: &FuturesUnordered<BoxFuture<'w, Answer>>) {
        if pass.opened.len() < self.max_nodes && pass.opened.insert(id.clone()) {
            waiting.push(self.ask_children(id));
        }
    }

    fn ask_children(&self, id: ElementId) -> BoxFuture<'_, Answer> {
        async move {
            let facts = self.app.memory().mirror.facts(&id).cloned().unwrap_or_default();
            let children = self.children(&id, &facts).await;
            Answer::Children(id, children)
        }
        .boxed()
    }

    /// The children of an object, and how many more there are. Never asks for all children of a huge container.
    async fn children(&self, id: &ElementId, facts: &Facts) -> Result<Listing, Failure> {
        let app = self.bus.apps().get(&id.owner);
        let count = match facts.count {
            count if count >= 0 && !facts.states.has(State::ManagesDescendants) => count,
            // GTK 3 does not say in bulk how long its menus are; they are never long.
            _ if facts.role == role::MENU => return self.all_children(id).await,
            _ => app.property(self.bus, &id.object, ACCESSIBLE, "ChildCount", self.until).await?,
        };
        if count <= 0 {
            return Ok(Listing::default());
        }
        if count > MANY_CHILDREN && facts.interfaces.has(Interface::Table) {
            return table::visible(self, id, count).await;
        }
        if count > TOO_MANY_CHILDREN {
            let children = self.some_children(&app, id, FIRST_CHILDREN).await?;
            let unread = u64::try_from(count).unwrap_or(0).saturating_sub(children.len() as u64);
            return Ok(Listing { children, unread, facts: Vec::new() });
        }
        self.all_children(id).await
    }

    async fn all_children(&self, id: &ElementId) -> Result<Listing, Failure> {
        let children = children_of(self.bus, id, self.until).await?;
        Ok(Listing { children, ..Listing::default() })
    }

    async fn some_children(&self, app: &App, id: &ElementId, count: i32) -> Result<Vec<ElementId>, Failure> {
        let asked = (0..count).map(|index| async move {
            let reply =
                app.ask(self.bus, &id.object, ACCESSIBLE, "GetChildAtIndex", &(index,), self.until).await?;
            reference(&reply)
        });
        let answers = futures_util::future::try_join_all(asked).await?;
        Ok(answers.into_iter().flatten().collect())
    }
}

/// All children of an object that has not too many, each once.
pub(super) async fn children_of(
    bus: &Bus,
    id: &ElementId,
    until: Instant,
) -> Result<Vec<ElementId>, Failure> {
    let app = bus.apps().get(&id.owner);
    let reply = app.read(bus, &id.object, ACCESSIBLE, "GetChildren", &(), until).await?;
    let body = reply.body();
    let references: Vec<Reference<'_>> = body.deserialize_unchecked().map_err(CallError::from)?;
    let mut names = Names::default();
    let mut seen = HashSet::new();
    let children = references.into_iter().filter_map(|reference| names.element(reference));
    Ok(children.filter(|child| seen.insert(child.clone())).collect())
}

/// The object that a reply consists of.
pub(super) fn reference(reply: &zbus::Message) -> Result<Option<ElementId>, Failure> {
    let body = reply.body();
    let reference: Reference<'_> = body.deserialize_unchecked().map_err(CallError::from)?;
    Ok(Names::default().element(reference))
}

/// Asks an object everything about itself.
pub(super) async fn facts(bus: &Bus, id: &ElementId, until: Instant) -> Result<Facts, Failure> {
    let app = bus.apps().get(&id.owner);
    let object = id.object.as_ref();
    let (words, kind) = tokio::join!(words(bus, &app, object, until), kind(bus, &app, object, until));
    let (words, (role, states, interfaces)) = (words?, kind?);
    if states.has(State::Defunct) || role == 0 {
        return Err(Failure::Object(CallError::Malformed("the object is defunct".to_owned())));
    }
    Ok(Facts {
        name: naming::plain(app.known_toolkit(), words.name),
        description: words.description,
        role,
        states,
        interfaces,
        count: words.count,
    })
}

/// Role, states and interfaces of an object.
async fn kind(
    bus: &Bus,
    app: &App,
    object: &str,
    until: Instant,
) -> Result<(u32, StateBits, InterfaceBits), Failure> {
    let role = app.read_for::<u32, _>(bus, object, ACCESSIBLE, "GetRole", &(), until);
    let states = app.read_for::<Vec<u32>, _>(bus, object, ACCESSIBLE, "GetState", &(), until);
    let interfaces = async {
        let names: Vec<String> = app.read_for(bus, object, ACCESSIBLE, "GetInterfaces", &(), until).await?;
        Ok::<_, Failure>(InterfaceBits::from_names(names.iter().map(String::as_str)))
    };
    if app.known_toolkit() != Toolkit::Chromium {
        let (role, states, interfaces) = tokio::join!(role, states, interfaces);
        return Ok((role?, StateBits::from_words(&states?), interfaces?));
    }
    let (role, states) = tokio::join!(role, states);
    let (role, states) = (role?, StateBits::from_words(&states?));
    if let Some(interfaces) = app.known_interfaces(role, states) {
        return Ok((role, states, interfaces));
    }
    let interfaces = interfaces.await?;
    app.learn_interfaces(role, states, interfaces);
    Ok((role, states, interfaces))
}

/// What an object tells as properties.
struct Words {
    name: String,
    description: String,
    count: i32,
}

/// Asks for the properties with as few questions as the toolkit takes.
async fn words(bus: &Bus, app: &App, object: &str, until: Instant) -> Result<Words, Failure> {
    let toolkit = app.known_toolkit();
    if matches!(toolkit, Toolkit::Gtk3 | Toolkit::Gtk4 | Toolkit::Chromium | Toolkit::Gecko) {
        let reply = app.read(bus, object, PROPERTIES, "GetAll", &(ACCESSIBLE,), until).await?;
        let body = reply.body();
        let all: HashMap<&str, Value<'_>> = body.deserialize().map_err(CallError::from)?;
        let text = |name| match all.get(name) {
            Some(Value::Str(text)) => text.to_string(),
            _ => String::new(),
        };
        return match all.get("ChildCount") {
            Some(Value::I32(count)) => {
                Ok(Words { name: text("Name"), description: text("Description"), count: *count })
            }
            _ => Err(Failure::Object(CallError::Malformed("ChildCount is missing".to_owned()))),
        };
    }
    let description = async {
        match toolkit {
            // Few of their objects have one, and where there is no bulk answer each question counts.
            Toolkit::Qt | Toolkit::LibreOffice => Ok(String::new()),
            _ => app.property::<String>(bus, object, ACCESSIBLE, "Description", until).await,
        }
    };
    let (name, description, count) = tokio::join!(
        app.property::<String>(bus, object, ACCESSIBLE, "Name", until),
        description,
        app.property::<i32>(bus, object, ACCESSIBLE, "ChildCount", until),
    );
    Ok(Words { name: optional(name)?, description: optional(description)?, count: count? })
}

/// Asks an object for what changes most: name, states and number of children.
pub(super) async fn refreshed(
    bus: &Bus,
    id: &ElementId,
    until: Instant,
) -> Result<(String, StateBits, i32), Failure> {
    let app = bus.apps().get(&id.owner);
    let (words, states) = tokio::join!(
        words(bus, &app, &id.object, until),
        app.read_for::<Vec<u32>, _>(bus, &id.object, ACCESSIBLE, "GetState", &(), until),
    );
    let (words, states) = (words?, StateBits::from_words(&states?));
    Ok((words.name, states, words.count))
}

/// Asks an object for its name and states.
pub(super) async fn name_and_states(
    bus: &Bus,
    id: &ElementId,
    until: Instant,
) -> Result<(String, StateBits), Failure> {
    let app = bus.apps().get(&id.owner);
    let (name, states) = tokio::join!(
        app.property::<String>(bus, &id.object, ACCESSIBLE, "Name", until),
        app.read_for::<Vec<u32>, _>(bus, &id.object, ACCESSIBLE, "GetState", &(), until),
    );
    Ok((optional(name)?, StateBits::from_words(&states?)))
}

/// A property that an object need not have.
fn optional(text: Result<String, Failure>) -> Result<String, Failure> {
    match text {
        Err(Failure::Object(_)) => Ok(String::new()),
        text => text,
    }
}

/// The content at `point` of the page that `tabs` shows. GTK 3 finds nothing in a notebook but its tabs, and holds the
/// pages for children of these.
async fn page_at(
    bus: &Bus,
    app: &App,
    tabs: &ElementId,
    space: Space,
    point: Point,
    until: Instant,
) -> Option<ElementId> {
    let is_list = app.memory().mirror.facts(tabs).is_some_and(|facts| facts.role == role::PAGE_TAB_LIST);
    if !is_list {
        return None;
    }
    let contents = {
        let mirror = &app.memory().mirror;
        let pages = mirror.children(tabs).iter();
        pages.flat_map(|page| mirror.children(page).to_vec()).collect::<Vec<_>>()
    };
    let asked = contents.iter().map(|content| async move {
        let (told, area) = tokio::join!(
            name_and_states(bus, content, until),
            extents::ask(bus, app, content, space.kind, until),
        );
        let is_shown = told.is_ok_and(|(_, states)| states.has(State::Showing));
        is_shown && matches!(area, Ok(Some(area)) if space.to_screen(area).contains(point))
    });
    let holds = futures_util::future::join_all(asked).await;
    contents.into_iter().zip(holds).find_map(|(content, holds)| holds.then_some(content))
}

/// How deep [`innermost`] descends: an application may name an object as its own child.
const DEPTH: usize = 64;

/// The innermost object at `point` (screen) under `root`. Toolkits differ in how far one question goes down.
pub(super) async fn innermost(
    bus: &Bus,
    root: &ElementId,
    space: Space,
    point: Point,
    until: Instant,
) -> Result<Option<ElementId>, Failure> {
    let interface = "org.a11y.atspi.Component";
    // Chromium scales the extents of its own elements, but is asked in device pixels.
    let asked_in = match bus.apps().get(&root.owner).known_toolkit() {
        Toolkit::Chromium => space.in_device_pixels(),
        _ => space,
    };
    let (x, y) = asked_in.reverse(point.x, point.y);
    let mut deepest = None;
    let mut seen = HashSet::from([root.clone()]);
    let mut at = root.clone();
    for _ in 0..DEPTH {
        let app = bus.apps().get(&at.owner);
        let body = (x, y, space.kind);
        let next = match app.ask(bus, &at.object, interface, "GetAccessibleAtPoint", &body, until).await {
            Ok(reply) => reference(&reply)?,
            Err(Failure::Object(_)) => None,
            Err(failure) => return Err(failure),
        };
        let next = match next {
            None if app.known_toolkit() == Toolkit::Gtk3 => {
                page_at(bus, &app, &at, space, point, until).await
            }
            next => next,
        };
        let Some(next) = next.filter(|next| seen.insert(next.clone())) else { break };
        deepest = Some(next.clone());
        at = next;
    }
    match deepest {
        Some(deepest) => {
            let app = bus.apps().get(&deepest.owner);
            Ok(Some(cells::element_of(bus, &app, deepest, until).await?))
        }
        None => Ok(None),
    }
}

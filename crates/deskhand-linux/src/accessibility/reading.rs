//! One reading of a window's tree: from the mirror where it may be trusted, else from the application.

use std::time::Duration;

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, State, Stop, Tree, TreeNote, TreeRequest, Window};

use super::app::{ACCESSIBLE, App, Failure, Silence, Toolkit};
use super::bus::{Bus, CallError};
use super::direct;
use super::frames::Found;
use super::labels;
use super::mirror::Mirror;
use super::walk::{self, Ended, Walk};
use super::wire::{self, StateBits};

/// The longest that one snapshot may take (document 04 of the specification).
pub(super) const SNAPSHOT: Duration = Duration::from_secs(10);
/// GTK does not announce every name and state that depends on another object (a button named by the label in it). Up
/// to so many objects, an application that announced anything is read anew in bulk: that takes a few milliseconds.
const SMALL: usize = 1_500;
/// A bulk answer that left so many objects, and most of all, to be asked one by one is not asked for again.
const POOR: usize = 40;
/// Name and states of one object cost about as much time as so many items of a bulk answer.
const ITEMS_FOR_ONE_QUESTION: usize = 6;

const CACHE: &str = "org.a11y.atspi.Cache";
const CACHE_PATH: &str = "/org/a11y/atspi/cache";

/// One reading.
pub(super) struct Reading<'a> {
    pub bus: &'a Bus,
    pub found: &'a Found,
    pub window: &'a Window,
    pub request: &'a TreeRequest,
    pub until: Instant,
    pub stop: &'a Stop,
}

impl Reading<'_> {
    /// Reads the tree. The window's object itself may turn out to be gone: then there is no tree.
    pub(super) async fn tree(&self) -> Option<Tree> {
        let app = self.found.app.as_ref();
        let root = &self.found.root;
        let silent = |silence| Ended { silence: Some(silence), ..Ended::default() };
        let ended = if app.still_frozen(self.bus).await {
            silent(Silence::Frozen)
        } else {
            match tokio::time::timeout_at(self.until, app.reading.lock()).await {
                Ok(_reading) => self.refresh(app, root).await,
                Err(_) => silent(Silence::OutOfTime),
            }
        };
        self.snapshot(app, root, &ended)
    }

    async fn refresh(&self, app: &App, root: &ElementId) -> Ended {
        let toolkit = match app.about(self.bus, self.until).await {
            Ok(about) => about.toolkit,
            Err(Failure::Silent(silence)) => return Ended { silence: Some(silence), ..Ended::default() },
            Err(Failure::Object(_)) => Toolkit::Other,
        };
        let stamp = match self.prepare(app, root, toolkit).await {
            Ok(stamp) => stamp,
            Err(silence) => return Ended { silence: Some(silence), ..Ended::default() },
        };
        // What is known already is asked for its labels together with what is not.
        let walk = self.walk(app);
        let told = labels::ask(self.bus, app, root, labels::Told::new(), self.until);
        let (mut ended, told) = tokio::join!(walk.complete(root), told);
        if ended.silence.is_none() {
            ended.silence = match told {
                Ok(told) => labels::complete(self.bus, app, root, told, self.until).await.err(),
                Err(silence) => Some(silence),
            };
        }
        {
            let mut memory = app.memory();
            if toolkit.has_documents()
                && !memory.poor
                && ended.read > POOR
                && ended.read * 2 > memory.mirror.len()
            {
                tracing::debug!(app = %app.title(), read = ended.read, "the bulk answer is poor");
                memory.poor = true;
            }
        }
        if ended.silence.is_none() {
            let mut memory = app.memory();
            memory.mirror.settle(stamp);
            memory.mirror.prune_if_large(&app.root());
        }
        ended
    }

    fn walk<'w>(&'w self, app: &'w App) -> Walk<'w> {
        Walk { bus: self.bus, app, until: self.until, max_nodes: self.request.max_nodes, stop: self.stop }
    }

    /// Makes the mirror as true as its events can make it, and marks what they cannot. Answers which events will be
    /// reflected when what is marked has been asked.
    async fn prepare(&self, app: &App, root: &ElementId, toolkit: Toolkit) -> Result<u64, Silence> {
        if toolkit == Toolkit::Chromium {
            self.wake(root).await?;
        }
        app.listen(self.bus).await;
        if toolkit == Toolkit::Chromium {
            direct::open_reader(app, self.bus).await;
        }
        if !toolkit.has_bulk() {
            let mut memory = app.memory();
            memory.mirror.doubt_all(root);
            return Ok(memory.mirror.stamp());
        }
        let loaded = app.memory().loaded;
        if !loaded {
            load(self.bus, app, "first reading", self.until).await?;
            if toolkit.has_documents() {
                self.verify_children(app, root).await?;
            }
            return Ok(0);
        }
        // GTK 3 announces the change of a label, but not of the name of a button that it names.
        let named = {
            let mut memory = app.memory();
            memory.mirror.watch();
            if toolkit == Toolkit::Gtk3 { memory.mirror.named_by_others(root) } else { Vec::new() }
        };
        let name = |id: ElementId| async move {
            app.property::<String>(self.bus, &id.object, ACCESSIBLE, "Name", self.until).await
        };
        // A round trip: what the application announced before this call has been applied after it.
        let (fence, names) =
            tokio::join!(name(root.clone()), futures_util::future::join_all(named.iter().cloned().map(name)));
        match fence {
            Ok(_) => {}
            Err(Failure::Silent(silence)) => return Err(silence),
            Err(Failure::Object(error)) => {
                tracing::debug!(%error, "window object is gone");
                app.memory().mirror.remove(root);
                return Ok(0);
            }
        }
        let (stamp, touched, size) = {
            let memory = app.memory();
            (memory.mirror.stamp(), memory.mirror.touched(), memory.mirror.len())
        };
        if toolkit.has_documents()
            && let Some(reason) = self.documents_changed(app, root).await?
        {
            if app.memory().poor {
                tracing::debug!(app = %app.title(), reason, "asked anew");
            } else {
                load(self.bus, app, reason, self.until).await?;
                self.verify_children(app, root).await?;
                return Ok(0);
            }
        }
        if toolkit == Toolkit::Gecko {
            self.verify_tabs(app, root).await?;
            app.memory().mirror.doubt_nameless(root, wire::role::is_usually_named);
        }
        if toolkit.has_documents() {
            self.verify_children(app, root).await?;
        }
        if touched {
            self.app_changed(app, root, toolkit, size).await?;
        } else if toolkit == Toolkit::Gtk3 {
            let mut memory = app.memory();
            for (id, name) in named.iter().zip(names) {
                if let Ok(name) = name {
                    memory.mirror.set_name(id, name);
                }
            }
        } else if !toolkit.announces_names() {
            self.reread_shown(app, root, size).await?;
        }
        Ok(stamp)
    }

    /// Why a page may be another one than it was, with what is doubtful about it marked. A browser replaces the whole
    /// document and does not say so where the old one was, nor where one is attached to a window that had none: what holds
    /// the documents is asked for its children, and a window without a document is not trusted at all.
    async fn documents_changed(&self, app: &App, root: &ElementId) -> Result<Option<&'static str>, Silence> {
        let holders = {
            let mut memory = app.memory();
            if !memory.mirror.has_content(root, wire::role::DOCUMENT_WEB) {
                memory.mirror.doubt_all(root);
                return Ok(Some("there was no document"));
            }
            if memory.mirror.restructured() && !memory.poor {
                return Ok(Some("objects came or went"));
            }
            memory.mirror.holders(root, wire::role::DOCUMENT_WEB)
        };
        let asked = holders.iter().map(|(holder, held)| async move {
            let (children, documents) = tokio::join!(
                walk::children_of(self.bus, holder, self.until),
                futures_util::future::join_all(
                    held.iter().map(|id| walk::name_and_states(self.bus, id, self.until))
                ),
            );
            let busy = |states: StateBits| states.has(State::Busy);
            let was_busy = |id| app.memory().mirror.facts(id).is_some_and(|facts| busy(facts.states));
            for (id, answer) in held.iter().zip(&documents) {
                if was_busy(id) && answer.as_ref().is_ok_and(|(_, states)| !busy(*states)) {
                    app.memory().mirror.doubt_all(id);
                }
            }
            let changed = match children {
                Ok(children) => children != app.memory().mirror.children(holder),
                Err(Failure::Object(_)) => true,
                Err(Failure::Silent(silence)) => return Err(silence),
            };
            let defunct = documents.iter().any(|answer| match answer {
                Ok((_, states)) => states.has(State::Defunct),
                Err(_) => true,
            });
            Ok((holder, changed || defunct))
        });
        let answers = futures_util::future::try_join_all(asked).await?;
        let mut memory = app.memory();
        let mut reason = None;
        for (holder, _) in answers.into_iter().filter(|(_, changed)| *changed) {
            // The holder may be as gone as its document: what holds it in turn tells.
            let above = memory.mirror.parent(holder).cloned();
            for id in above.iter().chain([holder]) {
                memory.mirror.ask_children(id);
            }
            reason = Some("a document was replaced");
        }
        Ok(reason)
    }

    /// Gecko does not announce which of its tabs is shown: what leads to the documents is asked for its states.
    async fn verify_tabs(&self, app: &App, root: &ElementId) -> Result<(), Silence> {
        let asked = {
            let roles = [wire::role::INTERNAL_FRAME, wire::role::DOCUMENT_WEB];
            app.memory().mirror.leading_to(root, &roles, wire::role::DOCUMENT_WEB)
        };
        let answers = asked.iter().map(|id| walk::name_and_states(self.bus, id, self.until));
        let answers = futures_util::future::join_all(answers).await;
        let mut memory = app.memory();
        for (id, answer) in asked.iter().zip(answers) {
            match answer {
                Ok((_, states)) if states.has(State::Defunct) => memory.mirror.remove(id),
                Ok((_, states)) => memory.mirror.set_states(id, states),
                Err(Failure::Silent(silence)) => return Err(silence),
                Err(Failure::Object(_)) => memory.mirror.remove(id),
            }
        }
        Ok(())
    }

    /// Browsers do not announce everything that comes into a page, nor the dialogue that a page opens, and then do not list it
    /// in bulk either: what is on the screen is asked for its children, and asked on where they are others than they were.
    async fn verify_children(&self, app: &App, root: &ElementId) -> Result<(), Silence> {
        let shown = {
            let mirror = &app.memory().mirror;
            let mut shown = mirror.shown(root);
            shown.retain(|id| mirror.facts(id).is_some_and(|facts| !wire::role::is_leaf(facts.role)));
            shown
        };
        let start = Instant::now();
        let asked = shown.iter().map(|id| walk::children_of(self.bus, id, self.until));
        let answers = futures_util::future::join_all(asked).await;
        tracing::debug!(app = %app.title(), asked = shown.len(), took = ?start.elapsed(), "asked what is shown for its children");
        let mut memory = app.memory();
        for (id, children) in shown.iter().zip(answers) {
            match children {
                Ok(children) if children == memory.mirror.children(id) => {}
                Ok(_) => memory.mirror.ask_children(id),
                Err(Failure::Silent(silence)) => return Err(silence),
                Err(Failure::Object(_)) => memory.mirror.remove(id),
            }
        }
        Ok(())
    }

    /// The application announced something: what of it does the mirror not know?
    async fn app_changed(
        &self,
        app: &App,
        root: &ElementId,
        toolkit: Toolkit,
        size: usize,
    ) -> Result<(), Silence> {
        match toolkit {
            Toolkit::Chromium | Toolkit::Gecko => app.memory().mirror.forget_parts(|_| false),
            _ if size <= SMALL && toolkit != Toolkit::LibreOffice => {
                load(self.bus, app, "it announced changes", self.until).await?;
            }
            _ => {
                let mut memory = app.memory();
                memory.mirror.doubt_shown(root);
                memory.mirror.forget_parts(|facts| {
                    facts.states.has(State::ManagesDescendants) && facts.states.has(State::Showing)
                });
            }
        }
        Ok(())
    }

    /// The application announced nothing, which proves little of a toolkit that is not known to announce everything.
    /// Whatever costs less: all in bulk, or names and states of what is shown.
    async fn reread_shown(&self, app: &App, root: &ElementId, size: usize) -> Result<(), Silence> {
        let shown = {
            let mut memory = app.memory();
            memory.mirror.watch();
            memory.mirror.shown(root)
        };
        if size < shown.len() * ITEMS_FOR_ONE_QUESTION && size <= SMALL {
            return load(self.bus, app, "what is shown may have changed", self.until).await;
        }
        let asked = shown.iter().map(|id| walk::refreshed(self.bus, id, self.until));
        let answers = futures_util::future::join_all(asked).await;
        let mut memory = app.memory();
        for (id, answer) in shown.iter().zip(answers) {
            match answer {
                Ok((name, states, count)) => memory.mirror.refresh(id, name, states, count),
                Err(Failure::Silent(silence)) => return Err(silence),
                Err(Failure::Object(_)) => memory.mirror.remove(id),
            }
        }
        Ok(())
    }

    fn snapshot(&self, app: &App, root: &ElementId, ended: &Ended) -> Option<Tree> {
        let Ended { silence, broken, unsettled, .. } = ended;
        let (nodes, cut) = app.memory().mirror.nodes(root, self.request.max_nodes);
        let mut notes = Vec::new();
        match silence {
            Some(Silence::OutOfTime) => notes.push(TreeNote::Cut { by: "time" }),
            Some(Silence::Frozen) => notes.push(TreeNote::NotResponding { app: app.title() }),
            Some(Silence::Gone) => {
                notes.push(TreeNote::NoTree(format!("{} has left the accessibility bus", app.title())));
                return Some(Tree { nodes: Vec::new(), toolkit: app.toolkit_words(), notes });
            }
            Some(Silence::BusClosed) => {
                notes.push(TreeNote::NoTree("the accessibility bus has ended".to_owned()));
            }
            None if nodes.is_empty() => return None,
            None => {}
        }
        if cut {
            notes.push(TreeNote::Cut { by: "nodes" });
        }
        if *broken > 0 {
            notes.push(TreeNote::Broken { count: *broken });
        }
        if *unsettled && !cut {
            let title = app.title();
            let why = format!("{title} changed while it was read: something may be missing; read it again");
            notes.push(TreeNote::Other(why));
        }
        if nodes.len() == 1 && notes.is_empty() {
            notes.push(TreeNote::NoTree(format!("{} publishes the window without content", app.title())));
        }
        Some(Tree { nodes, toolkit: app.toolkit_words(), notes })
    }
}

/// Reads the whole application in one round trip. An application without the cache is left to the walk.
/// `reason` is for the log.
pub(super) async fn load(bus: &Bus, app: &App, reason: &'static str, until: Instant) -> Result<(), Silence> {
    app.memory().expect();
    let start = Instant::now();
    let reply = match app.ask_patiently(bus, CACHE_PATH, CACHE, "GetItems", &(), until).await {
        Ok(reply) => reply,
        Err(Failure::Silent(silence)) => return Err(silence),
        Err(Failure::Object(error)) => {
            tracing::debug!(app = %app.owner, %error, "no bulk answer");
            return Ok(());
        }
    };
    match wire::items(&reply).map(Mirror::from_items) {
        Ok(mirror) => {
            tracing::debug!(app = %app.title(), objects = mirror.len(), reason, took = ?start.elapsed(), "read in bulk");
            app.memory().arrived(mirror, reply.recv_position());
        }
        Err(CallError::Malformed(error)) => {
            tracing::debug!(app = %app.owner, error, "bulk answer is malformed")
        }
        Err(error) => tracing::debug!(app = %app.owner, %error, "no bulk answer"),
    }
    Ok(())
}

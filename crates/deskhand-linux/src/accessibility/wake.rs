//! Chromium builds its tree only for somebody who asks for attributes, and its bridge remembers for bulk answers only
//! what there was when somebody first asked for its events.
//!
//! Whoever asks for events at once gets four objects in bulk for the rest of the browser's life. So a browser is first
//! woken, then waited for until it has a page, and asked for its events only then.

use std::time::Duration;

use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, State, WindowKind};

use super::app::{ACCESSIBLE, Failure, Silence};
use super::bus::Bus;
use super::reading::Reading;
use super::walk;
use super::wire::{Facts, role};

/// How long a browser that was woken may take to build its tree.
const WAKE: Duration = Duration::from_secs(1);
/// Between two looks at a browser that announces nothing yet. Each look is a round trip to its main loop.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
/// A browser window with fewer objects has not built its tree.
const ASLEEP: usize = 12;
/// Levels of a window's own objects above its page, with room to spare.
const LEVELS: usize = 40;
/// A window has a few hundred objects of its own; a tab strip may have many more.
const OBJECTS: usize = 2_000;

/// What a look at a window found.
enum Look {
    /// A page with content.
    Page,
    /// A document that is being loaded or is empty.
    Document(ElementId),
    /// No document among so many objects.
    Objects(usize),
}

impl Reading<'_> {
    /// Wakes the browser's window and waits, for a bounded time, until it has a page.
    pub(super) async fn wake(&self, root: &ElementId) -> Result<(), Silence> {
        let app = self.found.app.as_ref();
        if app.was_woken(root) {
            return Ok(());
        }
        match app.ask(self.bus, &root.object, ACCESSIBLE, "GetAttributes", &(), self.until).await {
            Err(Failure::Silent(silence)) => return Err(silence),
            Ok(_) | Err(Failure::Object(_)) => {}
        }
        let awake = app.is_listened_to();
        let until = self.until.min(Instant::now() + WAKE);
        let start = Instant::now();
        let mut document = None;
        let page = loop {
            let look = match document.take() {
                Some(document) => look_at(self.bus, document, until).await,
                None => look_below(self.bus, root, until).await,
            };
            match look {
                Ok(Look::Page) => break true,
                Ok(Look::Document(id)) => document = Some(id),
                // A window without a page, of a browser that builds its trees already.
                Ok(Look::Objects(count)) if awake && count >= ASLEEP => break false,
                Ok(Look::Objects(_)) if self.window.kind != WindowKind::Normal => break false,
                Ok(Look::Objects(_)) | Err(Failure::Object(_)) => {}
                Err(Failure::Silent(Silence::OutOfTime)) if self.until > until => break false,
                Err(Failure::Silent(silence)) => return Err(silence),
            }
            if Instant::now() + LOOK_AGAIN >= until || self.stop.is_cancelled() {
                break false;
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        };
        tracing::debug!(window = %self.window.id, page, took = ?start.elapsed(), "browser woken");
        Ok(())
    }
}

/// A document that was found before.
async fn look_at(bus: &Bus, document: ElementId, until: Instant) -> Result<Look, Failure> {
    match walk::facts(bus, &document, until).await {
        Ok(facts) if is_page(&facts) => Ok(Look::Page),
        Ok(_) => Ok(Look::Document(document)),
        Err(Failure::Object(_)) => Ok(Look::Objects(0)), // another one took its place
        Err(failure) => Err(failure),
    }
}

/// Looks for a document, level by level.
async fn look_below(bus: &Bus, root: &ElementId, until: Instant) -> Result<Look, Failure> {
    let mut level = vec![root.clone()];
    let mut objects = level.len();
    for _ in 0..LEVELS {
        let asked = level.iter().map(|id| walk::children_of(bus, id, until));
        let mut below = Vec::new();
        for children in futures_util::future::join_all(asked).await {
            below.extend(known(children)?.unwrap_or_default());
        }
        objects += below.len();
        if below.is_empty() || objects > OBJECTS {
            break;
        }
        let asked = below.iter().map(|id| walk::facts(bus, id, until));
        let facts = futures_util::future::join_all(asked).await;
        level.clear();
        for (id, facts) in below.into_iter().zip(facts) {
            match known(facts)? {
                Some(facts) if is_page(&facts) => return Ok(Look::Page),
                Some(facts) if is_shown_document(&facts) => return Ok(Look::Document(id)),
                Some(facts) if facts.count != 0 => level.push(id),
                Some(_) | None => {}
            }
        }
    }
    Ok(Look::Objects(objects))
}

/// An object may go while it is looked at.
fn known<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Object(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

fn is_shown_document(facts: &Facts) -> bool {
    facts.role == role::DOCUMENT_WEB && facts.states.has(State::Showing)
}

fn is_page(facts: &Facts) -> bool {
    is_shown_document(facts) && facts.count > 0 && !facts.states.has(State::Busy)
}

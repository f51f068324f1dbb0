//! What can be done to elements through the accessibility bus.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use zbus::zvariant::{DynamicType, Type, Value};

use deskhand_core::desktop::{ElementId, Node, PortError, State};

use super::app::{ACCESSIBLE, App, Failure, PROPERTIES, ROUND_TRIP, Silence, Toolkit};
use super::bus::{Bus, CallError, Method, unavailable};
use super::cells::{self, Present};
use super::details;
use super::direct::Line;
use super::mirror;
use super::walk;
use super::wire::{self, Interface};

/// An action that opens a modal dialogue answers when that closes. After this, the application is asked whether it
/// still lives, and if it does the action counts as performed.
const PROMPT: Duration = Duration::from_millis(400);

pub(super) const ACTION: &str = "org.a11y.atspi.Action";
pub(super) const COMPONENT: &str = "org.a11y.atspi.Component";
pub(super) const EDITABLE: &str = "org.a11y.atspi.EditableText";
pub(super) const SELECTION: &str = "org.a11y.atspi.Selection";
pub(super) const TEXT: &str = "org.a11y.atspi.Text";
pub(super) const VALUE: &str = "org.a11y.atspi.Value";

/// One element to act on.
pub(super) struct Target<'a> {
    pub bus: &'a Arc<Bus>,
    pub app: &'a Arc<App>,
    pub element: &'a ElementId,
}

impl Target<'_> {
    async fn responsive(&self, waiting_for: &str) -> Result<(), PortError> {
        if self.app.still_frozen(self.bus).await {
            return Err(self.app.not_responding(waiting_for));
        }
        Ok(())
    }

    /// The element as it is now, if it still is part of the tree.
    pub(super) async fn probe(&self) -> Result<Node, PortError> {
        let what = "the state of an element";
        self.responsive(what).await?;
        let until = Instant::now() + ROUND_TRIP;
        let object = self.element.object.as_ref();
        let (facts, place) = tokio::join!(
            walk::facts(self.bus, self.element, until),
            self.app.ask_for::<i32, _>(self.bus, object, ACCESSIBLE, "GetIndexInParent", &(), until),
        );
        let facts = match facts {
            Ok(facts) => facts,
            Err(Failure::Object(_)) => return Err(PortError::ElementGone),
            Err(failure) => return Err(self.app.port_error(&failure, what)),
        };
        // A widget that was taken out of its window may live on in the application; so may one whose window has been
        // hidden, which still has its place.
        let detached = matches!(place, Ok(place) if place < 0) && !self.attached(until).await?;
        if detached || facts.states.has(State::Defunct) {
            return Err(PortError::ElementGone);
        }
        let mut node = mirror::node(self.element, None, &facts, 0);
        if node.name.is_empty() {
            node.name = self.app.memory().mirror.label(self.element).unwrap_or_default();
        }
        Ok(node)
    }

    /// Whether the chain of parents ends at the application.
    async fn attached(&self, until: Instant) -> Result<bool, PortError> {
        let body = (ACCESSIBLE, "Parent");
        let parent = self.app.ask(self.bus, &self.element.object, PROPERTIES, "Get", &body, until).await;
        match parent {
            Ok(reply) => {
                let body = reply.body();
                Ok(body.deserialize::<Value<'_>>().is_ok_and(|value| wire::element_in(&value).is_some()))
            }
            Err(Failure::Object(_)) => Ok(false),
            Err(failure) => Err(self.app.port_error(&failure, "the parent of an element")),
        }
    }

    /// Calls a method that does something and answers with its claim.
    pub(super) async fn act<B>(
        &self,
        interface: &'static str,
        member: &'static str,
        body: &B,
    ) -> Result<bool, PortError>
    where
        B: Serialize + DynamicType,
    {
        self.perform::<bool, _>(interface, member, body).await.map(|claim| claim.unwrap_or(true))
    }

    /// Calls a method that does something. `None`: it was taken, but the answer is still out.
    async fn perform<T, B>(
        &self,
        interface: &'static str,
        member: &'static str,
        body: &B,
    ) -> Result<Option<T>, PortError>
    where
        T: DeserializeOwned + Type,
        B: Serialize + DynamicType,
    {
        self.responsive(member).await?;
        let until = Instant::now() + ROUND_TRIP;
        let object = self.present(until).await.map_err(|failure| self.app.port_error(&failure, member))?;
        let method = Method { owner: &self.element.owner, object: &object, interface, member };
        let answer = match Line::to(self.app, self.bus).await {
            Some(line) => line.call(self.bus, self.app, method, body, PROMPT).await,
            None => self.bus.call(method, body, PROMPT).await,
        };
        // An answer to another question says that the application has taken this one before it.
        if matches!(answer, Err(CallError::TimedOut)) && self.app.ping(self.bus, ROUND_TRIP - PROMPT).await {
            return Ok(None);
        }
        match answer {
            Ok(message) if T::SIGNATURE == <()>::SIGNATURE => {
                drop(message);
                Ok(None)
            }
            Ok(message) => Ok(message.body().deserialize::<T>().ok()),
            Err(CallError::TimedOut) => {
                self.app.set_frozen();
                Err(self.app.not_responding(member))
            }
            Err(error) => Err(self.refusal(error, member).await),
        }
    }

    /// The object of the bus that the element is now.
    async fn present(&self, until: Instant) -> Result<Arc<str>, Failure> {
        let object = &self.element.object;
        if !cells::is_place(object) {
            return Ok(Arc::clone(object));
        }
        // An action is asked for once: whether its object still is there is found out by another question.
        self.app.ask(self.bus, object, ACCESSIBLE, "GetRole", &(), until).await?;
        Ok(Present::find(self.bus, self.app, object, until).await?.object)
    }

    /// Why an action was refused: toolkits say the same for an object that is gone and for one that cannot.
    async fn refusal(&self, error: CallError, member: &str) -> PortError {
        let failure = Failure::from(error);
        if let Failure::Object(error) = &failure {
            return match self.probe().await {
                Ok(node) => {
                    let name = if node.name.is_empty() {
                        node.role
                    } else {
                        format!("{} {:?}", node.role, node.name)
                    };
                    PortError::NotSupported(format!("{name} does not take {member}: {error}"))
                }
                Err(error) => error,
            };
        }
        self.app.port_error(&failure, member)
    }

    pub(super) async fn set_number(&self, value: f64) -> Result<bool, PortError> {
        let body = (VALUE, "CurrentValue", Value::from(value));
        self.perform::<(), _>(PROPERTIES, "Set", &body).await.map(|_| true)
    }

    pub(super) async fn insert_text(&self, position: usize, text: &str) -> Result<bool, PortError> {
        let position = i32::try_from(position)
            .map_err(|_| PortError::NotSupported(format!("position {position} is too far into the text")))?;
        // AT-SPI asks for the length in bytes. Qt cuts or extends the text to that many UTF-16 units instead, filling up
        // with whatever is in its memory.
        let length = match self.app.known_toolkit() {
            Toolkit::Qt => text.encode_utf16().count(),
            _ => text.len(),
        };
        let length = i32::try_from(length)
            .map_err(|_| PortError::NotSupported("the text is too long to insert at once".to_owned()))?;
        self.act(EDITABLE, "InsertText", &(position, text, length)).await
    }

    /// Selects a part of the text, counted in characters.
    pub(super) async fn select_text(&self, start: usize, end: usize) -> Result<bool, PortError> {
        let what = "a text";
        self.responsive(what).await?;
        let until = Instant::now() + ROUND_TRIP;
        let object = self.element.object.as_ref();
        let failed = |failure: Failure| match failure {
            Failure::Object(why) => PortError::NotSupported(format!("the element has no text: {why}")),
            failure => self.app.port_error(&failure, what),
        };
        let (facts, length, content, selected) = tokio::join!(
            walk::facts(self.bus, self.element, until),
            self.app.property::<i32>(self.bus, object, TEXT, "CharacterCount", until),
            self.app.ask_for::<String, _>(self.bus, object, TEXT, "GetText", &(0, -1), until),
            self.app.ask_for::<i32, _>(self.bus, object, TEXT, "GetNSelections", &(), until),
        );
        let (facts, content) = (facts.map_err(failed)?, content.map_err(failed)?);
        let length = usize::try_from(length.map_err(failed)?).unwrap_or(0);
        let place = |character| {
            i32::try_from(details::units(&content, length, character)).map_err(|_| {
                PortError::NotSupported(format!("position {character} is too far into the text"))
            })
        };
        let (start, end) = (place(start)?, place(end)?);
        if start == end {
            return self.act(TEXT, "SetCaretOffset", &(start,)).await;
        }
        let mut selected = selected.unwrap_or(0);
        // A text view of GTK 4 empties the selection that it is to set, and Gecko adds to it: the caret clears it in both.
        let only_adds = match self.app.known_toolkit() {
            Toolkit::Gtk4 => facts.states.has(State::MultiLine),
            toolkit => toolkit == Toolkit::Gecko,
        };
        if only_adds {
            self.act(TEXT, "SetCaretOffset", &(start,)).await?;
            selected = 0;
        }
        for surplus in (1..selected).rev() {
            self.act(TEXT, "RemoveSelection", &(surplus,)).await?;
        }
        match selected {
            0 => self.act(TEXT, "AddSelection", &(start, end)).await,
            _ => self.act(TEXT, "SetSelection", &(0, start, end)).await,
        }
    }

    pub(super) async fn select_child(&self, child: u32) -> Result<bool, PortError> {
        if self.app.known_toolkit() == Toolkit::Gecko {
            // It shows the choice and does not tell the page, which then acts on the old one.
            let message = "Firefox selects without telling the page; an action or real input does";
            return Err(PortError::NotSupported(message.to_owned()));
        }
        let child = i32::try_from(child)
            .map_err(|_| PortError::NotSupported(format!("there is no child {child}")))?;
        let until = Instant::now() + ROUND_TRIP;
        let facts = walk::facts(self.bus, self.element, until).await;
        let multiple = facts.as_ref().is_ok_and(|facts| facts.states.has(State::Multiselectable));
        if facts.is_ok_and(|facts| !facts.interfaces.has(Interface::Selection)) {
            return Err(PortError::NotSupported("the element has no selection".to_owned()));
        }
        if multiple {
            // "Only it": what is selected besides has to go first; a container with one selection does that itself.
            self.act(SELECTION, "ClearSelection", &()).await?;
        }
        self.act(SELECTION, "SelectChild", &(child,)).await
    }

    pub(super) async fn is_selected(&self, child: u32) -> Result<bool, PortError> {
        let child = i32::try_from(child)
            .map_err(|_| PortError::NotSupported(format!("there is no child {child}")))?;
        let (object, until) = (&self.element.object, Instant::now() + ROUND_TRIP);
        let body = (child,);
        let asked = self.app.ask_for::<bool, _>(self.bus, object, SELECTION, "IsChildSelected", &body, until);
        asked.await.map_err(|failure| self.app.port_error(&failure, "what is selected"))
    }

    /// Selects the element in the container that holds it. Its place there is asked for: what was read of a table
    /// may be the visible part only.
    pub(super) async fn select(&self) -> Result<bool, PortError> {
        let what = "the place of an element";
        let until = Instant::now() + ROUND_TRIP;
        let object = self.element.object.as_ref();
        let (place, parent) = tokio::join!(
            self.app.ask_for::<i32, _>(self.bus, object, ACCESSIBLE, "GetIndexInParent", &(), until),
            self.app.ask(self.bus, object, PROPERTIES, "Get", &(ACCESSIBLE, "Parent"), until),
        );
        let failed = |failure: Failure| match failure {
            Failure::Object(_) => PortError::ElementGone,
            failure => self.app.port_error(&failure, what),
        };
        let place = place.map_err(failed)?;
        let parent = parent.map_err(failed)?;
        let parent = parent.body().deserialize::<Value<'_>>().ok().and_then(|value| wire::element_in(&value));
        match (u32::try_from(place), parent) {
            (Ok(place), Some(parent)) => Target { element: &parent, ..*self }.select_child(place).await,
            _ => Err(PortError::NotSupported("the element has no place in a container".to_owned())),
        }
    }

    /// Waits for one answer of the application: everything that it sent before has been applied then.
    pub(super) async fn fence(bus: &Bus, app: &App) -> Result<(), PortError> {
        if app.still_frozen(bus).await {
            return Err(app.not_responding("an answer"));
        }
        let until = Instant::now() + ROUND_TRIP;
        let root = app.root();
        let answer = app.ask(bus, &root.object, ACCESSIBLE, "GetRole", &(), until).await;
        match answer {
            Ok(_) | Err(Failure::Object(_) | Failure::Silent(Silence::Gone)) => Ok(()),
            Err(Failure::Silent(Silence::BusClosed)) => {
                Err(unavailable("accessibility bus", "it has ended; try again".to_owned()))
            }
            Err(Failure::Silent(_)) => Err(app.not_responding("an answer")),
        }
    }
}

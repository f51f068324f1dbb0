//! Signals of the accessibility bus, as plain values.

use std::sync::Arc;

use serde::Deserialize;
use zbus::Message;
use zbus::zvariant::Value;

use deskhand_core::desktop::{Change, ChangeKind, ElementId};

use super::wire::{self, Item, Names, Reference};

/// A signal that matters.
#[derive(Debug)]
pub(super) enum Signal {
    /// A connection has left the bus.
    Left(Arc<str>),
    /// Something changed in an application.
    Event(Event),
}

/// A change that an application announced.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// The object that the signal came from.
    pub source: ElementId,
    pub what: What,
}

/// What an [`Event`] says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum What {
    Name(Option<String>),
    Description(Option<String>),
    State(String, bool),
    ChildAdded(Option<ElementId>),
    ChildRemoved(Option<ElementId>),
    /// The cache says so: the object with all its facts.
    Added(Box<Item>),
    /// The cache says so: the object is gone.
    Removed(ElementId),
    Text,
    Caret,
    Value,
    Selection,
    Bounds,
    Window,
    /// A document was loaded, or is another one.
    Document,
    /// Role, parent or content as a whole: what is known of the object is worthless.
    Replaced,
    /// A signal that changes nothing that is kept here.
    Other,
}

/// The change that says that anything may have changed.
pub(super) fn lost() -> Change {
    Change { element: ElementId { owner: "".into(), object: "".into() }, kind: ChangeKind::Lost }
}

impl Event {
    /// The event in the port's words; `None` if the port has none for it.
    pub(super) fn change(&self) -> Option<Change> {
        let kind = match &self.what {
            What::Name(_) | What::Description(_) => ChangeKind::Name,
            What::State(name, on) => ChangeKind::State(wire::state_named(name)?, *on),
            What::ChildAdded(_) | What::ChildRemoved(_) | What::Replaced | What::Document => {
                ChangeKind::Children
            }
            What::Text => ChangeKind::Text,
            What::Caret => ChangeKind::Caret,
            What::Value => ChangeKind::Value,
            What::Selection => ChangeKind::Selection,
            What::Bounds => ChangeKind::Bounds,
            What::Window => ChangeKind::Window,
            What::Added(_) | What::Removed(_) | What::Other => return None,
        };
        Some(Change { element: self.source.clone(), kind })
    }
}

/// The head of an event's body; what follows differs between versions and is not needed.
#[derive(Deserialize)]
struct Body<'a>(&'a str, i32, #[allow(dead_code)] i32, Value<'a>);

impl zbus::zvariant::Type for Body<'_> {
    const SIGNATURE: &'static zbus::zvariant::Signature = <(String, i32, i32, Value<'static>)>::SIGNATURE;
}

/// What `message` says; `None` for what is not understood or not needed.
pub(super) fn parse(message: &Message) -> Option<Signal> {
    let header = message.header();
    let interface = header.interface()?.as_str();
    let member = header.member()?.as_str();
    if interface == "org.freedesktop.DBus" {
        let body = message.body();
        let (name, _, new) = body.deserialize::<(&str, &str, &str)>().ok()?;
        return (member == "NameOwnerChanged" && new.is_empty() && name.starts_with(':'))
            .then(|| Signal::Left(name.into()));
    }
    let source =
        ElementId { owner: header.sender()?.as_str().into(), object: header.path()?.as_str().into() };
    let what = match interface {
        "org.a11y.atspi.Cache" => cache(message, member)?,
        "org.a11y.atspi.Event.Object" => object(message, member)?,
        "org.a11y.atspi.Event.Window" => What::Window,
        "org.a11y.atspi.Event.Document" => What::Document,
        _ => return None,
    };
    Some(Signal::Event(Event { source, what }))
}

fn cache(message: &Message, member: &str) -> Option<What> {
    match member {
        "AddAccessible" => Some(What::Added(Box::new(wire::item(message).ok()?))),
        "RemoveAccessible" => {
            let body = message.body();
            let reference: Reference<'_> = body.deserialize_unchecked().ok()?;
            Some(What::Removed(Names::default().element(reference)?))
        }
        _ => None,
    }
}

fn object(message: &Message, member: &str) -> Option<What> {
    let body = message.body();
    let Body(detail, first, _, value) = body.deserialize_unchecked().ok()?;
    Some(match member {
        "PropertyChange" => property(detail, &value),
        "StateChanged" => What::State(detail.to_owned(), first != 0),
        // Some toolkits append "/system" to the detail.
        "ChildrenChanged" if detail.starts_with("remove") => What::ChildRemoved(wire::element_in(&value)),
        "ChildrenChanged" => What::ChildAdded(wire::element_in(&value)),
        "TextChanged" => What::Text,
        "TextCaretMoved" | "TextSelectionChanged" => What::Caret,
        "SelectionChanged" => What::Selection,
        "BoundsChanged" | "VisibleDataChanged" => What::Bounds,
        "ModelChanged" | "RowInserted" | "RowDeleted" | "RowReordered" | "ColumnInserted"
        | "ColumnDeleted" | "ColumnReordered" => What::Replaced,
        _ => What::Other,
    })
}

fn property(detail: &str, value: &Value<'_>) -> What {
    let text = || match value {
        Value::Str(text) => Some(text.to_string()),
        _ => None,
    };
    match detail {
        "accessible-name" => What::Name(text()),
        "accessible-description" => What::Description(text()),
        "accessible-value" => What::Value,
        "accessible-role" | "accessible-parent" => What::Replaced,
        _ => What::Other,
    }
}

//! What AT-SPI sends: objects, roles, states, interfaces and the items of `Cache.GetItems`.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use zbus::Message;
use zbus::zvariant::{ObjectPath, OwnedObjectPath, Signature, Structure, Type, Value};

use deskhand_core::desktop::{ElementId, Interfaces, State, States};

use super::bus::CallError;

/// The path that stands for "no object".
const NULL: &str = "/org/a11y/atspi/null";

/// An object reference as it stands in a message: bus name and path.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Reference<'a>(pub &'a str, pub &'a str);

impl Type for Reference<'_> {
    const SIGNATURE: &'static Signature = <(&str, ObjectPath<'_>)>::SIGNATURE;
}

/// Gives the same text the same allocation, since thousands of references name one bus connection.
#[derive(Debug, Default)]
pub(super) struct Names(HashMap<String, Arc<str>>);

impl Names {
    fn share(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let shared: Arc<str> = name.into();
        self.0.insert(name.to_owned(), Arc::clone(&shared));
        shared
    }

    /// The object that `reference` names; `None` for the null object.
    pub(super) fn element(&mut self, reference: Reference<'_>) -> Option<ElementId> {
        let Reference(owner, object) = reference;
        (!owner.is_empty() && !object.is_empty() && object != NULL)
            .then(|| ElementId { owner: self.share(owner), object: object.into() })
    }
}

/// The object that a property or an event carries as its value.
pub(super) fn element_in(value: &Value<'_>) -> Option<ElementId> {
    let value = match value {
        Value::Value(inner) => inner,
        value => value,
    };
    let structure = Structure::try_from(value).ok()?;
    let (owner, object): (String, OwnedObjectPath) = structure.try_into().ok()?;
    Names::default().element(Reference(&owner, object.as_str()))
}

/// What an object says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub name: String,
    pub description: String,
    /// AT-SPI's number of the role.
    pub role: u32,
    pub states: StateBits,
    pub interfaces: InterfaceBits,
    /// Number of children; negative where the toolkit does not say (containers that manage their descendants).
    pub count: i32,
}

/// AT-SPI's states, by their own bit numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct StateBits(pub u64);

/// AT-SPI's states that the port knows, with their bit numbers.
const STATES: [(u8, &str, State); 27] = [
    (1, "active", State::Active),
    (3, "busy", State::Busy),
    (41, "checkable", State::Checkable),
    (4, "checked", State::Checked),
    (5, "collapsed", State::Collapsed),
    (6, "defunct", State::Defunct),
    (7, "editable", State::Editable),
    (8, "enabled", State::Enabled),
    (9, "expandable", State::Expandable),
    (10, "expanded", State::Expanded),
    (11, "focusable", State::Focusable),
    (12, "focused", State::Focused),
    (42, "has-popup", State::HasPopup),
    (32, "indeterminate", State::Indeterminate),
    (36, "invalid-entry", State::Invalid),
    (16, "modal", State::Modal),
    (17, "multi-line", State::MultiLine),
    (18, "multiselectable", State::Multiselectable),
    (20, "pressed", State::Pressed),
    (43, "read-only", State::ReadOnly),
    (33, "required", State::Required),
    (22, "selectable", State::Selectable),
    (23, "selected", State::Selected),
    (24, "sensitive", State::Sensitive),
    (25, "showing", State::Showing),
    (30, "visible", State::Visible),
    (31, "manages-descendants", State::ManagesDescendants),
];

impl StateBits {
    /// From the two words of `GetState`.
    pub(super) fn from_words(words: &[u32]) -> Self {
        let word = |index: usize| u64::from(words.get(index).copied().unwrap_or(0));
        Self(word(0) | word(1) << 32)
    }

    pub(super) fn has(self, state: State) -> bool {
        STATES.iter().any(|&(bit, _, known)| known == state && self.0 & (1 << bit) != 0)
    }

    /// The states that an object's interfaces may depend on.
    pub(super) fn of_interfaces(self) -> Self {
        let of = |state: State| {
            STATES.iter().find(|(_, _, known)| *known == state).map_or(0, |(bit, ..)| 1 << bit)
        };
        Self(self.0 & (of(State::Editable) | of(State::Focusable) | of(State::Selectable)))
    }

    /// Sets or clears the state that events call `name`; states that the port does not know are left alone.
    pub(super) fn set(&mut self, name: &str, on: bool) {
        if let Some((bit, ..)) = STATES.iter().find(|(_, known, _)| *known == name) {
            let mask = 1 << bit;
            self.0 = if on { self.0 | mask } else { self.0 & !mask };
        }
    }

    pub(super) fn port(self) -> States {
        STATES.iter().filter(|(bit, ..)| self.0 & (1 << bit) != 0).map(|&(.., state)| state).collect()
    }
}

/// The port's state that events call `name`.
pub(super) fn state_named(name: &str) -> Option<State> {
    STATES.iter().find(|(_, known, _)| *known == name).map(|&(.., state)| state)
}

/// The interfaces of an object that matter here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InterfaceBits(u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Interface {
    Action,
    Component,
    EditableText,
    Selection,
    Table,
    TableCell,
    Text,
    Value,
}

impl InterfaceBits {
    pub(super) fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let mut bits = 0;
        for name in names {
            let interface = match name.strip_prefix("org.a11y.atspi.") {
                Some("Action") => Interface::Action,
                Some("Component") => Interface::Component,
                Some("EditableText") => Interface::EditableText,
                Some("Selection") => Interface::Selection,
                Some("Table") => Interface::Table,
                Some("TableCell") => Interface::TableCell,
                Some("Text") => Interface::Text,
                Some("Value") => Interface::Value,
                _ => continue,
            };
            bits |= 1 << interface as u16;
        }
        Self(bits)
    }

    pub(super) fn has(self, interface: Interface) -> bool {
        self.0 & (1 << interface as u16) != 0
    }

    pub(super) fn port(self) -> Interfaces {
        Interfaces {
            action: self.has(Interface::Action),
            editable_text: self.has(Interface::EditableText),
            selection: self.has(Interface::Selection),
            table: self.has(Interface::Table),
            text: self.has(Interface::Text),
            value: self.has(Interface::Value),
        }
    }
}

/// Numbers of the roles that are treated apart.
#[allow(missing_docs)]
pub(super) mod role {
    pub(crate) const ALERT: u32 = 2;
    pub(crate) const CAPTION: u32 = 81;
    pub(crate) const COMBO_BOX: u32 = 11;
    pub(crate) const DATE_EDITOR: u32 = 12;
    pub(crate) const DIALOG: u32 = 16;
    pub(crate) const FILE_CHOOSER: u32 = 19;
    pub(crate) const FILLER: u32 = 20;
    pub(crate) const FRAME: u32 = 23;
    pub(crate) const INTERNAL_FRAME: u32 = 28;
    pub(crate) const LABEL: u32 = 29;
    pub(crate) const LIST: u32 = 31;
    pub(crate) const LIST_BOX: u32 = 98;
    pub(crate) const MENU: u32 = 33;
    pub(crate) const PASSWORD_TEXT: u32 = 40;
    pub(crate) const POPUP_MENU: u32 = 41;
    pub(crate) const ROOT_PANE: u32 = 46;
    pub(crate) const SPIN_BUTTON: u32 = 52;
    pub(crate) const STATUS_BAR: u32 = 54;
    pub(crate) const PAGE_TAB_LIST: u32 = 38;
    pub(crate) const TABLE_CELL: u32 = 56;
    pub(crate) const TERMINAL: u32 = 60;
    pub(crate) const TEXT: u32 = 61;
    pub(crate) const TOOL_TIP: u32 = 64;
    pub(crate) const WINDOW: u32 = 69;
    pub(crate) const PARAGRAPH: u32 = 73;
    pub(crate) const EDITBAR: u32 = 77;
    pub(crate) const ENTRY: u32 = 79;
    pub(crate) const DOCUMENT_SPREADSHEET: u32 = 92;
    pub(crate) const DOCUMENT_TEXT: u32 = 94;
    pub(crate) const DOCUMENT_WEB: u32 = 95;
    pub(crate) const STATIC: u32 = 116;

    /// Roles of which pages have thousands of objects, and whose objects differ in nothing but content.
    pub(crate) fn is_plain(role: u32) -> bool {
        [HEADING, LINK, LIST_ITEM, PARAGRAPH, SECTION, STATIC].contains(&role)
    }

    /// Roles whose objects a label of their own may stand for.
    pub(crate) fn may_be_labelled(role: u32) -> bool {
        const LABELLED: [u32; 15] = [
            CHECK_BOX,
            COMBO_BOX,
            DATE_EDITOR,
            EDITBAR,
            ENTRY,
            LIST,
            LIST_BOX,
            PASSWORD_TEXT,
            PUSH_BUTTON,
            SLIDER,
            SPIN_BUTTON,
            TABLE,
            TEXT,
            TOGGLE_BUTTON,
            TREE_TABLE,
        ];
        LABELLED.contains(&role)
    }

    const CHECK_BOX: u32 = 7;
    const HEADING: u32 = 83;
    const IMAGE: u32 = 27;
    const LINK: u32 = 88;
    const LIST_ITEM: u32 = 32;
    pub(crate) const PUSH_BUTTON: u32 = 43;
    const RADIO_BUTTON: u32 = 44;
    const SECTION: u32 = 85;
    const SLIDER: u32 = 51;
    const TABLE: u32 = 55;
    pub(crate) const TOGGLE_BUTTON: u32 = 62;
    const TREE_TABLE: u32 = 66;

    /// Roles of browsers' objects that hold nothing but their own text.
    pub(crate) fn is_leaf(role: u32) -> bool {
        [CHECK_BOX, IMAGE, LINK, PUSH_BUTTON, RADIO_BUTTON, SLIDER, STATIC, TOGGLE_BUTTON].contains(&role)
    }

    /// Roles whose objects have a name in nearly every case.
    pub(crate) fn is_usually_named(role: u32) -> bool {
        const NAMED: [u32; 14] = [
            CHECK_BOX,
            COMBO_BOX,
            ENTRY,
            HEADING,
            IMAGE,
            LABEL,
            LINK,
            LIST_ITEM,
            PASSWORD_TEXT,
            PUSH_BUTTON,
            RADIO_BUTTON,
            SLIDER,
            SPIN_BUTTON,
            TOGGLE_BUTTON,
        ];
        NAMED.contains(&role)
    }
}

/// The role's name in AT-SPI's words.
pub(super) fn role_name(role: u32) -> String {
    atspi_common::Role::try_from(role).map_or_else(|_| format!("role {role}"), |role| role.name().to_owned())
}

/// One item of `Cache.GetItems` or `Cache.AddAccessible`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub id: ElementId,
    pub parent: Option<ElementId>,
    pub facts: Facts,
    /// Place among its parent's children, in the format that sends it; negative: not known.
    pub index: i32,
    /// The children in order, in the format that lists them.
    pub children: Option<Vec<ElementId>>,
}

/// The item's members since at-spi2 2.10: a place and a count instead of a list of children.
type Counted<'a> =
    (Reference<'a>, Reference<'a>, Reference<'a>, i32, i32, Vec<&'a str>, &'a str, u32, &'a str, Vec<u32>);
/// The item's members as Qt 5 and old toolkits send them.
type Listed<'a> = (
    Reference<'a>,
    Reference<'a>,
    Reference<'a>,
    Vec<Reference<'a>>,
    Vec<&'a str>,
    &'a str,
    u32,
    &'a str,
    Vec<u32>,
);

const COUNTED: &str = "(so)(so)(so)iiassusau";
const LISTED: &str = "(so)(so)(so)a(so)assusau";

impl Item {
    fn counted(names: &mut Names, item: Counted<'_>) -> Option<Self> {
        let (id, _, parent, index, count, interfaces, name, role, description, states) = item;
        Some(Self {
            id: names.element(id)?,
            parent: names.element(parent),
            facts: Facts {
                name: name.to_owned(),
                description: description.to_owned(),
                role,
                states: StateBits::from_words(&states),
                interfaces: InterfaceBits::from_names(interfaces),
                count,
            },
            index,
            children: None,
        })
    }

    fn listed(names: &mut Names, item: Listed<'_>) -> Option<Self> {
        let (id, _, parent, children, interfaces, name, role, description, states) = item;
        Some(Self {
            id: names.element(id)?,
            parent: names.element(parent),
            facts: Facts {
                name: name.to_owned(),
                description: description.to_owned(),
                role,
                states: StateBits::from_words(&states),
                interfaces: InterfaceBits::from_names(interfaces),
                count: i32::try_from(children.len()).unwrap_or(i32::MAX),
            },
            index: -1,
            children: Some(children.into_iter().filter_map(|child| names.element(child)).collect()),
        })
    }
}

/// The signature without the array or the structure around it, however a library spells that.
fn core(signature: &str) -> &str {
    let inner = signature.strip_prefix('a').unwrap_or(signature);
    inner
        .strip_prefix('(')
        .and_then(|rest| rest.strip_suffix(')'))
        .filter(|rest| rest.starts_with('('))
        .unwrap_or(inner)
}

/// The items in a reply of `Cache.GetItems`.
pub(super) fn items(message: &Message) -> Result<Vec<Item>, CallError> {
    let body = message.body();
    let signature = body.signature().to_string();
    let mut names = Names::default();
    match core(&signature) {
        COUNTED => {
            let items: Vec<Counted<'_>> = body.deserialize_unchecked()?;
            Ok(items.into_iter().filter_map(|item| Item::counted(&mut names, item)).collect())
        }
        LISTED => {
            let items: Vec<Listed<'_>> = body.deserialize_unchecked()?;
            Ok(items.into_iter().filter_map(|item| Item::listed(&mut names, item)).collect())
        }
        _ => Err(CallError::Malformed(format!("GetItems answers {signature}"))),
    }
}

/// The item in a signal `Cache.AddAccessible`.
pub(super) fn item(message: &Message) -> Result<Item, CallError> {
    let body = message.body();
    let signature = body.signature().to_string();
    let mut names = Names::default();
    let item = match core(&signature) {
        COUNTED => Item::counted(&mut names, body.deserialize_unchecked()?),
        LISTED => Item::listed(&mut names, body.deserialize_unchecked()?),
        _ => None,
    };
    item.ok_or_else(|| CallError::Malformed(format!("AddAccessible carries {signature}")))
}

#[cfg(test)]
mod tests {
    use zbus::zvariant::ObjectPath;

    use super::*;

    fn path(path: &str) -> ObjectPath<'_> {
        ObjectPath::try_from(path).unwrap()
    }

    fn signal<B: serde::Serialize + zbus::zvariant::DynamicType>(body: &B) -> Message {
        Message::signal("/org/a11y/atspi/cache", "org.a11y.atspi.Cache", "AddAccessible")
            .unwrap()
            .build(body)
            .unwrap()
    }

    fn element(owner: &str, object: &str) -> ElementId {
        ElementId { owner: owner.into(), object: object.into() }
    }

    #[test]
    fn items_with_places_and_counts() {
        let item = (
            (":1.2", path("/a/1")),
            (":1.2", path("/a/root")),
            (":1.2", path("/a/0")),
            3_i32,
            7_i32,
            vec!["org.a11y.atspi.Accessible", "org.a11y.atspi.Action", "org.a11y.atspi.Text"],
            "Save",
            43_u32,
            "writes the file",
            vec![1_u32 << 25 | 1 << 8, 1 << 9],
        );
        let items = items(&signal(&(vec![item.clone()],))).unwrap();
        let expected = Item {
            id: element(":1.2", "/a/1"),
            parent: Some(element(":1.2", "/a/0")),
            facts: Facts {
                name: "Save".into(),
                description: "writes the file".into(),
                role: 43,
                states: StateBits(1 << 25 | 1 << 8 | 1 << 41),
                interfaces: InterfaceBits::from_names(["org.a11y.atspi.Text", "org.a11y.atspi.Action"]),
                count: 7,
            },
            index: 3,
            children: None,
        };
        assert_eq!(items.as_slice(), std::slice::from_ref(&expected));
        assert!(items[0].facts.states.has(State::Checkable) && items[0].facts.states.has(State::Showing));
        assert_eq!(super::item(&signal(&(item,))).unwrap(), expected, "as one structure");
    }

    #[test]
    fn items_with_lists_of_children() {
        let item = (
            (":1.3", path("/q/1")),
            (":1.3", path("/q/root")),
            (":1.3", path("/org/a11y/atspi/null")),
            vec![(":1.3", path("/q/2")), (":1.3", path("/q/3"))],
            vec!["org.a11y.atspi.Component"],
            "window",
            69_u32,
            "",
            vec![0_u32, 0],
        );
        let items = items(&signal(&(vec![item],))).unwrap();
        assert_eq!(items[0].parent, None, "the null object is nobody's parent");
        assert_eq!(items[0].children, Some(vec![element(":1.3", "/q/2"), element(":1.3", "/q/3")]));
        assert_eq!(items[0].facts.count, 2);
    }

    #[test]
    fn an_empty_answer_of_either_kind_has_no_items() {
        type Old<'a> = (
            (&'a str, ObjectPath<'a>),
            (&'a str, ObjectPath<'a>),
            (&'a str, ObjectPath<'a>),
            Vec<(&'a str, ObjectPath<'a>)>,
            Vec<&'a str>,
            &'a str,
            u32,
            &'a str,
            Vec<u32>,
        );
        assert_eq!(items(&signal(&(Vec::<Old<'_>>::new(),))).unwrap(), []);
    }

    #[test]
    fn another_signature_is_an_error_and_no_panic() {
        assert!(items(&signal(&("text",))).is_err());
        assert!(items(&signal(&())).is_err());
        assert!(super::item(&signal(&(1_u32, 2_u32))).is_err());
    }

    #[test]
    fn every_state_is_the_one_of_the_specification() {
        for (bit, name, _) in STATES {
            let known = atspi_common::State::from(name);
            assert_eq!(known as u64, 1 << bit, "{name}");
        }
    }

    #[test]
    fn states_of_events_set_and_clear() {
        let mut states = StateBits::default();
        states.set("checked", true);
        states.set("no-such-state", true);
        assert!(states.port().has(State::Checked));
        states.set("checked", false);
        assert_eq!(states, StateBits::default());
    }

    #[test]
    fn roles_have_the_words_of_the_field() {
        let words = [
            (role::PASSWORD_TEXT, "password text"),
            (role::ENTRY, "entry"),
            (role::TABLE_CELL, "table cell"),
            (role::TERMINAL, "terminal"),
            (role::LIST_BOX, "list box"),
            (role::DOCUMENT_TEXT, "document text"),
            (role::TOOL_TIP, "tool tip"),
            (role::SPIN_BUTTON, "spin button"),
        ];
        for (number, word) in words {
            assert_eq!(role_name(number), word);
        }
        assert_eq!(role_name(9999), "role 9999");
    }
}

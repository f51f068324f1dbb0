use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::broadcast;

use super::{Fact, PortError, Stop, Window};
use crate::geometry::{Point, Rect};

/// The accessibility system's own name of an object: never re-used for another object while its application runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ElementId {
    /// The application, as its connection is called.
    pub owner: Arc<str>,
    /// The object in it.
    pub object: Arc<str>,
}

/// One state of an element. The discriminant is its bit in [`States`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // the names are the field's own
pub enum State {
    Active,
    Busy,
    Checkable,
    Checked,
    Collapsed,
    Defunct,
    Editable,
    Enabled,
    Expandable,
    Expanded,
    Focusable,
    Focused,
    HasPopup,
    Indeterminate,
    Invalid,
    Modal,
    MultiLine,
    Multiselectable,
    Pressed,
    ReadOnly,
    Required,
    Selectable,
    Selected,
    Sensitive,
    Showing,
    Visible,
    ManagesDescendants,
}

/// A set of [`State`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct States(pub u32);

impl States {
    /// Whether `state` is set.
    pub const fn has(self, state: State) -> bool {
        self.0 & (1 << state as u8) != 0
    }

    /// The set with `state` set.
    #[must_use]
    pub const fn with(self, state: State) -> Self {
        Self(self.0 | (1 << state as u8))
    }

    /// The set with `state` cleared.
    #[must_use]
    pub const fn without(self, state: State) -> Self {
        Self(self.0 & !(1 << state as u8))
    }
}

impl FromIterator<State> for States {
    fn from_iter<T: IntoIterator<Item = State>>(states: T) -> Self {
        states.into_iter().fold(Self::default(), Self::with)
    }
}

/// What an element says it can do. A claim of the toolkit; what it does is read back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the field's own
pub struct Interfaces {
    pub action: bool,
    pub editable_text: bool,
    pub selection: bool,
    pub table: bool,
    pub text: bool,
    pub value: bool,
}

/// One element of a tree: what comes with the structure itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The object.
    pub id: ElementId,
    /// Place of the parent in [`Tree::nodes`]; `None` for the window itself.
    pub parent: Option<u32>,
    /// Role in the words of the accessibility system: `push button`, `check box`, `text`, `table cell`.
    pub role: String,
    /// Accessible name.
    pub name: String,
    /// Accessible description, where it comes with the structure.
    pub description: String,
    /// States.
    pub states: States,
    /// Interfaces.
    pub interfaces: Interfaces,
    /// Children that exist in the application and were not read (a spreadsheet's cells outside of the visible range).
    pub unread_children: u64,
}

/// A numeric value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Value {
    pub current: f64,
    pub minimum: f64,
    pub maximum: f64,
}

/// Text content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text {
    /// The text, from its beginning, cut at [`TreeRequest::text_limit`] characters or what was asked for.
    pub content: String,
    /// Length of the whole in characters.
    pub length: usize,
    /// Caret position in characters, if the element has one.
    pub caret: Option<usize>,
    /// Selected ranges in characters, end exclusive.
    pub selections: Vec<(usize, usize)>,
}

/// An action that an element offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// Index to perform it by.
    pub index: u32,
    /// Name, possibly empty (Chromium) or only separators (Firefox).
    pub name: String,
}

/// What costs a round trip of its own for each element, fetched for what is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Visible frame in screen pixels, where asked for; `None` where the toolkit gives no usable one.
    pub frame: Option<Rect>,
    /// Numeric value.
    pub value: Option<Value>,
    /// Text content; never of a password field.
    pub text: Option<Text>,
    /// Actions, where asked for.
    pub actions: Vec<Action>,
}

/// Which details to read. Each of them costs questions to the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DetailsRequest {
    /// At most so many characters of a text are fetched. With more than [`DetailsRequest::PASSAGE`] the texts of a page's
    /// passages are fetched too, which otherwise are told by the names of what is in them.
    pub text_limit: usize,
    /// Whether frames are wanted.
    pub frames: bool,
    /// Whether actions are wanted.
    pub actions: bool,
}

impl DetailsRequest {
    /// Characters that do for telling what an element is. Whoever wants more is after the text itself.
    pub const PASSAGE: usize = 10_000;
}

/// What to read of a window's tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeRequest {
    /// At most so many elements are read.
    pub max_nodes: usize,
    /// At most so much time is spent; what was not read by then is left out and said.
    pub budget: Duration,
    /// At most so many characters of an element's text are fetched.
    pub text_limit: usize,
}

/// Something a reader of a tree must know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeNote {
    /// The application did not answer in time; the tree is what was known or read by then.
    NotResponding {
        /// Its name.
        app: String,
    },
    /// Budget of nodes or time ran out before everything was read.
    Cut {
        /// In words: `time` or `nodes`.
        by: &'static str,
    },
    /// So many objects answered with an error and were skipped.
    Broken {
        /// How many.
        count: usize,
    },
    /// The application publishes no tree, or not for this window; the text says why and what would help.
    NoTree(String),
    /// Anything else, in one sentence.
    Other(String),
}

/// One reading of a window's element tree, parents before children, siblings in order (pre-order).
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// The elements; the first is the window itself. Empty if there is no tree.
    pub nodes: Vec<Node>,
    /// Toolkit name and version, if known.
    pub toolkit: Option<String>,
    /// What a reader must know.
    pub notes: Vec<TreeNote>,
}

/// What changed in an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The element that changed.
    pub element: ElementId,
    /// What about it.
    pub kind: ChangeKind,
}

/// Kinds of [`Change`].
#[derive(Clone, Debug, PartialEq)]
pub enum ChangeKind {
    /// A state was set or cleared.
    State(State, bool),
    /// Text was inserted or deleted.
    Text,
    /// The caret or the text selection moved.
    Caret,
    /// The numeric value changed.
    Value,
    /// The accessible name or description changed.
    Name,
    /// Children were added or removed.
    Children,
    /// The selection among children changed.
    Selection,
    /// Frame changed or content scrolled.
    Bounds,
    /// A window opened, closed or was activated.
    Window,
    /// Events were lost: anything may have changed.
    Lost,
}

/// Element trees of applications, and what can be done to elements without real input.
#[async_trait]
pub trait Accessibility: Send + Sync {
    /// Reads the structure of `window`'s tree. An answer is never older than the call: what the application published
    /// before the call is in it.
    ///
    /// # Errors
    /// `Unavailable`, `WindowGone`. A frozen application is not an error: the tree then is partial and says so.
    async fn tree(&self, window: &Window, request: &TreeRequest, stop: &Stop) -> Result<Tree, PortError>;

    /// Reads details of elements of `window`, in the order asked, many at a time. `None` where the element is gone or did
    /// not answer.
    ///
    /// # Errors
    /// `Unavailable`, `AppNotResponding` when nothing answered at all.
    async fn details(
        &self,
        window: &Window,
        elements: &[ElementId],
        request: DetailsRequest,
        stop: &Stop,
    ) -> Result<Vec<Option<Details>>, PortError>;

    /// Which applications could be the one of `window`, which is taken for it and why, for a bug report. Never fails: what
    /// cannot be found out is a fact.
    async fn facts(&self, window: &Window) -> Vec<Fact>;

    /// Reads one element anew from its application: the node (its `parent` is `None`) if it still is part of the
    /// application's tree.
    ///
    /// # Errors
    /// `ElementGone`, `AppNotResponding`, `Unavailable`.
    async fn probe(&self, element: &ElementId) -> Result<Node, PortError>;

    /// The innermost element at `point` (screen) of `window`, if the toolkit can tell.
    ///
    /// # Errors
    /// `AppNotResponding`, `Unavailable`.
    async fn element_at(&self, window: &Window, point: Point) -> Result<Option<ElementId>, PortError>;

    /// The application of `window`, by the name that elements have of their owner; `None` if it is not to be found.
    ///
    /// # Errors
    /// `AppNotResponding`, `Unavailable`.
    async fn owner(&self, window: &Window) -> Result<Option<Arc<str>>, PortError>;

    /// Performs action number `index`. The answer is the toolkit's claim. An application that opens a modal dialogue
    /// may not answer before it is closed: if it still answers otherwise, the action counts as performed.
    ///
    /// # Errors
    /// `ElementGone`, `NotSupported`, `AppNotResponding` (uncertain: it may have been performed), `Unavailable`.
    async fn do_action(&self, element: &ElementId, index: u32) -> Result<bool, PortError>;

    /// Gives the element the keyboard focus within its window, without raising the window.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn focus(&self, element: &ElementId) -> Result<bool, PortError>;

    /// Sets the numeric value.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn set_number(&self, element: &ElementId, value: f64) -> Result<bool, PortError>;

    /// Replaces the whole text.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn set_text(&self, element: &ElementId, text: &str) -> Result<bool, PortError>;

    /// Inserts `text` before character `position`.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn insert_text(&self, element: &ElementId, position: usize, text: &str) -> Result<bool, PortError>;

    /// Selects the characters from `start` to `end` (exclusive) of the text, and only them; an empty range puts the caret
    /// there.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn select_text(&self, element: &ElementId, start: usize, end: usize) -> Result<bool, PortError>;

    /// Selects child number `child` of `container`, and only it.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn select_child(&self, container: &ElementId, child: u32) -> Result<bool, PortError>;

    /// Whether child number `child` of `container` is selected, as the container tells it.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn is_selected(&self, container: &ElementId, child: u32) -> Result<bool, PortError>;

    /// Selects `element` in the container that holds it, and only it.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn select(&self, element: &ElementId) -> Result<bool, PortError>;

    /// Brings the element into view, if the toolkit can.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn scroll_into_view(&self, element: &ElementId) -> Result<bool, PortError>;

    /// Scrolls what holds the element so that its top left corner comes to `point` (screen), as near as can be.
    ///
    /// # Errors
    /// As [`Accessibility::do_action`].
    async fn scroll_to_point(&self, element: &ElementId, point: Point) -> Result<bool, PortError>;

    /// Changes of all applications from now on. A receiver that lags gets an error from the channel and must treat
    /// everything as changed.
    ///
    /// # Errors
    /// `Unavailable`.
    async fn changes(&self) -> Result<broadcast::Receiver<Change>, PortError>;

    /// Waits until every change that `owner` published before this call has been seen by the receivers of
    /// [`Accessibility::changes`] (one round trip to it).
    ///
    /// # Errors
    /// `AppNotResponding`, `Unavailable`.
    async fn fence(&self, owner: &str) -> Result<(), PortError>;

    /// Drops all that is kept of applications' trees, and hears nothing of them until it is asked again. Bounded.
    async fn forget_all(&self);
}

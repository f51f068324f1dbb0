//! Element trees as a model reads them: what is worth a line, what fits the budget, and how it is written.

mod changes;
mod near;
mod numbering;
mod outline;
mod pages;
mod query;
mod roles;
mod select;
#[cfg(test)]
mod tests;

use std::ops::Range;

pub use changes::{Changes, changes};
pub use near::nearest;
pub use numbering::Numbering;
pub use outline::{Line, Lines, Outline, quote, render};
pub use pages::hidden_pages;
pub use query::Query;
pub use roles::{is_container, is_interactive, is_item, is_text_input, is_toggle, spoken};
pub use select::{Selection, select};

use crate::desktop::{Node, Window};

/// One reading of a window's tree. Element indices name its nodes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Names the snapshot within its session.
    pub id: String,
    /// The window as it was then.
    pub window: Window,
    /// All elements, shown or not, in pre-order. An element's *place* is its place here.
    pub nodes: Vec<Node>,
    /// The *index* of each element: what callers call it by. It stays the same as long as the object lives.
    pub indices: Vec<u32>,
    /// The parts of it that popups of the window show, in order.
    pub parts: Vec<Part>,
    /// What the caller was shown of it; `None`: nothing, so its indices are not the ones that they mean.
    pub seen: Option<Seen>,
}

/// Elements that stand together: those of a popup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Their places.
    pub places: Range<u32>,
    /// The popup.
    pub window: Window,
}

/// What a caller was shown of a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The lines of the outline.
    pub lines: Lines,
    /// What was asked for, in words: lines of other questions cannot be compared.
    pub question: String,
}

impl Part {
    /// The window that shows the element at `place`, if not `window`.
    pub fn window_of<'a>(parts: &'a [Self], window: &'a Window, place: u32) -> &'a Window {
        let part = parts.iter().rev().find(|part| part.places.contains(&place));
        part.map_or(window, |part| &part.window)
    }
}

impl Snapshot {
    /// A reading that nobody was shown and that is not kept: an element's index is its place.
    pub fn passing(window: Window, nodes: Vec<Node>) -> Self {
        let indices = (0u32..).zip(&nodes).map(|(place, _)| place).collect();
        Self { id: String::new(), window, nodes, indices, parts: Vec::new(), seen: None }
    }

    /// The place of the element with this index.
    pub fn place(&self, index: u32) -> Option<u32> {
        // Of an object that stands in two menus the one in the popup is meant: the other is not open.
        let place = self.indices.iter().rposition(|known| *known == index)?;
        u32::try_from(place).ok()
    }

    /// The window that shows the element at `place`.
    pub fn window_of(&self, place: u32) -> &Window {
        Part::window_of(&self.parts, &self.window, place)
    }

    /// The index of the element at `place`.
    pub fn index(&self, place: u32) -> u32 {
        self.indices.get(place as usize).copied().unwrap_or(place)
    }
}

/// The children of each node, in order, for trees whose nodes know only their parents.
#[derive(Debug)]
pub struct Children {
    first: Vec<u32>,
    list: Vec<u32>,
}

impl Children {
    /// Sorts the nodes by parent; nodes are in pre-order, so siblings keep their order.
    pub fn of(nodes: &[Node]) -> Self {
        let mut first = vec![0u32; nodes.len() + 1];
        for parent in nodes.iter().filter_map(|node| node.parent) {
            first[parent as usize + 1] += 1;
        }
        for place in 1..first.len() {
            first[place] += first[place - 1];
        }
        let mut next = first.clone();
        let mut list = vec![0; first.last().copied().unwrap_or(0) as usize];
        for (place, node) in nodes.iter().enumerate() {
            if let Some(parent) = node.parent {
                let slot = &mut next[parent as usize];
                list[*slot as usize] = place as u32;
                *slot += 1;
            }
        }
        Self { first, list }
    }

    /// Places of the children of the node at `place`.
    pub fn of_node(&self, place: u32) -> &[u32] {
        let place = place as usize;
        &self.list[self.first[place] as usize..self.first[place + 1] as usize]
    }
}

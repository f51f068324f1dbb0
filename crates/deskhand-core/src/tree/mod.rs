//! Element trees as a model reads them: what is worth a line, what fits the budget, and how it is written.

mod outline;
mod query;
mod roles;
mod select;
#[cfg(test)]
mod tests;

pub use outline::{Outline, quote, render};
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
    /// All elements, shown or not: an element's index is its place here.
    pub nodes: Vec<Node>,
    /// Whether the caller was shown it, so that its numbers are the ones that they mean.
    pub seen: bool,
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

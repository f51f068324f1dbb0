//! Pages of a browser's tabs.

use std::collections::HashSet;

use crate::desktop::{Node, State};

/// Places of all that is in pages which are not shown, if another page is: a browser lists those of all tabs, and what is
/// in them may say of itself that it is shown. Parents come before children.
pub fn hidden_pages(nodes: &[Node]) -> HashSet<u32> {
    let is_page = |at: u32| nodes[at as usize].role == "document web";
    // The topmost element is the window, whose own state says nothing about its content.
    let shows = |at: u32| {
        let node = &nodes[at as usize];
        node.parent.is_none() || node.states.has(State::Showing)
    };
    let above = |at: u32| std::iter::successors(nodes[at as usize].parent, |&at| nodes[at as usize].parent);
    let pages = (0u32..).zip(nodes).map(|(place, _)| place).filter(|&at| is_page(at));
    let outermost = pages.filter(|&at| !above(at).any(is_page));
    let (shown, hidden): (Vec<u32>, Vec<u32>) = outermost.partition(|&at| shows(at) && above(at).all(shows));
    if shown.is_empty() {
        return HashSet::new();
    }
    let mut inside: HashSet<u32> = hidden.into_iter().collect();
    for (place, node) in (0u32..).zip(nodes) {
        if node.parent.is_some_and(|parent| inside.contains(&parent)) {
            inside.insert(place);
        }
    }
    inside
}

//! Which elements are worth a line, and which of them fit the budget.

use std::collections::HashSet;

use super::{Children, is_container, is_interactive};
use crate::desktop::{Node, State};

/// Siblings of one kind that are shown before anything else is held back for them: a long list must not push the
/// buttons behind it out of the answer, and its first rows are what a person sees.
const FIRST_SIBLINGS: u32 = 24;

/// What to show of a tree.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Places of the elements with a line of their own, in order.
    pub shown: Vec<u32>,
    /// Elements that are worth a line and did not fit.
    pub left_out: usize,
    /// Elements that are not on the screen (closed menus, other tabs, scrolled away) and were not asked for.
    pub hidden: usize,
}

/// Chooses at most `limit` elements below `root`: all that have a meaning, those on the screen first, interactive ones
/// and the first of every list before the rest. With `wanted`, only those it accepts.
pub fn select(
    nodes: &[Node],
    children: &Children,
    root: u32,
    limit: usize,
    include_hidden: bool,
    wanted: Option<&HashSet<u32>>,
) -> Selection {
    let honest = showing_is_honest(nodes);
    let mut selection = Selection::default();
    let mut candidates = Vec::new();
    // (place, rank of the worst ancestor list, whether everything above is on the screen)
    let mut stack = vec![(root, 0u32, true)];
    while let Some((place, rank, parent_showing)) = stack.pop() {
        let node = &nodes[place as usize];
        let showing = place == root || !honest || (parent_showing && node.states.has(State::Showing));
        if is_wanted(nodes, children, place, root, wanted) {
            if showing || include_hidden || wanted.is_some() {
                candidates.push((u32::from(!showing), rank, u32::from(!is_interactive(&node.role)), place));
            } else {
                selection.hidden += 1;
            }
        }
        let mut ranks = SiblingRanks::default();
        let below: Vec<_> = children
            .of_node(place)
            .iter()
            .map(|&child| (child, rank.max(ranks.next(&nodes[child as usize].role)), showing))
            .collect();
        stack.extend(below.into_iter().rev());
    }
    let total = candidates.len();
    if total > limit {
        candidates.sort_unstable();
        candidates.truncate(limit);
    }
    selection.left_out = total - candidates.len();
    selection.shown = candidates.into_iter().map(|(.., place)| place).collect();
    selection.shown.sort_unstable();
    selection
}

fn is_wanted(
    nodes: &[Node],
    children: &Children,
    place: u32,
    root: u32,
    wanted: Option<&HashSet<u32>>,
) -> bool {
    match wanted {
        Some(wanted) => wanted.contains(&place),
        None => place == root || is_meaningful(nodes, children, place),
    }
}

/// Some toolkits (GTK 4.8) set the state on the window only: then it says nothing.
fn showing_is_honest(nodes: &[Node]) -> bool {
    nodes.iter().skip(1).any(|node| node.states.has(State::Showing))
}

/// Whether an element deserves a line: it can be acted on, or says something that its parent does not.
fn is_meaningful(nodes: &[Node], children: &Children, place: u32) -> bool {
    let node = &nodes[place as usize];
    if is_interactive(&node.role) && node.role != "table row" {
        return true;
    }
    let repeats_parent = node.parent.is_some_and(|parent| {
        let parent = &nodes[parent as usize];
        !node.name.is_empty() && parent.name.trim() == node.name.trim() && children.of_node(place).is_empty()
    });
    if repeats_parent {
        return false;
    }
    if !node.name.is_empty() || node.unread_children > 0 {
        return true;
    }
    if node.interfaces.value || node.interfaces.editable_text || node.states.has(State::Focused) {
        return true;
    }
    // A nameless text object says something only if it has text of its own, which details tell later: labels, paragraphs.
    if node.interfaces.text && children.of_node(place).is_empty() {
        return true;
    }
    !is_container(&node.role)
        && !matches!(node.role.as_str(), "label" | "status bar" | "scroll bar" | "html container")
}

/// Ranks siblings of one role: the first [`FIRST_SIBLINGS`] are 0, then each doubling adds one.
#[derive(Default)]
struct SiblingRanks<'a> {
    counts: Vec<(&'a str, u32)>,
}

impl<'a> SiblingRanks<'a> {
    fn next(&mut self, role: &'a str) -> u32 {
        let place = self.counts.iter().position(|(known, _)| *known == role).unwrap_or_else(|| {
            self.counts.push((role, 0));
            self.counts.len() - 1
        });
        let count = &mut self.counts[place].1;
        *count += 1;
        ((*count - 1) / FIRST_SIBLINGS).checked_ilog2().map_or(0, |doublings| doublings + 1)
    }
}

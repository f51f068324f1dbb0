//! Which elements are marked on a picture.

use std::collections::{HashMap, HashSet};

use crate::desktop::{Details, Node, State};
use crate::picture::Mark;
use crate::tree::{Selection, is_container, is_interactive, is_item};

/// Cells of a larger table are not marked: the numbers would cover what is in them, and each cell has a name.
const MAX_CELLS: usize = 60;

/// The marks of the elements with a line that can be acted on and are on the screen.
pub(super) fn marks(
    nodes: &[Node],
    indices: &[u32],
    selection: &Selection,
    details: &HashMap<u32, Details>,
) -> Vec<Mark> {
    let node = |place: u32| &nodes[place as usize];
    let is_cell = |place: &u32| node(*place).role == "table cell";
    let with_cells = selection.shown.iter().filter(|place| is_cell(place)).count() <= MAX_CELLS;
    let wanted: Vec<u32> = selection
        .shown
        .iter()
        .copied()
        .filter(|&place| is_usable(node(place)) && (with_cells || !is_cell(&place)))
        .collect();
    let mut holders: HashSet<u32> = HashSet::new();
    for &place in &wanted {
        let mut above = node(place).parent;
        while let Some(holder) = above.filter(|holder| holders.insert(*holder)) {
            above = node(holder).parent;
        }
    }
    // An item of a list that holds a link is the link.
    let stands_for_another = |place: u32| is_item(&node(place).role) && holders.contains(&place);
    wanted
        .into_iter()
        .filter(|&place| !stands_for_another(place))
        .filter_map(|place| {
            let area = details.get(&place)?.frame.filter(|frame| !frame.is_empty())?;
            let role = &node(place).role;
            let centred = role.contains("button") || role == "page tab" || role == "icon";
            Some(Mark { index: indices[place as usize], area, centred })
        })
        .collect()
}

fn is_usable(node: &Node) -> bool {
    let arranges = is_container(&node.role) || node.role.starts_with("document") || node.parent.is_none();
    is_interactive(&node.role) || (node.states.has(State::Focusable) && !arranges)
}

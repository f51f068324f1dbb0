//! Which elements are marked on a picture.

use std::collections::HashMap;

use crate::desktop::{Details, Node, State};
use crate::picture::Mark;
use crate::tree::{Selection, is_interactive};

/// Cells of a larger table are not marked: the numbers would cover what is in them, and each cell has a name.
const MAX_CELLS: usize = 60;

/// The marks of the elements with a line that can be acted on and are on the screen.
pub(super) fn marks(
    nodes: &[Node],
    indices: &[u32],
    selection: &Selection,
    details: &HashMap<u32, Details>,
) -> Vec<Mark> {
    let is_cell = |place: &u32| nodes[*place as usize].role == "table cell";
    let with_cells = selection.shown.iter().filter(|place| is_cell(place)).count() <= MAX_CELLS;
    let is_usable = |place: &u32| {
        let node = &nodes[*place as usize];
        is_interactive(&node.role) || (node.states.has(State::Focusable) && node.parent.is_some())
    };
    let wanted = selection.shown.iter().filter(|place| is_usable(place) && (with_cells || !is_cell(place)));
    wanted
        .filter_map(|&place| {
            let area = details.get(&place)?.frame.filter(|frame| !frame.is_empty())?;
            let role = &nodes[place as usize].role;
            let centred = role.contains("button") || role == "page tab" || role == "icon";
            Some(Mark { index: indices[place as usize], area, centred })
        })
        .collect()
}

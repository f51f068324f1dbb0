//! Boxes of a page that scroll by themselves. Browsers tell no scroll bars and do not say which boxes these are, but tell
//! the places of what a box holds beyond its frame.

use std::collections::HashMap;

use super::under::Under;
use crate::desktop::{DetailsRequest, ElementId, Node, State};
use crate::engine::Context;
use crate::geometry::Rect;

/// So many children at each end of a box are looked at: what holds more than is seen holds it there.
const CHILDREN: usize = 2;
/// Content may stick out so far of what holds it without being scrolled: borders, shadows, high letters.
const SLACK: i64 = 12;
/// Places further away than any screen are what toolkits say of things that have none.
const FAR: i32 = 1_000_000;

/// The page around an element: the outermost of nested documents. `None`: it is in no page.
pub(super) fn page(under: &Under) -> Option<u32> {
    let is_page = |place: &&u32| under.tree.nodes[**place as usize].role == "document web";
    under.chain.iter().rfind(is_page).copied()
}

/// Those of `places` (innermost first) that scroll their content by themselves, as far as can be told: their children lie
/// beyond their frames.
pub(super) async fn boxes(context: &Context, under: &Under, places: &[u32], across: bool) -> Vec<u32> {
    let nodes = &under.tree.nodes;
    let mut children: HashMap<u32, Vec<u32>> = places.iter().map(|&place| (place, Vec::new())).collect();
    for (at, node) in (0u32..).zip(nodes) {
        if let Some(found) = node.parent.and_then(|parent| children.get_mut(&parent)) {
            found.push(at);
        }
    }
    for found in children.values_mut() {
        let end = found.len().saturating_sub(CHILDREN).max(CHILDREN);
        *found = found.iter().take(CHILDREN).chain(found.iter().skip(end)).copied().collect();
    }
    let held = places.iter().flat_map(|place| &children[place]);
    let asked: Vec<u32> = places.iter().chain(held).copied().collect();
    let ids: Vec<ElementId> = asked.iter().map(|&place| under.id(place)).collect();
    let told: HashMap<u32, Rect> = asked
        .into_iter()
        .zip(frames(context, under, &ids).await)
        .filter_map(|(place, frame)| Some((place, frame?)))
        .collect();
    let holds_more = |place: &u32| {
        let own = told.get(place);
        let held = children[place].iter().filter_map(|child| told.get(child));
        own.is_some_and(|own| held.into_iter().any(|child| sticks_out(own, child, across)))
    };
    let is_box = |place: &&u32| {
        let node = &nodes[**place as usize];
        may_scroll(node) && (is_long_text(node) || holds_more(place))
    };
    places.iter().filter(is_box).copied().collect()
}

/// A text of several lines scrolls by itself, and tells no places of its lines.
fn is_long_text(node: &Node) -> bool {
    node.states.has(State::MultiLine) && node.states.has(State::Editable)
}

/// Content of lines of text, which may be higher than its line, is not scrolled by it.
fn may_scroll(node: &Node) -> bool {
    !matches!(
        node.role.as_str(),
        "link" | "label" | "static" | "push button" | "button" | "toggle button" | "heading" | "paragraph"
    )
}

fn sticks_out(own: &Rect, child: &Rect, across: bool) -> bool {
    let down = |rect: &Rect| (i64::from(rect.y), rect.bottom());
    let right = |rect: &Rect| (i64::from(rect.x), rect.right());
    let along = |rect: &Rect| if across { right(rect) } else { down(rect) };
    let aside = |rect: &Rect| if across { down(rect) } else { right(rect) };
    let ((start, end), (first, last)) = (along(own), along(child));
    // What is moved out of the page to be heard only is no content of it.
    let is_beside = aside(child).1 <= aside(own).0 || aside(child).0 >= aside(own).1;
    !is_beside && (first < start - SLACK || last > end + SLACK)
}

/// Frames of elements; `None` for those that have none.
pub(super) async fn frames(context: &Context, under: &Under, ids: &[ElementId]) -> Vec<Option<Rect>> {
    if ids.is_empty() {
        return Vec::new();
    }
    let request = DetailsRequest { text_limit: 0, frames: true, actions: false };
    let is_near = |frame: &Rect| !frame.is_empty() && frame.x.abs() < FAR && frame.y.abs() < FAR;
    let details = under.details(context, ids, request).await;
    details.into_iter().map(|found| found.and_then(|found| found.frame).filter(is_near)).collect()
}

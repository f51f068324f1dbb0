//! What lies over an element within its page: the display server tells of windows only.

use std::time::Duration;

use super::target::Element;
use super::under::{Under, named};
use crate::desktop::{DetailsRequest, Node};
use crate::engine::Context;
use crate::error::{Code, Error, Result};
use crate::geometry::Point;
use crate::tree::{is_interactive, quote};

/// Browsers tell so late what lies at a point after a page has moved.
pub(super) const LATENESS: Duration = Duration::from_millis(700);
/// Between two looks at it.
const LOOK: Duration = Duration::from_millis(50);
/// Of a cover without a name so many characters of its text are told.
const TEXT: usize = 60;

/// What is at the point of an element.
enum Found {
    /// The element, something in it, or something that passes a press on to it.
    Itself,
    /// What holds it: it lies in a gap, or the browser has not looked closely yet.
    Around,
    Other(Box<Node>),
}

/// What a press at `at` would reach instead of `element`, if that is in a page, as far as its browser tells. `None`: nothing.
///
/// # Errors
/// When the call is stopped.
pub(super) async fn over(context: &Context, element: &Element, at: Point) -> Result<Option<Node>> {
    if element.is_in_popup() || !element.is_in("document web") {
        return Ok(None);
    }
    let first = found(context, element, at).await;
    let found = if matches!(first, Found::Around) {
        // Chromium answers with what it knows and asks the page meanwhile.
        context.pause(LOOK).await?;
        found(context, element, at).await
    } else {
        first
    };
    Ok(match found {
        Found::Itself | Found::Around => None,
        Found::Other(node) => Some(*node),
    })
}

async fn found(context: &Context, element: &Element, at: Point) -> Found {
    let accessibility = &context.desktop().accessibility;
    let Ok(Some(innermost)) = accessibility.element_at(&element.window, at).await else {
        return Found::Around;
    };
    if innermost == *element.id() {
        return Found::Itself;
    }
    let Some(under) = Under::at(context, &element.window, at).await else { return Found::Around };
    let Some(top) = under.nodes().next() else { return Found::Around };
    if under.nodes().any(|node| node.id == *element.id()) {
        return Found::Itself;
    }
    let nodes = &under.tree.nodes;
    let place = (0u32..).zip(nodes).find(|(_, node)| node.id == *element.id());
    let Some((place, node)) = place else { return Found::Around };
    let holders: Vec<u32> = under.above(place).collect();
    if under.chain.first().is_some_and(|first| holders.contains(first)) {
        return Found::Around;
    }
    // A label takes presses for its field; what is drawn over a check box is in the same label or row.
    let is_for_it = |node: &Node| node.role == "label" || is_interactive(&node.role);
    let shared = under.chain.iter().filter(|place| holders.contains(place));
    let is_shared = shared.copied().any(|place| is_for_it(&nodes[place as usize]));
    let is_label = |top: &Node| !top.name.is_empty() && top.name == node.name;
    if is_shared || under.nodes().any(is_label) {
        return Found::Itself;
    }
    Found::Other(Box::new(top.clone()))
}

/// The error for it.
pub(super) async fn occluded(context: &Context, element: &Element, at: Point, cover: &Node) -> Error {
    let request = DetailsRequest { text_limit: TEXT, frames: false, actions: false };
    let ids = std::slice::from_ref(&cover.id);
    let details =
        context.desktop().accessibility.details(&element.window, ids, request, context.stop()).await;
    let text = details.ok().and_then(|details| details.into_iter().next().flatten()?.text);
    let text = text.map(|text| text.content).filter(|text| cover.name.is_empty() && !text.trim().is_empty());
    let cover_name =
        text.map_or_else(|| named(cover), |text| format!("{} {}", named(cover), quote(&text, TEXT)));
    let message = format!(
        "at {},{} the page shows {cover_name}, not {}; nothing was done; close or scroll what covers it",
        at.x,
        at.y,
        element.describe()
    );
    let details = serde_json::json!({"cover": {"role": cover.role, "name": cover.name}});
    Error::new(Code::Occluded, message).with_details(details)
}

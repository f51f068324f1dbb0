//! What lies at a point of a window: the innermost element, and all that hold it.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::Element;
use super::window_state::MAX_NODES;
use crate::desktop::{Details, DetailsRequest, ElementId, Node, TreeNote, TreeRequest, Window};
use crate::engine::Context;
use crate::geometry::Point;
use crate::tree::{Snapshot, quote, spoken};

/// Reading a tree for the sake of evidence may take so long.
const BUDGET: Duration = Duration::from_secs(2);

/// A chain of elements of one tree.
#[derive(Clone, Debug)]
pub(super) struct Under {
    pub(super) window: Window,
    pub(super) tree: Arc<Snapshot>,
    /// Places in the tree, innermost first.
    pub(super) chain: Vec<u32>,
}

impl Under {
    /// What lies at `at`. `None` if the window has no tree.
    pub(super) async fn at(context: &Context, window: &Window, at: Point) -> Option<Self> {
        let tree = read(context, window).await?;
        let innermost = context.desktop().accessibility.element_at(window, at).await.ok().flatten();
        let place = innermost.and_then(|id| tree.nodes.iter().position(|node| node.id == id));
        let place = place.and_then(|place| u32::try_from(place).ok());
        Some(Self::holding(window, tree, place))
    }

    /// An element and what holds it, as the tree is now. `None` if it cannot be read.
    pub(super) async fn element(context: &Context, element: &Element) -> Option<Self> {
        let tree = read(context, &element.window).await?;
        let place = tree.nodes.iter().position(|node| node.id == *element.id());
        let place = place.and_then(|place| u32::try_from(place).ok());
        Some(Self::holding(&element.window, tree, place))
    }

    fn holding(window: &Window, tree: Arc<Snapshot>, innermost: Option<u32>) -> Self {
        let parent = |place: &u32| tree.nodes.get(*place as usize).and_then(|node| node.parent);
        let chain = std::iter::successors(innermost, parent).collect();
        Self { window: window.clone(), tree, chain }
    }

    /// The elements of the chain, innermost first.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.chain.iter().filter_map(|&place| self.tree.nodes.get(place as usize))
    }

    /// What the element at `place` is called by.
    pub(super) fn id(&self, place: u32) -> ElementId {
        self.tree.nodes[place as usize].id.clone()
    }

    /// Places of what holds `place`, innermost first.
    pub(super) fn above(&self, place: u32) -> impl Iterator<Item = u32> {
        let parent = |at: &u32| self.tree.nodes.get(*at as usize).and_then(|node| node.parent);
        std::iter::successors(parent(&place), parent)
    }

    /// Places below `place` in the tree.
    pub(super) fn below(&self, place: u32) -> impl Iterator<Item = u32> {
        let end = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
        // Parents come before children, so what is below follows without a gap.
        (place + 1..end).take_while(move |at| self.above(*at).any(|above| above == place))
    }

    /// The document around it; without one, all elements of the window: a browser's tabs and bars are no part of a page.
    fn surroundings(&self) -> &[Node] {
        let is_document = |node: &&Node| node.role.starts_with("document");
        let document = self.nodes().filter(is_document).last();
        let place =
            document.and_then(|document| self.tree.nodes.iter().position(|node| node.id == document.id));
        part(&self.tree, place.unwrap_or(0))
    }

    /// What belongs to the same content.
    pub(super) fn content(&self) -> HashSet<ElementId> {
        self.surroundings().iter().map(|node| node.id.clone()).collect()
    }

    /// Whether the content has other elements now, or others in their places: some toolkits announce nothing when a list is
    /// put in another order. What changes by itself does not count.
    pub(super) async fn is_rearranged(&self, context: &Context) -> bool {
        let before = self.surroundings();
        let (Some(top), Some(now)) = (before.first(), read(context, &self.window).await) else {
            return false;
        };
        let Some(place) = now.nodes.iter().position(|node| node.id == top.id) else { return false };
        let now = part(&now, place);
        let is_restless = |node: &Node| context.activity().is_restless(&node.id);
        before.len() != now.len()
            || before.iter().zip(now).any(|(old, new)| {
                let is_another = old.id != new.id || old.role != new.role || old.name != new.name;
                is_another && !is_restless(old) && !is_restless(new)
            })
    }

    /// Details of some elements of the window, in the order given.
    pub(super) async fn details(
        &self,
        context: &Context,
        elements: &[ElementId],
        request: DetailsRequest,
    ) -> Vec<Option<Details>> {
        let accessibility = &context.desktop().accessibility;
        let read = accessibility.details(&self.window, elements, request, context.stop()).await;
        read.unwrap_or_else(|_| vec![None; elements.len()])
    }
}

/// The tree of a window, for evidence: `None` if it cannot be had.
async fn read(context: &Context, window: &Window) -> Option<Arc<Snapshot>> {
    let request = TreeRequest { max_nodes: MAX_NODES, budget: BUDGET, text_limit: 0 };
    let tree = context.desktop().accessibility.tree(window, &request, context.stop()).await.ok()?;
    // A part of a tree is like no other reading.
    if tree.notes.iter().any(|note| matches!(note, TreeNote::Cut { .. } | TreeNote::NotResponding { .. })) {
        return None;
    }
    let snapshot = Snapshot::passing(window.clone(), tree.nodes);
    (!snapshot.nodes.is_empty()).then(|| Arc::new(snapshot))
}

/// The element at `place`, and all that it holds.
fn part(tree: &Snapshot, place: usize) -> &[Node] {
    let nodes = &tree.nodes;
    // Parents come before children, so a part ends with the first element whose parent lies before it.
    let is_outside = |node: &Node| node.parent.is_none_or(|parent| (parent as usize) < place);
    let rest = nodes.get(place + 1..).unwrap_or_default();
    let length = rest.iter().position(is_outside).unwrap_or(rest.len());
    nodes.get(place..=place + length).unwrap_or_default()
}

/// An element for messages, without a number: the caller has not seen this tree.
pub(super) fn named(node: &Node) -> String {
    if node.name.is_empty() {
        spoken(&node.role).to_owned()
    } else {
        format!("{} {}", spoken(&node.role), quote(&node.name, 60))
    }
}

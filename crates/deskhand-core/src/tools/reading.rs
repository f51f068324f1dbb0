//! A window's elements together with those of its menus, lists and other popups.

use std::collections::HashSet;
use std::ops::Range;

use futures_util::future::join_all;

use crate::desktop::{
    Details, DetailsRequest, ElementId, Node, PortError, Tree, TreeNote, TreeRequest, Window, WindowId,
    WindowKind,
};
use crate::engine::Context;
use crate::error::Result;
use crate::tree::Part;

/// More popups of one window are not read: a menu has a few levels of submenus.
const MAX_POPUPS: usize = 8;

/// A window and the popups that are open on it, lowest first.
#[derive(Clone, Debug)]
pub(super) struct Family {
    pub(super) window: Window,
    pub(super) popups: Vec<Window>,
}

impl Family {
    /// The window called `id`.
    ///
    /// # Errors
    /// As [`Context::window`].
    pub(super) async fn of(context: &Context, id: WindowId) -> Result<Self> {
        let windows = context.desktop().windows.list().await?;
        let window = context.window_among(&windows, id)?.clone();
        Ok(Self::among(&windows, window))
    }

    /// `window`, one of `windows`.
    pub(super) fn among(windows: &[Window], window: Window) -> Self {
        let mut popups: Vec<Window> = Vec::new();
        // A submenu belongs to its menu.
        let mut owners = HashSet::from([window.id]);
        let is_popup = |other: &&Window| other.kind == WindowKind::Popup && other.id != window.id;
        loop {
            let more: Vec<&Window> = windows
                .iter()
                .filter(is_popup)
                .filter(|popup| popup.parent.is_some_and(|parent| owners.contains(&parent)))
                .filter(|popup| !owners.contains(&popup.id))
                .collect();
            if more.is_empty() {
                break;
            }
            owners.extend(more.iter().map(|popup| popup.id));
            popups.extend(more.into_iter().cloned());
        }
        popups.sort_by_key(|popup| popup.z);
        Self { window, popups }
    }
}

/// One reading of a window.
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) window: Window,
    pub(super) tree: Tree,
    /// The parts of the tree that popups show.
    pub(super) parts: Vec<Part>,
}

impl Reading {
    /// Reads the tree of a window. What its popups publish apart from it (context menus of most toolkits) is put under
    /// its root.
    ///
    /// # Errors
    /// As [`crate::desktop::Accessibility::tree`].
    pub(super) async fn take(
        context: &Context,
        family: Family,
        request: &TreeRequest,
    ) -> Result<Self, PortError> {
        let accessibility = &context.desktop().accessibility;
        // What changes by itself is known by the time that something is done here.
        context.activity().watch(accessibility).await;
        let Family { window, popups } = family;
        let tree = accessibility.tree(&window, request, context.stop()).await?;
        let mut reading = Self { window, tree, parts: Vec::new() };
        let silent = reading.tree.notes.iter().any(|note| matches!(note, TreeNote::NotResponding { .. }));
        if reading.tree.nodes.is_empty() || silent {
            return Ok(reading);
        }
        let asked = popups.into_iter().take(MAX_POPUPS).map(|popup| async move {
            let tree = accessibility.tree(&popup, request, context.stop()).await;
            (popup, tree)
        });
        for (popup, tree) in join_all(asked).await {
            match tree {
                Ok(tree) => reading.graft(popup, tree),
                // It has closed meanwhile, or tells nothing: there is the picture.
                Err(error) => tracing::debug!(window = %popup.id, %error, "the popup is not read"),
            }
        }
        Ok(reading)
    }

    /// Puts the elements of a popup under the root, unless they are there already, as those of a combo box are.
    fn graft(&mut self, popup: Window, tree: Tree) {
        let Some(root) = tree.nodes.first() else { return };
        if let Some(place) = self.tree.nodes.iter().skip(1).position(|node| node.id == root.id) {
            let places = self.subtree(place + 1);
            self.parts.push(Part { places, window: popup });
            return;
        }
        let known: HashSet<&ElementId> = self.tree.nodes.iter().map(|node| &node.id).collect();
        // Some are in both: Qt has one object for an entry that stands in two menus.
        let there = tree.nodes.iter().filter(|node| known.contains(&node.id)).count();
        if there * 2 >= tree.nodes.len() {
            return;
        }
        let from = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
        let moved: Vec<Node> = tree
            .nodes
            .into_iter()
            .map(|node| Node { parent: Some(node.parent.map_or(0, |parent| parent + from)), ..node })
            .collect();
        self.tree.nodes.extend(moved);
        let to = u32::try_from(self.tree.nodes.len()).unwrap_or(u32::MAX);
        self.parts.push(Part { places: from..to, window: popup });
    }

    /// The places of the element at `place` and all below it, which follow it.
    fn subtree(&self, place: usize) -> Range<u32> {
        let number = |place: usize| u32::try_from(place).unwrap_or(u32::MAX);
        let top = number(place);
        let mut end = top + 1;
        // Parents come before their children, so one pass tells.
        for node in &self.tree.nodes[place + 1..] {
            if node.parent.is_none_or(|parent| !(top..end).contains(&parent)) {
                break;
            }
            end += 1;
        }
        top..end
    }

    /// Details of the elements at `places`, in that order.
    ///
    /// # Errors
    /// As [`crate::desktop::Accessibility::details`].
    pub(super) async fn details(
        &self,
        context: &Context,
        places: &[u32],
        request: DetailsRequest,
    ) -> Result<Vec<Option<Details>>, PortError> {
        let accessibility = &context.desktop().accessibility;
        let mut details = vec![None; places.len()];
        let shows =
            |window: &Window, place: u32| Part::window_of(&self.parts, &self.window, place).id == window.id;
        for window in std::iter::once(&self.window).chain(self.parts.iter().map(|part| &part.window)) {
            let slots: Vec<usize> = (0..places.len()).filter(|&slot| shows(window, places[slot])).collect();
            if slots.is_empty() {
                continue;
            }
            let id = |&slot: &usize| self.tree.nodes[places[slot] as usize].id.clone();
            let ids: Vec<ElementId> = slots.iter().map(id).collect();
            let read = accessibility.details(window, &ids, request, context.stop()).await?;
            for (slot, read) in slots.into_iter().zip(read) {
                details[slot] = read;
            }
        }
        Ok(details)
    }
}

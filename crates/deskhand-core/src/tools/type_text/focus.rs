//! What has the keyboard focus in a window.

use std::sync::Arc;
use std::time::Duration;

use crate::desktop::{Node, PortError, State, TreeNote, TreeRequest, Window};
use crate::effect::{EFFECT_WAIT, Patience};
use crate::engine::Context;
use crate::error::Result;
use crate::tools::Element;
use crate::tree::Snapshot;

/// What a window's tree tells of the focus.
#[derive(Default)]
pub(in crate::tools) struct Focus {
    /// The innermost element that has it: some toolkits mark the containers as well.
    pub(in crate::tools) holder: Option<Node>,
    /// The innermost that has it and a text.
    pub(super) element: Option<Element>,
    /// Its application does not answer.
    pub(in crate::tools) silent: bool,
    /// There is a tree.
    told: bool,
}

impl Focus {
    pub(in crate::tools) async fn of(context: &Context, window: &Window) -> Result<Self> {
        let request = TreeRequest { max_nodes: 20_000, budget: Duration::from_secs(2), text_limit: 0 };
        let tree = match context.desktop().accessibility.tree(window, &request, context.stop()).await {
            Ok(tree) => tree,
            Err(PortError::Unavailable { .. } | PortError::NotSupported(_)) => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let silent = tree.notes.iter().any(|note| matches!(note, TreeNote::NotResponding { .. }));
        let is_holder = |node: &Node| node.states.has(State::Focused);
        let holder = tree.nodes.iter().rfind(|node| is_holder(node)).cloned();
        let place = tree.nodes.iter().rposition(|node| is_holder(node) && node.interfaces.text);
        let told = !tree.nodes.is_empty();
        let element = place.map(|place| {
            let node = tree.nodes[place].clone();
            let snapshot = Snapshot::passing(window.clone(), tree.nodes);
            let place = u32::try_from(place).unwrap_or(u32::MAX);
            let acting = Some(Arc::new(context.activity().acting(&node.id.owner)));
            Element { snapshot: snapshot.into(), place, window: window.clone(), node, acting }
        });
        Ok(Self { holder, element, silent, told })
    }

    /// The same of a window that was given the focus a moment ago: toolkits tell of the element that has it later.
    pub(super) async fn soon_of(context: &Context, window: &Window) -> Result<Self> {
        let mut patience = Patience::start(context, EFFECT_WAIT).await?;
        loop {
            let focus = Self::of(context, window).await?;
            if focus.element.is_some() || focus.silent || !focus.told {
                return Ok(focus);
            }
            if !patience.another_look(context).await {
                return Self::of(context, window).await;
            }
        }
    }
}

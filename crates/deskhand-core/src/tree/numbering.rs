use std::collections::HashMap;

use crate::desktop::{ElementId, Node};

/// Objects that are no part of the tree any more are remembered up to so many more than it has: what an application takes
/// out and puts back keeps its index, and a list that is rebuilt for ever does not fill the memory.
const ABSENT: usize = 2000;

/// Gives the elements of one window their indices. An object keeps its index from reading to reading, and no other object
/// ever gets it.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    next: u32,
    known: HashMap<ElementId, u32>,
}

impl Numbering {
    /// One whose first index is `next`.
    pub fn from(next: u32) -> Self {
        Self { next, known: HashMap::new() }
    }

    /// The index that a new object would get.
    pub const fn next(&self) -> u32 {
        self.next
    }

    /// The indices of `nodes`, in their order. A first reading is numbered as it stands.
    pub fn indices(&mut self, nodes: &[Node]) -> Vec<u32> {
        let indices: Vec<u32> = nodes.iter().map(|node| self.index(&node.id)).collect();
        if self.known.len() > nodes.len() * 2 + ABSENT {
            self.known = nodes.iter().map(|node| node.id.clone()).zip(indices.iter().copied()).collect();
        }
        indices
    }

    fn index(&mut self, id: &ElementId) -> u32 {
        if let Some(&known) = self.known.get(id) {
            return known;
        }
        let new = self.next;
        self.next = self.next.wrapping_add(1);
        self.known.insert(id.clone(), new);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::desktop::{Interfaces, States};

    fn nodes(objects: &[&str]) -> Vec<Node> {
        let node = |object: &&str| Node {
            id: ElementId { owner: "app".into(), object: (*object).into() },
            parent: None,
            role: String::new(),
            name: String::new(),
            description: String::new(),
            states: States::default(),
            interfaces: Interfaces::default(),
            unread_children: 0,
        };
        objects.iter().map(node).collect()
    }

    #[test]
    fn an_object_keeps_its_index_and_a_new_one_never_gets_an_old_one() {
        let mut numbering = Numbering::default();
        assert_eq!(numbering.indices(&nodes(&["a", "b", "c"])), [0, 1, 2]);
        assert_eq!(numbering.indices(&nodes(&["a", "new", "c"])), [0, 3, 2]);
        assert_eq!(numbering.indices(&nodes(&["b", "a"])), [1, 0], "what comes back is called as before");
    }

    #[test]
    fn a_list_that_is_rebuilt_for_ever_is_forgotten() {
        let mut numbering = Numbering::default();
        for round in 0..ABSENT {
            let names = [format!("{round} a"), format!("{round} b")];
            numbering.indices(&nodes(&[&names[0], &names[1]]));
        }
        assert!(numbering.known.len() <= ABSENT + 6, "{}", numbering.known.len());
    }
}

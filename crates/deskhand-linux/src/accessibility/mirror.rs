//! What is known of an application's objects, kept true by its events.
//!
//! Pure data: nothing here asks anybody. An event that carries what it announces is applied; one that does not
//! marks what it touches, and [`Mirror::missing`] names what has to be asked anew before a subtree may be shown.

use std::collections::{HashMap, HashSet, VecDeque};

use deskhand_core::desktop::{ElementId, Node, State};

use super::event::{Event, What};
use super::labels::Labels;
use super::walk::Listing;
use super::wire::{Facts, Item, StateBits, role, role_name};

/// Deeper than any tree: parents may form a circle.
const DEPTH: usize = 256;
/// Below this many objects nothing is pruned.
const PRUNE: usize = 2_000;

/// How much of an object's children is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Children {
    /// All, in order.
    Known(Vec<ElementId>),
    /// To be asked. What was known last is kept for the case that the application does not answer.
    Unknown(Vec<ElementId>),
    /// Some of very many, and how many more there are. Holds until the application changes.
    Part(Vec<ElementId>, u64),
}

impl Children {
    fn listed(&self) -> &[ElementId] {
        match self {
            Self::Known(children) | Self::Unknown(children) | Self::Part(children, _) => children,
        }
    }

    fn list(self) -> Vec<ElementId> {
        match self {
            Self::Known(children) | Self::Unknown(children) | Self::Part(children, _) => children,
        }
    }
}

#[derive(Clone, Debug)]
struct Entry {
    parent: Option<ElementId>,
    facts: Facts,
    children: Children,
    /// The facts have to be asked anew.
    doubtful: bool,
}

/// What has to be asked before a subtree is complete.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Missing {
    /// Everything about the object.
    Facts(ElementId),
    /// The object's children.
    Children(ElementId),
}

/// The objects of one application that are known.
#[derive(Debug, Default)]
pub(super) struct Mirror {
    entries: HashMap<ElementId, Entry>,
    pub(super) labels: Labels,
    /// Parents of children whose facts have not been read yet.
    found_under: HashMap<ElementId, ElementId>,
    /// How many objects the last pruning left.
    pruned_at: usize,
    /// How many events have been applied, ever.
    changes: u64,
    /// Objects came or went since the bulk answer that this was made of.
    restructured: bool,
    /// So many of them are reflected in everything that is kept, also in what they did not say.
    settled: u64,
    /// Objects that had an event since `watch` was called: facts that were asked for before it may be older.
    watched: Option<HashSet<ElementId>>,
}

impl Mirror {
    /// A mirror of everything that `Cache.GetItems` gave.
    pub(super) fn from_items(items: Vec<Item>) -> Self {
        let mut mirror = Self { entries: HashMap::with_capacity(items.len()), ..Self::default() };
        let mut children: HashMap<ElementId, Vec<(i32, ElementId)>> = HashMap::new();
        for item in &items {
            if let Some(parent) = &item.parent {
                children.entry(parent.clone()).or_default().push((item.index, item.id.clone()));
            }
        }
        for item in items {
            let children = match item.children {
                Some(listed) => Children::Known(listed),
                None => ordered(children.remove(&item.id).unwrap_or_default(), item.facts.count),
            };
            let entry = Entry { parent: item.parent, facts: item.facts, children, doubtful: false };
            mirror.entries.insert(item.id, entry);
        }
        mirror
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn facts(&self, id: &ElementId) -> Option<&Facts> {
        self.entries.get(id).map(|entry| &entry.facts)
    }

    pub(super) fn parent(&self, id: &ElementId) -> Option<&ElementId> {
        self.entries.get(id).and_then(|entry| entry.parent.as_ref())
    }

    /// Children as far as they are known, in order.
    pub(super) fn children(&self, id: &ElementId) -> &[ElementId] {
        self.entries.get(id).map_or(&[], |entry| entry.children.listed())
    }

    /// Whether an event came that [`Mirror::settle`] does not know of.
    pub(super) fn touched(&self) -> bool {
        self.changes != self.settled
    }

    /// Whether objects came or went since the bulk answer that this was made of.
    pub(super) fn restructured(&self) -> bool {
        self.restructured
    }

    /// How many events have been applied. What is asked from now on reflects them.
    pub(super) fn stamp(&self) -> u64 {
        self.changes
    }

    /// What was read reflects the events up to `stamp`.
    pub(super) fn settle(&mut self, stamp: u64) {
        self.settled = self.settled.max(stamp);
    }

    /// Takes the place of `old`, with `later` events that came after what this mirror was made of.
    pub(super) fn succeed<'e>(mut self, old: &Mirror, later: impl Iterator<Item = &'e Event>) -> Self {
        let later: Vec<&Event> = later.collect();
        self.pruned_at = old.pruned_at;
        self.labels = old.labels.clone();
        self.changes = old.changes - later.len() as u64;
        self.settled = self.changes;
        for event in later {
            self.apply(event);
        }
        self
    }

    /// From now on, remembers which objects had events.
    pub(super) fn watch(&mut self) {
        self.watched = Some(HashSet::new());
    }

    /// Takes facts that were asked for since [`Mirror::watch`]; they stay doubtful if an event came meanwhile.
    pub(super) fn set_facts(&mut self, id: &ElementId, facts: Facts) {
        let doubtful = self.watched.as_ref().is_some_and(|watched| watched.contains(id));
        if let Some(entry) = self.entries.get_mut(id) {
            let recounted = entry.facts.count != facts.count;
            entry.facts = facts;
            entry.doubtful = doubtful;
            if recounted {
                entry.ask_children();
            }
            return;
        }
        let children = match facts.count {
            0 => Children::Known(Vec::new()),
            _ => Children::Unknown(Vec::new()),
        };
        let parent = self.found_under.remove(id);
        self.entries.insert(id.clone(), Entry { parent, facts, children, doubtful });
    }

    /// Takes children that were asked for since [`Mirror::watch`], all of them or a part of them.
    /// Gives those of them whose facts have to be asked.
    pub(super) fn set_children(
        &mut self,
        id: &ElementId,
        children: Vec<ElementId>,
        unread: u64,
    ) -> Vec<ElementId> {
        let mut unknown = Vec::new();
        for child in &children {
            match self.entries.get_mut(child) {
                Some(entry) => entry.parent = Some(id.clone()),
                None => {
                    self.found_under.insert(child.clone(), id.clone());
                    unknown.push(child.clone());
                }
            }
        }
        let changed = self.watched.as_ref().is_some_and(|watched| watched.contains(id));
        if let Some(entry) = self.entries.get_mut(id) {
            entry.children = match (changed, unread) {
                (true, _) => Children::Unknown(children),
                (false, 0) => Children::Known(children),
                (false, unread) => Children::Part(children, unread),
            };
        }
        unknown
    }

    /// Takes children with what was read of them. Gives those whose facts have to be asked.
    pub(super) fn set_listing(&mut self, id: &ElementId, listing: Listing) -> Vec<ElementId> {
        let mut unknown = self.set_children(id, listing.children, listing.unread);
        for (child, facts) in listing.facts {
            self.set_facts(&child, facts);
        }
        unknown.retain(|child| !self.entries.contains_key(child));
        unknown
    }

    /// Whether the object's children have to be asked.
    pub(super) fn asks_children(&self, id: &ElementId) -> bool {
        self.entries.get(id).is_some_and(|entry| matches!(entry.children, Children::Unknown(_)))
    }

    /// Takes the object out, and out of its parent's children.
    pub(super) fn remove(&mut self, id: &ElementId) {
        self.entries.remove(id);
        // An object that could not be read at all has no entry that names its parent. Rare enough for a search.
        for entry in self.entries.values_mut() {
            match &mut entry.children {
                Children::Known(list) | Children::Unknown(list) | Children::Part(list, _) => {
                    list.retain(|child| child != id);
                }
            }
        }
    }

    /// Everything under `root` must be asked anew: this application announces too little.
    pub(super) fn doubt_all(&mut self, root: &ElementId) {
        for id in self.reachable(root, usize::MAX) {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.doubtful = true;
                entry.ask_children();
            }
        }
    }

    /// Objects without a name, of roles that have one, must be asked anew: Gecko makes up names late and does not announce
    /// them.
    pub(super) fn doubt_nameless(&mut self, root: &ElementId, is_named: impl Fn(u32) -> bool) {
        for id in self.reachable(root, usize::MAX) {
            if let Some(entry) = self.entries.get_mut(&id)
                && entry.facts.name.is_empty()
                && is_named(entry.facts.role)
            {
                entry.doubtful = true;
            }
        }
    }

    /// Facts of the objects that are shown must be asked anew: this application does not announce all changes.
    pub(super) fn doubt_shown(&mut self, root: &ElementId) {
        for id in self.shown(root) {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.doubtful = true;
            }
        }
    }

    /// Parts of very many children that were read before the last change are asked anew.
    pub(super) fn forget_parts(&mut self, wanted: impl Fn(&Facts) -> bool) {
        for entry in self.entries.values_mut() {
            if matches!(entry.children, Children::Part(..)) || wanted(&entry.facts) {
                let children = std::mem::replace(&mut entry.children, Children::Unknown(Vec::new()));
                entry.children = Children::Unknown(children.list());
            }
        }
    }

    /// What holds the objects with `role` under `root`, and these objects.
    pub(super) fn holders(&self, root: &ElementId, role: u32) -> Vec<(ElementId, Vec<ElementId>)> {
        let is = |id: &ElementId| self.facts(id).is_some_and(|facts| facts.role == role);
        let reachable = self.reachable(root, usize::MAX);
        let held = reachable.into_iter().filter_map(|id| {
            let documents: Vec<_> = self.children(&id).iter().filter(|id| is(id)).cloned().collect();
            (!documents.is_empty()).then_some((id, documents))
        });
        held.collect()
    }

    /// The shown objects under `root`, without those of which there are too many to be asked again.
    pub(super) fn shown(&self, root: &ElementId) -> Vec<ElementId> {
        let mut found = self.reachable(root, usize::MAX);
        let one_of_many = |entry: &Entry| {
            let parent = entry.parent.as_ref().and_then(|parent| self.entries.get(parent));
            parent.is_some_and(|parent| matches!(parent.children, Children::Part(..)))
        };
        found.retain(|id| {
            let entry = self.entries.get(id);
            entry.is_some_and(|entry| entry.facts.states.has(State::Showing) && !one_of_many(entry))
        });
        found
    }

    /// What leads from `root` to the objects with one of `roles`, with these and with all that lies beside it. Nothing
    /// below an object with `end` is looked at.
    pub(super) fn leading_to(&self, root: &ElementId, roles: &[u32], end: u32) -> Vec<ElementId> {
        let has = |id: &ElementId, roles: &[u32]| self.facts(id).is_some_and(|it| roles.contains(&it.role));
        let mut outer = Vec::new();
        let mut seen = HashSet::from([root]);
        let mut queue = VecDeque::from([root]);
        while let Some(id) = queue.pop_front() {
            outer.push(id);
            if !has(id, &[end]) {
                queue.extend(self.children(id).iter().filter(|child| seen.insert(child)));
            }
        }
        let mut leading = HashSet::from([root]);
        for &found in outer.iter().filter(|id| has(id, roles)) {
            let mut at = Some(found);
            while let Some(id) = at.filter(|id| leading.insert(id)) {
                at = self.parent(id);
            }
        }
        let beside = |id: &&&ElementId| self.parent(id).is_some_and(|parent| leading.contains(parent));
        let found = outer.iter().filter(|id| leading.contains(**id) || beside(id));
        found.map(|&id| id.clone()).collect()
    }

    /// Takes the states that were just asked of an object. Where it is shown now and was not before, or the other way
    /// round, so may be what is in it.
    pub(super) fn set_states(&mut self, id: &ElementId, states: StateBits) {
        let newer = self.watched.as_ref().is_some_and(|watched| watched.contains(id));
        let Some(entry) = self.entries.get_mut(id).filter(|_| !newer) else { return };
        let turned = entry.facts.states.has(State::Showing) != states.has(State::Showing);
        entry.facts.states = states;
        if turned {
            self.doubt_all(id);
        }
    }

    /// The children of `id` must be asked anew.
    pub(super) fn ask_children(&mut self, id: &ElementId) {
        if let Some(entry) = self.entries.get_mut(id) {
            entry.ask_children();
        }
    }

    /// Whether `id` is `ancestor` or under it.
    pub(super) fn is_under(&self, id: &ElementId, ancestor: &ElementId) -> bool {
        let mut at = Some(id);
        for _ in 0..DEPTH {
            match at {
                Some(id) if id == ancestor => return true,
                Some(id) => at = self.parent(id),
                None => return false,
            }
        }
        false
    }

    /// Whether something above `id` has `role`.
    pub(super) fn is_inside(&self, id: &ElementId, role: u32) -> bool {
        let mut at = self.parent(id);
        for _ in 0..DEPTH {
            let Some(above) = at else { return false };
            if self.facts(above).is_some_and(|facts| facts.role == role) {
                return true;
            }
            at = self.parent(above);
        }
        false
    }

    /// The first object with `role` under `root`, breadth first.
    pub(super) fn first_with(&self, root: &ElementId, role: u32) -> Option<ElementId> {
        let reachable = self.reachable(root, usize::MAX);
        reachable.into_iter().find(|id| self.facts(id).is_some_and(|facts| facts.role == role))
    }

    /// The shown objects under `root` that may be named by another object.
    pub(super) fn named_by_others(&self, root: &ElementId) -> Vec<ElementId> {
        let mut shown = self.shown(root);
        shown.retain(|id| {
            self.facts(id).is_some_and(|facts| {
                let own = [role::LABEL, role::TABLE_CELL, role::TEXT, role::FRAME];
                !facts.name.is_empty() && !own.contains(&facts.role)
            })
        });
        shown
    }

    /// Takes the name that was just asked of an object.
    pub(super) fn set_name(&mut self, id: &ElementId, name: String) {
        let newer = self.watched.as_ref().is_some_and(|watched| watched.contains(id));
        if let Some(entry) = self.entries.get_mut(id).filter(|_| !newer) {
            entry.facts.name = name;
        }
    }

    /// Takes what was just asked of an object.
    pub(super) fn refresh(&mut self, id: &ElementId, name: String, states: StateBits, count: i32) {
        let changed = self.watched.as_ref().is_some_and(|watched| watched.contains(id));
        if let Some(entry) = self.entries.get_mut(id) {
            entry.facts.name = name;
            entry.facts.states = states;
            entry.doubtful = changed;
            // Bulk answers do not count the children of containers that manage them.
            if entry.facts.count >= 0 && entry.facts.count != count {
                entry.facts.count = count;
                entry.ask_children();
            }
        }
    }

    /// The objects with one of `roles` and this state, and their children.
    pub(super) fn with_roles(&self, roles: &[u32], state: State) -> Vec<(ElementId, Vec<ElementId>)> {
        let wanted = self
            .entries
            .iter()
            .filter(|(_, entry)| roles.contains(&entry.facts.role) && entry.facts.states.has(state));
        wanted.map(|(id, entry)| (id.clone(), entry.children.listed().to_vec())).collect()
    }

    /// Whether a shown object with `role` under `root` has something in it that is shown.
    pub(super) fn has_content(&self, root: &ElementId, role: u32) -> bool {
        let is_shown = |id: &ElementId| self.facts(id).is_some_and(|facts| facts.states.has(State::Showing));
        let mut holders = self.reachable(root, usize::MAX);
        holders.retain(|id| self.facts(id).is_some_and(|facts| facts.role == role) && is_shown(id));
        holders.iter().any(|holder| self.reachable(holder, usize::MAX).iter().skip(1).any(is_shown))
    }

    /// Applies an event of the application. Answers whether it may change anything that is kept here.
    pub(super) fn apply(&mut self, event: &Event) -> bool {
        if matches!(event.what, What::Other | What::Window) {
            return false;
        }
        self.changes += 1;
        if restructures(&event.what) {
            self.restructured = true;
            self.labels.forget();
        }
        if let Some(watched) = &mut self.watched {
            watched.insert(event.source.clone());
        }
        match &event.what {
            What::Added(item) => self.add(item),
            What::Removed(id) => self.removed(id),
            what => self.change(&event.source, what),
        }
        true
    }

    fn change(&mut self, source: &ElementId, what: &What) {
        if loaded(what) {
            // Gecko's objects have no names while their document is busy, and do not announce them afterwards.
            self.doubt_all(source);
        }
        if let What::ChildRemoved(Some(child)) | What::ChildAdded(Some(child)) = what {
            // What happened to it while it was no part of the tree may not have been announced.
            self.doubt_all(child);
        }
        if let What::ChildRemoved(Some(child)) = what {
            return self.child_removed(source, child);
        }
        if matches!(what, What::State(name, true) if name == "focused") {
            // Gecko does not say which object lost the focus, and an application has one.
            for entry in self.entries.values_mut() {
                entry.facts.states.set("focused", false);
            }
        }
        let Some(entry) = self.entries.get_mut(source) else { return };
        match what {
            What::Name(Some(name)) => entry.facts.name.clone_from(name),
            What::Description(Some(description)) => entry.facts.description.clone_from(description),
            What::Name(None) | What::Description(None) => entry.doubtful = true,
            // Its place is taken by somebody who may not be announced.
            What::State(name, true) if name == "defunct" => self.removed(source),
            What::State(name, on) => entry.facts.states.set(name, *on),
            What::ChildAdded(_) | What::ChildRemoved(_) => entry.ask_children(),
            What::Replaced => {
                entry.doubtful = true;
                entry.ask_children();
            }
            _ => {}
        }
    }

    fn child_removed(&mut self, source: &ElementId, child: &ElementId) {
        let Some(entry) = self.entries.get_mut(source) else { return };
        match &mut entry.children {
            Children::Known(list) if list.contains(child) => {
                list.retain(|known| known != child);
                entry.facts.count = i32::try_from(list.len()).unwrap_or(i32::MAX);
            }
            _ => entry.ask_children(),
        }
    }

    /// The cache's own signal carries the whole object, but says it when it gets round to it: its place among its
    /// siblings may have changed again.
    fn add(&mut self, item: &Item) {
        if let Some(watched) = &mut self.watched {
            watched.insert(item.id.clone());
        }
        match self.entries.get_mut(&item.id) {
            Some(entry) => {
                entry.facts = item.facts.clone();
                if item.parent.is_some() {
                    entry.parent.clone_from(&item.parent);
                }
                if usize::try_from(item.facts.count).ok() != Some(entry.children.listed().len()) {
                    entry.ask_children();
                }
            }
            None => {
                let children = match (&item.children, item.facts.count) {
                    (Some(listed), _) => Children::Known(listed.clone()),
                    (None, 0) => Children::Known(Vec::new()),
                    (None, _) => Children::Unknown(Vec::new()),
                };
                let parent = item.parent.clone();
                let entry = Entry { parent, facts: item.facts.clone(), children, doubtful: false };
                self.entries.insert(item.id.clone(), entry);
            }
        }
        let parent = item.parent.as_ref().and_then(|parent| self.entries.get_mut(parent));
        if let Some(parent) = parent.filter(|parent| !parent.children.listed().contains(&item.id)) {
            parent.ask_children();
        }
    }

    fn removed(&mut self, id: &ElementId) {
        if let Some(watched) = &mut self.watched {
            watched.insert(id.clone());
        }
        let Some(entry) = self.entries.remove(id) else { return };
        let parent = entry.parent.and_then(|parent| self.entries.get_mut(&parent));
        if let Some(parent) = parent.filter(|parent| parent.children.listed().contains(id)) {
            parent.ask_children();
        }
    }

    /// What must be asked before the subtree under `root` is complete, breadth first, at most `limit` objects deep
    /// into it.
    pub(super) fn missing(&self, root: &ElementId, limit: usize) -> Vec<Missing> {
        let mut missing = Vec::new();
        for id in self.reachable(root, limit) {
            match self.entries.get(&id) {
                Some(entry) if !entry.doubtful => {
                    if matches!(entry.children, Children::Unknown(_)) {
                        missing.push(Missing::Children(id));
                    }
                }
                _ => missing.push(Missing::Facts(id)),
            }
        }
        missing
    }

    /// `root` and what is under it, breadth first, each object once.
    fn reachable(&self, root: &ElementId, limit: usize) -> Vec<ElementId> {
        let mut seen = HashSet::from([root]);
        let mut queue = VecDeque::from([root]);
        let mut found = Vec::new();
        while let Some(id) = queue.pop_front() {
            if found.len() >= limit {
                break;
            }
            found.push(id.clone());
            queue.extend(self.children(id).iter().filter(|child| seen.insert(child)));
        }
        found
    }

    /// Drops what does not lead to the application any more, once that may be much.
    pub(super) fn prune_if_large(&mut self, application: &ElementId) {
        if self.entries.len() < self.pruned_at.saturating_mul(2).max(PRUNE) {
            return;
        }
        // A window need not be known as a child of its application: whoever has no known parent is kept, as is
        // everything under it, unless it is but a remainder of something larger.
        let tops = self.entries.iter().filter(|(id, entry)| {
            *id == application || entry.parent.as_ref().is_none_or(|parent| parent == application)
        });
        let tops: Vec<ElementId> = tops.map(|(id, _)| id.clone()).collect();
        let keep: HashSet<ElementId> =
            tops.iter().flat_map(|root| self.reachable(root, usize::MAX)).collect();
        self.entries.retain(|id, _| keep.contains(id));
        self.found_under.clear();
        self.pruned_at = self.entries.len();
    }

    /// The subtree under `root` in pre-order, and whether objects were left out because there are more than `limit`.
    /// What is nearer to the root is kept first.
    pub(super) fn nodes(&self, root: &ElementId, limit: usize) -> (Vec<Node>, bool) {
        let mut kept: HashSet<ElementId> = HashSet::new();
        let reachable = self.reachable(root, limit.saturating_add(1));
        let cut = reachable.len() > limit;
        kept.extend(reachable.into_iter().take(limit));
        let mut nodes = Vec::with_capacity(kept.len());
        let mut stack = vec![(root, None)];
        while let Some((id, parent)) = stack.pop() {
            let Some(entry) = self.entries.get(id).filter(|_| kept.remove(id)) else { continue };
            let place = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
            let mut node = entry.node(id, parent);
            if node.name.is_empty() {
                node.name = self.label(id).unwrap_or_default();
            }
            nodes.push(node);
            stack.extend(entry.children.listed().iter().rev().map(|child| (child, Some(place))));
        }
        (nodes, cut)
    }
}

impl Entry {
    fn ask_children(&mut self) {
        let children = std::mem::replace(&mut self.children, Children::Unknown(Vec::new()));
        self.children = Children::Unknown(children.list());
    }

    fn node(&self, id: &ElementId, parent: Option<u32>) -> Node {
        let unread = match &self.children {
            Children::Part(_, unread) => *unread,
            _ => 0,
        };
        node(id, parent, &self.facts, unread)
    }
}

/// Whether objects came or went.
fn restructures(what: &What) -> bool {
    match what {
        What::State(name, on) => *on && name == "defunct" || loaded(what),
        what => matches!(
            what,
            What::ChildAdded(_)
                | What::ChildRemoved(_)
                | What::Added(_)
                | What::Removed(_)
                | What::Replaced
                | What::Document
        ),
    }
}

/// Whether a document has been loaded.
fn loaded(what: &What) -> bool {
    match what {
        What::State(name, on) => name == "busy" && !on,
        what => matches!(what, What::Document),
    }
}

/// The port's node of an object.
pub(super) fn node(id: &ElementId, parent: Option<u32>, facts: &Facts, unread_children: u64) -> Node {
    Node {
        id: id.clone(),
        parent,
        role: role_name(facts.role),
        name: facts.name.clone(),
        description: facts.description.clone(),
        states: facts.states.port(),
        interfaces: facts.interfaces.port(),
        unread_children,
    }
}

/// The children in the order of their places, if the places are without doubt.
fn ordered(mut places: Vec<(i32, ElementId)>, count: i32) -> Children {
    places.sort_by_key(|(index, _)| *index);
    let exact = usize::try_from(count) == Ok(places.len())
        && places.iter().zip(0..).all(|((index, _), place)| *index == place);
    let list = places.into_iter().map(|(_, id)| id).collect();
    if exact { Children::Known(list) } else { Children::Unknown(list) }
}

#[cfg(test)]
mod tests;

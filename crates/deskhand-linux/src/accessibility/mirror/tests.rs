use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::accessibility::wire::{InterfaceBits, StateBits};

const CHECKED: u64 = 1 << 4;

/// An application that the mirror should follow: the plain truth.
#[derive(Clone, Debug, Default)]
struct Model {
    names: BTreeMap<u32, String>,
    checked: BTreeSet<u32>,
    parents: BTreeMap<u32, u32>,
    children: BTreeMap<u32, Vec<u32>>,
    next: u32,
}

fn id(number: u32) -> ElementId {
    ElementId { owner: ":1.7".into(), object: format!("/o/{number}").as_str().into() }
}

fn number(id: &ElementId) -> u32 {
    id.object.trim_start_matches("/o/").parse().unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Add {
        parent: usize,
        place: usize,
        detailed: bool,
        cached: bool,
    },
    Remove {
        node: usize,
        detailed: bool,
        cached: bool,
    },
    Move {
        node: usize,
        parent: usize,
        place: usize,
    },
    Reorder {
        parent: usize,
    },
    Rename {
        node: usize,
        name: u8,
        detailed: bool,
    },
    Check {
        node: usize,
    },
    /// Changes an object that is in no window, which applications do not announce.
    RenameDetached {
        name: u8,
    },
}

impl Model {
    fn new() -> Self {
        let mut model = Self { next: 1, ..Self::default() };
        model.names.insert(0, "window".into());
        model.children.insert(0, Vec::new());
        model
    }

    fn attached(&self) -> Vec<u32> {
        let mut found = vec![0];
        let mut place = 0;
        while place < found.len() {
            found.extend(self.children[&found[place]].iter().copied());
            place += 1;
        }
        found
    }

    fn facts(&self, node: u32) -> Facts {
        Facts {
            name: self.names[&node].clone(),
            states: StateBits(if self.checked.contains(&node) { CHECKED } else { 0 }),
            count: i32::try_from(self.children[&node].len()).unwrap(),
            role: 43,
            interfaces: InterfaceBits::default(),
            description: String::new(),
        }
    }

    fn item(&self, node: u32) -> Item {
        let parent = self.parents.get(&node).copied();
        let index = parent.and_then(|parent| self.children[&parent].iter().position(|child| *child == node));
        Item {
            id: id(node),
            parent: parent.map(id),
            facts: self.facts(node),
            index: index.map_or(-1, |index| i32::try_from(index).unwrap()),
            children: None,
        }
    }

    fn items(&self) -> Vec<Item> {
        self.attached().into_iter().map(|node| self.item(node)).collect()
    }

    fn detach(&mut self, node: u32) -> u32 {
        let parent = self.parents.remove(&node).unwrap();
        self.children.get_mut(&parent).unwrap().retain(|child| *child != node);
        parent
    }

    fn attach(&mut self, node: u32, parent: u32, place: usize) {
        let children = self.children.get_mut(&parent).unwrap();
        children.insert(place % (children.len() + 1), node);
        self.parents.insert(node, parent);
    }

    /// Carries out a step and gives the events that it announces.
    fn step(&mut self, step: &Step) -> Vec<Event> {
        let attached = self.attached();
        let pick = |place: usize| attached[place % attached.len()];
        let event = |source: u32, what| Event { source: id(source), what };
        match *step {
            Step::Add { parent, place, detailed, cached } => {
                let (node, parent) = (self.next, pick(parent));
                self.next += 1;
                self.names.insert(node, format!("new {node}"));
                self.children.insert(node, Vec::new());
                self.attach(node, parent, place);
                let mut events = vec![event(parent, What::ChildAdded(detailed.then(|| id(node))))];
                if cached {
                    events.push(event(0, What::Added(Box::new(self.item(node)))));
                }
                events
            }
            Step::Remove { node, detailed, cached } => {
                let node = pick(node);
                if node == 0 {
                    return Vec::new();
                }
                let parent = self.detach(node);
                let mut events = vec![event(parent, What::ChildRemoved(detailed.then(|| id(node))))];
                if cached {
                    events.push(event(0, What::Removed(id(node))));
                }
                events
            }
            Step::Move { node, parent, place } => {
                let (node, parent) = (pick(node), pick(parent));
                let mut above = Some(parent);
                while let Some(ancestor) = above {
                    if ancestor == node {
                        return Vec::new();
                    }
                    above = self.parents.get(&ancestor).copied();
                }
                if node == 0 {
                    return Vec::new();
                }
                let old = self.detach(node);
                self.attach(node, parent, place);
                vec![
                    event(old, What::ChildRemoved(Some(id(node)))),
                    event(parent, What::ChildAdded(Some(id(node)))),
                ]
            }
            Step::Reorder { parent } => {
                let parent = pick(parent);
                self.children.get_mut(&parent).unwrap().reverse();
                vec![event(parent, What::Replaced)]
            }
            Step::Rename { node, name, detailed } => {
                let node = pick(node);
                let name = format!("name {name}");
                self.names.insert(node, name.clone());
                vec![event(node, What::Name(detailed.then_some(name)))]
            }
            Step::Check { node } => {
                let node = pick(node);
                let on = self.checked.insert(node) || !self.checked.remove(&node);
                vec![event(node, What::State("checked".into(), on))]
            }
            Step::RenameDetached { name } => {
                let detached: Vec<u32> =
                    self.names.keys().copied().filter(|node| !attached.contains(node)).collect();
                for node in detached {
                    self.names.insert(node, format!("detached {name}"));
                }
                Vec::new()
            }
        }
    }

    fn answer(&self, missing: &Missing) -> Answered {
        match missing {
            Missing::Facts(id) => Answered::Facts(id.clone(), self.facts(number(id))),
            Missing::Children(parent) => Answered::Children(
                parent.clone(),
                self.children[&number(parent)].iter().copied().map(id).collect(),
            ),
        }
    }

    fn lines(&self, node: u32, depth: usize, lines: &mut Vec<String>) {
        let checked = if self.checked.contains(&node) { " checked" } else { "" };
        lines.push(format!("{}{}{checked}", "  ".repeat(depth), self.names[&node]));
        for child in &self.children[&node] {
            self.lines(*child, depth + 1, lines);
        }
    }
}

enum Answered {
    Facts(ElementId, Facts),
    Children(ElementId, Vec<ElementId>),
}

fn take(mirror: &mut Mirror, answers: Vec<Answered>) {
    for answer in answers {
        match answer {
            Answered::Facts(id, facts) => mirror.set_facts(&id, facts),
            Answered::Children(id, children) => {
                mirror.set_children(&id, children, 0);
            }
        }
    }
}

fn complete(mirror: &mut Mirror, model: &Model) {
    for _ in 0..200 {
        let missing = mirror.missing(&id(0), usize::MAX);
        if missing.is_empty() {
            return;
        }
        mirror.watch();
        let answers = missing.iter().map(|missing| model.answer(missing)).collect();
        take(mirror, answers);
    }
    panic!("the mirror is never complete: {:?}", mirror.missing(&id(0), usize::MAX));
}

fn lines_of(mirror: &Mirror) -> Vec<String> {
    let (nodes, cut) = mirror.nodes(&id(0), usize::MAX);
    assert!(!cut);
    let mut depths: Vec<usize> = Vec::new();
    let mut lines = Vec::new();
    for node in &nodes {
        let depth = node.parent.map_or(0, |parent| depths[parent as usize] + 1);
        depths.push(depth);
        let checked = if node.states.has(State::Checked) { " checked" } else { "" };
        lines.push(format!("{}{}{checked}", "  ".repeat(depth), node.name));
    }
    lines
}

fn model_lines(model: &Model) -> Vec<String> {
    let mut lines = Vec::new();
    model.lines(0, 0, &mut lines);
    lines
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..1000_usize;
    prop_oneof![
        4 => (index.clone(), index.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(parent, place, detailed, cached)| Step::Add { parent, place, detailed, cached }),
        2 => (index.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(node, detailed, cached)| Step::Remove { node, detailed, cached }),
        2 => (index.clone(), index.clone(), index.clone())
            .prop_map(|(node, parent, place)| Step::Move { node, parent, place }),
        1 => index.clone().prop_map(|parent| Step::Reorder { parent }),
        2 => (index.clone(), any::<u8>(), any::<bool>())
            .prop_map(|(node, name, detailed)| Step::Rename { node, name, detailed }),
        1 => index.prop_map(|node| Step::Check { node }),
        1 => any::<u8>().prop_map(|name| Step::RenameDetached { name }),
    ]
}

proptest! {
    /// Whatever an application does, and whenever its events come between a question and its answer, the mirror ends
    /// with what the application has.
    #[test]
    fn follows_any_sequence_of_changes(
        before in prop::collection::vec(step(), 0..30),
        rounds in prop::collection::vec(
            (prop::collection::vec(step(), 0..12), prop::collection::vec(step(), 0..4)), 1..6),
    ) {
        let mut model = Model::new();
        for step in &before {
            model.step(step);
        }
        let mut mirror = Mirror::from_items(model.items());
        prop_assert_eq!(lines_of(&mirror), model_lines(&model));
        for (announced, meanwhile) in &rounds {
            for step in announced {
                for event in model.step(step) {
                    mirror.apply(&event);
                }
            }
            // Answers that are older than the events which the mirror has seen when it takes them.
            let missing = mirror.missing(&id(0), usize::MAX);
            mirror.watch();
            let answers = missing.iter().map(|missing| model.answer(missing)).collect();
            for step in meanwhile {
                for event in model.step(step) {
                    mirror.apply(&event);
                }
            }
            take(&mut mirror, answers);
            complete(&mut mirror, &model);
            prop_assert_eq!(lines_of(&mirror), model_lines(&model));
        }
    }
}

fn filled() -> (Model, Mirror) {
    let mut model = Model::new();
    for _ in 0..5 {
        model.step(&Step::Add { parent: 0, place: 99, detailed: true, cached: true });
    }
    let mirror = Mirror::from_items(model.items());
    (model, mirror)
}

#[test]
fn a_removed_child_needs_no_question() {
    let (mut model, mut mirror) = filled();
    for event in model.step(&Step::Remove { node: 2, detailed: true, cached: true }) {
        mirror.apply(&event);
    }
    assert_eq!(mirror.missing(&id(0), usize::MAX), []);
    assert_eq!(lines_of(&mirror), model_lines(&model));
}

#[test]
fn doubtful_places_are_asked() {
    let (model, _) = filled();
    let mut items = model.items();
    items[2].index = items[1].index;
    let mirror = Mirror::from_items(items);
    assert_eq!(mirror.missing(&id(0), usize::MAX), [Missing::Children(id(0))]);
}

#[test]
fn a_container_that_does_not_count_is_asked() {
    let (model, _) = filled();
    let mut items = model.items();
    items[0].facts.count = -1;
    let mirror = Mirror::from_items(items);
    assert_eq!(mirror.missing(&id(0), usize::MAX), [Missing::Children(id(0))]);
}

#[test]
fn what_is_near_the_window_is_kept_when_cut() {
    let (mut model, _) = filled();
    for _ in 0..3 {
        model.step(&Step::Add { parent: 1, place: 0, detailed: true, cached: true });
    }
    let mirror = Mirror::from_items(model.items());
    let (nodes, cut) = mirror.nodes(&id(0), 6);
    assert!(cut);
    assert!(nodes.iter().skip(1).all(|node| node.parent == Some(0)), "{nodes:#?}");
    assert_eq!(nodes.len(), 6);
}

#[test]
fn a_part_says_how_much_is_missing_until_the_application_changes() {
    let (_, mut mirror) = filled();
    mirror.set_children(&id(0), vec![id(1), id(2)], 40);
    assert_eq!(mirror.nodes(&id(0), 100).0[0].unread_children, 40);
    assert_eq!(mirror.missing(&id(0), usize::MAX), []);
    mirror.forget_parts(|_| false);
    assert_eq!(mirror.missing(&id(0), usize::MAX), [Missing::Children(id(0))]);
}

#[test]
fn an_object_that_is_its_own_descendant_ends_the_reading() {
    let (_, mut mirror) = filled();
    mirror.set_children(&id(1), vec![id(0), id(1)], 0);
    assert_eq!(mirror.nodes(&id(0), usize::MAX).0.len(), 6);
}

#[test]
fn pruning_keeps_windows_and_drops_what_was_removed() {
    let mut model = Model::new();
    let mut mirror = Mirror::from_items(model.items());
    for _ in 0..PRUNE + 10 {
        for event in model.step(&Step::Add { parent: 0, place: 0, detailed: true, cached: true }) {
            mirror.apply(&event);
        }
        complete(&mut mirror, &model);
        for event in model.step(&Step::Remove { node: 1, detailed: true, cached: false }) {
            mirror.apply(&event);
        }
    }
    assert!(mirror.len() > PRUNE);
    mirror.prune_if_large(&id(4_000_000));
    assert_eq!(mirror.len(), 1);
}

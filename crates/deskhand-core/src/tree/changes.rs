//! What is different between two outlines of one window.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::{Line, Outline, Snapshot, quote, spoken};

/// Elements that are gone and are named.
const NAMED: usize = 40;
/// Characters of the name of an element that is gone.
const NAME_LIMIT: usize = 60;

/// What came, went and changed, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Elements that have a line now and had none.
    pub added: Vec<u32>,
    /// Elements whose line is another.
    pub changed: Vec<u32>,
    /// Elements that had a line and have none.
    pub removed: Vec<u32>,
    /// The changes as they are shown; empty if there are none.
    pub text: String,
}

impl Changes {
    /// Whether nothing is different.
    pub const fn is_none(&self) -> bool {
        self.added.is_empty() && self.changed.is_empty() && self.removed.is_empty()
    }
}

/// Compares `new` with what `old` showed. `None` if `old` was not shown.
pub fn changes(old: &Snapshot, new: &Outline) -> Option<Changes> {
    let before = &old.seen.as_ref()?.lines;
    let mut changes = Changes::default();
    let mut added = Vec::new();
    let mut changed = Vec::new();
    // The line that each line stands under.
    let mut path: Vec<&Line> = Vec::new();
    let mut under: HashMap<u32, u32> = HashMap::new();
    for line in &new.lines {
        while path.last().is_some_and(|above| above.depth >= line.depth) {
            path.pop();
        }
        if let Some(above) = path.last() {
            under.insert(line.index, above.index);
        }
        path.push(line);
        match before.get(&line.index) {
            None => added.push(line),
            Some(digest) if *digest != line.digest() => changed.push(line),
            Some(_) => {}
        }
    }
    let now: HashSet<u32> = new.lines.iter().map(|line| line.index).collect();
    changes.removed = before.keys().copied().filter(|index| !now.contains(index)).collect();
    changes.removed.sort_unstable();
    changes.added = added.iter().map(|line| line.index).collect();
    changes.changed = changed.iter().map(|line| line.index).collect();
    write_changed(&mut changes.text, &changed);
    write_added(&mut changes.text, &added, &under);
    write_removed(&mut changes.text, &changes.removed, old);
    Some(changes)
}

fn write_changed(text: &mut String, changed: &[&Line]) {
    if !changed.is_empty() {
        text.push_str("changed:\n");
        for line in changed {
            line.write(text, 1);
        }
    }
}

/// Added lines keep their shape; one that stands under an element that was there says under which.
fn write_added(text: &mut String, added: &[&Line], under: &HashMap<u32, u32>) {
    if added.is_empty() {
        return;
    }
    text.push_str("added:\n");
    let new: HashSet<u32> = added.iter().map(|line| line.index).collect();
    let mut depths: HashMap<u32, usize> = HashMap::new();
    for line in added {
        let above = under.get(&line.index);
        match above.filter(|above| new.contains(above)) {
            Some(above) => {
                let depth = depths.get(above).map_or(1, |depth| depth + 1);
                depths.insert(line.index, depth);
                line.write(text, depth);
            }
            None => {
                depths.insert(line.index, 1);
                let place = above.map(|above| format!(" (in [{above}])")).unwrap_or_default();
                Line { text: format!("{}{place}", line.text), ..(*line).clone() }.write(text, 1);
            }
        }
    }
}

fn write_removed(text: &mut String, removed: &[u32], old: &Snapshot) {
    if removed.is_empty() {
        return;
    }
    let named = removed.iter().take(NAMED).map(|&index| {
        let node = old.place(index).and_then(|place| old.nodes.get(place as usize));
        match node {
            Some(node) if !node.name.is_empty() => {
                format!("[{index}] {} {}", spoken(&node.role), quote(&node.name, NAME_LIMIT))
            }
            Some(node) => format!("[{index}] {}", spoken(&node.role)),
            None => format!("[{index}]"),
        }
    });
    let _ = write!(text, "removed: {}", named.collect::<Vec<_>>().join(", "));
    if removed.len() > NAMED {
        let _ = write!(text, " and {} more", removed.len() - NAMED);
    }
    text.push('\n');
}

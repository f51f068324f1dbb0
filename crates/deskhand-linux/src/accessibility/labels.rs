//! Names that a label gives: GTK 3 has fields whose label is an object of its own, which a relation leads to, or nothing
//! but the place beside the field.

use std::collections::{HashMap, HashSet};

use futures_util::future::join_all;
use tokio::time::Instant;

use deskhand_core::desktop::{ElementId, State};
use deskhand_core::geometry::Rect;

use super::app::{ACCESSIBLE, App, Failure, Silence, Toolkit};
use super::bus::{Bus, CallError};
use super::extents;
use super::mirror::Mirror;
use super::wire::{Facts, Names, Reference, role};

/// Objects that are asked for their labels in one reading. A form has a few dozen fields; a list of thousands has no labels.
const MOST: usize = 200;
/// AT-SPI's number of the relation.
const LABELLED_BY: u32 = 2;
/// So many levels above a field its label may be held: a row or column of labels stands beside one of fields.
const LEVELS: usize = 3;
/// With more labels around, places say nothing.
const AROUND: usize = 60;
/// Pixels between a label and the field to its right: columns are as wide as their widest label.
const BESIDE: i64 = 300;
/// Pixels between a label and the field under it, and by which the two may be out of line.
const ABOVE: i64 = 12;
/// Pixels by which a label may reach into its field: borders are counted or not.
const TOUCH: i64 = 4;

/// What labels the objects that have no name of their own: nothing, or other objects. Holds until objects come or go.
#[derive(Clone, Debug, Default)]
pub(super) struct Labels(HashMap<ElementId, Vec<ElementId>>);

impl Labels {
    /// Objects came or went.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

impl Toolkit {
    /// Whether it leaves to whoever reads it what the label of an object is. The others name the object by it.
    fn leaves_labels(self) -> bool {
        matches!(self, Self::Gtk3 | Self::LibreOffice | Self::Other)
    }
}

impl Mirror {
    /// What the labels of an object say.
    pub(super) fn label(&self, id: &ElementId) -> Option<String> {
        let texts = self.labels.0.get(id)?.iter().filter_map(|label| self.facts(label));
        let texts: Vec<&str> =
            texts.map(|facts| facts.name.as_str()).filter(|text| !text.is_empty()).collect();
        (!texts.is_empty()).then(|| texts.join(" "))
    }

    /// The shown objects under `root` that have no name, may have a label, and have not been asked for it.
    fn unlabelled(&self, root: &ElementId) -> Vec<ElementId> {
        let mut shown = self.shown(root);
        shown.retain(|id| {
            let nameless = |facts: &Facts| facts.name.is_empty() && role::may_be_labelled(facts.role);
            !self.labels.0.contains_key(id) && self.facts(id).is_some_and(nameless)
        });
        shown.truncate(MOST);
        shown
    }

    /// Labels around a field that stand for nobody yet, if it is one that has a label beside it.
    fn around(&self, field: &ElementId, taken: &HashSet<ElementId>) -> Vec<ElementId> {
        if !self.facts(field).is_some_and(is_line) {
            return Vec::new();
        }
        let Some(top) = std::iter::successors(self.parent(field), |id| self.parent(id)).take(LEVELS).last()
        else {
            return Vec::new();
        };
        let mut labels = self.shown(top);
        labels.retain(|id| {
            let is_label = |facts: &Facts| facts.role == role::LABEL && !facts.name.is_empty();
            let inside = self.parent(id).and_then(|parent| self.facts(parent));
            let is_part = inside.is_some_and(|facts| role::is_usually_named(facts.role));
            self.facts(id).is_some_and(is_label) && !is_part && !taken.contains(id)
        });
        if labels.len() > AROUND { Vec::new() } else { labels }
    }
}

/// Whether it is a field of one line.
fn is_line(facts: &Facts) -> bool {
    let field = [role::TEXT, role::ENTRY, role::PASSWORD_TEXT, role::SPIN_BUTTON, role::COMBO_BOX]
        .contains(&facts.role);
    field && !facts.states.has(State::MultiLine)
}

/// What objects said of their labels.
pub(super) type Told = HashMap<ElementId, Vec<ElementId>>;

/// Asks the nameless objects under `root` that are known what labels them, but for those that have `told` it.
pub(super) async fn ask(
    bus: &Bus,
    app: &App,
    root: &ElementId,
    mut told: Told,
    until: Instant,
) -> Result<Told, Silence> {
    if !app.known_toolkit().leaves_labels() {
        return Ok(told);
    }
    let mut asked = app.memory().mirror.unlabelled(root);
    asked.retain(|id| !told.contains_key(id));
    let answers = join_all(asked.iter().map(|id| labels_of(bus, app, id, until))).await;
    for (id, answer) in asked.into_iter().zip(answers) {
        told.insert(id, known(answer)?.unwrap_or_default());
    }
    Ok(told)
}

/// Finds what labels the nameless objects under `root`, some of which have `told` it; nobody is asked where there is none.
pub(super) async fn complete(
    bus: &Bus,
    app: &App,
    root: &ElementId,
    told: Told,
    until: Instant,
) -> Result<(), Silence> {
    let mut labels = ask(bus, app, root, told, until).await?;
    if labels.is_empty() {
        return Ok(());
    }
    let around = {
        let mirror = &app.memory().mirror;
        let taken = mirror.labels.0.values().chain(labels.values()).flatten().cloned().collect();
        let bare = labels.iter().filter(|(_, labels)| labels.is_empty());
        let around = bare.map(|(field, _)| (field.clone(), mirror.around(field, &taken)));
        around.filter(|(_, labels)| !labels.is_empty()).collect::<Vec<_>>()
    };
    for (field, label) in by_place(bus, app, around, until).await? {
        labels.insert(field, vec![label]);
    }
    app.memory().mirror.labels.0.extend(labels);
    Ok(())
}

async fn labels_of(bus: &Bus, app: &App, id: &ElementId, until: Instant) -> Result<Vec<ElementId>, Failure> {
    let reply = app.ask(bus, &id.object, ACCESSIBLE, "GetRelationSet", &(), until).await?;
    let body = reply.body();
    let relations: Vec<(u32, Vec<Reference<'_>>)> = body.deserialize_unchecked().map_err(CallError::from)?;
    let mut names = Names::default();
    let labels =
        relations.into_iter().filter(|(kind, _)| *kind == LABELLED_BY).flat_map(|(_, labels)| labels);
    Ok(labels.filter_map(|label| names.element(label)).collect())
}

/// An object may go while it is asked.
fn known<T>(answer: Result<T, Failure>) -> Result<Option<T>, Silence> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::Object(_)) => Ok(None),
        Err(Failure::Silent(silence)) => Err(silence),
    }
}

/// Fields with the label that stands beside them, of those around them.
async fn by_place(
    bus: &Bus,
    app: &App,
    around: Vec<(ElementId, Vec<ElementId>)>,
    until: Instant,
) -> Result<Vec<(ElementId, ElementId)>, Silence> {
    let all: HashSet<&ElementId> =
        around.iter().flat_map(|(field, labels)| labels.iter().chain([field])).collect();
    let asked = all.into_iter().map(|id| async move {
        let frame = extents::ask(bus, app, id, extents::SCREEN, until).await;
        known(frame).map(|frame| frame.flatten().map(|frame| (id, frame)))
    });
    let answers = futures_util::future::try_join_all(asked).await?;
    let frames: HashMap<&ElementId, Rect> = answers.into_iter().flatten().collect();
    let mut pairs: Vec<(i64, &ElementId, &ElementId)> = Vec::new();
    for (field, labels) in &around {
        let Some(frame) = frames.get(field) else { continue };
        let near = labels.iter().filter_map(|label| {
            let distance = frames.get(label).and_then(|label| distance(label, frame))?;
            Some((distance, field, label))
        });
        pairs.extend(near);
    }
    // The nearest first; a label stands for one field.
    pairs.sort_by_key(|(distance, ..)| *distance);
    let mut taken = HashSet::new();
    pairs.retain(|(_, field, label)| {
        let free = !taken.contains(field) && !taken.contains(label);
        if free {
            taken.extend([*field, *label]);
        }
        free
    });
    Ok(pairs.into_iter().map(|(_, field, label)| (field.clone(), label.clone())).collect())
}

/// How far a label is from a field that it can stand for: to the right of it in its row, or just under it.
fn distance(label: &Rect, field: &Rect) -> Option<i64> {
    let (x, y) = (i64::from(label.x), i64::from(label.y));
    let (to_x, to_y) = (i64::from(field.x), i64::from(field.y));
    let middle = y + i64::from(label.height) / 2;
    let beside = to_x - (x + i64::from(label.width));
    let in_row = (to_y..to_y + i64::from(field.height)).contains(&middle);
    if in_row && (-TOUCH..=BESIDE).contains(&beside) {
        return Some(beside);
    }
    let above = to_y - (y + i64::from(label.height));
    ((-TOUCH..=ABOVE).contains(&above) && (x - to_x).abs() <= ABOVE).then_some(above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_beside_their_field_or_over_it() {
        let field = Rect::new(200, 100, 150, 30);
        let cases = [
            (Rect::new(100, 106, 80, 18), Some(20), "in the row"),
            (Rect::new(100, 140, 80, 18), None, "in the next row"),
            (Rect::new(360, 106, 80, 18), None, "behind it"),
            (Rect::new(200, 78, 80, 18), Some(4), "over it"),
            (Rect::new(200, 40, 80, 18), None, "far over it"),
            (Rect::new(300, 78, 80, 18), None, "over it, out of line"),
        ];
        for (label, expected, what) in cases {
            assert_eq!(distance(&label, &field), expected, "{what}");
        }
    }
}

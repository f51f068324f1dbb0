//! From a text to strokes: what is on the keyboard, and what needs a spare key.

use deskhand_core::desktop::PortError;
use xkeysym::RawKeysym;

use super::layout::{Modifiers, Stroke, Strokes};
use super::names;

/// Strokes between which the map of spare keys does not change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::x11) struct Batch {
    /// Spare keys and the symbols that they get.
    pub(in crate::x11) spares: Vec<(u8, RawKeysym)>,
    /// One for each character; `None` for one that another stands for.
    pub(in crate::x11) strokes: Vec<Option<Stroke>>,
}

/// What to press for a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::x11) struct Plan {
    pub(in crate::x11) batches: Vec<Batch>,
}

impl Plan {
    /// Plans `text`, with group `group` in effect at first and `spares` as keys that are nobody's.
    ///
    /// # Errors
    /// `Untypable`, with the first character that cannot be typed.
    pub(in crate::x11) fn of_text(
        text: &str,
        strokes: &Strokes,
        group: u8,
        spares: &[u8],
    ) -> Result<Self, PortError> {
        let mut planner = Planner { strokes, group, spares, batches: vec![Batch::default()] };
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            if character == '\r' && characters.peek() == Some(&'\n') {
                planner.push(None);
                continue;
            }
            let stroke = planner.stroke(names::of_character(character)?);
            let stroke =
                stroke.ok_or_else(|| PortError::Untypable(format!("the character {character:?}")))?;
            planner.push(Some(stroke));
        }
        Ok(Self { batches: planner.batches })
    }

    /// Plans one key.
    ///
    /// # Errors
    /// `Untypable`.
    pub(in crate::x11) fn of_key(
        name: &str,
        symbol: RawKeysym,
        strokes: &Strokes,
        group: u8,
        spares: &[u8],
    ) -> Result<Self, PortError> {
        let mut planner = Planner { strokes, group, spares, batches: vec![Batch::default()] };
        let stroke = planner.stroke(symbol);
        let stroke = stroke.ok_or_else(|| PortError::Untypable(format!("the key {name:?}")))?;
        planner.push(Some(stroke));
        Ok(Self { batches: planner.batches })
    }

    /// Characters in it.
    pub(in crate::x11) fn len(&self) -> usize {
        self.batches.iter().map(|batch| batch.strokes.len()).sum()
    }

    /// Modifiers that change what any of its keys give.
    pub(in crate::x11) fn sensitive(&self) -> Modifiers {
        let strokes = self.batches.iter().flat_map(|batch| &batch.strokes).flatten();
        strokes.fold(0, |mask, stroke| mask | stroke.sensitive)
    }
}

struct Planner<'a> {
    strokes: &'a Strokes,
    /// Group in effect where the plan has got to: changed as rarely as the text allows.
    group: u8,
    spares: &'a [u8],
    batches: Vec<Batch>,
}

impl Planner<'_> {
    fn push(&mut self, stroke: Option<Stroke>) {
        if let Some(batch) = self.batches.last_mut() {
            batch.strokes.push(stroke);
        }
    }

    fn stroke(&mut self, symbol: RawKeysym) -> Option<Stroke> {
        if let Some(stroke) = self.strokes.find(symbol, self.group) {
            self.group = stroke.group.unwrap_or(self.group);
            return Some(stroke);
        }
        let batch = self.batches.last_mut()?;
        let known = batch.spares.iter().find(|(_, given)| *given == symbol).map(|(keycode, _)| *keycode);
        let keycode = match known {
            Some(keycode) => keycode,
            None => {
                if batch.spares.len() == self.spares.len() {
                    self.batches.push(Batch::default());
                }
                let batch = self.batches.last_mut()?;
                let keycode = self.spares.get(batch.spares.len()).copied()?;
                batch.spares.push((keycode, symbol));
                keycode
            }
        };
        Some(Stroke { keycode, group: None, modifiers: 0, sensitive: 0 })
    }
}

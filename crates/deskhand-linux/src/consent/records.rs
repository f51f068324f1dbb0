//! What the records look like.
//!
//! **Assumption.** The program that joins a machine writes them, and no published description of them was at hand: that
//! the files are called so, and hold objects with these fields among others, is what is assumed of it. Should it be
//! otherwise, this file is all that has to follow.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::Trouble;

/// There while the machine is joined.
pub(super) const JOIN: &str = "machine-credential.json";
/// What the person allows.
pub(super) const CONSENT: &str = "consent.json";
/// Of the join record: the machine's name in its fleet, and what it shows there. Neither is ever kept.
const JOIN_TEXTS: [&str; 2] = ["machine_id", "credential"];
/// Of the consent record.
pub(super) const SCREEN: &str = "screen";
pub(super) const CONTROL: &str = "control";

/// What a consent record allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowed {
    /// Seeing.
    pub screen: bool,
    /// Acting, together with seeing.
    pub control: bool,
}

/// Checks a join record.
pub(super) fn join(text: &[u8]) -> Result<(), Trouble> {
    let record = fields(text)?;
    let is_text = |name: &&str| get(&record, name) == Some(Shape::Text { is_empty: false });
    JOIN_TEXTS.iter().all(is_text).then_some(()).ok_or(Trouble::Malformed)
}

/// Reads a consent record.
pub(super) fn consent(text: &[u8]) -> Result<Allowed, Trouble> {
    let record = fields(text)?;
    match (get(&record, SCREEN), get(&record, CONTROL)) {
        (Some(Shape::Truth(screen)), Some(Shape::Truth(control))) => Ok(Allowed { screen, control }),
        _ => Err(Trouble::Malformed),
    }
}

type Fields = Vec<(String, Shape)>;

fn get(fields: &Fields, name: &str) -> Option<Shape> {
    fields.iter().find(|(other, _)| other == name).map(|(_, shape)| *shape)
}

/// The fields of the object that is all of `text`. What is wrong with it is not told: a parser's errors quote values.
fn fields(text: &[u8]) -> Result<Fields, Trouble> {
    let record: Record = serde_json::from_slice(text).map_err(|_| Trouble::Malformed)?;
    record.0.ok_or(Trouble::Malformed)
}

/// What kind of value a field has. Texts are looked at and dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Truth(bool),
    Text { is_empty: bool },
    Other,
}

/// The fields of an object; `None` if it is something else. Names that stand twice, at any depth, are an error: programs
/// differ in which of the two they take.
struct Record(Option<Fields>);

impl<'de> Deserialize<'de> for Record {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Parts).map(|(_, fields)| Self(fields))
    }
}

struct Value(Shape);

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Parts).map(|(shape, _)| Self(shape))
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = (Shape, Option<Fields>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Self::Value, E> {
        Ok((Shape::Truth(truth), None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok((Shape::Other, None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok((Shape::Other, None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok((Shape::Other, None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok((Shape::Other, None))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok((Shape::Text { is_empty: text.is_empty() }, None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        while list.next_element::<Value>()?.is_some() {}
        Ok((Shape::Other, None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a name stands twice"));
            }
            fields.push((name, map.next_value::<Value>()?.0));
        }
        Ok((Shape::Other, Some(fields)))
    }
}

//! What the records look like.
//!
//! **Assumption.** The program that joins a machine writes them, and no published description of them was at hand: that
//! the files are called so, and hold objects with these fields among others, is what is assumed of it. Should it be
//! otherwise, this file is all that has to follow.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

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

/// Records have hardly any lists or objects in them; a bound against one that is made to use up the stack.
const MAX_DEPTH: usize = 64;

/// Checks a join record.
pub(super) fn join(text: &[u8]) -> Result<(), Trouble> {
    let record = fields(text)?;
    let is_text = |name: &&str| {
        get(&record, name).is_some_and(|value| text_of(value).is_ok_and(|text| !text.is_empty()))
    };
    JOIN_TEXTS.iter().all(is_text).then_some(()).ok_or(Trouble::Malformed)
}

/// Reads a consent record.
pub(super) fn consent(text: &[u8]) -> Result<Allowed, Trouble> {
    let record = fields(text)?;
    let truth = |name| match get(&record, name) {
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        _ => Err(Trouble::Malformed),
    };
    Ok(Allowed { screen: truth(SCREEN)?, control: truth(CONTROL)? })
}

/// The consent record `text` with other values in its two fields, and everything else of it as it stands: numbers of
/// any size and spaces too, which are its author's.
pub(super) fn with(text: &[u8], allowed: Allowed) -> Result<Vec<u8>, Trouble> {
    let record = fields(text)?;
    let mut new = Vec::new();
    let mut kept = 0;
    for (name, value) in &record {
        let truth = match name.as_str() {
            SCREEN => allowed.screen,
            CONTROL => allowed.control,
            _ => continue,
        };
        // The value is a part of the text, which its address tells the place of.
        let at = (value.as_ptr().addr()).checked_sub(text.as_ptr().addr()).ok_or(Trouble::Malformed)?;
        new.extend_from_slice(text.get(kept..at).ok_or(Trouble::Malformed)?);
        new.extend_from_slice(truth.to_string().as_bytes());
        kept = at + value.len();
    }
    new.extend_from_slice(text.get(kept..).ok_or(Trouble::Malformed)?);
    Ok(new)
}

/// A new consent record.
pub(super) fn new(allowed: Allowed) -> Vec<u8> {
    let Allowed { screen, control } = allowed;
    format!("{{\n  \"{SCREEN}\": {screen},\n  \"{CONTROL}\": {control}\n}}\n").into_bytes()
}

/// Names, and the texts of the values: parts of the record's.
type Fields<'a> = Vec<(String, &'a str)>;

fn get<'a>(fields: &Fields<'a>, name: &str) -> Option<&'a str> {
    fields.iter().find(|(other, _)| other == name).map(|(_, value)| *value)
}

/// The fields of the object that is all of `text`. What is wrong with it is not told: a parser's errors quote values.
fn fields(text: &[u8]) -> Result<Fields<'_>, Trouble> {
    let text = std::str::from_utf8(text).map_err(|_| Trouble::Malformed)?;
    let fields = object(text)?;
    fields.iter().try_for_each(|(_, value)| check(value, MAX_DEPTH))?;
    Ok(fields)
}

/// Checks what is in a value. Numbers are left as they are: what they can be is their author's business.
fn check(value: &str, depth: usize) -> Result<(), Trouble> {
    let deeper = depth.checked_sub(1).ok_or(Trouble::Malformed)?;
    match value.as_bytes().first() {
        Some(b'{') => object(value)?.iter().try_for_each(|(_, value)| check(value, deeper)),
        Some(b'[') => {
            let list: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| Trouble::Malformed)?;
            list.iter().try_for_each(|value| check(value.get(), deeper))
        }
        Some(b'"') => text_of(value).map(drop),
        _ => Ok(()),
    }
}

fn text_of(value: &str) -> Result<String, Trouble> {
    serde_json::from_str(value).map_err(|_| Trouble::Malformed)
}

fn object(text: &str) -> Result<Fields<'_>, Trouble> {
    let object: Object<'_> = serde_json::from_str(text).map_err(|_| Trouble::Malformed)?;
    Ok(object.0)
}

/// An object in which no name stands twice: programs differ in which of the two they take.
struct Object<'a>(Fields<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Parts)
    }
}

struct Parts;

impl<'de> Visitor<'de> for Parts {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut names) = (Vec::new(), HashSet::new());
        while let Some(name) = map.next_key::<String>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom("a name stands twice"));
            }
            fields.push((name, map.next_value::<&RawValue>()?.get()));
        }
        Ok(Object(fields))
    }
}

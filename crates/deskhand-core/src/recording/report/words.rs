//! What a turn did, in few words.

use serde_json::Value;

use super::text::{MAX_VALUE, line, shorten};
use crate::recording::trajectory::{Action, ElementRecord, Step};

/// Characters of a text in a list of turns.
const BRIEF: usize = 48;

/// How a turn went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Confirmed,
    Unverifiable,
    Noop,
    Failed,
    /// It answered, and says nothing of an effect.
    Done,
    /// It cannot be read.
    Unknown,
}

impl Outcome {
    pub(super) const ALL: [Self; 6] =
        [Self::Confirmed, Self::Unverifiable, Self::Noop, Self::Failed, Self::Done, Self::Unknown];

    pub(super) fn of(action: &Result<Action, String>) -> Self {
        match action {
            Err(_) => Self::Unknown,
            Ok(Action { error: Some(_), .. }) => Self::Failed,
            Ok(Action { effect, .. }) => match effect.as_deref() {
                Some("confirmed") => Self::Confirmed,
                Some("suspected_noop") => Self::Noop,
                Some(_) => Self::Unverifiable,
                None => Self::Done,
            },
        }
    }

    /// Its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Unverifiable => "unverifiable",
            Self::Noop => "noop",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Unknown => "unknown",
        }
    }

    /// As a person reads it.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Unverifiable => "unverifiable",
            Self::Noop => "suspected no-op",
            Self::Failed => "failed",
            Self::Done => "done",
            Self::Unknown => "unreadable",
        }
    }

    /// What that means.
    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Confirmed => "the effect was read back",
            Self::Unverifiable => "delivered, and nothing to read it back from",
            Self::Noop => "nothing changed that should have",
            Self::Failed => "the call answered an error",
            Self::Done => "it answered, and tells no effect",
            Self::Unknown => "what is written of it cannot be read",
        }
    }
}

/// What it was done with, as HTML; nothing if there is nothing to say.
pub(super) fn brief(action: &Action) -> String {
    let Action { arguments, elements, withheld, points, .. } = action;
    let text = ["text", "value", "key", "app", "url"].into_iter().find_map(|name| arguments.get(name));
    let list = ["keys", "path"].into_iter().find_map(|name| arguments.get(name)?.as_array());
    let mut parts = Vec::new();
    if let Some(name) = withheld.first() {
        parts.push(format!("({} withheld)", line(name)));
    } else if let Some(text) = text {
        parts.push(format!("<bdi>{}</bdi>", line(&shorten(&plain(text), BRIEF))));
    } else if let Some(list) = list {
        let between = if arguments.contains_key("path") { " › " } else { "+" };
        let joined = list.iter().map(plain).collect::<Vec<_>>().join(between);
        parts.push(format!("<bdi>{}</bdi>", line(&shorten(&joined, BRIEF))));
    }
    if let Some(element) = elements.last() {
        parts.push(element_words(element));
    } else if let Some(query) = arguments.get("query").and_then(Value::as_object) {
        let words = [query.get("role"), query.get("name")].into_iter().flatten().map(plain);
        parts.push(format!("<bdi>{}</bdi>", line(&shorten(&words.collect::<Vec<_>>().join(" "), BRIEF))));
    } else if let [one, rest @ ..] = points.as_slice() {
        let to = rest.last().map(|other| format!(" → {}, {}", other.x, other.y)).unwrap_or_default();
        parts.push(format!("{}, {}{to}", one.x, one.y));
    }
    parts.join(" · ")
}

/// A value without quotes.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn element_words(ElementRecord { role, name, .. }: &ElementRecord) -> String {
    match name.as_str() {
        "" => format!("<bdi>{}</bdi>", line(role)),
        name => format!("<bdi>{} “{}”</bdi>", line(role), line(&shorten(name, BRIEF))),
    }
}

/// Where an element stands, from the window down, as HTML. What is around it and has no name tells nobody anything.
pub(super) fn path(steps: &[Step]) -> String {
    let last = steps.len().saturating_sub(1);
    let told = steps.iter().enumerate().filter(|(at, step)| *at == last || !step.name.is_empty());
    let step = |(at, Step { role, name, nth }): (usize, &Step)| {
        let name = match name.as_str() {
            "" => String::new(),
            name => format!(" “{}”", line(&shorten(name, BRIEF))),
        };
        // From 0 in the record.
        let nth = match nth {
            before if at < last || *before == 0 => String::new(),
            before => format!(" <small>no. {} of its like</small>", u64::from(*before) + 1),
        };
        format!("<li><bdi>{}{name}</bdi>{nth}</li>", line(role))
    };
    format!("<ol class=\"path\">{}</ol>", told.map(step).collect::<String>())
}

/// A value with its long texts shortened.
pub(super) fn shortened(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(shorten(text, MAX_VALUE)),
        Value::Array(list) => Value::Array(list.iter().map(shortened).collect()),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(name, value)| (name.clone(), shortened(value))).collect())
        }
        other => other.clone(),
    }
}

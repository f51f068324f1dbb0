//! What a field holds, and what it should hold after typing.

use crate::desktop::{Details, Text};
use crate::engine::Context;
use crate::error::Result;
use crate::tools::Element;
use crate::tree::quote;

/// Characters of a field that are read back. What is longer cannot be compared as a whole.
const READ_BACK: usize = 200_000;

/// What an element shows of its content.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Content {
    /// The whole text; `None` if it has none, or not all of it can be read.
    pub(super) text: Option<Text>,
    /// The number.
    pub(super) value: Option<f64>,
}

pub(super) async fn read_all(context: &Context, element: &Element) -> Result<Content> {
    let details: Details = element.details(context, READ_BACK, false).await?;
    // Of a longer text the beginning says too little.
    let is_whole = |text: &Text| text.content.chars().count() == text.length;
    let value = details.value.map(|value| value.current);
    Ok(Content { text: details.text.filter(is_whole), value })
}

/// The text alone.
pub(super) async fn read(context: &Context, element: &Element) -> Result<Option<Text>> {
    Ok(read_all(context, element).await?.text)
}

/// What a field should hold afterwards.
pub(super) struct Wanted {
    pub(super) content: String,
    /// Where the text goes, in characters.
    pub(super) at: usize,
}

/// `None` if it cannot be told: several selections.
pub(super) fn expected(before: &Text, text: &str, clear: bool, focused: bool) -> Option<Wanted> {
    if clear {
        return Some(Wanted { content: text.to_owned(), at: 0 });
    }
    let selections: Vec<_> = before.selections.iter().filter(|(start, end)| end > start).collect();
    let end = before.content.chars().count();
    let (start, stop) = match selections.as_slice() {
        [] => {
            // The caret of a field without focus is where it was last, which nobody sees: text goes to the end.
            let caret = if focused { before.caret.unwrap_or(end).min(end) } else { end };
            (caret, caret)
        }
        [(start, stop)] => (*start, *stop),
        _ => return None,
    };
    let characters = || before.content.chars();
    let content = characters().take(start).chain(text.chars()).chain(characters().skip(stop)).collect();
    Some(Wanted { content, at: start })
}

/// Where in `before` all of `text` was inserted to give `after`, in characters; `None` if that is not what happened.
pub(super) fn inserted_at(before: &str, text: &str, after: &str) -> Option<usize> {
    let (before, text, after): (Vec<char>, Vec<char>, Vec<char>) =
        (before.chars().collect(), text.chars().collect(), after.chars().collect());
    if text.is_empty() || after.len() != before.len() + text.len() {
        return None;
    }
    let alike = |(a, b): &(&char, &char)| a == b;
    let same_start = before.iter().zip(&after).take_while(alike).count();
    let same_end = before.iter().rev().zip(after.iter().rev()).take_while(alike).count();
    (before.len() - same_end..=same_start).find(|&at| after[at..at + text.len()] == text[..])
}

/// A field's content for an answer: its end, where typing shows.
pub(super) fn shown(content: &str) -> String {
    const LIMIT: usize = 100;
    let length = content.chars().count();
    if length <= LIMIT {
        return quote(content, LIMIT);
    }
    let tail: String = content.chars().skip(length - LIMIT).collect();
    format!("…{} ({length} characters)", quote(&tail, LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(content: &str, caret: usize, selections: &[(usize, usize)]) -> Text {
        let length = content.chars().count();
        Text { content: content.to_owned(), length, caret: Some(caret), selections: selections.to_vec() }
    }

    fn after(before: &Text, typed: &str, clear: bool, focused: bool) -> String {
        expected(before, typed, clear, focused)
            .map_or("?".into(), |wanted| format!("{}@{}", wanted.content, wanted.at))
    }

    #[test]
    fn text_goes_to_the_caret_the_end_or_the_selection() {
        assert_eq!(after(&text("äöü", 1, &[]), "x", false, true), "äxöü@1");
        assert_eq!(after(&text("äöü", 1, &[]), "x", false, false), "äöüx@3");
        assert_eq!(after(&text("äöü", 1, &[(1, 3)]), "x", false, true), "äx@1");
        assert_eq!(after(&text("äöü", 1, &[]), "x", true, true), "x@0");
        assert_eq!(after(&text("äöü", 1, &[(0, 1), (2, 3)]), "x", false, true), "?");
    }

    #[test]
    fn an_insertion_is_found_wherever_it_went() {
        assert_eq!(inserted_at("äöü", "x", "xäöü"), Some(0));
        assert_eq!(inserted_at("äöü", "x", "äöüx"), Some(3));
        assert_eq!(inserted_at("aaa", "aa", "aaaaa"), Some(0));
        assert_eq!(inserted_at("abab", "ab", "ababab"), Some(0));
        assert_eq!(inserted_at("", "x", "x"), Some(0));
        assert_eq!(inserted_at("abc", "xy", "axbyc"), None);
        assert_eq!(inserted_at("abc", "x", "xbc"), None);
        assert_eq!(inserted_at("abc", "", "abc"), None);
        assert_eq!(inserted_at("abc", "x", "Xabc"), None);
    }
}

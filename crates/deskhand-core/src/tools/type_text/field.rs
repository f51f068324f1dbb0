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

/// Space of a content in an answer, in bytes of its JSON: with two of them, both said as text and as data, and with a hint, an
/// answer stays within 600 bytes.
const SHOWN: usize = 40;
/// Characters that both contents have before the first in which they differ, and that are shown.
const SHARED: usize = 8;

/// Two contents of a field for an answer: whole if they are short, else the part in which they differ.
pub(crate) fn differing(before: &str, after: &str) -> (String, String) {
    let same = before.chars().zip(after.chars()).take_while(|(old, new)| old == new).count();
    let from = same.saturating_sub(SHARED);
    (part(before, from), part(after, from))
}

/// One content for an answer: its end, where typing shows.
pub(super) fn shown(content: &str) -> String {
    differing(content, content).1
}

/// What fits of `content` from the character `from` on; from earlier on, if it fits then.
fn part(content: &str, from: usize) -> String {
    let characters: Vec<char> = content.chars().collect();
    let mut begin = from.min(characters.len());
    let mut end = begin;
    let mut left = SHOWN;
    let mut fits = |character: &char| {
        let left_then = left.checked_sub(space(*character));
        left = left_then.unwrap_or(left);
        left_then.is_some()
    };
    while end < characters.len() && fits(&characters[end]) {
        end += 1;
    }
    while end == characters.len() && begin > 0 && fits(&characters[begin - 1]) {
        begin -= 1;
    }
    let start = if begin > 0 { "…" } else { "" };
    let rest = if end < characters.len() { "…" } else { "" };
    let seen: String = characters[begin..end].iter().collect();
    let length = match characters.len() {
        all if all > end - begin => format!(" ({all} characters)"),
        _ => String::new(),
    };
    format!("{start}{}{rest}{length}", quote(&seen, SHOWN))
}

/// Bytes of a character that is quoted, within JSON.
fn space(character: char) -> usize {
    let quoted = quote(character.encode_utf8(&mut [0; 4]), 1);
    quoted.len() - 2 + quoted.matches(['\\', '"']).count() - 2
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
    fn long_contents_are_shown_where_they_differ() {
        let long = "word ".repeat(200);
        assert_eq!(differing("old", "new"), ("\"old\"".to_owned(), "\"new\"".to_owned()));
        let (before, after) = differing(&format!("{long}OLD{long}"), &format!("{long}NEW{long}"));
        assert!(before.contains("OLD") && before.contains("(2003 characters)"), "{before}");
        assert!(after.contains("NEW") && after.starts_with("…\"") && after.contains("\"… ("), "{after}");
        let (before, after) = differing(&long, &format!("{long}more"));
        assert!(after.contains("word more\" (1004 characters)"), "{after}");
        assert!(before.ends_with("word word \" (1000 characters)"), "{before}");
        for content in ["\"\\\n".repeat(99), "💩".repeat(99), "\u{200b}".repeat(99), long] {
            let (before, after) = differing(&content, &content[..0]);
            let json = serde_json::to_string(&before).unwrap();
            assert!(json.len() <= SHOWN + 40, "{json}");
            assert_eq!(after, "\"\"");
        }
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

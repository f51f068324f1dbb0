//! Text of records as HTML: whatever a window called itself, it is shown and does nothing.

use crate::recording::trajectory::counted;

/// Characters of one value that are shown; a text that was typed may have 100,000.
pub(super) const MAX_VALUE: usize = 2_000;

/// Text of several lines, for elements and for attributes in double quotes.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(character),
            hidden if is_hidden(hidden) => out.push_str(&format!("‹U+{:04X}›", u32::from(hidden))),
            plain => out.push(plain),
        }
    }
    out
}

/// Text of one line.
pub(super) fn line(text: &str) -> String {
    escape(&text.replace("\r\n", "⏎").replace(['\n', '\r'], "⏎").replace('\t', "⇥"))
}

/// The beginning of a text, and how much more there is.
pub(super) fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        None => text.to_owned(),
        Some((end, _)) => {
            format!("{}… (and {} more)", &text[..end], counted(text[end..].chars().count(), "character"))
        }
    }
}

/// Whether a character is not to be seen, or changes how those around it are seen: control characters, and those that turn
/// the direction of writing.
fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// A name in an address: bytes that mean something there are spelled out.
pub(super) fn address(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => {
                out.push(byte.into())
            }
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_record_is_markup_or_turns_the_text_around() {
        assert_eq!(escape("<script>&\"'"), "&lt;script&gt;&amp;&quot;&#39;");
        assert_eq!(escape("a\u{202e}b\u{0}\u{2066}"), "a‹U+202E›b‹U+0000›‹U+2066›");
        assert_eq!(line("a\r\nb\tc\n"), "a⏎b⇥c⏎");
        assert_eq!(escape("ä 🙂 שלום"), "ä 🙂 שלום");
        assert_eq!(address("a b\"#?.mp4"), "a%20b%22%23%3F.mp4");
        assert_eq!(shorten("äöü", 2), "äö… (and 1 character more)");
        assert_eq!(shorten("äö", 2), "äö");
    }
}

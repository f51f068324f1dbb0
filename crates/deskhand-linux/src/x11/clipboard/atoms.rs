//! Atoms of the clipboard, and how its formats are called.

use deskhand_core::desktop::Selection;
use x11rb::protocol::xproto::{Atom, AtomEnum};

x11rb::atom_manager! {
    /// The atoms that the clipboard uses. `INTEGER`, `STRING` and `ATOM` are predefined by the protocol.
    pub(super) ClipboardAtoms: ClipboardAtomsCookie {
        ATOM,
        ATOM_PAIR,
        CLIPBOARD,
        CLIPBOARD_MANAGER,
        DESKHAND_SELECTION,
        DESKHAND_TIME,
        INCR,
        INTEGER,
        MULTIPLE,
        PLAIN_TEXT_UTF8: b"text/plain;charset=utf-8",
        PLAIN_TEXT: b"text/plain",
        SAVE_TARGETS,
        STRING,
        TARGETS,
        TEXT,
        TIMESTAMP,
        UTF8_STRING,
    }
}

impl ClipboardAtoms {
    pub(super) fn of(&self, selection: Selection) -> Atom {
        match selection {
            Selection::Clipboard => self.CLIPBOARD,
            Selection::Primary => AtomEnum::PRIMARY.into(),
        }
    }
}

/// Targets that are no formats but parts of the protocol.
pub(super) fn is_protocol(name: &str) -> bool {
    const PROTOCOL: [&str; 9] = [
        "ATOM_PAIR",
        "DELETE",
        "INCR",
        "INSERT_PROPERTY",
        "INSERT_SELECTION",
        "MULTIPLE",
        "SAVE_TARGETS",
        "TARGETS",
        "TIMESTAMP",
    ];
    PROTOCOL.contains(&name)
}

/// Whether `mime` is plain text in whatever spelling.
pub(super) fn is_plain_text(mime: &str) -> bool {
    let mime = mime.to_ascii_lowercase().replace(' ', "");
    matches!(mime.as_str(), "text/plain" | "text/plain;charset=utf-8" | "utf8_string" | "string" | "text")
}

/// The text in bytes of Latin-1.
pub(super) fn from_latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| char::from(*byte)).collect()
}

/// The text in Latin-1; characters that it does not have become question marks.
pub(super) fn to_latin1(text: &str) -> Vec<u8> {
    text.chars().map(|character| u8::try_from(u32::from(character)).unwrap_or(b'?')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin1_goes_both_ways() {
        assert_eq!(from_latin1(&to_latin1("Grüße")), "Grüße");
        assert_eq!(to_latin1("a漢"), b"a?");
    }

    #[test]
    fn plain_text_has_many_names() {
        assert!(is_plain_text("text/plain") && is_plain_text("text/plain; charset=UTF-8"));
        assert!(!is_plain_text("text/html"));
    }
}

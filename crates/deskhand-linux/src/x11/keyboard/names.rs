//! Key names and characters, and the keysyms they stand for.

use std::collections::HashMap;

use deskhand_core::desktop::PortError;
use xkeysym::{Keysym, RawKeysym};

/// Keysyms below this have old names of their own; what follows are characters by their number.
const NAMED: std::ops::RangeInclusive<RawKeysym> = 0x20..=0xffff;

/// Keysyms of media and application keys.
const VENDOR: std::ops::RangeInclusive<RawKeysym> = 0x1008_fe00..=0x1008_ffff;

/// Names that X knows and the library's table has under another: it keeps one name for each keysym.
const SECOND_NAMES: [(&str, Keysym); 8] = [
    ("Page_Up", Keysym::Prior),
    ("Page_Down", Keysym::Next),
    ("KP_Page_Up", Keysym::KP_Prior),
    ("KP_Page_Down", Keysym::KP_Next),
    ("quoteright", Keysym::apostrophe),
    ("quoteleft", Keysym::grave),
    ("script_switch", Keysym::Mode_switch),
    ("ISO_Group_Shift", Keysym::Mode_switch),
];

/// Keysyms by name, as X spells them.
pub(in crate::x11) struct Names(HashMap<&'static str, RawKeysym>);

impl Names {
    pub(in crate::x11) fn new() -> Self {
        let mut names: HashMap<_, _> =
            SECOND_NAMES.into_iter().map(|(name, keysym)| (name, RawKeysym::from(keysym))).collect();
        for keysym in NAMED.chain(VENDOR) {
            let Some(name) = Keysym::new(keysym).name() else { continue };
            // The library spells the names of C macros.
            if let Some(name) = name.strip_prefix("XK_") {
                names.entry(name).or_insert(keysym);
            } else if name.starts_with("XF86XK_") {
                names.entry(name).or_insert(keysym);
            }
        }
        Self(names)
    }

    /// The keysym that `name` means: a single character, a name, or a code point (`U+20AC`).
    ///
    /// # Errors
    /// `Untypable`.
    pub(in crate::x11) fn keysym(&self, name: &str) -> Result<RawKeysym, PortError> {
        let mut characters = name.chars();
        if let (Some(character), None) = (characters.next(), characters.next()) {
            return of_character(character);
        }
        let media = name.strip_prefix("XF86").map(|rest| format!("XF86XK_{rest}"));
        let known = self.0.get(name).or_else(|| self.0.get(media.as_deref()?));
        if let Some(&keysym) = known {
            return Ok(keysym);
        }
        let code = name.strip_prefix("U+").or_else(|| name.strip_prefix('U'));
        let character = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match character {
            Some(character) => of_character(character),
            None => Err(PortError::Untypable(format!("the key {name:?}, which has no such name in X,"))),
        }
    }
}

/// The keysym of a character of a text.
///
/// # Errors
/// `Untypable` for control characters other than tab and line ends, and for what is no character.
pub(in crate::x11) fn of_character(character: char) -> Result<RawKeysym, PortError> {
    let keysym = match character {
        '\n' | '\r' => RawKeysym::from(Keysym::Return),
        '\t' => RawKeysym::from(Keysym::Tab),
        other if other.is_control() => 0,
        other => RawKeysym::from(Keysym::from_char(other)),
    };
    if keysym == 0 {
        return Err(PortError::Untypable(format!("the character U+{:04X}", u32::from(character))));
    }
    Ok(keysym)
}

/// The character that a key with this keysym types in every toolkit, if it is one of the ordinary keys. Not those of
/// the keypad, which types digits or moves the caret.
pub(in crate::x11) fn character(keysym: RawKeysym) -> Option<char> {
    // 0xfe00 to 0xffff are functions, dead keys and the keypad.
    if (0xfe00..=0xffff).contains(&keysym) {
        return None;
    }
    Keysym::new(keysym).key_char()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_characters_and_code_points() {
        let names = Names::new();
        for (name, keysym) in [
            ("Return", 0xff0d),
            ("Page_Down", 0xff56),
            ("F5", 0xffc2),
            ("plus", 0x2b),
            ("eacute", 0xe9),
            ("a", 0x61),
            ("é", 0xe9),
            ("€", 0x20ac),
            ("漢", 0x0100_6f22),
            ("U+1F600", 0x0101_f600),
            ("U20AC", 0x20ac),
            ("XF86AudioPlay", 0x1008_ff14),
            ("ISO_Left_Tab", 0xfe20),
            ("dead_acute", 0xfe51),
            ("Super_L", 0xffeb),
            ("KP_1", 0xffb1),
            ("Up", 0xff52),
        ] {
            assert_eq!(names.keysym(name).ok(), Some(keysym), "{name}");
        }
        for name in ["", "Nonsense", "U+D800", "U+110000", "\u{7}", "returnn"] {
            assert!(matches!(names.keysym(name), Err(PortError::Untypable(_))), "{name:?}");
        }
    }

    #[test]
    fn keypad_and_function_keys_type_no_character() {
        assert_eq!(character(0xffb1), None);
        assert_eq!(character(0xff0d), None);
        assert_eq!(character(0xfe51), None);
        assert_eq!(character(0x61), Some('a'));
        assert_eq!(character(0x6c1), Some('а'));
        assert_eq!(character(0x0101_f600), Some('😀'));
    }
}

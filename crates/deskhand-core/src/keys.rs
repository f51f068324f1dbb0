//! Key names: what agents write, in the names that keyboards know.

use crate::desktop::{Chord, Key, Modifier};
use crate::error::{Error, Result};

/// Names that people use, and the keysym's name.
const COMMON: &[(&str, &str)] = &[
    ("enter", "Return"),
    ("return", "Return"),
    ("esc", "Escape"),
    ("escape", "Escape"),
    ("tab", "Tab"),
    ("space", "space"),
    ("spacebar", "space"),
    ("backspace", "BackSpace"),
    ("delete", "Delete"),
    ("del", "Delete"),
    ("insert", "Insert"),
    ("ins", "Insert"),
    ("home", "Home"),
    ("end", "End"),
    ("pageup", "Page_Up"),
    ("page_up", "Page_Up"),
    ("pgup", "Page_Up"),
    ("pagedown", "Page_Down"),
    ("page_down", "Page_Down"),
    ("pgdn", "Page_Down"),
    ("pgdown", "Page_Down"),
    ("up", "Up"),
    ("down", "Down"),
    ("left", "Left"),
    ("right", "Right"),
    ("arrowup", "Up"),
    ("arrowdown", "Down"),
    ("arrowleft", "Left"),
    ("arrowright", "Right"),
    ("capslock", "Caps_Lock"),
    ("caps_lock", "Caps_Lock"),
    ("numlock", "Num_Lock"),
    ("scrolllock", "Scroll_Lock"),
    ("printscreen", "Print"),
    ("print", "Print"),
    ("pause", "Pause"),
    ("menu", "Menu"),
    ("contextmenu", "Menu"),
    ("plus", "plus"),
    ("minus", "minus"),
];

fn modifier(name: &str) -> Option<Modifier> {
    Some(match name.to_ascii_lowercase().as_str() {
        "shift" | "shift_l" | "shift_r" => Modifier::Shift,
        "ctrl" | "control" | "control_l" | "control_r" => Modifier::Ctrl,
        "alt" | "option" | "alt_l" | "alt_r" => Modifier::Alt,
        "super" | "meta" | "cmd" | "command" | "win" | "windows" | "super_l" | "super_r" => Modifier::Super,
        _ => return None,
    })
}

fn key(name: &str) -> Key {
    let lower = name.to_ascii_lowercase();
    if let Some((_, keysym)) = COMMON.iter().find(|(common, _)| *common == lower) {
        return Key((*keysym).to_owned());
    }
    let function_key = lower.strip_prefix('f').and_then(|number| number.parse::<u8>().ok());
    match function_key {
        Some(number @ 1..=35) => Key(format!("F{number}")),
        _ => Key(name.to_owned()),
    }
}

/// Splits `ctrl+shift+s`; a plus sign after another, or alone, is the key itself.
fn split(text: &str) -> Vec<&str> {
    if text == "+" {
        return vec!["+"];
    }
    match text.strip_suffix("++") {
        Some(before) => before.split('+').chain(["+"]).collect(),
        None => text.split('+').collect(),
    }
}

/// The chord that `keys` name: modifiers first, then at most one key. Each may itself be joined by plus signs.
///
/// # Errors
/// `invalid_argument` for no key, or several keys that are not modifiers.
pub(crate) fn chord(field: &str, keys: &[&str]) -> Result<Chord> {
    let mut chord = Chord { modifiers: Vec::new(), key: None };
    for name in keys.iter().flat_map(|keys| split(keys)) {
        // A space is a key of its own; around other names it is a slip.
        let name = if name == " " { "space" } else { name.trim() };
        // `ctrl+` as well: its key is missing.
        if name.is_empty() {
            return Err(Error::argument(field, "expected key names such as `Return`, `ctrl+s` or `F5`"));
        }
        if let Some(known) = modifier(name) {
            if !chord.modifiers.contains(&known) {
                chord.modifiers.push(known);
            }
        } else if chord.key.is_some() {
            return Err(Error::argument(
                field,
                "expected modifiers and one key; press keys that follow each other with a call each",
            ));
        } else {
            chord.key = Some(key(name));
        }
    }
    if chord.key.is_none() && chord.modifiers.is_empty() {
        return Err(Error::argument(field, "expected at least one key"));
    }
    Ok(chord)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(keys: &[&str]) -> String {
        match chord("keys", keys) {
            Ok(chord) => format!("{:?} {}", chord.modifiers, chord.key.map_or("-".into(), |key| key.0)),
            Err(error) => error.message,
        }
    }

    #[test]
    fn names_of_all_kinds_are_understood() {
        assert_eq!(read(&["ctrl+shift+s"]), "[Ctrl, Shift] s");
        assert_eq!(read(&["Control", "s"]), "[Ctrl] s");
        assert_eq!(read(&["enter"]), "[] Return");
        assert_eq!(read(&["f5"]), "[] F5");
        assert_eq!(read(&["f"]), "[] f");
        assert_eq!(read(&["eacute"]), "[] eacute");
        assert_eq!(read(&["+"]), "[] +");
        assert_eq!(read(&["ctrl++"]), "[Ctrl] +");
        assert_eq!(read(&["ctrl", "+"]), "[Ctrl] +");
        assert_eq!(read(&[" "]), "[] space");
        assert_eq!(read(&["super"]), "[Super] -");
    }

    #[test]
    fn two_keys_at_once_or_none_are_refused() {
        assert!(read(&["a", "b"]).starts_with("argument `keys`: expected modifiers and one key"));
        assert!(read(&[]).starts_with("argument `keys`: expected at least one key"));
        for slip in ["ctrl+", "ctrl+ +", "ctrl+shift+", "+s", "ctrl++s", ""] {
            assert!(read(&[slip]).contains("expected key names"), "{slip}: {}", read(&[slip]));
        }
    }
}

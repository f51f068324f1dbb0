//! What a recording must not hold: text that goes into password fields.

use serde_json::{Map, Value};

use super::trajectory::Failure;
use crate::desktop::{Node, State};
use crate::tree::{is_item, is_text_input};

/// What is known of where a call's text goes. Only what is known to go elsewhere than into a password field is written
/// down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// Nothing is known of where it goes.
    #[default]
    Unknown,
    /// Into a field that everybody can read. A tab or a line break may lead on to another one.
    Field,
    /// Into something that everybody can read and that no tab and no line break leads out of.
    Sheet,
    /// Into something that is no text field, and so passes it on or drops it. Of keys that is what they are for.
    Elsewhere,
    /// Into something that tells nothing of itself.
    Opaque,
    /// Into a password field.
    Secret,
}

impl Secrecy {
    /// It goes into this element, among others.
    pub(super) fn note(&mut self, node: &Node) {
        let is_sheet = node.states.has(State::MultiLine) || node.role == "terminal" || is_item(&node.role);
        if node.role == "password text" {
            *self = Self::Secret;
        } else if *self == Self::Unknown {
            *self = match is_text_input(&node.role) || node.states.has(State::Editable) {
                _ if is_sheet => Self::Sheet,
                true => Self::Field,
                false => Self::Elsewhere,
            };
        }
    }

    /// It goes into something that is no password field as far as anybody can tell.
    pub(super) fn note_opaque(&mut self) {
        if *self == Self::Unknown {
            *self = Self::Opaque;
        }
    }

    /// Whether all of `text` goes there. `arrived`: all of it was read back there; `is_key`: it is one key.
    fn holds(self, text: &str, arrived: bool, is_key: bool) -> bool {
        let goes_on = |by: &[char]| text.trim_end_matches(['\t', '\n', '\r']).contains(by);
        match self {
            Self::Unknown | Self::Secret => false,
            Self::Sheet => true,
            Self::Elsewhere => is_key || arrived,
            Self::Field => arrived || !goes_on(&['\t', '\n', '\r']),
            // A terminal takes line breaks; what takes tabs within a text is a form.
            Self::Opaque => !goes_on(&['\t']),
        }
    }
}

/// The arguments that carry text, by tool.
const TEXTS: &[(&str, &str)] = &[
    ("type_text", "text"),
    ("type_text_chars", "text"),
    ("set_value", "value"),
    ("select_text", "text"),
    // It may be pasted anywhere.
    ("clipboard_write", "text"),
    ("press_key", "key"),
    ("hotkey", "keys"),
];

/// What password fields show in place of each character.
const MASKS: &[char] = &['*', '•', '●', '∙', '⬤', '◦', '·'];

/// The argument that carries text, if the call writes some: its name and its value.
pub(super) fn text<'a>(tool: &str, arguments: &'a Map<String, Value>) -> Option<(&'static str, &'a Value)> {
    let (_, name) = *TEXTS.iter().find(|(of, _)| *of == tool)?;
    let text = arguments.get(name)?;
    let is_key = matches!(name, "key" | "keys");
    (!is_key || writes(text)).then_some((name, text))
}

/// Takes out of a call what must not be written down, and out of its answer what repeats it. Names of what was taken.
pub(super) fn withhold(
    tool: &str,
    arguments: &mut Map<String, Value>,
    secrecy: Secrecy,
    result: &mut Option<Value>,
    error: &mut Option<Failure>,
) -> Vec<String> {
    let Some((name, text)) = text(tool, arguments) else { return Vec::new() };
    let answer = |name: &str| result.as_ref().map_or(&Value::Null, |result| &result[name]);
    let arrived = answer("effect") == "confirmed";
    let is_key = matches!(name, "key" | "keys");
    let is_kept = secrecy.holds(text.as_str().unwrap_or_default(), arrived, is_key)
        // GTK 4 calls its password fields plain ones, and hides what they hold all the same.
        && !is_masked(answer("after"), text);
    if is_kept {
        return Vec::new();
    }
    let secrets = words(text);
    arguments.remove(name);
    // What was there before, and is there now, is the field's own.
    if let Some(Value::Object(result)) = result {
        result.retain(|name, _| name != "before" && name != "after");
    }
    for secret in &secrets {
        if let Some(result) = result {
            scrub(result, secret);
        }
        if let Some(error) = error {
            error.message = error.message.replace(secret.as_str(), WITHHELD);
            // Long texts are quoted by their beginning.
            let beginning: String = secret.chars().take(QUOTED).collect();
            if error.message.contains(&beginning) {
                WITHHELD.clone_into(&mut error.message);
            }
        }
    }
    vec![name.to_owned()]
}

/// So much of a text is enough to know it again in a message that quotes its beginning.
const QUOTED: usize = 12;

/// Stands where a secret was.
const WITHHELD: &str = "(withheld)";

/// Whether a key, or keys pressed together, write a character.
fn writes(keys: &Value) -> bool {
    let key = match keys {
        Value::String(key) => key.clone(),
        Value::Array(keys) => keys.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("+"),
        _ => return false,
    };
    let mut parts: Vec<&str> = key.split('+').filter(|part| !part.is_empty()).collect();
    let last = parts.pop();
    let commands = ["ctrl", "control", "alt", "super", "meta", "win", "cmd"];
    let is_command = parts.iter().any(|part| commands.contains(&part.to_ascii_lowercase().as_str()));
    // Names of keys that write nothing are words of several letters; those of characters are taken for such.
    let silent = [
        "return",
        "enter",
        "tab",
        "escape",
        "esc",
        "backspace",
        "delete",
        "home",
        "end",
        "left",
        "right",
        "up",
        "down",
        "page_up",
        "page_down",
        "pageup",
        "pagedown",
        "insert",
        "menu",
    ];
    let is_silent = last.is_some_and(|key| {
        let key = key.to_ascii_lowercase();
        silent.contains(&key.as_str())
            || (key.len() > 1 && key.starts_with('f') && key[1..].bytes().all(|b| b.is_ascii_digit()))
    });
    !is_command && !is_silent
}

/// The texts in a value that are long enough to be found again.
fn words(text: &Value) -> Vec<String> {
    match text {
        Value::String(text) if text.chars().count() > 1 => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// Whether a field that was given `text` shows nothing but masks.
fn is_masked(shown: &Value, text: &Value) -> bool {
    let Some(text) = text.as_str() else { return false };
    let shown = match shown {
        Value::String(shown) => shown.clone(),
        Value::Object(fields) => fields
            .values()
            .filter_map(Value::as_str)
            .find(|shown| !shown.is_empty())
            .unwrap_or_default()
            .to_owned(),
        _ => return false,
    };
    // Texts stand between quotation marks there, and what was cut off around them.
    let quoted = |text: &str| Some(text.split_once('"')?.1.rsplit_once('"')?.0.trim_matches('…').to_owned());
    let bare = |text: &str| quoted(text).unwrap_or_else(|| text.to_owned());
    let masked = |text: &str| !text.is_empty() && text.chars().all(|c| MASKS.contains(&c));
    masked(&bare(&shown)) && !masked(text)
}

/// Replaces a secret wherever it stands.
fn scrub(value: &mut Value, secret: &str) {
    match value {
        Value::String(text) if text.contains(secret) => *text = text.replace(secret, WITHHELD),
        Value::Array(values) => values.iter_mut().for_each(|value| scrub(value, secret)),
        Value::Object(fields) => fields.values_mut().for_each(|value| scrub(value, secret)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(tool: &str, arguments: Value, secrecy: Secrecy, result: Value) -> (Value, Value) {
        let Value::Object(mut arguments) = arguments else { panic!("an object") };
        let mut result = Some(result);
        withhold(tool, &mut arguments, secrecy, &mut result, &mut None);
        (Value::Object(arguments), result.unwrap())
    }

    #[test]
    fn only_text_that_is_known_to_be_readable_is_kept() {
        let call = || json!({"text": "hunter2", "window_id": 7});
        let without = json!({"window_id": 7});
        assert_eq!(kept("type_text", call(), Secrecy::Field, json!({})).0, call());
        assert_eq!(kept("type_text", call(), Secrecy::Unknown, json!({})).0, without);
        let (arguments, result) =
            kept("type_text", call(), Secrecy::Secret, json!({"seen": ["it is hunter2 now"]}));
        assert_eq!(arguments, without);
        assert_eq!(result, json!({"seen": ["it is (withheld) now"]}));
        for after in ["●●●●●●●", "\"•••••••\"", "\"•••••••…\"", "…\"•••••••\"… (14 characters)"]
        {
            assert_eq!(
                kept("type_text", call(), Secrecy::Field, json!({"after": after})).0,
                without,
                "{after}"
            );
        }
    }

    #[test]
    fn text_that_goes_on_into_another_field_is_kept_only_if_it_came_back_whole() {
        let text = |text: &str| json!({"text": text});
        let kept = |text: Value, secrecy, effect: &str| {
            kept("type_text", text.clone(), secrecy, json!({"effect": effect})).0 == text
        };
        for (typed, secrecy, effect, expected) in [
            ("bob\thunter2", Secrecy::Field, "unverifiable", false),
            ("bob\nhunter2\n", Secrecy::Field, "unverifiable", false),
            ("bob\thunter2", Secrecy::Opaque, "unverifiable", false),
            ("a search\n", Secrecy::Field, "unverifiable", true),
            ("a\tb", Secrecy::Field, "confirmed", true),
            ("one\ttwo\nthree\n", Secrecy::Sheet, "unverifiable", true),
            ("ls\ncd /\n", Secrecy::Opaque, "unverifiable", true),
            ("hunter2", Secrecy::Elsewhere, "unverifiable", false),
        ] {
            assert_eq!(kept(text(typed), secrecy, effect), expected, "{typed:?} into {secrecy:?}, {effect}");
        }
    }

    #[test]
    fn a_message_that_quotes_the_beginning_is_left_out() {
        let Value::Object(mut arguments) = json!({"text": "a long secret that is quoted"}) else { panic!() };
        let message = "\"a long secret that…\" does not occur".to_owned();
        let mut error = Some(Failure { code: "element_not_found".to_owned(), message });
        withhold("select_text", &mut arguments, Secrecy::Secret, &mut None, &mut error);
        assert_eq!(error.unwrap().message, WITHHELD);
    }

    #[test]
    fn of_keys_only_those_that_write_are_left_out() {
        let kept = |key: Value| kept("press_key", json!({"key": key}), Secrecy::Secret, json!({})).0;
        for writes in ["a", "shift+A", "é", "space", "numbersign"] {
            assert_eq!(kept(json!(writes)), json!({}), "{writes}");
        }
        for silent in ["Return", "ctrl+a", "F5", "Page_Down", "alt+F4", "shift+Tab"] {
            assert_eq!(kept(json!(silent)), json!({"key": silent}), "{silent}");
        }
    }
}

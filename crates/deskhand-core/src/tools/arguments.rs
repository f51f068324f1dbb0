//! Reads the arguments of a call. Errors name the field and say what was expected in the words of JSON, which callers
//! write, and not in those of the types that it is read into.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::{Code, Error, Result};

/// Reads arguments.
///
/// # Errors
/// `invalid_argument`.
pub(super) fn read<A: DeserializeOwned>(arguments: Map<String, Value>) -> Result<A> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let why = in_words_of_json(&error.inner().to_string());
        if path == "." { Error::new(Code::InvalidArgument, why) } else { Error::argument(&path, why) }
    })
}

/// What is wrong with a value, with the names that JSON has for it.
pub(crate) fn in_words_of_json(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else { return message.to_owned() };
    let mut found = found.to_owned();
    // An array may stand for an object there: its length is what is found wrong.
    if found.starts_with("invalid length") && expected.starts_with("struct ") {
        "invalid type: array".clone_into(&mut found);
    }
    for (word, json) in [
        ("invalid type: sequence", "invalid type: array"),
        ("invalid type: map", "invalid type: object"),
        ("invalid type: unit value", "invalid type: null"),
        ("invalid type: unit", "invalid type: null"),
        ("invalid type: floating point", "invalid type: number"),
    ] {
        if let Some(rest) = found.strip_prefix(word) {
            found = format!("{json}{rest}");
            break;
        }
    }
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of 0 or more",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "an object",
        "string or map" => "a string",
        of if of.starts_with("struct ") => "an object",
        of if of.starts_with("enum ") || of.starts_with("variant ") => "a string",
        other => other,
    };
    format!("{found}, expected {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_speak_of_json() {
        for (rust, json) in [
            (
                "invalid type: string \"one\", expected u64",
                "invalid type: string \"one\", expected a whole number of 0 or more",
            ),
            (
                "invalid type: floating point `1.5`, expected u32",
                "invalid type: number `1.5`, expected a whole number of 0 or more",
            ),
            (
                "invalid type: string \"a, expected u8\", expected f64",
                "invalid type: string \"a, expected u8\", expected a number",
            ),
            (
                "invalid type: sequence, expected struct QueryArgument",
                "invalid type: array, expected an object",
            ),
            (
                "invalid length 1, expected struct QueryArgument with 4 elements",
                "invalid type: array, expected an object",
            ),
            ("invalid type: map, expected a sequence", "invalid type: object, expected an array"),
            (
                "invalid type: integer `1`, expected string or map",
                "invalid type: integer `1`, expected a string",
            ),
            ("invalid type: null, expected a boolean", "invalid type: null, expected true or false"),
            ("unknown field `x`, expected one of `a`, `b`", "unknown field `x`, expected one of `a`, `b`"),
            ("missing field `text`", "missing field `text`"),
        ] {
            assert_eq!(in_words_of_json(rust), json);
        }
    }
}

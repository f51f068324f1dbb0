//! `deskhand tools`: the tools, from their definitions.

use std::fmt::Write;
use std::io;
use std::process::ExitCode;

use deskhand_core::consent;
use deskhand_core::driver::{Profile, ToolListing};
use deskhand_core::tools::{Surface, listing};
use serde_json::{Map, Value, json};

pub(crate) fn run(name: Option<&str>, json: bool, profile: Profile, markdown: bool) -> io::Result<ExitCode> {
    if markdown {
        super::print(&document())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = name else {
        let tools = listing(profile);
        if json {
            super::print_json(&tools.iter().map(as_json).collect::<Vec<_>>())?;
        } else {
            super::print(&overview(&tools))?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    let tools = listing(Profile::Full);
    match tools.iter().find(|tool| tool.name == name) {
        Some(tool) if json => super::print_json(&as_json(tool))?,
        Some(tool) => super::print(&describe(tool))?,
        None => {
            let reason = format!("there is no tool {name:?}; `deskhand tools --profile full` lists them all");
            return Ok(super::fail(super::USAGE, reason));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn as_json(tool: &ToolListing) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "readOnly": tool.read_only,
        "destructive": tool.destructive,
        "idempotent": tool.idempotent,
    })
}

fn overview(tools: &[ToolListing]) -> String {
    let width = tools.iter().map(|tool| tool.name.len()).max().unwrap_or(0);
    tools.iter().fold(String::new(), |mut text, tool| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:width$}  {}", tool.name, first_sentence(&tool.description));
        text
    })
}

pub(super) fn first_sentence(text: &str) -> &str {
    text.split_once(". ").map_or(text, |(first, _)| first).trim_end_matches('.')
}

fn describe(tool: &ToolListing) -> String {
    let mut text = format!("{}\n\n{}\n", tool.name, tool.description);
    let arguments = arguments(&tool.input_schema);
    if !arguments.is_empty() {
        text.push_str("\nArguments:\n");
    }
    for argument in arguments {
        let required = if argument.required { ", required" } else { "" };
        let _ = writeln!(text, "  {} ({}{required})", argument.path, argument.kind);
        if !argument.description.is_empty() {
            let _ = writeln!(text, "      {}", argument.description);
        }
    }
    text
}

/// The whole documentation page.
fn document() -> String {
    let default = listing(Profile::Default);
    let mut text = String::from(
        "# Tools\n\nMade by `deskhand tools --markdown` from the definitions; a test keeps it so. Tools marked *full* are \
         listed only with `--profile full`; they can always be called.\n\nConsent says what the person at a joined machine \
         must have allowed ([consent.md](consent.md)): S `screen`, C `screen` and `control`, – nothing.\n\n\
         | tool | consent |\n| --- | --- |\n",
    );
    for tool in listing(Profile::Full) {
        let consent = match consent::need(&tool.name) {
            Surface::None => "–",
            Surface::Screen => "S",
            Surface::Control => "C",
        };
        let _ = writeln!(text, "| [`{0}`](#{0}) | {consent} |", tool.name);
    }
    for tool in listing(Profile::Full) {
        let full = if default.iter().any(|shown| shown.name == tool.name) { "" } else { " *full*" };
        let _ = write!(text, "\n## `{}`{full}\n\n{}\n", tool.name, tool.description);
        let arguments = arguments(&tool.input_schema);
        if !arguments.is_empty() {
            text.push_str("\n| argument | type | |\n| --- | --- | --- |\n");
        }
        for argument in arguments {
            let name = if argument.required {
                format!("**`{}`**", argument.path)
            } else {
                format!("`{}`", argument.path)
            };
            let row = [name, cell(&argument.kind), cell(&argument.description)].join(" | ");
            let _ = writeln!(text, "| {row} |");
        }
    }
    text
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

struct Argument {
    /// Its name; for a field of an object with that object's name before it.
    path: String,
    kind: String,
    description: String,
    required: bool,
}

fn arguments(schema: &Map<String, Value>) -> Vec<Argument> {
    let mut found = Vec::new();
    collect(schema, "", &mut found);
    found
}

fn collect(schema: &Map<String, Value>, prefix: &str, found: &mut Vec<Argument>) {
    let required = schema.get("required").and_then(Value::as_array);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = format!("{prefix}{name}");
        found.push(Argument {
            kind: kind(property),
            description: property["description"].as_str().unwrap_or_default().to_owned(),
            required: required.is_some_and(|names| names.iter().any(|required| required == name)),
            path: path.clone(),
        });
        if let Some(fields) = property.as_object() {
            collect(fields, &format!("{path}."), found);
        }
    }
}

/// The type in words: with its choices, bounds and default.
fn kind(property: &Value) -> String {
    let mut kind = match (&property["enum"], &property["type"]) {
        (Value::Array(choices), _) => choices
            .iter()
            .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
            .collect::<Vec<_>>()
            .join(" | "),
        (_, Value::String(name)) if name == "array" => format!("array of {}", kind(&property["items"])),
        (_, Value::String(name)) => name.clone(),
        (_, Value::Array(names)) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => match ["anyOf", "oneOf"].iter().find_map(|key| property[*key].as_array()) {
            Some(choices) => choices.iter().map(kind).collect::<Vec<_>>().join(" or "),
            None => "any".to_owned(),
        },
    };
    match (&property["minimum"], &property["maximum"]) {
        (Value::Null, Value::Null) => {}
        (least, Value::Null) => kind.push_str(&format!(" ≥ {least}")),
        (Value::Null, most) => kind.push_str(&format!(" ≤ {most}")),
        (least, most) => kind.push_str(&format!(" {least}–{most}")),
    }
    if !property["default"].is_null() {
        let default = &property["default"];
        kind.push_str(&format!(
            ", default {}",
            default.as_str().map_or_else(|| default.to_string(), str::to_owned)
        ));
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_flattened_with_their_types() {
        let schema = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "integer", "minimum": 0, "description": "An id."},
            "b": {"enum": ["x", "y"], "default": "x"},
            "c": {"type": "object", "properties": {"d": {"type": "array", "items": {"type": "string"}}}},
        }});
        let rows: Vec<_> = arguments(schema.as_object().unwrap())
            .into_iter()
            .map(|argument| format!("{} {} {}", argument.path, argument.kind, argument.required))
            .collect();
        assert_eq!(
            rows,
            ["a integer ≥ 0 true", "b x | y, default x false", "c object false", "c.d array of string false"]
        );
    }
}

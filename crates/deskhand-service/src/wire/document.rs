//! The documentation of the wire, written from its types.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::methods::METHODS;

/// `docs/wire.md`.
pub fn markdown() -> String {
    let mut page = String::from(
        "# The wire\n\nWritten from the types in `crates/deskhand-service/src/wire`; a test holds this page against them. \
         `deskhand connect` gives any program this wire on its stdin and stdout.\n\n",
    );
    page.push_str(introduction());
    page.push_str("\n## Methods\n\n| method | what it does |\n| --- | --- |\n");
    for method in METHODS {
        let first = method.description.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let _ = writeln!(page, "| [`{0}`](#{0}) | {first} |", method.name);
    }
    for method in METHODS {
        let _ = write!(page, "\n### {}\n\n{}\n\n", method.name, method.description);
        let _ = write!(page, "```json\n{}\n```\n\n", method.example);
        table(&mut page, "parameter", (method.parameters)().as_value());
        table(&mut page, "answer", (method.answer)().as_value());
    }
    page.push_str(
        "\n## Progress\n\nA call with `progress` may be followed by lines such as \
         `{\"id\": 3, \"progress\": {\"progress\": 120, \"total\": 5000, \"message\": \"typing\"}}` before its answer.\n\n\
         ## Errors\n\n`{\"id\": 3, \"error\": {\"code\", \"message\", \"recovery\", \"details\"?}}`. The codes are those of \
         [errors.md](errors.md); besides them `unknown_method`, for a method that the service does not know: the connection \
         goes on, and a client that only wanted to say good-bye ignores it.\n",
    );
    page.push_str(CONSENT_HOST);
    page
}

/// What goes over a connection after `machine_consent_host`.
const CONSENT_HOST: &str = r#"
## Consent host

After `machine_consent_host` the connection is no client's any more: the service asks, and the host answers. Every line of the
host must be sent by the process that opened the connection (the kernel says who sent it), at most 32 KiB each.

```json
{"id": 1, "method": "machine_consent_host"}
{"id": 1, "ok": {"nonce": "5f0c…"}}
{"nonce": "5f0c…", "token": "the host token"}
{"id": 1, "ok": {}}
{"id": 1, "ask": {"nonce": "a97e…"}}
{"id": 1, "nonce": "a97e…", "screen": true, "control": false}
{"refused": {"surface": "control", "tool": "click"}}
```

| line of the service | meaning |
| --- | --- |
| `ok` with `nonce` | Send the nonce and the token now. |
| `ok` | The connection is the host's. |
| `ask` | What is allowed at this moment? Its `id` is the service's own count; each has a nonce of its own. |
| `refused` | A call was refused: `surface` (`screen` or `control`) is what it lacked. No answer. |
| `error` | The connection is not the host's (any more), and why. The service closes it. |

| field of an answer | type | meaning |
| --- | --- | --- |
| `id` (required) | integer | The question's. Answers come in any order. |
| `nonce` (required) | string | The question's. |
| `screen` | boolean | Seeing is allowed. |
| `control` | boolean | Acting is allowed, if seeing is. |
| `error` | any | Why there is no answer. |

An answer that comes later than 1.5 s, has an `error`, or lacks `screen` or `control`, grants nothing. A line that is no answer, an
answer to a question that was not asked, with another nonce or from another process ends the connection; so does a host that does not read.
"#;

/// The crate's own words on the wire, so that they are said once.
fn introduction() -> &'static str {
    concat!(
        "A Unix stream socket carries one JSON object a line, UTF-8, both ways, at most 64 MiB a line. It lies in\n",
        "`$XDG_RUNTIME_DIR/deskhand` (`deskhand status --json` names it); only its owner may connect. A request has an `id`\n",
        "that the client chooses, a `method`, the method's parameters beside them, and a `session_id` if it belongs to a\n",
        "session. The answer carries the same `id` and either `ok` or `error`:\n\n",
        "```json\n",
        "{\"id\": 1, \"method\": \"call\", \"tool\": \"list_windows\", \"arguments\": {}}\n",
        "{\"id\": 1, \"ok\": {\"text\": \"no windows\", \"structured\": {\"windows\": []}}}\n",
        "```\n\n",
        "- **Order.** Calls take their place on the desktop in the order of their lines. Answers come in any order; a client need\n",
        "  not read one before it sends the next request.\n",
        "- **Not promised.** Fields may be added to any object: ignore what you do not know. A client that does not read loses its\n",
        "  connection once more waits for it than `limits` in the answer of `hello` says. A line that is no request is answered with an error whose `id` is null, if none\n",
        "  can be told; a line that is too long ends the connection.\n",
        "- **Sessions.** A request without `session_id` (left out, not null) has an anonymous session of its own,\n",
        "  which reads and writes the global settings. A connection that said `hello` with `lease` *is* the life of its session: when it\n",
        "  closes, for whatever reason, the session ends. A session that has no lease stays for its idle time after the last\n",
        "  request, so that it can go on over another connection.\n",
    )
}

fn table(page: &mut String, head: &str, schema: &Value) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    if properties.is_empty() {
        let _ = writeln!(page, "No {head}{}.\n", if head == "parameter" { "s" } else { ": `{}`" });
        return;
    }
    let _ = writeln!(page, "| {head} | type | meaning |\n| --- | --- | --- |");
    let required: Vec<_> = schema.get("required").and_then(Value::as_array).into_iter().flatten().collect();
    for (name, property) in properties {
        let must =
            if head == "parameter" && required.iter().any(|r| *r == name) { " (required)" } else { "" };
        let meaning = property.get("description").and_then(Value::as_str).unwrap_or_default();
        let _ = writeln!(page, "| `{name}`{must} | {} | {} |", words(property), meaning.replace('\n', " "));
    }
    page.push('\n');
}

/// A schema's type in words.
fn words(schema: &Value) -> String {
    if let Some(variants) = schema.get("oneOf").and_then(Value::as_array) {
        let names = variants.iter().filter_map(|variant| variant.get("const").and_then(Value::as_str));
        return names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().find(|choice| choice["type"] != "null").map(words).unwrap_or_default();
    }
    let name = match &schema["type"] {
        Value::String(name) => name.as_str(),
        Value::Array(names) => names.first().and_then(Value::as_str).unwrap_or("any"),
        _ => return "any".to_owned(),
    };
    match name {
        "array" => {
            let items = &schema["items"];
            match items["properties"].as_object() {
                Some(fields) => {
                    let names: Vec<_> = fields.keys().map(|field| format!("`{field}`")).collect();
                    format!("list of {{{}}}", names.join(", "))
                }
                None => format!("list of {}", words(items)),
            }
        }
        "object" => match schema["properties"].as_object() {
            Some(fields) => {
                let names: Vec<_> = fields.keys().map(|field| format!("`{field}`")).collect();
                format!("{{{}}}", names.join(", "))
            }
            None => "object".to_owned(),
        },
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Request;

    #[test]
    fn examples_are_requests_with_parameters_that_are_described() {
        for method in METHODS {
            let request = Request::read(method.example.as_bytes()).unwrap();
            assert_eq!(request.method, method.name);
            let schema = (method.parameters)();
            for name in request.parameters.keys() {
                assert!(schema.as_value()["properties"][name].is_object(), "{}: {name}", method.name);
            }
        }
    }

    #[test]
    fn the_page_is_up_to_date() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/wire.md");
        let page = markdown();
        if std::env::var_os("DESKHAND_WRITE_DOCUMENTS").is_some() {
            std::fs::write(file, &page).unwrap();
        }
        let written = std::fs::read_to_string(file).unwrap_or_default();
        assert!(
            written == page,
            "docs/wire.md is out of date: run this test with DESKHAND_WRITE_DOCUMENTS=1"
        );
    }
}

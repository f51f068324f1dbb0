//! JSON schemas of arguments, in the plain form that every client takes: no references, no null types, no titles.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// The schema of `A`.
pub(super) fn of<A: JsonSchema>() -> Map<String, Value> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<A>().to_value();
    simplify(&mut schema);
    let Value::Object(mut schema) = schema else { return Map::new() };
    schema.remove("description");
    if schema.get("type").is_none() {
        schema.insert("type".to_owned(), "object".into());
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.values_mut().for_each(refer);
    }
    schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    schema.insert("additionalProperties".to_owned(), Value::Bool(false));
    schema
}

fn simplify(schema: &mut Value) {
    let Value::Object(fields) = schema else {
        if let Value::Array(items) = schema {
            items.iter_mut().for_each(simplify);
        }
        return;
    };
    fields.remove("title");
    fields.remove("format");
    if fields.get("default").is_some_and(Value::is_null) {
        fields.remove("default");
    }
    unite_choices(fields);
    drop_null(fields);
    if let Some(Value::Object(properties)) = fields.get_mut("properties") {
        properties.values_mut().for_each(simplify);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(inner) = fields.get_mut(key) {
            simplify(inner);
        }
    }
}

/// What is said to be as elsewhere is described there: a list of tools is read whole by every model.
fn refer(property: &mut Value) {
    let description = property["description"].as_str().unwrap_or_default();
    let elsewhere = description.contains("As in ") || description.contains("; as `");
    if let Some(Value::Object(inner)) = property.get_mut("properties") {
        for property in inner.values_mut() {
            refer(property);
            if elsewhere && let Value::Object(fields) = property {
                fields.remove("description");
            }
        }
    }
}

/// `Option<T>` allows null; an argument that is not given is simply left out.
fn drop_null(fields: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = fields.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            fields.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(values)) = fields.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let Some(Value::Array(choices)) = fields.get("anyOf") else { return };
    let mut real = choices.iter().filter(|choice| choice["type"] != "null");
    if let (Some(Value::Object(only)), None) = (real.next().cloned(), real.next()) {
        fields.remove("anyOf");
        for (key, value) in only {
            // The field's own description is about this use of the type.
            fields.entry(key).or_insert(value);
        }
        fields.remove("title");
        unite_choices(fields);
    }
}

/// An enum whose variants are described comes as one choice each: the names are enough.
fn unite_choices(fields: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = fields.get("oneOf") else { return };
    let mut names = Vec::new();
    for choice in choices {
        match (choice.get("const"), choice.get("enum").and_then(Value::as_array)) {
            (Some(name), _) => names.push(name.clone()),
            (None, Some(several)) => names.extend(several.iter().cloned()),
            _ => return,
        }
    }
    fields.remove("oneOf");
    fields.insert("type".to_owned(), "string".into());
    fields.insert("enum".to_owned(), Value::Array(names));
}

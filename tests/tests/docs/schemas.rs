//! One file per schema. Keys are sorted, so that no feature of a library changes the file.

use serde_json::{Map, Value};

use super::Files;

pub(crate) fn files() -> Files {
    hivectl::schema::documents()
        .into_iter()
        .map(|(name, schema)| {
            let text = serde_json::to_string_pretty(&sorted(schema)).expect("a schema is JSON");
            (format!("{name}.json"), format!("{text}\n"))
        })
        .collect()
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<(String, Value)> =
                fields.into_iter().map(|(name, field)| (name, sorted(field))).collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            for (name, field) in &mut fields {
                if let (true, Value::Array(names)) = (name == "required", field) {
                    names.sort_by_key(|name| name.as_str().map(str::to_owned));
                }
            }
            Value::Object(Map::from_iter(fields))
        }
        Value::Array(parts) => Value::Array(parts.into_iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

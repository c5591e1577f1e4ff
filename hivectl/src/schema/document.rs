//! The JSON schemas of what commands print, draft 2020-12.
//!
//! A schema names every field, and all of them are required, because each is always there. Others
//! are allowed, because there will be more.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};

use crate::output::{Tagged, View};
use crate::view::{
    agent::Agent, backup::Backup, bundle::Bundle, check::Check, config_key::ConfigKey,
    delivery::Delivery, done::Done, event::Event, finding::Finding, firing::Firing, hit::Hit,
    hop::Hop, loose_end::LooseEnd, message::Message, question::Question, receipt::Receipt,
    reminder::Reminder, restored::Restored, schedule::Schedule, status::Status, thread::Thread,
    topology::Node, turn::Turn, turn_event::TurnEvent, turn_stats::TurnStats,
};

/// Every schema by its name.
#[must_use]
pub fn documents() -> BTreeMap<&'static str, Value> {
    BTreeMap::from([
        document::<Agent>(),
        document::<Backup>(),
        document::<Bundle>(),
        document::<Check>(),
        document::<ConfigKey>(),
        document::<Delivery>(),
        document::<Done>(),
        document::<Event>(),
        document::<Finding>(),
        document::<Firing>(),
        document::<Hit>(),
        document::<Hop>(),
        document::<LooseEnd>(),
        document::<Message>(),
        document::<Thread>(),
        document::<Node>(),
        document::<Question>(),
        document::<Receipt>(),
        document::<Reminder>(),
        document::<Restored>(),
        document::<Schedule>(),
        document::<Status>(),
        document::<Turn>(),
        document::<TurnEvent>(),
        document::<TurnStats>(),
    ])
}

fn document<V: View>() -> (&'static str, Value) {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let about = V::json_schema(&mut settings.clone().into_generator()).remove("description");
    let mut schema = settings.into_generator().into_root_schema_for::<Tagged<'_, V>>().to_value();
    schema["title"] = V::SCHEMA.into();
    schema["description"] = about.unwrap_or_default();
    schema["properties"]["schema"] =
        json!({ "description": "The name and version of this schema.", "const": V::SCHEMA });
    unwrap_lines(&mut schema);
    (V::SCHEMA, schema)
}

/// Makes a line of each paragraph of the descriptions: where the sources wrap them is their own.
fn unwrap_lines(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get_mut("description") {
                let paragraphs = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
                *text = paragraphs.collect::<Vec<_>>().join("\n\n");
            }
            fields.values_mut().for_each(unwrap_lines);
        }
        Value::Array(values) => values.iter_mut().for_each(unwrap_lines),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::PRINTED;

    #[test]
    fn every_schema_that_is_printed_is_documented_and_no_other() {
        let documents = documents();
        let printed: std::collections::BTreeSet<&str> =
            PRINTED.iter().map(|printed| printed.schema).collect();
        assert!(printed.iter().eq(documents.keys()), "{printed:?}");
    }

    #[test]
    fn every_field_is_described() {
        fn check(at: &str, value: &Value) {
            for (name, field) in
                value.get("properties").and_then(Value::as_object).into_iter().flatten()
            {
                assert!(
                    field["description"].as_str().is_some_and(|text| text.len() > 3),
                    "{at}: {name} is not described"
                );
            }
            for (name, part) in value.get("$defs").and_then(Value::as_object).into_iter().flatten()
            {
                check(&format!("{at}, {name}"), part);
            }
        }
        for (name, schema) in documents() {
            assert!(schema["description"].is_string(), "{name}");
            check(name, &schema);
        }
    }
}

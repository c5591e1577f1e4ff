//! Input schemas without what a model does not need: every character of them is paid for in each conversation.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize as _, Deserializer, de};
use serde_json::Value;

/// The schema of `T`, as short as it can be.
pub(super) fn of<T: JsonSchema>() -> JsonObject {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    let object = schema.ensure_object();
    object.remove("title");
    object.remove("description");
    if let Some(Value::Object(properties)) = object.get_mut("properties") {
        for property in properties.values_mut().filter_map(Value::as_object_mut) {
            property.retain(|key, value| key != "format" && !(key == "default" && value.is_null()));
        }
    }
    std::mem::take(object)
}

/// An optional whole number, also where a model wrote it as a text (`"12"`, `"#12"`).
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let number = match &value {
        None => return Ok(None),
        Some(Value::String(text)) => text.trim().trim_start_matches('#').parse().ok(),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    number.map(Some).ok_or_else(|| de::Error::custom(format!("{} is no whole number", value.unwrap_or_default())))
}

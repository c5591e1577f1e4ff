//! Input schemas, reduced to what a model needs: every character of them costs tokens in each
//! conversation.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize as _, Deserializer, de};
use serde_json::Value;

use crate::error::Refusal;

/// The last second of the year 9999, the last one that the wire has.
const UNIX_SECONDS_MAX: i64 = 253_402_300_799;

/// Returns the schema of `T`, as short as possible.
pub(super) fn input<T: JsonSchema>() -> JsonObject {
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

/// An optional whole number; a model may write it as a text (`"12"`, `"#12"`).
pub(super) fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let number = match &value {
        None => return Ok(None),
        Some(Value::String(text)) => text.trim().trim_start_matches('#').parse().ok(),
        Some(Value::Number(number)) => number.as_u64(),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    number.map(Some).ok_or_else(|| {
        de::Error::custom(format!("{} is no whole number", value.unwrap_or_default()))
    })
}

/// An id; a model may write it as a text (`"12"`, `"#12"`).
pub(super) fn id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    number(deserializer)?
        .filter(|id| *id > 0)
        .ok_or_else(|| de::Error::custom("an id is a whole number above 0"))
}

/// An optional list of texts; a model may write the list as a text, or one text instead of a list.
pub(super) fn texts<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<String>>, D::Error> {
    let value = match Option::<Value>::deserialize(deserializer)? {
        None => return Ok(None),
        Some(Value::String(text)) => match serde_json::from_str(&text) {
            Ok(list @ Value::Array(_)) => list,
            Ok(_) | Err(_) => Value::Array(vec![Value::String(text)]),
        },
        Some(value) => value,
    };
    serde_json::from_value(value)
        .map(Some)
        .map_err(|_| de::Error::custom("a list of texts is needed, as [\"yes\", \"no\"]"))
}

/// An optional flag; a model may write it as a text.
pub(super) fn flag<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    let value = Option::<Value>::deserialize(deserializer)?;
    let flag = match &value {
        None => return Ok(None),
        Some(Value::Bool(flag)) => Some(*flag),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_)) => None,
    };
    flag.map(Some).ok_or_else(|| {
        de::Error::custom(format!("{} is neither true nor false", value.unwrap_or_default()))
    })
}

/// Returns a duration for the contract, which has its own limit; only a value that the wire cannot
/// carry is refused here.
pub(super) fn span(field: &str, seconds: u64) -> Result<prost_types::Duration, Refusal> {
    match i64::try_from(seconds) {
        Ok(seconds) => Ok(prost_types::Duration { seconds, nanos: 0 }),
        Err(_) => Err(Refusal::arguments(format_args!("{field} is too long"))),
    }
}

/// Returns a time for the contract, which has its own limits; only a value that no calendar has, as
/// one in milliseconds, is refused here.
pub(super) fn unix(field: &str, seconds: u64) -> Result<prost_types::Timestamp, Refusal> {
    match i64::try_from(seconds) {
        Ok(seconds @ ..=UNIX_SECONDS_MAX) => Ok(prost_types::Timestamp { seconds, nanos: 0 }),
        Ok(_) | Err(_) => {
            Err(Refusal::arguments(format_args!("{field} is too far ahead; it is in seconds")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_is_taken_as_models_write_it() {
        for list in [json!(["a", "b"]), json!("[\"a\", \"b\"]")] {
            assert_eq!(texts(list).expect("a list"), Some(vec!["a".to_owned(), "b".to_owned()]));
        }
        for one in ["yes", "[x", "12"] {
            assert_eq!(texts(json!(one)).expect("one text"), Some(vec![one.to_owned()]));
        }
        assert_eq!(texts(json!(null)).expect("nothing"), None);
        for wrong in [json!([1]), json!({"a": 1}), json!(5), json!("[1]")] {
            assert!(texts(wrong).is_err());
        }
    }

    #[test]
    fn a_time_in_milliseconds_is_refused() {
        let last = prost_types::Timestamp { seconds: UNIX_SECONDS_MAX, nanos: 0 };
        assert_eq!(unix("at", 253_402_300_799), Ok(last));
        for wrong in [253_402_300_800, u64::MAX] {
            let refusal = unix("at", wrong).expect_err("it is refused");
            assert!(refusal.sentence.starts_with("at is too far ahead; it is in seconds"));
        }
    }

    #[test]
    fn flags_and_ids_are_taken_as_models_write_them() {
        assert_eq!(flag(json!("true")).expect("a flag"), Some(true));
        assert_eq!(flag(json!(false)).expect("a flag"), Some(false));
        assert!(flag(json!(1)).is_err() && flag(json!("maybe")).is_err());
        for twelve in [json!(12), json!("12"), json!("#12")] {
            assert_eq!(id(twelve).expect("an id"), 12);
        }
        for wrong in [json!(0), json!(null), json!(-1), json!("the last")] {
            assert!(id(wrong).is_err());
        }
    }
}

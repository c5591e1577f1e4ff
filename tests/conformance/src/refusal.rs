//! Errors in the JSON of the suite: what a case expects, what a scripted broker says, and what a
//! call on the wire ended with.

use std::time::Duration;

use hive_client::json::code_name;
use serde_json::{Map, Value};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

fn code(name: &str) -> Code {
    let known = (0..=16).map(Code::from_i32).find(|code| code_name(*code) == name);
    known.unwrap_or_else(|| panic!("{name} is not a gRPC code"))
}

/// Returns what a status says.
pub(crate) fn of_status(status: Status) -> Value {
    hive_client::json::error(&status.into())
}

/// Returns the status that a scripted broker ends a call with.
pub(crate) fn to_status(error: &Value) -> Status {
    let text = |name: &str| error.get(name).and_then(Value::as_str).unwrap_or_default();
    let code = code(text("code"));
    if text("reason").is_empty() {
        return Status::new(code, text("message"));
    }
    let mut details = ErrorDetails::new();
    let none = Map::new();
    let metadata = error.get("metadata").and_then(Value::as_object).unwrap_or(&none);
    let metadata = metadata.iter().map(|(key, value)| {
        (key.clone(), value.as_str().map_or_else(|| value.to_string(), str::to_owned))
    });
    let domain = if text("domain").is_empty() { "hive" } else { text("domain") };
    details.set_error_info(
        text("reason"),
        domain,
        metadata.collect::<std::collections::HashMap<_, _>>(),
    );
    if let Some(delay) = error.get("retryAfter").and_then(Value::as_f64) {
        details.set_retry_info(Some(Duration::from_secs_f64(delay)));
    }
    for field in error.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| field.get(name).and_then(Value::as_str).unwrap_or_default();
        details.add_bad_request_violation(text("field"), text("description"));
    }
    Status::with_error_details(code, text("message"), details)
}

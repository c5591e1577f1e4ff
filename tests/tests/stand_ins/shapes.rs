//! Whether the scripted claude prints what the real one prints.

use serde_json::Value;

/// Fields of a result that have to have the same value.
const SAME_IN_RESULT: [&str; 7] = [
    "subtype",
    "is_error",
    "result",
    "terminal_reason",
    "api_error_status",
    "local_command",
    "result_index",
];
/// Fields that are objects by names of their own.
const BY_NAME: [&str; 1] = ["input"];

/// Asserts that both print the same kinds of events in the same order, and that the scripted one
/// has no field, and no kind of value in a field, that the real one does not have there.
pub(crate) fn compare(real: &[Value], scripted: &[Value]) {
    let kinds = |events: &[Value]| events.iter().map(kind).collect::<Vec<_>>();
    assert_eq!(
        kinds(scripted),
        kinds(real),
        "the kinds of events; scripted: {scripted:#?}, real: {real:#?}"
    );
    for (scripted, real) in scripted.iter().zip(real) {
        within(&kind(real), scripted, real);
        if real["type"] == "result" {
            for field in SAME_IN_RESULT {
                assert_eq!(scripted.get(field), real.get(field), "{field} of the result");
            }
        }
        for field in [
            "compact_result",
            "compact_error",
            "status",
            "isSynthetic",
            "error",
            "api_error_status",
            "local_command_outcome",
        ] {
            assert_eq!(scripted.get(field), real.get(field), "{field} of {}", kind(real));
        }
    }
}

fn kind(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let content = &event["message"]["content"];
    let content = if content.is_string() { "words".to_owned() } else { text(&content[0]["type"]) };
    format!("{} {} {content}", text(&event["type"]), text(&event["subtype"])).trim_end().to_owned()
}

fn within(place: &str, scripted: &Value, real: &Value) {
    match (scripted, real) {
        (Value::Object(scripted), Value::Object(real)) => {
            for (name, value) in scripted {
                let place = format!("{place}.{name}");
                let known = real.get(name).unwrap_or_else(|| panic!("the real one has no {place}"));
                if !BY_NAME.contains(&name.as_str()) {
                    within(&place, value, known);
                }
            }
        }
        (Value::Array(scripted), Value::Array(real)) => {
            if let (Some(scripted), Some(real)) = (scripted.first(), real.first()) {
                within(&format!("{place}[0]"), scripted, real);
            }
        }
        (Value::Null, _) | (_, Value::Null) => {}
        (scripted, real) => {
            assert_eq!(
                std::mem::discriminant(scripted),
                std::mem::discriminant(real),
                "{place} is {scripted} and not as the real one's {real}"
            );
        }
    }
}

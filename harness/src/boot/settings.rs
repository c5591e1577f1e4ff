//! claude's settings file.
//!
//! claude drops a settings file with one invalid field whole and silently, deny list and all; so it is small, and read back.

use serde_json::{Value, json};

use crate::claude::command_line::DENIED_TOOLS;

/// The settings: compaction and memory are Hive's, and the denied tools stay denied.
#[must_use]
pub fn value() -> Value {
    json!({
        "autoCompactEnabled": false,
        "autoMemoryEnabled": false,
        "effortLevel": "medium",
        "permissions": { "deny": DENIED_TOOLS },
    })
}

/// The settings as they are written.
#[must_use]
pub fn text() -> String {
    format!("{:#}\n", value())
}

/// Whether a file holds exactly the settings.
#[must_use]
pub fn is_sound(text: &str) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_the_specified_ones() {
        assert_eq!(
            value().to_string(),
            r#"{"autoCompactEnabled":false,"autoMemoryEnabled":false,"effortLevel":"medium","permissions":{"deny":["Bash","Task","NotebookEdit","TodoWrite"]}}"#
        );
        assert!(is_sound(&text()));
        assert!(!is_sound("{}") && !is_sound(""));
    }
}

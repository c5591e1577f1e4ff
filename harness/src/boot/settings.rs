//! claude's settings file.
//!
//! claude silently drops a whole settings file that has one invalid field, deny list included. So
//! the file is small, and read back.

use serde_json::{Value, json};

use crate::claude::command_line::DENIED_TOOLS;
use crate::guard;

/// Returns the settings: compaction and memory are Hive's, and the denied tools stay denied;
/// `guard` runs before claude reads files.
pub fn value(guard: Option<&str>) -> Value {
    let mut value = json!({
        "autoCompactEnabled": false,
        "autoMemoryEnabled": false,
        "effortLevel": "medium",
        "permissions": { "deny": DENIED_TOOLS },
    });
    if let Some(guard) = guard {
        let hook =
            json!({ "matcher": guard::TOOLS, "hooks": [{ "type": "command", "command": guard }] });
        value["hooks"] = json!({ "PreToolUse": [hook] });
    }
    value
}

/// Returns the text of the settings file.
pub fn text(guard: Option<&str>) -> String {
    format!("{:#}\n", value(guard))
}

/// Returns whether a file contains exactly the settings.
pub fn is_sound(text: &str, guard: Option<&str>) -> bool {
    serde_json::from_str::<Value>(text).is_ok_and(|read| read == value(guard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_the_specified_ones() {
        let plain = r#"{"autoCompactEnabled":false,"autoMemoryEnabled":false,"effortLevel":"medium","permissions":{"deny":["Bash","Task","NotebookEdit","TodoWrite"]}}"#;
        assert_eq!(value(None).to_string(), plain);
        let guarded = value(Some("hive guard /h"));
        assert_eq!(
            guarded["hooks"].to_string(),
            r#"{"PreToolUse":[{"hooks":[{"command":"hive guard /h","type":"command"}],"matcher":"Read|Grep|Edit"}]}"#
        );
        let guard = Some("hive guard /h");
        assert!(is_sound(&text(guard), guard) && !is_sound(&text(None), guard));
        assert!(is_sound(&text(None), None));
        assert!(!is_sound("{}", None) && !is_sound("", None));
    }
}

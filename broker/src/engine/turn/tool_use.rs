//! Tool uses: checks of the tool calls that a harness reports for its turn.

use std::collections::HashSet;

use hive_core::limits::{TOOL_NAME_CHARS_MAX, TURN_TOOLS_MAX};
use hive_core::turn::ToolUse;

use crate::engine::Refusal;

/// Refuses counts that no turn can have.
pub(crate) fn check(tools: &[ToolUse]) -> Result<(), Refusal> {
    let refuse = |field, problem| Err(Refusal::Field { field, problem });
    if tools.len() > TURN_TOOLS_MAX {
        let problem = format!(
            "it names {} tools; at most {TURN_TOOLS_MAX} are allowed. Leave out the least called ones",
            tools.len()
        );
        return refuse("tool_uses", problem);
    }
    let mut names = HashSet::new();
    for ToolUse { name, count } in tools {
        let chars = name.chars().count();
        if !(1..=TOOL_NAME_CHARS_MAX).contains(&chars) || name.contains(char::is_control) {
            return refuse(
                "tool_uses.name",
                format!("a tool's name has 1 to {TOOL_NAME_CHARS_MAX} printable characters"),
            );
        }
        if *count == 0 {
            return refuse(
                "tool_uses.count",
                format!("`{name}` was called at least once, or is left out"),
            );
        }
        if !names.insert(name) {
            return refuse(
                "tool_uses.name",
                format!("`{name}` stands there twice; add the counts up"),
            );
        }
    }
    Ok(())
}

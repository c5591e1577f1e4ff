//! Tables of environment variables.
//!
//! Invariant: what is read can be put into the environment of a process as it is.

use std::collections::BTreeMap;

use super::section::Section;

/// Variables that Hive sets for each agent's processes itself.
pub(super) const OWN_VARIABLES: [&str; 15] = [
    "HOME",
    "HIVE_SOCKET",
    "HIVE_STATE_DIR",
    "HIVE_HOME_DIR",
    "HIVE_CLAUDE",
    "HIVE_CLAUDE_ENV",
    "HIVE_PROCESS_TOKEN",
    "HIVE_PROCESS",
    "HIVE_AUTO_COMPACT",
    "HIVE_EXTRA_MCP",
    "HIVE_PLUGINS",
    "HIVE_MARKETPLACES",
    "HIVE_PLUGINS_AUTO_UPDATE",
    "HIVE_CARGO_SHORT_MESSAGES",
    "HIVE_TASK_SOCKET",
];

/// The table `env`, without the variables that are `taken`.
pub(super) fn environment(section: &mut Section<'_, '_, '_>, taken: &[&str]) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for (name, (value, span)) in section.map("env") {
        let key = format!("env.{}", name.escape_debug());
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let sentence = format!("`{}` is no environment variable", name.escape_debug());
            section.object(span, &key, sentence, None);
        } else if taken.contains(&name.as_str()) {
            section.object(span, &key, format!("`{name}` is set by Hive itself; remove it"), None);
        } else {
            env.insert(name, value);
        }
    }
    env
}

//! Tables of environment variables.
//!
//! Invariants: the result can be put into the environment of a process unchanged; it contains no
//! setting of Hive.

use std::collections::BTreeMap;

use super::section::Section;
use super::settings_list::SETTINGS;
use crate::secret::Secret;

/// Prefix of Hive's own variables.
pub const OWN_PREFIX: &str = "HIVE_";

/// Variables of `hive serve` that are not a [`super::Setting`], each with its key; `None`: the
/// program that starts the harness sets it.
pub const OTHER_VARIABLES: &[(&str, Option<&str>)] = &[
    ("HIVE_AGENT", None),
    ("HIVE_CLAUDE", Some("`command` in [claude]")),
    ("HIVE_CLAUDE_ENV", Some("`env`")),
    ("HIVE_CONFIG", None),
    ("HIVE_CONTEXT_WINDOWS", Some("`context_windows` in [claude]")),
    ("HIVE_CONTEXT_WINDOW_TOKENS", Some("`context_window_tokens` in [agents.NAME]")),
    ("HIVE_DEFAULT_MODEL", Some("`model` in [agents.NAME]")),
    ("HIVE_EXTRA_MCP", Some("`extra_mcp_servers` in [agents.NAME]")),
    ("HIVE_HOME_DIR", Some("`home_dir` in [agents.NAME]")),
    ("HIVE_LABEL", None),
    ("HIVE_MARKETPLACES", Some("`marketplaces` in [agents.NAME]")),
    ("HIVE_MCP", None),
    ("HIVE_MCP_SERVER_NAME", Some("`mcp_server_name` in [claude]")),
    ("HIVE_OPERATOR_PRONOUNS", Some("`pronouns` in [operator]")),
    ("HIVE_PLUGINS", Some("`plugins` in [agents.NAME]")),
    ("HIVE_RUN_DIR", None),
    ("HIVE_SETTINGS", None),
    ("HIVE_SOCKET", None),
    ("HIVE_STATE_DIR", Some("`state_dir` in [agents.NAME]")),
    ("HIVE_TOOL_GROUPS", Some("`tool_groups` in [agents.NAME]")),
];
/// Prefix of variables that set a window for the models whose names contain the rest.
const WINDOW_PREFIX: &str = "HIVE_CONTEXT_WINDOW_TOKENS_";

/// Reads the table `env` of claude, of all agents or of one.
pub(super) fn of_claude(section: &mut Section<'_, '_, '_>) -> BTreeMap<String, Secret> {
    read(section, |name| match name {
        "HOME" => Some("`HOME` is set by Hive itself; remove it".to_owned()),
        name => name.starts_with(OWN_PREFIX).then(|| own(name)),
    })
}

/// Reads the table `env` of a program other than claude.
pub(super) fn of_server(section: &mut Section<'_, '_, '_>) -> BTreeMap<String, Secret> {
    read(section, |_| None)
}

fn read(
    section: &mut Section<'_, '_, '_>,
    refusal: impl Fn(&str) -> Option<String>,
) -> BTreeMap<String, Secret> {
    let mut env = BTreeMap::new();
    for (name, (value, span)) in section.secrets("env") {
        let key = format!("env.{}", name.escape_debug());
        if name.is_empty() || name.contains(['=', '\0']) || has_nul(&value) {
            let sentence = format!("`{}` is no environment variable", name.escape_debug());
            section.object(span, &key, sentence, None);
        } else if let Some(sentence) = refusal(&name) {
            section.object(span, &key, sentence, None);
        } else {
            env.insert(name, value);
        }
    }
    env
}

fn has_nul(value: &Secret) -> bool {
    value.text().is_some_and(|text| text.contains('\0'))
}

/// Explains why a variable of Hive cannot be in claude's environment: nothing there reads it.
fn own(name: &str) -> String {
    let shown = name.escape_debug();
    let setting = SETTINGS
        .iter()
        .find(|setting| setting.variable == name)
        .map(|setting| format!("`{}`", setting.key));
    let other = || {
        OTHER_VARIABLES
            .iter()
            .find(|(other, _)| *other == name)
            .and_then(|(_, key)| *key)
            .map(str::to_owned)
    };
    let by_model =
        || name.starts_with(WINDOW_PREFIX).then(|| "`context_windows` in [claude]".to_owned());
    match setting.or_else(other).or_else(by_model) {
        Some(key) => format!("`{shown}` has no effect on claude; use the key {key}"),
        None => format!(
            "`{shown}` has no effect on claude: names that begin with `{OWN_PREFIX}` are Hive's own; remove it"
        ),
    }
}

//! What of a `hive.toml` can be shown to strangers, as in a report of a fault.
//!
//! Invariant: a value is shown only if its key is on the list of harmless ones. A key that is added
//! to the table of keys later is withheld until it is added to the list, too.

use std::collections::BTreeMap;

use toml::de::{DeTable, DeValue};

use super::extra_servers::is_server_name;
use super::keys::{Key, KeyKind, keys};
use crate::action::is_name;
use crate::name::AgentName;

/// The keys with text in which no secret is kept: words that Hive defines, and names of agents, of
/// models, of groups, of units and of zones, and spans and times of day. Numbers and flags are
/// harmless under each known key.
const HARMLESS: [&str; 26] = [
    "actions.NAME.agents",
    "agents.NAME.allowed_recipients",
    "agents.NAME.available_models",
    "agents.NAME.capabilities",
    "agents.NAME.grants",
    "agents.NAME.heartbeat.between",
    "agents.NAME.heartbeat.every",
    "agents.NAME.heartbeat.zone",
    "agents.NAME.isolation",
    "agents.NAME.kick_on_start",
    "agents.NAME.model",
    "agents.NAME.parent",
    "agents.NAME.process",
    "agents.NAME.reset.daily_at",
    "agents.NAME.tool_groups",
    "agents.NAME.unit",
    "broker.agent_unit",
    "broker.backup.every",
    "broker.metrics.group",
    "broker.metrics.listen",
    "broker.socket_group",
    "claude.mcp_server_name",
    "claude.process",
    "claude.reset.daily_at",
    "hive.isolation",
    "operator.journal_units",
];

/// Stands for a name that is not one of Hive's: it could be anything.
const UNKNOWN: &str = "(unknown)";

/// A key of a file, with what of its value can be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareableKey {
    /// The path of the key. A part that is no known key and no valid name is `(unknown)`.
    pub path: String,
    /// What can be shown.
    pub value: ShareableValue,
}

/// What can be shown of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareableValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(i64),
    /// Yes or no.
    Flag(bool),
    /// A list.
    List(Vec<ShareableValue>),
    /// Nothing but its type: `string`, `file`, `credential` and so on.
    Withheld(&'static str),
}

/// Returns the keys of a file in the order of their paths; `None` if it is not TOML. Of a file that
/// is not valid no text is shown: it could be under the wrong key.
#[must_use]
pub fn shareable(text: &str) -> Option<Vec<ShareableKey>> {
    let (document, broken) = DeTable::parse_recoverable(text);
    if !broken.is_empty() {
        return None;
    }
    let known = keys().into_iter().map(|Key { path, kind, .. }| (path, kind)).collect();
    let mut reader = Reader { known, is_valid: super::check(text).is_ok(), found: Vec::new() };
    reader.table("", "", document.get_ref());
    reader.found.sort_by(|left, right| left.path.cmp(&right.path));
    Some(reader.found)
}

struct Reader {
    known: BTreeMap<String, KeyKind>,
    is_valid: bool,
    found: Vec<ShareableKey>,
}

impl Reader {
    /// Reads a table. `general` is its path in the table of keys, `shown` its path in the file.
    fn table(&mut self, general: &str, shown: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let (word, value) = (key.get_ref().as_ref(), value.get_ref());
            let (general_word, shown_word) = match general {
                "agents" if AgentName::parse(word).is_ok() => ("NAME", word),
                "agents.NAME.extra_mcp_servers" if is_server_name(word) => ("KEY", word),
                "actions" if is_name(word) => ("NAME", word),
                "agents" | "actions" | "agents.NAME.extra_mcp_servers" => (UNKNOWN, UNKNOWN),
                _ => (word, word),
            };
            let inner = joined(general, general_word);
            if let Some(kind) = self.known.get(&inner).copied() {
                self.value(&inner, kind, joined(shown, shown_word), value);
            } else if let Some(table) = value.as_table().filter(|_| self.is_table(&inner)) {
                self.table(&inner, &joined(shown, shown_word), table);
            } else {
                self.add(joined(shown, UNKNOWN), ShareableValue::Withheld(type_of(value)));
            }
        }
    }

    /// Returns whether there are keys below this path.
    fn is_table(&self, path: &str) -> bool {
        let below = format!("{path}.");
        self.known.range(below.clone()..).next().is_some_and(|(key, _)| key.starts_with(&below))
    }

    fn value(&mut self, general: &str, kind: KeyKind, path: String, value: &DeValue<'_>) {
        match (kind, value.as_table()) {
            (KeyKind::Secrets | KeyKind::NumbersByName | KeyKind::TextsByName, Some(table)) => {
                let is_number = kind == KeyKind::NumbersByName;
                let inner = if is_number { KeyKind::Number(0, 0) } else { KeyKind::Secret };
                for (name, value) in table {
                    let name = name.get_ref().as_ref();
                    let name = if is_plain(name) { name } else { UNKNOWN };
                    self.value(general, inner, joined(&path, name), value.get_ref());
                }
            }
            _ => {
                let shown = self.shown(general, kind, value);
                self.add(path, shown.unwrap_or(ShareableValue::Withheld(type_of(value))));
            }
        }
    }

    /// Returns the value, if its key is harmless and its type is that of the key.
    fn shown(&self, key: &str, kind: KeyKind, value: &DeValue<'_>) -> Option<ShareableValue> {
        let text = |value: &DeValue<'_>| Some(ShareableValue::Text(value.as_str()?.to_owned()));
        let number = |value: &DeValue<'_>| {
            let number = value.as_integer()?;
            i64::from_str_radix(number.as_str(), number.radix()).ok().map(ShareableValue::Number)
        };
        let list = |item: &dyn Fn(&DeValue<'_>) -> Option<ShareableValue>| {
            let items = value.as_array()?.iter().map(|value| item(value.get_ref()));
            Some(ShareableValue::List(items.collect::<Option<_>>()?))
        };
        let is_harmless = self.is_valid && HARMLESS.contains(&key);
        match kind {
            KeyKind::Flag => value.as_bool().map(ShareableValue::Flag),
            KeyKind::Number(..) => number(value),
            KeyKind::Numbers => list(&number),
            KeyKind::Text if is_harmless => text(value),
            KeyKind::Texts if is_harmless => list(&text),
            KeyKind::Text
            | KeyKind::Texts
            | KeyKind::Secret
            | KeyKind::Secrets
            | KeyKind::NumbersByName
            | KeyKind::TextsByName
            | KeyKind::Table => None,
        }
    }

    fn add(&mut self, path: String, value: ShareableValue) {
        self.found.push(ShareableKey { path, value });
    }
}

fn joined(path: &str, word: &str) -> String {
    if path.is_empty() { word.to_owned() } else { format!("{path}.{word}") }
}

/// Returns whether this is the name of a variable or a part of a model's name, and not a text.
fn is_plain(name: &str) -> bool {
    name.len() <= 64
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns the type of a value; of a secret that is kept elsewhere, where that is.
fn type_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "string",
        DeValue::Integer(_) => "number",
        DeValue::Float(_) => "fraction",
        DeValue::Boolean(_) => "flag",
        DeValue::Datetime(_) => "date",
        DeValue::Array(_) => "list",
        DeValue::Table(table) => match table.iter().next() {
            Some((key, _)) if key.get_ref() == "file" => "file",
            Some((key, _)) if key.get_ref() == "credential" => "credential",
            _ => "table",
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::EVERY_KEY;
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let keys = shareable(text).expect("TOML");
        keys.into_iter().map(|key| format!("{} {:?}", key.path, key.value)).collect()
    }

    /// Each key of the list has to be one of text that the file can have.
    #[test]
    fn the_list_of_harmless_keys_names_known_keys_of_text() {
        assert!(HARMLESS.is_sorted());
        let known = keys();
        for harmless in HARMLESS {
            let kind = known.iter().find(|key| key.path == harmless).map(|key| key.kind);
            assert!(matches!(kind, Some(KeyKind::Text | KeyKind::Texts)), "{harmless}: {kind:?}");
        }
    }

    #[test]
    fn each_key_of_text_is_withheld_unless_it_is_harmless() {
        // As it has both ways to notify, it is not valid otherwise.
        let text = EVERY_KEY.replace("command = [\"notify-send\", \"Hive\"]", "");
        let text = text.replace("listen = \"127.0.0.1:9464\"", "");
        let found = shareable(&text).expect("TOML");
        let general = |path: &str| {
            path.replace("agents.name.", "agents.NAME.")
                .replace("actions.name.", "actions.NAME.")
                .replace("extra_mcp_servers.key.", "extra_mcp_servers.KEY.")
        };
        for Key { path, kind, .. } in keys() {
            if matches!(kind, KeyKind::Secrets | KeyKind::NumbersByName | KeyKind::TextsByName) {
                continue;
            }
            let missing = ["operator.notify.command", "broker.metrics.listen"];
            let Some(key) = found.iter().find(|key| general(&key.path) == path) else {
                assert!(missing.contains(&path.as_str()), "{path} is not in the file");
                continue;
            };
            let is_text = matches!(kind, KeyKind::Text | KeyKind::Texts | KeyKind::Secret);
            let is_withheld = matches!(key.value, ShareableValue::Withheld(_));
            assert_eq!(is_withheld, is_text && !HARMLESS.contains(&path.as_str()), "{key:?}");
        }
    }

    #[test]
    fn a_secret_shows_its_name_and_where_it_is_kept() {
        let text = "[operator]\nnotify.webhook = \"https://example.org/s3cret\"\n\
                    [broker.traces]\notlp = \"https://example.org/?key=s3cret\"\n\
                    headers = { a = \"s3cret\", b = { file = \"/s3cret\" } }\n[claude]\n\
                    env = { A = \"s3cret\", B = { file = \"/s3cret\" }, C = { credential = \"s3cret\" } }\n\
                    context_windows = { opus = 9 }\n";
        let wanted = [
            "broker.traces.headers.a Withheld(\"string\")",
            "broker.traces.headers.b Withheld(\"file\")",
            "broker.traces.otlp Withheld(\"string\")",
            "claude.context_windows.opus Number(9)",
            "claude.env.A Withheld(\"string\")",
            "claude.env.B Withheld(\"file\")",
            "claude.env.C Withheld(\"credential\")",
            "operator.notify.webhook Withheld(\"string\")",
        ];
        assert_eq!(shown(text), wanted);
    }

    #[test]
    fn of_an_invalid_file_no_text_is_shown_and_no_unknown_word() {
        let text = "[agents.ada]\nmodel = \"s3cret\"\ns3cret = 1\nmax_retries = \"s3cret\"\n\
                    [agents.\"s3 cret\"]\nrole = \"s3cret\"\n[s3cret]\nx = \"s3cret\"\n\
                    [agents.bob.env]\n\"s3cret is here\" = \"s3cret\"\n";
        let shown = shown(text);
        assert!(!shown.concat().contains("s3cret") && shown.len() == 6, "{shown:#?}");
        assert!(shareable("a = = s3cret").is_none());
    }
}

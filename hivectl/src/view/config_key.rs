//! A key of the configuration file.

use hive_core::config::{Key, KeyKind};
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Row;
use crate::output::style::Style;

/// One key.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct ConfigKey {
    /// The path, as `agents.NAME.model`: `NAME` stands for any agent, `KEY` for any of its servers.
    key: String,
    /// What it takes: `string`, `number`, `flag`, `strings`, `numbers`, `secret` (a string, or a
    /// table with `file` or `credential`), `secrets` and `numbers_by_name` (tables of such values).
    values: &'static str,
    /// The least number.
    least: Option<u64>,
    /// The greatest number.
    greatest: Option<u64>,
    /// The effect.
    meaning: &'static str,
}

impl From<Key> for ConfigKey {
    fn from(key: Key) -> Self {
        let Key { path, kind, meaning } = key;
        let (least, greatest) = match kind {
            KeyKind::Number(least, greatest) => (Some(least), Some(greatest)),
            KeyKind::Text
            | KeyKind::Flag
            | KeyKind::Texts
            | KeyKind::Numbers
            | KeyKind::Secret
            | KeyKind::Secrets
            | KeyKind::NumbersByName
            | KeyKind::TextsByName
            | KeyKind::Table => (None, None),
        };
        Self { key: path, values: kind.word(), least, greatest, meaning }
    }
}

impl Row for ConfigKey {
    const HEADER: &'static [&'static str] = &["KEY", "VALUES", "MEANING"];
    const NONE: &'static str = "no keys";

    fn cells(&self, _: &Style) -> Vec<String> {
        let values = match (self.least, self.greatest) {
            (Some(least), Some(greatest)) => format!("{least} to {greatest}"),
            _ => self.values.to_owned(),
        };
        vec![self.key.clone(), values, self.meaning.to_owned()]
    }
}

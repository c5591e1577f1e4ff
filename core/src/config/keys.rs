//! The table of all keys of `hive.toml`, for programs that write one.
//!
//! Invariant: the keys are those that the parser requests, so the table cannot differ from what it
//! reads. `every_key.toml` only has each of its tables, so that the parser comes to read them.

use std::ops::RangeInclusive;

use toml::de::DeTable;

use super::error::Findings;
use super::meanings::meaning;
use super::sections;

/// A file with each key; its agent and its action are `name`, and the server of the agent is `key`.
/// The agent [`PARENT`] has no keys.
pub(super) const EVERY_KEY: &str = include_str!("every_key.toml");

/// The parent of the agent in [`EVERY_KEY`].
const PARENT: &str = "agents.root.";

/// What a key takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A string.
    Text,
    /// A whole number from the first to the second, both included.
    Number(u64, u64),
    /// Yes or no.
    Flag,
    /// A list of strings.
    Texts,
    /// A list of whole numbers.
    Numbers,
    /// A string, `{ file = PATH }` or `{ credential = NAME }`.
    Secret,
    /// A table of such values, whose names the author chooses.
    Secrets,
    /// A table of whole numbers, whose names the author chooses.
    NumbersByName,
    /// A table of strings, whose names the author chooses.
    TextsByName,
    /// A table with keys of its own; not in the result of [`keys`].
    Table,
}

impl KeyKind {
    pub(super) fn number(bounds: &RangeInclusive<u64>) -> Self {
        Self::Number(*bounds.start(), *bounds.end())
    }

    /// Returns the word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number(..) => "number",
            Self::Flag => "flag",
            Self::Texts => "strings",
            Self::Numbers => "numbers",
            Self::Secret => "secret",
            Self::Secrets => "secrets",
            Self::NumbersByName => "numbers_by_name",
            Self::TextsByName => "strings_by_name",
            Self::Table => "table",
        }
    }
}

/// A key of `hive.toml`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// Its path, as `agents.NAME.model`. `NAME` stands for any agent, `KEY` for any of its servers.
    pub path: String,
    /// What it takes.
    pub kind: KeyKind,
    /// The effect, in the words of the documentation.
    pub meaning: &'static str,
}

/// Returns all keys, in the order in which the parser reads them.
#[must_use]
pub fn keys() -> Vec<Key> {
    let requests = requests(EVERY_KEY).into_iter();
    let known = requests.filter_map(|(path, kind)| {
        let kind = kind.filter(|kind| *kind != KeyKind::Table)?;
        let meaning = meaning(&path).unwrap_or_default();
        Some(Key { path, kind, meaning })
    });
    known.collect()
}

/// Reads a text; returns each requested key with its kind, where one was stated.
pub(super) fn requests(text: &str) -> Vec<(String, Option<KeyKind>)> {
    let mut findings = Findings::with_requests(text);
    let (document, _) = DeTable::parse_recoverable(text);
    sections::document(document.get_ref(), &mut findings);
    let requests = findings.into_requests().into_iter();
    let requests = requests.filter(|(path, _)| !path.starts_with(PARENT));
    requests.map(|(path, kind)| (general(&path), kind)).collect()
}

/// Puts `NAME` and `KEY` into the path of a key of [`EVERY_KEY`].
fn general(path: &str) -> String {
    path.replace("agents.name.", "agents.NAME.")
        .replace("actions.name.", "actions.NAME.")
        .replace("extra_mcp_servers.key.", "extra_mcp_servers.KEY.")
}

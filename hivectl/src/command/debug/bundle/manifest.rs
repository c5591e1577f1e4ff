//! The manifest: what is in a bundle, what is missing, and what is never in it.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use crate::view::bundle::Missing;

/// A file of the bundle.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: usize,
    /// The rows of a list.
    pub(super) rows: Option<usize>,
    /// The most rows that were read. As many rows as that: there may be more.
    pub(super) rows_max: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(super) struct Manifest<'a> {
    schema: &'static str,
    create_time: String,
    hivectl_version: &'static str,
    bodies: bool,
    files: &'a [Entry],
    missing: &'a [Missing],
    withheld: [&'static str; 4],
    commands: [&'static str; 2],
}

/// What no bundle has.
const WITHHELD: [&str; 4] = [
    "values of environments, secrets, URLs, arguments of commands, prompts, roles, paths of the configuration",
    "lease tokens, request ids, etags, conversations",
    "live output of turns and inputs of tools: `hivectl turn show ID --output`",
    "logs: they may have anything that a program printed",
];
/// What a person adds, after reading it.
const COMMANDS: [&str; 2] =
    ["journalctl --unit hived --since -1h", "journalctl --unit 'hive@*' --since -1h"];

impl<'a> Manifest<'a> {
    pub(super) const NAME: &'static str = "manifest.json";

    pub(super) fn new(
        now: Timestamp,
        bodies: bool,
        files: &'a [Entry],
        missing: &'a [Missing],
    ) -> Self {
        Self {
            schema: "hive.bundle_manifest.v1",
            create_time: now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            hivectl_version: hive_core::version::long(),
            bodies,
            files,
            missing,
            withheld: WITHHELD,
            commands: COMMANDS,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("a manifest is JSON")
    }
}

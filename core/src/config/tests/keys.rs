//! The table of keys is what the parser reads.

use std::collections::BTreeSet;

use toml::Table;

use crate::config::keys::{EVERY_KEY, requests};
use crate::config::meanings::MEANINGS;
use crate::config::{KeyKind, keys, parse};

/// Returns the paths of the keys of a file, as in the table. Which tables have keys of their own,
/// the parser says.
fn written(table: &Table, path: &str, tables: &BTreeSet<String>, into: &mut BTreeSet<String>) {
    for (key, value) in table {
        let key = match (path, key.as_str()) {
            ("agents" | "actions", "name") => "NAME",
            ("agents.NAME.extra_mcp_servers", "key") => "KEY",
            (_, key) => key,
        };
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        let has_keys = path.ends_with(".NAME") || path.ends_with(".KEY") || tables.contains(&path);
        match value.as_table() {
            Some(below) if has_keys => written(below, &path, tables, into),
            // The parent of the agent, without a key.
            Some(_) if path == "agents.root" => {}
            Some(_) | None => {
                into.insert(path);
            }
        }
    }
}

#[test]
fn the_file_with_every_key_has_exactly_the_keys_that_the_parser_requests() {
    let requested = requests(EVERY_KEY);
    let tables: BTreeSet<String> = requested
        .iter()
        .filter(|(_, kind)| *kind == Some(KeyKind::Table))
        .map(|(path, _)| path.clone())
        .collect();
    let mut in_file = BTreeSet::new();
    written(&EVERY_KEY.parse().expect("TOML"), "", &tables, &mut in_file);
    let in_table: BTreeSet<String> = keys().into_iter().map(|key| key.path).collect();
    assert_eq!(in_file, in_table);
    // A table without a key would be one that the file lacks, so that its keys are missing.
    for table in &tables {
        let below = format!("{table}.");
        assert!(in_table.iter().any(|path| path.starts_with(&below)), "{table} has no keys");
    }
}

#[test]
fn each_request_states_a_kind_and_each_key_has_a_meaning() {
    for (path, kind) in requests(EVERY_KEY) {
        assert!(kind.is_some(), "{path} is requested as a value of any kind");
    }
    for key in keys() {
        assert!(!key.meaning.is_empty(), "{} has no meaning", key.path);
    }
    let paths: BTreeSet<String> = keys().into_iter().map(|key| key.path).collect();
    for (path, _) in MEANINGS {
        assert!(paths.contains(*path), "{path} is no key");
    }
}

#[test]
fn the_file_with_every_key_is_valid_but_for_keys_that_exclude_each_other() {
    let error = parse(EVERY_KEY).expect_err("two notifications, and two places for metrics");
    let lines: Vec<String> = error.findings.iter().map(ToString::to_string).collect();
    let [metrics, notify] = lines.as_slice() else { panic!("{lines:#?}") };
    assert!(metrics.contains("`metrics` has a `socket` and a `listen`"), "{metrics}");
    assert!(notify.contains("`notify` has a `command` and a `webhook`"), "{notify}");
}

//! Each key of `hive.toml` has an option, and a configuration here that uses it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use hive_core::config::{KeyKind, keys};
use hive_tests::binary::workspace;
use hive_tests::generated::{is_regenerated, write};
use serde_json::json;

use crate::evaluation::{all, toml};

const TABLE: &str = "nix/keys.json";

/// The module makes its options from this table.
#[test]
fn the_table_of_keys_is_fresh() {
    let mut rows = Vec::new();
    for key in keys() {
        let mut row = json!({
            "key": key.path, "meaning": key.meaning, "values": key.kind.word(),
        });
        if let KeyKind::Number(least, greatest) = key.kind {
            row["least"] = least.into();
            row["greatest"] = greatest.into();
        }
        rows.push(format!("  {row}"));
    }
    let mut text = String::new();
    writeln!(text, "[\n{}\n]", rows.join(",\n")).expect("a string takes everything");
    let path = workspace().join(TABLE);
    if is_regenerated() {
        write(&path, &text);
    } else {
        let there = std::fs::read_to_string(&path).expect("the table");
        assert!(
            there == text,
            "{TABLE} is stale; run `HIVE_REGENERATE=1 cargo test -p hive-tests --test nix`, twice"
        );
    }
}

/// Returns the paths of the keys of a rendered file, with `NAME` and `KEY`.
fn paths(table: &toml::Table, path: &str, into: &mut BTreeSet<String>) {
    for (key, value) in table {
        let key = match path {
            "agents" | "actions" => "NAME",
            "agents.NAME.extra_mcp_servers" => "KEY",
            _ => key,
        };
        let path = if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
        into.insert(path.clone());
        if let toml::Value::Table(below) = value {
            paths(below, &path, into);
        }
    }
}

#[test]
fn every_key_can_be_set_by_an_option() {
    let Some(all) = all() else { return };
    let mut rendered = BTreeSet::new();
    for (name, host) in all {
        if let Some(text) = toml(host) {
            let table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            paths(&table, "", &mut rendered);
        }
    }
    let unseen: Vec<String> =
        keys().into_iter().map(|key| key.path).filter(|path| !rendered.contains(path)).collect();
    assert!(unseen.is_empty(), "no configuration renders {unseen:?}");
}

//! The keys of `hive.toml`: harmless values, and of all others the type.
//!
//! Invariant: what is shown is decided by [`hive_core::config::shareable`] alone; a sentence of the
//! parser, which may quote a value, is not shown.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use hive_core::config::{ShareableKey, ShareableValue, shareable};
use serde_json::{Map, Value, json};

use super::collect::Collector;

const NAME: &str = "config.json";
const CONFIG_BYTES_MAX: u64 = 4 << 20;

pub(super) fn keys(collector: &mut Collector<'_>, file: Option<&Path>) {
    let Some(file) = file else {
        return collector.missing(NAME, "no configuration was named with --config");
    };
    let mut text = String::new();
    let read =
        File::open(file).and_then(|file| file.take(CONFIG_BYTES_MAX).read_to_string(&mut text));
    if let Err(error) = read {
        return collector.missing(NAME, &format!("it cannot be read: {}", error.kind()));
    }
    let Some(keys) = shareable(&text) else {
        let lines = hive_core::config::check(&text).err().map(|error| error.findings);
        let lines = lines.unwrap_or_default().into_iter().map(|finding| finding.line.to_string());
        let lines: Vec<String> = lines.collect();
        return collector.missing(NAME, &format!("it is no TOML, at line {}", lines.join(", ")));
    };
    let keys: Map<String, Value> =
        keys.into_iter().map(|ShareableKey { path, value }| (path, shown(value))).collect();
    let findings = hive_core::config::check(&text).err().map(|error| error.findings);
    let places: Vec<Value> = findings
        .unwrap_or_default()
        .into_iter()
        .map(|finding| json!({ "line": finding.line, "column": finding.column }))
        .collect();
    collector.json(NAME, &json!({ "invalid_places": places, "keys": keys }));
}

fn shown(value: ShareableValue) -> Value {
    match value {
        ShareableValue::Text(text) => text.into(),
        ShareableValue::Number(number) => number.into(),
        ShareableValue::Flag(flag) => flag.into(),
        ShareableValue::List(list) => list.into_iter().map(shown).collect(),
        ShareableValue::Withheld(kind) => json!({ "withheld": kind }),
    }
}

//! Files that tests make and that are committed.
//!
//! Invariant: with `HIVE_REGENERATE` set they are written, otherwise compared, so that no committed
//! one is stale.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::binary::workspace;

/// Files by their names.
pub type Files = BTreeMap<String, String>;

/// Whether files are written.
pub fn is_regenerated() -> bool {
    std::env::var_os("HIVE_REGENERATE").is_some()
}

/// Compares a folder of generated files with what it has to be, or makes it so. `command` is what a
/// person runs for that.
pub fn fresh(folder: &str, files: &Files, command: &str) {
    let path = workspace().join(folder);
    let there: BTreeSet<String> = match std::fs::read_dir(&path) {
        Ok(entries) => entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect(),
        Err(_) => BTreeSet::new(),
    };
    let gone: Vec<&String> = there.iter().filter(|name| !files.contains_key(*name)).collect();
    if is_regenerated() {
        std::fs::create_dir_all(&path).expect("a folder");
        for (name, text) in files {
            write(&path.join(name), text);
        }
        for name in gone {
            std::fs::remove_file(path.join(name)).expect("a file that nothing makes any more");
        }
        return;
    }
    let is_stale = |(name, text): &(&String, &String)| {
        std::fs::read_to_string(path.join(name)).ok().as_ref() != Some(text)
    };
    let stale: Vec<&String> =
        files.iter().filter(is_stale).map(|(name, _)| name).chain(gone).collect();
    assert!(
        stale.is_empty(),
        "stale in {folder}: {stale:?}; run `{command}` and commit the result"
    );
}

/// Leaves a file alone that is as it should be.
pub fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).ok().as_deref() != Some(text) {
        std::fs::write(path, text).expect("a generated file is written");
    }
}

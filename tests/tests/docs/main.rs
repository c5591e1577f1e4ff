//! Pages generated from the programs themselves: man pages, the command reference,
//! the schemas of their output, and the settings of a harness.
//!
//! `HIVE_REGENERATE=1 cargo test -p hive-tests --test docs` (or `make docs`) writes them; otherwise
//! they are compared with what is committed.

mod errors;
mod man;
mod programs;
mod reference;
mod rpcs;
mod schemas;
mod settings;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use hive_tests::binary::workspace;

/// Files by their names.
type Files = BTreeMap<String, String>;

/// Compares a folder of generated files with what it has to be, or makes it so.
fn fresh(folder: &str, files: &Files) {
    let path = workspace().join(folder);
    let there: BTreeSet<String> = match std::fs::read_dir(&path) {
        Ok(entries) => entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect(),
        Err(_) => BTreeSet::new(),
    };
    let gone: Vec<&String> = there.iter().filter(|name| !files.contains_key(*name)).collect();
    if std::env::var_os("HIVE_REGENERATE").is_some() {
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
        "stale in {folder}: {stale:?}; run `make docs` and commit the result"
    );
}

/// Leaves a file alone that is as it should be.
fn write(path: &Path, text: &str) {
    if std::fs::read_to_string(path).ok().as_deref() != Some(text) {
        std::fs::write(path, text).expect("a generated file is written");
    }
}

#[test]
fn the_pages_of_the_reasons_are_fresh() {
    fresh("docs/errors", &errors::pages());
}

#[test]
fn man_pages_are_fresh() {
    fresh("docs/man", &man::pages());
}

#[test]
fn the_reference_is_fresh() {
    let mut pages = reference::pages();
    pages.insert("rpcs.md".to_owned(), rpcs::page());
    fresh("docs/reference", &pages);
}

#[test]
fn schemas_are_fresh() {
    fresh("docs/schemas", &schemas::files());
}

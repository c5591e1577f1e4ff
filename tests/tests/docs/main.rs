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

use hive_tests::generated::Files;

/// Compares a folder with what it has to be, or makes it so.
fn fresh(folder: &str, files: &Files) {
    hive_tests::generated::fresh(folder, files, "make docs");
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

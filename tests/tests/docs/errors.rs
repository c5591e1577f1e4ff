//! The pages of the reasons: the head of each and the index, from the table of reasons. What a
//! reason means and what to do about it is written by hand.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use hive_core::reason::{Reason, Retry};
use hive_proto::status;
use hive_tests::binary::workspace;

use crate::Files;

const FOLDER: &str = "docs/errors";
const INDEX: &str = "README.md";
/// The heading with which the part of a page begins that is written by hand.
const BY_HAND: &str = "## What it means";
const INDEX_HEAD: &str = "| reason | gRPC code | retry | metadata |\n| --- | --- | --- | --- |\n";

pub(crate) fn pages() -> Files {
    let mut pages: Files = Reason::ALL
        .iter()
        .map(|reason| {
            let name = format!("{reason}.md");
            let page = format!("{}{}", head(*reason), by_hand(&name));
            (name, page)
        })
        .collect();
    pages.insert(INDEX.to_owned(), index());
    pages
}

fn read(name: &str) -> String {
    let path = workspace().join(FOLDER).join(name);
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{FOLDER}/{name}: {error}"))
}

fn by_hand(name: &str) -> String {
    let page = read(name);
    let at = page.find(BY_HAND).unwrap_or_else(|| panic!("{FOLDER}/{name}: no `{BY_HAND}`"));
    page[at..].to_owned()
}

fn head(reason: Reason) -> String {
    let (code, retry, metadata) = facts(reason);
    format!(
        "# {reason}\n\n| gRPC code | retry | metadata |\n| --- | --- | --- |\n| {code} | {retry} | {metadata} |\n\n"
    )
}

/// Returns the index with a fresh table of reasons.
fn index() -> String {
    let page = read(INDEX);
    let at = page.find(INDEX_HEAD).unwrap_or_else(|| panic!("{INDEX}: no table of reasons"));
    let end = page[at..].find("\n\n").map_or(page.len(), |end| at + end + 1);
    let mut table = INDEX_HEAD.to_owned();
    for reason in Reason::ALL {
        let (code, retry, metadata) = facts(*reason);
        writeln!(table, "| [{reason}]({reason}.md) | {code} | {retry} | {metadata} |")
            .expect("writing to a string succeeds");
    }
    format!("{}{table}{}", &page[..at], &page[end..])
}

fn facts(reason: Reason) -> (String, &'static str, String) {
    let retry = match reason.retry() {
        Retry::Never => "never",
        Retry::Later => "later",
        Retry::Soon => "soon",
    };
    let always = reason.metadata().iter().map(|key| format!("`{key}`"));
    let sometimes = reason.optional_metadata().iter().map(|key| format!("(`{key}`)"));
    let keys: Vec<String> = always.chain(sometimes).collect();
    let keys = if keys.is_empty() { "–".to_owned() } else { keys.join(", ") };
    (format!("`{}`", screaming(&format!("{:?}", status::code(reason)))), retry, keys)
}

fn screaming(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

#[test]
fn each_key_of_the_metadata_is_explained_once() {
    let keys = |reason: &Reason| [reason.metadata(), reason.optional_metadata()].concat();
    let declared: BTreeSet<&str> = Reason::ALL.iter().flat_map(keys).collect();
    let page = read(INDEX);
    let (_, table) = page.split_once("| key | value |").expect("a table of keys");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with("| `"));
    let explained: Vec<&str> = rows.filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(explained, declared.into_iter().collect::<Vec<_>>());
}

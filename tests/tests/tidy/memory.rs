//! Memory safety: the few places where the compiler's word is not enough, and that everywhere else
//! it is.
//!
//! Invariant: `unsafe` is in the listed places alone, each small and with its reason; every crate
//! takes the workspace's lints, which deny it.

use crate::tree::{self, none};

/// The places of unsafe code, each with the reason why there is no safe way.
const PLACES: [(&str, &str); 4] = [
    (
        "tests/disk/src/shim",
        "the VFS below SQLite, which talks C and which no delivered program has",
    ),
    (
        "broker/src/store/file/vfs.rs",
        "the VFS that gathers the writes to the log: SQLite calls it in C",
    ),
    ("harness/src/isolation/raw.rs", "system calls of the probes, which no library offers safely"),
    (
        "broker/src/kernel.rs",
        "ioctls of namespaces, a descriptor inherited by number and a limit set before exec, which no library offers safely",
    ),
];
/// The lint that denies it elsewhere.
const LINT: &str = "unsafe_code";

#[test]
fn unsafe_code_is_in_the_listed_places_alone() {
    // Put together here, so that this file does not find itself.
    let word = ["un", "safe"].concat();
    let mut findings = Vec::new();
    let mut used = PLACES.map(|(path, reason)| (path, reason, false));
    for file in tree::rust() {
        let place = PLACES.iter().position(|(path, _)| file.path.starts_with(path));
        for (number, line) in file.code(false) {
            let code = line.split("//").next().unwrap_or_default();
            let stands = code.match_indices(&word).any(|(at, _)| is_keyword(code, at, word.len()));
            match place {
                Some(place) => used[place].2 |= stands,
                None if stands => findings.push(format!("{}:{number}: {}", file.path, line.trim())),
                None => {}
            }
            let lifted = code.contains(LINT)
                && (code.contains("allow") || code.contains("expect(") || code.contains("warn"));
            if lifted && place.is_none() && !file.path.ends_with("tidy/memory.rs") {
                findings
                    .push(format!("{}:{number}: only a listed place may lift `{LINT}`", file.path));
            }
        }
    }
    for (path, reason, is_used) in used {
        if !is_used || reason.len() < 20 {
            findings.push(format!("{path}: nothing of the kind is there any more, or it has no reason; take the exception away"));
        }
    }
    none("memory is safe by the compiler's word", &findings);
}

/// Returns whether a word is there by itself, and not in a text between quotation marks.
fn is_keyword(line: &str, at: usize, length: usize) -> bool {
    let joins = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    let quoted = line[..at].matches('"').count() % 2 == 1;
    !quoted && !line[..at].ends_with(joins) && !line[at + length..].starts_with(joins)
}

#[test]
fn every_crate_takes_the_lints_of_the_workspace() {
    let mut findings = Vec::new();
    for manifest in tree::files(|path| path.ends_with("Cargo.toml")) {
        let table: toml::Table = toml::from_str(&manifest.text).expect("a manifest is TOML");
        let root = table.get("workspace").and_then(|workspace| workspace.get("lints"));
        if let Some(lints) = root {
            let level =
                lints.get("rust").and_then(|rust| rust.get(LINT)).and_then(toml::Value::as_str);
            if !matches!(level, Some("deny" | "forbid")) {
                findings.push(format!("{}: `{LINT}` is not denied", manifest.path));
            }
            continue;
        }
        // A workspace of its own has none to take; its sources are read above anyway.
        let own = table.contains_key("workspace");
        let taken = table
            .get("lints")
            .and_then(|lints| lints.get("workspace"))
            .and_then(toml::Value::as_bool);
        if !own && taken != Some(true) {
            findings.push(format!("{}: `[lints] workspace = true` is missing", manifest.path));
        }
    }
    none("each crate is held to the same lints", &findings);
}

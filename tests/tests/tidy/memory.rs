//! Memory safety: the one place where the compiler's word is not enough, and that everywhere else it is.
//!
//! Invariant: `unsafe` stands in the disk's shim alone, which talks to SQLite in C; every crate takes the workspace's lints, which deny it.

use crate::tree::{self, none};

/// Where it may stand: the VFS below SQLite, which no delivered program has.
const SHIM: &str = "tests/disk/src/shim";
/// The lint that denies it elsewhere.
const LINT: &str = "unsafe_code";

#[test]
fn unsafe_code_is_in_the_shim_of_the_disk_alone() {
    // Put together here, so that this file does not find itself.
    let word = ["un", "safe"].concat();
    let mut findings = Vec::new();
    let mut in_shim = false;
    for file in tree::rust() {
        let is_shim = file.path.starts_with(SHIM);
        for (number, line) in file.code(false) {
            let code = line.split("//").next().unwrap_or_default();
            let stands = code.match_indices(&word).any(|(at, _)| is_keyword(code, at, word.len()));
            in_shim |= stands && is_shim;
            if stands && !is_shim {
                findings.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
            let lifted = code.contains(LINT) && (code.contains("allow") || code.contains("expect(") || code.contains("warn"));
            if lifted && !is_shim && !file.path.ends_with("tidy/memory.rs") {
                findings.push(format!("{}:{number}: only the shim may lift `{LINT}`", file.path));
            }
        }
    }
    if !in_shim {
        findings.push(format!("{SHIM}: nothing of the kind is there any more; take the exception away"));
    }
    none("memory is safe by the compiler's word", &findings);
}

/// Whether a word stands there by itself, and not in a text between quotation marks.
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
            let level = lints.get("rust").and_then(|rust| rust.get(LINT)).and_then(toml::Value::as_str);
            if !matches!(level, Some("deny" | "forbid")) {
                findings.push(format!("{}: `{LINT}` is not denied", manifest.path));
            }
            continue;
        }
        // A workspace of its own has none to take; its sources are read above all the same.
        let own = table.contains_key("workspace");
        let taken = table.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool);
        if !own && taken != Some(true) {
            findings.push(format!("{}: `[lints] workspace = true` is missing", manifest.path));
        }
    }
    none("each crate is held to the same lints", &findings);
}

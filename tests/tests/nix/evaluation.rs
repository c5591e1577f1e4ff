//! Runs Nix, and reads what a configuration rendered to.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::OnceLock;

use hive_tests::binary::workspace;
use hive_tests::rig::host;
use serde_json::{Map, Value};

/// What the configurations rendered to, by their names; `None` if this host has no Nix.
pub(crate) fn all() -> Option<&'static Map<String, Value>> {
    static ALL: OnceLock<Option<Map<String, Value>>> = OnceLock::new();
    let all = ALL.get_or_init(|| attribute("all")?.as_object().cloned());
    all.as_ref()
}

/// Evaluates an attribute of `cases.nix` that Nix accepts.
pub(crate) fn attribute(path: &str) -> Option<Value> {
    let output = evaluate(path)?;
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    Some(serde_json::from_slice(&output.stdout).expect("Nix prints JSON"))
}

/// Returns the error of a configuration that the module system refuses, without the definitions,
/// which only the real library shows.
pub(crate) fn refusal(name: &str) -> Option<String> {
    let output = evaluate(&format!("one.{name}"))?;
    assert!(!output.status.success(), "{name} is refused only beside others");
    let stderr = String::from_utf8(output.stderr).expect("text");
    let error = stderr.lines().find_map(|line| line.strip_prefix("error: ")).expect("an error");
    Some(error.trim_end_matches(" Definition values:").to_owned())
}

/// A file of a host, in whichever form NixOS has it.
pub(crate) fn toml(host: &Value) -> Option<&str> {
    host["etc"]["hive/hive.toml"]["text"].as_str()
}

fn evaluate(path: &str) -> Option<Output> {
    let search = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&search).map(|dir| dir.join("nix-instantiate"));
    let nix = places.find(|place| place.exists());
    let needed = "evaluating the module of NixOS (the package nix-bin)";
    if !host::allows(needed, nix.is_some()) {
        return None;
    }
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(nix?);
    // A store without files: derivations are names, and nothing is copied.
    command.args(["--eval", "--strict", "--json", "--store", "dummy://", "--attr", path]);
    command.arg(workspace().join("tests/tests/nix/cases.nix"));
    // Another library than the stand-in, to compare the two: a folder with nixpkgs' `lib`.
    if let Some(lib) = std::env::var_os("HIVE_TEST_NIXPKGS_LIB") {
        let lib = PathBuf::from(lib);
        command.args(["--arg", "lib", &format!("import {}", lib.display())]);
    }
    command.env_clear().env("HOME", home.path()).env("NIX_STATE_DIR", home.path());
    Some(command.output().expect("Nix starts"))
}

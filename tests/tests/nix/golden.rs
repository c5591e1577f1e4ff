//! What each configuration renders to, and what the daemon says about its `hive.toml`.

use std::fmt::Write as _;
use std::process::Command;

use hive_tests::binary;
use hive_tests::generated::{Files, fresh};
use serde_json::{Map, Value};

use crate::evaluation::{all, refusal, toml};

const FOLDER: &str = "tests/tests/nix/golden";
const COMMAND: &str = "HIVE_REGENERATE=1 cargo test -p hive-tests --test nix";
/// The least number of configurations.
const CONFIGURATIONS_MIN: usize = 50;

/// Configurations that are valid by their types, and that the daemon refuses when a host is built.
const REFUSED_BY_THE_DAEMON: [&str; 3] =
    ["a_model_that_is_not_available", "a_parent_that_is_missing", "an_unknown_key_of_the_broker"];

#[test]
fn configurations_render_as_before() {
    let Some(all) = all() else { return };
    assert!(all.len() >= CONFIGURATIONS_MIN, "{}", all.len());
    let files: Files =
        all.iter().map(|(name, host)| (format!("{name}.txt"), page(name, host))).collect();
    fresh(FOLDER, &files, COMMAND);
}

/// Only the three that are made for it.
#[test]
fn the_daemon_accepts_what_is_rendered() {
    let Some(all) = all() else { return };
    let refused: Vec<&str> = all
        .iter()
        .filter_map(|(name, host)| Some((name, toml(host)?)))
        .filter(|(_, text)| check(text) != "ok\n")
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(refused, REFUSED_BY_THE_DAEMON);
}

/// A configuration is refused by exactly one of the three: the module system, the checks of the
/// module, or the daemon.
#[test]
fn each_outcome_is_seen() {
    let Some(all) = all() else { return };
    let count = |is: fn(&Value) -> bool| all.values().filter(|host| is(host)).count();
    let refused = count(|host| host["refused"] == true);
    let failed = count(|host| host["failed"].is_array());
    let rendered = count(|host| host["units"].is_object());
    assert!(refused >= 5 && failed >= 15 && rendered >= 20, "{refused} {failed} {rendered}");
    assert_eq!(refused + failed + rendered, all.len());
}

/// Runs the daemon's check as the build of a host does.
fn check(text: &str) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hive.toml");
    std::fs::write(&file, text).expect("a file");
    let mut hived = Command::new(binary::find("hive-broker", "hived"));
    let ran = hived.arg("--check-config").arg(&file).env_clear().output().expect("it runs");
    if ran.status.success() {
        return "ok\n".to_owned();
    }
    let said = String::from_utf8_lossy(&ran.stderr);
    said.replace(&file.display().to_string(), "hive.toml")
}

fn page(name: &str, host: &Value) -> String {
    let Value::Object(parts) = host else { panic!("{name} is no object") };
    let mut page = String::new();
    if parts.contains_key("refused") {
        let error = refusal(name).expect("Nix is here");
        write(&mut page, "refused by the module system", &format!("{error}\n"));
    }
    if let Some(failed) = parts.get("failed") {
        write(&mut page, "refused by the module", &lines(failed));
    }
    if let Some(text) = toml(host) {
        write(&mut page, "hive.toml", text);
        let script = host["etc"]["hive/hive.toml"]["script"].as_str().expect("text");
        write(&mut page, "how hive.toml is made", script);
        write(&mut page, "hived --check-config", &check(text));
    }
    if let Some(Value::Object(units)) = parts.get("units") {
        files(&mut page, "", units);
    }
    if let Some(Value::Object(containers)) = parts.get("containers") {
        for (name, container) in containers {
            inside(&mut page, name, container);
        }
    }
    rest(&mut page, "the host", parts);
    page
}

/// Writes what is in a container, and what the host gives to it.
fn inside(page: &mut String, name: &str, container: &Value) {
    let mut outside = container.clone();
    let inside = outside.as_object_mut().expect("an object").remove("inside").expect("its host");
    write(page, &format!("container {name}"), &pretty(&outside));
    let Value::Object(inside) = inside else { panic!("{name} has no inside") };
    if let Some(Value::Object(units)) = inside.get("units") {
        files(page, &format!("{name}: "), units);
    }
    rest(page, &format!("inside {name}"), &inside);
}

fn files(page: &mut String, prefix: &str, files: &Map<String, Value>) {
    for (name, text) in files {
        write(page, &format!("{prefix}{name}"), text.as_str().expect("text"));
    }
}

fn rest(page: &mut String, title: &str, parts: &Map<String, Value>) {
    let shown = ["etc", "units", "containers", "refused", "failed"];
    let is_empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty);
    let rest: Map<String, Value> = parts
        .iter()
        .filter(|(name, value)| !shown.contains(&name.as_str()) && !is_empty(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if !rest.is_empty() {
        write(page, title, &pretty(&Value::Object(rest)));
    }
}

fn write(page: &mut String, title: &str, text: &str) {
    let gap = if page.is_empty() { "" } else { "\n" };
    writeln!(page, "{gap}== {title}\n{}", text.trim_end()).expect("a string takes everything");
}

fn lines(list: &Value) -> String {
    let lines = list.as_array().expect("a list").iter();
    lines.map(|line| format!("{}\n", line.as_str().expect("text"))).collect()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).expect("JSON")
}

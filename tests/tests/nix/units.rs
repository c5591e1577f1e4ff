//! The units with the drop-ins of the module: systemd finds no fault in them, and they give their
//! programs few rights. And the users, which NixOS does not take from `hive.sysusers`.

use std::path::Path;
use std::process::{Command, Output};

use hive_tests::binary::{self, workspace};
use hive_tests::rig::host;
use serde_json::Value;

use crate::evaluation::all;

/// Writes the units of packaging/ and the drop-ins of a host into a directory.
fn lay(dir: &Path, units: &Value) {
    let programs = [("hive-broker", "hived"), ("hive-harness", "hive"), ("hivectl", "hivectl")];
    let programs = programs.map(|(package, program)| {
        (program, binary::find(package, program).canonicalize().expect("it is built"))
    });
    for unit in ["hived.service", "hived.socket", "hive@.service", "hive-launcher.service"] {
        let file = workspace().join("packaging/systemd").join(unit);
        let mut text = std::fs::read_to_string(file).expect("a unit");
        for (program, path) in &programs {
            text = text.replace(&format!("/usr/bin/{program} "), &format!("{} ", path.display()));
        }
        std::fs::write(dir.join(unit), text).expect("a file");
    }
    for (name, text) in units.as_object().expect("units") {
        // NixOS makes the units of containers itself.
        let Some((unit, _)) = name.split_once(".d/") else { continue };
        let folder = dir.join(format!("{unit}.d"));
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("overrides.conf"), text.as_str().expect("text"))
            .expect("a file");
    }
}

fn analyze(dir: &Path, words: &[&str]) -> Output {
    let mut command = Command::new("systemd-analyze");
    // The units of the host, too: those that ours name.
    command.args(words).env("SYSTEMD_UNIT_PATH", format!("{}:", dir.display()));
    command.output().expect("systemd-analyze starts")
}

fn printed(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// A case: the name of a configuration, its container if that is meant, and thresholds in tenths.
type Case = (&'static str, Option<&'static str>, &'static [(&'static str, &'static str)]);

const CASES: [Case; 6] = [
    ("minimal", None, &[("hived.service", "15"), ("hive@ada.service", "25")]),
    ("every_key_of_an_agent", None, &[("hived.service", "15"), ("hive@ada.service", "25")]),
    ("a_launcher", None, &[("hive-launcher.service", "15"), ("hive@ada.service", "25")]),
    ("a_container", Some("hive-ada"), &[("hive@ada.service", "30")]),
    ("a_container_with_grants", Some("hive-ada"), &[("hive@ada.service", "30")]),
    ("a_container_with_sudo", Some("hive-ada"), &[("hive@ada.service", "45")]),
];

#[test]
fn systemd_finds_no_fault_in_the_drop_ins_and_they_give_few_rights() {
    let Some(all) = all() else { return };
    let has_systemd = Path::new("/usr/bin/systemd-analyze").exists();
    if !host::allows("checking units (the package systemd)", has_systemd) {
        return;
    }
    for (name, container, thresholds) in CASES {
        let host = &all[name];
        let units = match container {
            Some(container) => &host["containers"][container]["inside"]["units"],
            None => &host["units"],
        };
        let dir = tempfile::tempdir().expect("a directory");
        lay(dir.path(), units);
        for (unit, threshold) in thresholds {
            let verified = analyze(dir.path(), &["verify", "--man=no", unit]);
            assert_eq!(printed(&verified), "", "{name}: {unit}");
            let threshold = format!("--threshold={threshold}");
            let words = ["security", "--offline=true", "--no-pager", &threshold, unit];
            let rated = analyze(dir.path(), &words);
            assert!(rated.status.success(), "{name}: {unit}\n{}", printed(&rated));
        }
    }
}

#[test]
fn users_are_those_of_sysusers() {
    let Some(all) = all() else { return };
    let host = &all["minimal"];
    let file = workspace().join("packaging/systemd/hive.sysusers");
    let text = std::fs::read_to_string(file).expect("the file");
    let mut lines = 0;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (kind, name) = (words.next().expect("a kind"), words.next().expect("a name"));
        assert!(host["groups"][name].is_object(), "{line}");
        if kind == "u" {
            let user = &host["users"][name];
            let description = line.split('"').nth(1).expect("a description");
            assert_eq!(user["description"], description, "{line}");
            assert_eq!(user["group"], name, "{line}");
        }
        lines += 1;
    }
    assert_eq!(lines, 4, "{text}");
}

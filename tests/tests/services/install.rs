//! `packaging/install.sh`: what it installs, and where.

use std::path::Path;
use std::process::{Command, Output};

use hive_tests::binary;

/// Installs into a tree with this prefix.
fn install(tree: &Path, prefix: &str) -> Output {
    for (package, program) in [
        ("hive-broker", "hived"),
        ("hive-harness", "hive"),
        ("hive-mcp-bridge", "hive-mcp"),
        ("hivectl", "hivectl"),
    ] {
        binary::find(package, program);
    }
    let built = binary::find("hivectl", "hivectl");
    let mut script = Command::new(binary::workspace().join("packaging/install.sh"));
    script.arg(built.parent().expect("a directory").canonicalize().expect("a path"));
    script.env("PREFIX", prefix).env("DESTDIR", tree).output().expect("the script runs")
}

fn read(tree: &Path, path: &str) -> String {
    std::fs::read_to_string(tree.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn an_installation_is_complete_and_leaves_the_operators_file_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = dir.path();
    let installed = install(tree, "/opt/hive");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    for program in ["hived", "hive", "hive-mcp", "hivectl"] {
        let run = Command::new(tree.join("opt/hive/bin").join(program)).arg("--version").output();
        assert!(run.expect("it runs").status.success(), "{program}");
    }
    // The units start the programs that were installed.
    for (unit, program) in [
        ("hived.service", "hived"),
        ("hive@.service", "hive"),
        ("hive-launcher.service", "hivectl"),
    ] {
        let text = read(tree, &format!("opt/hive/lib/systemd/system/{unit}"));
        assert!(text.contains(&format!("\nExecStart=/opt/hive/bin/{program} ")), "{text}");
        assert!(!text.contains("/usr/bin/"), "{text}");
    }
    for (path, part) in [
        ("opt/hive/lib/systemd/system/hived.socket", "ListenStream=/run/hive/hived.sock"),
        ("opt/hive/lib/sysusers.d/hive.conf", "u hive "),
        ("opt/hive/lib/tmpfiles.d/hive.conf", "/run/hive "),
        ("opt/hive/share/man/man1/hived.1", ".TH hived"),
        ("opt/hive/share/bash-completion/completions/hivectl", "hivectl"),
        ("opt/hive/share/zsh/site-functions/_hivectl", "#compdef hivectl"),
        ("opt/hive/share/fish/vendor_completions.d/hivectl.fish", "complete"),
        ("opt/hive/share/hive/prometheus/hive.rules.yml", "- alert: HiveAbsent"),
        ("opt/hive/share/hive/grafana/hive.json", "\"title\": \"Hive\""),
        ("opt/hive/share/doc/hive/LICENSE-MIT", "Permission is hereby granted"),
        ("etc/polkit-1/rules.d/50-hive.rules", "hive-launcher"),
        ("etc/dbus-1/system.d/hive-launcher.conf", "CleanUnit"),
    ] {
        assert!(read(tree, path).contains(part), "{path}");
    }
    let file = tree.join("etc/hive/hive.toml");
    let check =
        Command::new(tree.join("opt/hive/bin/hived")).arg("--check-config").arg(&file).output();
    let check = check.expect("it runs");
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stderr));

    std::fs::write(&file, "# mine\n").expect("a file");
    assert!(install(tree, "/opt/hive").status.success());
    assert_eq!(std::fs::read_to_string(&file).expect("a file"), "# mine\n");
}

/// As the package of Nix does it: nothing is outside of the prefix.
#[test]
fn an_installation_into_one_directory_is_outside_of_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = dir.path().join("store/hive");
    let (etc, rules) = (tree.join("etc"), tree.join("share/polkit-1/rules.d"));
    let policies = tree.join("share/dbus-1/system.d");
    let built = binary::find("hivectl", "hivectl");
    let mut script = Command::new(binary::workspace().join("packaging/install.sh"));
    script.arg(built.parent().expect("a directory").canonicalize().expect("a path"));
    script.env("PREFIX", &tree).env("SYSCONFDIR", etc).env("POLKIT_RULES_DIR", rules);
    script.env("DBUS_POLICY_DIR", policies);
    // Where the programs do not run, another command prints the completions.
    script.env("HIVECTL", format!("env {}", built.canonicalize().expect("a path").display()));
    let installed = script.env_remove("DESTDIR").output().expect("the script runs");
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    for (path, part) in [
        ("etc/hive/hive.toml", "[broker]"),
        ("share/polkit-1/rules.d/50-hive.rules", "hive-launcher"),
        ("share/dbus-1/system.d/hive-launcher.conf", "hive-launcher"),
        ("share/zsh/site-functions/_hivectl", "#compdef hivectl"),
        ("lib/systemd/system/hived.service", &format!("{}/bin/hived", tree.display())),
    ] {
        assert!(read(&tree, path).contains(part), "{path}");
    }
    assert!(!tree.join("etc/polkit-1").exists() && !tree.join("etc/dbus-1").exists());
}

/// polkit and D-Bus read nothing below /usr/local.
#[test]
fn rules_of_polkit_and_of_the_bus_are_where_they_read_them() {
    for (prefix, path) in [
        ("/usr", "usr/share/polkit-1/rules.d/50-hive.rules"),
        ("/usr/local", "etc/polkit-1/rules.d/50-hive.rules"),
        ("/usr", "usr/share/dbus-1/system.d/hive-launcher.conf"),
        ("/usr/local", "etc/dbus-1/system.d/hive-launcher.conf"),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(install(dir.path(), prefix).status.success());
        assert!(dir.path().join(path).exists(), "{prefix}");
    }
}

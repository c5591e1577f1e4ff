//! `hivectl doctor`: its list and its exit code.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use hive_proto::v1::{CheckIntegrityResponse, GetBrokerStatusResponse};
use hive_tests::rig::request::texts;
use tonic::Response;

use super::hive::{Hive, NOON};
use super::run::{Ran, assert_contains, hivectl, ran};

/// A database that is not on this host, so the disk of this host does not matter.
const ELSEWHERE: &str = "/var/lib/hive/hive.db";

fn program(dir: &Path, name: &str, script: &str) {
    let path = dir.join(name);
    std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Runs the doctor in `dir`, with the programs of `dir/bin` and no others.
async fn doctor(socket: &Path, dir: &Path, args: &[&str]) -> Ran {
    if let Ok(metadata) = socket.metadata() {
        // The mode must not depend on the umask of the test.
        let mode = metadata.permissions().mode() & 0o7000 | 0o600;
        std::fs::set_permissions(socket, std::fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let mut command = hivectl(socket);
    command.env("PATH", dir.join("bin")).current_dir(dir).arg("doctor").args(args);
    ran(command.output().await.expect("the binary runs"))
}

/// A configuration with which it does not matter whether this host can make sandboxes.
const APART_OR_NOT: &str = "[hive]\nisolation = \"none\"\n[agents.ada]\n";

/// Returns the output without the parts that differ from host to host: directories, the disk, and
/// the difference of the clocks.
fn output(ran: &Ran, dir: &Path, socket: &Path) -> String {
    let all = ran
        .all()
        .replace(socket.to_str().expect("text"), "SOCKET")
        .replace(dir.to_str().expect("text"), "DIR");
    let masked = |line: &str| match line.split_once(" s apart") {
        Some((before, _)) => {
            format!("{} SECONDS s apart", before.rsplit_once(' ').expect("a number").0)
        }
        None if line.contains(" pages were read") => {
            let (before, after) = line.split_once(" pages").expect("it has");
            format!("{} PAGES pages{after}", before.rsplit_once(' ').expect("a number").0)
        }
        None if line.contains("disk     ") || line.contains("schema     ") => {
            line.chars().take(27).collect()
        }
        None => line.to_owned(),
    };
    all.lines().map(masked).map(|line| format!("{}\n", line.trim_end())).collect()
}

/// A directory with a `bin` in it.
fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("bin")).expect("a directory");
    dir
}

/// Runs the doctor with all its checks.
async fn examined(hive: &Hive) -> String {
    let dir = directory();
    program(&dir.path().join("bin"), "claude", "echo 2.1.330 '(Claude Code)'");
    std::fs::write(dir.path().join("hive.toml"), APART_OR_NOT).expect("a file");
    let ran = doctor(&hive.socket(), dir.path(), &["--deep", "--config", "hive.toml"]).await;
    hive.masked(&output(&ran, dir.path(), &hive.socket()))
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_of_a_hive_come_with_a_remedy() {
    let hive = Hive::in_trouble().await;
    insta::assert_snapshot!(examined(&hive).await);
    assert!(hive.changes().is_empty(), "who looks changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn findings_of_a_broker_come_with_a_remedy() {
    let hive = Hive::since(NOON, "");
    hive.edit("GetBrokerStatus", |status: &mut Response<GetBrokerStatusResponse>| {
        let noon = "Sun, 01 Mar 2020 12:00:00 GMT".parse().expect("text");
        status.metadata_mut().insert("date", noon);
        let status = status.get_mut();
        status.version = "0.0.9".to_owned();
        status.database_path = ELSEWHERE.to_owned();
        (status.storage_ok, status.draining) = (false, true);
        status.storage_error = "disk I/O error".to_owned();
    });
    hive.edit("CheckIntegrity", |check: &mut Response<CheckIntegrityResponse>| {
        let damage = "the file is damaged: Tree 5 page 7: it is\u{1b}[31m red";
        check.get_mut().problems = texts(&[damage, "agent `ada` has no inbox"]);
    });
    insta::assert_snapshot!(examined(&hive).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_all_is_well_it_ends_with_0() {
    let hive = Hive::since(NOON, "");
    // The number of tasks that have run by now differs.
    hive.edit("GetBrokerStatus", |status: &mut Response<GetBrokerStatusResponse>| {
        let status = status.get_mut();
        status.background_tasks.clear();
        status.database_path = ELSEWHERE.to_owned();
    });
    insta::assert_snapshot!(examined(&hive).await);
}

#[tokio::test]
async fn without_a_broker_the_checks_of_the_host_are_shown() {
    let dir = directory();
    let socket = Path::new("/nonexistent/hived.sock");
    program(&dir.path().join("bin"), "claude", "echo it is broken >&2; exit 3");
    std::fs::write(dir.path().join("hive.toml"), "[agents.ada]\nparnet = \"bob\"\n")
        .expect("a file");
    let ran = doctor(socket, dir.path(), &["--deep", "--config", "hive.toml"]).await;
    // Without a stated level the check of sandboxes and the number of warnings depend on the host.
    let output = output(&ran, dir.path(), socket);
    let (before, rest) = output.split_once("not checked  disk\n").expect("the disk is not checked");
    let (bubblewrap, after) = rest.split_once("not checked  integrity").expect("nor the integrity");
    assert!(bubblewrap.split_whitespace().any(|word| word == "bubblewrap"), "{bubblewrap}");
    insta::assert_snapshot!(
        "without_a_broker",
        format!("{before}not checked  integrity{after}").replace(", 1 warning", ", 0 warnings")
    );

    std::fs::write(dir.path().join("hive.toml"), "[broker]\nstate_dir = \"db\"\n").expect("a file");
    std::fs::create_dir(dir.path().join("db")).expect("a directory");
    std::fs::write(dir.path().join("db/hive.db"), "notes".repeat(100)).expect("a file");
    let ran = doctor(socket, dir.path(), &["--config", "hive.toml"]).await;
    assert_eq!(ran.code, 8);
    for sentence in [
        "db/hive.db is no database\n",
        "failed (exit status: 3): it is broken\n",
        "hive.toml is valid, with 0 agents\n",
        "start a hive with `hivectl up`",
    ] {
        assert!(ran.out.contains(sentence), "{sentence}: {}", ran.out);
    }
    let ran = doctor(socket, dir.path(), &["--config", "missing.toml"]).await;
    assert_eq!(ran.code, 8);
    assert_contains(&ran.out, "missing.toml cannot be read: No such file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_is_none_or_open_to_all_is_a_problem() {
    let (hive, dir) = (Hive::since(NOON, ""), directory());
    let file = dir.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let ran = doctor(&file, dir.path(), &[]).await;
    assert!(ran.code == 8 && ran.out.contains("file is no socket"), "{}", ran.out);
    std::fs::set_permissions(hive.socket(), std::fs::Permissions::from_mode(0o666))
        .expect("a mode");
    let mut command = hivectl(&hive.socket());
    let ran = super::run::ran(command.arg("doctor").output().await.expect("the binary runs"));
    assert!(
        ran.code == 8 && ran.out.contains("has mode 0666: every user of this host can open it"),
        "{}",
        ran.out
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_an_array_of_checks() {
    let (hive, dir) = (Hive::in_trouble().await, directory());
    let ran = doctor(&hive.socket(), dir.path(), &["--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (8, ""));
    let checks: Vec<serde_json::Value> = serde_json::from_str(&ran.out).expect("JSON");
    for check in &checks {
        assert_eq!(check["schema"], "hive.check.v1");
        let found = matches!(check["state"].as_str(), Some("warning" | "problem"));
        assert_eq!(check["next"].is_string(), found, "{check}");
    }
    let isolation =
        checks.iter().find(|check| check["name"] == "isolation").expect("it is looked at");
    // One finding covers all agents.
    assert_eq!((isolation["state"].as_str(), isolation["agent"].as_str()), (Some("warning"), None));
}

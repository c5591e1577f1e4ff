//! `hivectl doctor --fix`: what is wrong with the files of a hive is repaired, and nothing else is
//! changed.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use hive_tests::rig::{Rig, Said, host};
use serde_json::Value;
use tokio::task::JoinSet;

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("its mode");
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").mode() & 0o7777
}

/// Runs the doctor on the hive, with its configuration; `--json` gives each check.
async fn doctor(rig: &Rig, args: &[&str]) -> (Said, Vec<Value>) {
    let config = rig.path("hive.toml");
    let config = config.to_str().expect("text");
    let said = rig.hivectl(&[&["doctor", "--config", config, "--json"], args].concat()).await;
    let checks =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    (said, checks)
}

/// Returns name, file and outcome of each repair.
fn fixes(rig: &Rig, checks: &[Value]) -> Vec<(String, String, String)> {
    let base = format!("{}/", rig.dir().display());
    let of = |fix: &Value| {
        let text = |field: &str| fix[field].as_str().unwrap_or_default().replace(&base, "");
        (text("name"), text("path"), text("outcome"))
    };
    checks.iter().map(|check| &check["fix"]).filter(|fix| fix.is_object()).map(of).collect()
}

fn with(outcome: &str, fixes: &[(&str, &str)]) -> Vec<(String, String, String)> {
    let of =
        |(name, path): &(&str, &str)| ((*name).to_owned(), (*path).to_owned(), outcome.to_owned());
    fixes.iter().map(of).collect()
}

/// Returns the content and the mode of each file below a directory.
fn everything(dir: &Path) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        let kind = path.symlink_metadata().expect("there");
        if kind.is_dir() {
            found.extend(everything(&path));
        }
        let content = kind.is_file().then(|| std::fs::read(&path).expect("a file"));
        // The broker may write its log and its databases, and make further ones, at any time.
        let has = |name: &str| path.to_string_lossy().contains(name);
        if ["state/search", "state/turn-events"].into_iter().any(has) {
            continue;
        }
        let is_live = ["hived.log", "state/hive.db"].into_iter().any(has);
        found.insert(path.clone(), (mode(&path), content.filter(|_| !is_live)));
    }
    found
}

/// A hive whose files are wrong in each way that a running broker allows, and the repairs.
async fn in_disorder() -> (Rig, Vec<(&'static str, &'static str)>) {
    let rig = Rig::duo().await;
    // SQLite gives the files beside a database its mode when it creates them.
    rig.operator().await.send("bob", "hello").await;
    for (name, mode) in [
        ("run/hived.sock", 0o666),
        ("state", 0o755),
        ("state/hive.db", 0o644),
        ("run/agents", 0o777),
    ] {
        set_mode(&rig.path(name), mode);
    }
    let reminders = rig.path("state/reminders/ada/reminders");
    std::fs::create_dir_all(&reminders).expect("a directory");
    set_mode(&reminders, 0o700);
    let backups = rig.path("state/backups");
    std::fs::create_dir(&backups).expect("a directory");
    std::fs::write(backups.join("hive-20260101T000000Z.db"), "a backup").expect("a file");
    set_mode(&backups.join("hive-20260101T000000Z.db"), 0o640);
    std::fs::create_dir(rig.path("run/agents/old")).expect("a directory");
    drop(UnixListener::bind(rig.agent_socket("old")).expect("a socket"));
    let repairs = vec![
        ("set_mode", "run/hived.sock"),
        ("set_mode", "state"),
        ("set_mode", "state/hive.db"),
        ("set_mode", "state/backups/hive-20260101T000000Z.db"),
        ("set_mode", "state/reminders/ada/reminders"),
        ("set_mode", "run/agents"),
        ("remove_socket", "run/agents/old/hive.sock"),
    ];
    (rig, repairs)
}

#[tokio::test]
async fn modes_and_sockets_are_repaired_once_and_mail_is_as_before() {
    let (rig, repairs) = in_disorder().await;
    let sent = rig.operator().await.send("ada", "keep this").await;
    let before = everything(rig.dir());

    let (_, checks) = doctor(&rig, &[]).await;
    assert_eq!(fixes(&rig, &checks), with("possible", &repairs));
    let (said, checks) = doctor(&rig, &["--fix", "--dry-run"]).await;
    assert_eq!((said.code, fixes(&rig, &checks)), (8, with("would", &repairs)), "{said:?}");
    assert_eq!(everything(rig.dir()), before, "a dry run changes nothing");

    let (_, checks) = doctor(&rig, &["--fix"]).await;
    assert_eq!(fixes(&rig, &checks), with("done", &repairs));
    for (name, wanted) in [
        ("run/hived.sock", 0o660),
        ("state", 0o711),
        ("state/hive.db", 0o600),
        ("state/backups/hive-20260101T000000Z.db", 0o600),
        ("state/reminders/ada/reminders", 0o755),
        ("run/agents", 0o755),
    ] {
        assert_eq!(mode(&rig.path(name)), wanted, "{name}");
    }
    assert!(!rig.agent_socket("old").exists() && rig.agent_socket("ada").exists());
    assert!(rig.path("state/backups/hive-20260101T000000Z.db").exists());
    assert_eq!(rig.operator().await.delivery("ada", sent).await.agent, "ada");

    let (_, checks) = doctor(&rig, &["--fix"]).await;
    assert_eq!(fixes(&rig, &checks), [], "nothing is left to repair");
    let text = rig.hivectl(&["doctor", "--fix"]).await;
    assert!(!text.stdout.contains("fixed"), "{text:?}");
    rig.end().await;
}

/// Both see the same findings, and whichever is later finds them repaired.
#[tokio::test]
async fn two_at_once_repair_the_same_as_one() {
    let (rig, repairs) = in_disorder().await;
    let mut both = JoinSet::new();
    let socket = rig.operator_socket().display().to_string();
    for _ in 0..2 {
        let mut command =
            hive_tests::rig::Process::command(&hive_tests::binary::find("hivectl", "hivectl"));
        command.args(["--socket", &socket, "doctor", "--fix", "--json"]);
        both.spawn(async move { command.output().await.expect("it runs") });
    }
    let outputs = both.join_all().await;
    let mut made = std::collections::BTreeSet::new();
    for output in outputs {
        let checks: Vec<Value> = serde_json::from_slice(&output.stdout).expect("JSON");
        let fixes = fixes(&rig, &checks);
        assert!(fixes.iter().all(|(_, _, outcome)| outcome == "done"), "{fixes:?}");
        made.extend(fixes.into_iter().map(|(name, path, _)| (name, path)));
    }
    let wanted = repairs.iter().map(|(name, path)| ((*name).to_owned(), (*path).to_owned()));
    assert_eq!(made, wanted.collect());
    rig.end().await;
}

#[tokio::test]
async fn unfinished_copies_go_while_no_program_uses_the_hive_and_nothing_else_does() {
    let mut rig = Rig::duo().await;
    let sent = rig.operator().await.send("ada", "keep this").await;
    // While the broker runs it is its own, perhaps being written.
    std::fs::write(rig.path("state/backup.tmp"), "half").expect("a file");
    let (_, checks) = doctor(&rig, &["--fix"]).await;
    assert_eq!(fixes(&rig, &checks), []);
    rig.kill_broker().await;
    let kept = ["hive.replaced-1.db", "hive.version-3.db", "notes.tmp", "backup.tmp.mine"];
    let unfinished = ["restore.tmp", "restore.tmp-journal", "migration.tmp"];
    for name in kept.into_iter().chain(unfinished) {
        std::fs::write(rig.path("state").join(name), "text").expect("a file");
        set_mode(&rig.path("state").join(name), 0o600);
    }
    let repairs = [
        ("remove_unfinished", "state/backup.tmp"),
        ("remove_unfinished", "state/migration.tmp"),
        ("remove_unfinished", "state/restore.tmp"),
        ("remove_unfinished", "state/restore.tmp-journal"),
    ];
    let (said, checks) = in_state(&rig, &["--fix"]).await;
    assert_eq!((said.code, fixes(&rig, &checks)), (8, with("done", &repairs)), "{said:?}");
    for name in kept.into_iter().chain(["hive.db"]) {
        assert!(rig.path("state").join(name).exists(), "{name}");
    }
    rig.start_broker().await;
    assert_eq!(rig.operator().await.delivery("ada", sent).await.agent, "ada");
    rig.end().await;
}

/// Runs the doctor while no broker names the directory: the configuration does.
async fn in_state(rig: &Rig, args: &[&str]) -> (Said, Vec<Value>) {
    let config = format!("[broker]\nstate_dir = \"state\"\n{}", rig.read("hive.toml"));
    std::fs::write(rig.path("named.toml"), config).expect("a file");
    let config = rig.path("named.toml").display().to_string();
    let said = rig.hivectl(&[&["doctor", "--config", &config, "--json"], args].concat()).await;
    let checks =
        serde_json::from_str(&said.stdout).unwrap_or_else(|error| panic!("{error}: {said:?}"));
    (said, checks)
}

#[tokio::test]
async fn links_and_files_of_other_users_are_left_alone_and_named() {
    let mut rig = Rig::duo().await;
    rig.stop_broker().await;
    let target = rig.path("precious");
    std::fs::write(&target, "precious").expect("a file");
    set_mode(&target, 0o644);
    let link = rig.path("state/hive.version-1.db");
    symlink(&target, &link).expect("a link");
    symlink(&target, rig.path("state/restore.tmp")).expect("a link");
    let (_, checks) = in_state(&rig, &["--fix"]).await;
    assert_eq!(fixes(&rig, &checks), []);
    assert!(mode(&target) == 0o644 && link.exists());

    if host::allows("another user's files", host::is_root()) {
        let database = rig.path("state/hive.db");
        set_mode(&database, 0o644);
        std::os::unix::fs::chown(&database, Some(12_345), None).expect("root may");
        for args in [&["--fix"][..], &["--fix", "--dry-run"]] {
            let (said, checks) = in_state(&rig, args).await;
            let failed = with("failed", &[("set_mode", "state/hive.db")]);
            assert_eq!((said.code, fixes(&rig, &checks)), (4, failed), "{said:?}");
            assert!(said.stdout.contains("belongs to uid 12345"), "{said:?}");
        }
        assert_eq!(mode(&database), 0o644);
        let (_, checks) = in_state(&rig, &[]).await;
        let owner = checks.iter().find(|check| {
            check["name"] == "files"
                && check["next"].as_str().is_some_and(|next| next.contains("chown"))
        });
        assert!(owner.is_some(), "hived cannot use it: {checks:#?}");
        std::os::unix::fs::chown(&database, Some(0), None).expect("root may");
    }
    rig.end().await;
}

/// What a program cannot repair is said, with what a person can do.
#[tokio::test]
async fn a_missing_socket_and_a_missing_secret_are_found() {
    let mut rig =
        Rig::new("[agents.ada]\nenv = { KEY = { file = \"key\" }, OPEN = { file = \"open\" } }\n");
    std::fs::write(rig.path("open"), "x").expect("a file");
    set_mode(&rig.path("open"), 0o644);
    rig.start_broker().await;
    std::fs::remove_file(rig.agent_socket("ada")).expect("removed");
    let (said, checks) = doctor(&rig, &["--fix"]).await;
    assert_eq!((said.code, fixes(&rig, &checks)), (8, Vec::new()));
    for (name, sentence) in [
        ("sockets", "ada has no socket"),
        ("secrets", "key is missing: what needs it does not start"),
        ("secrets", "open has mode 0644: every user of this host can read the secret"),
    ] {
        let found = checks.iter().find(|check| {
            check["name"] == name
                && check["sentence"].as_str().is_some_and(|said| said.contains(sentence))
        });
        assert!(found.is_some_and(|check| check["next"].is_string()), "{sentence}: {checks:#?}");
    }
    rig.end().await;
}

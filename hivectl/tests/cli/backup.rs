//! `hivectl backup`: the path names a whole backup, or the earlier file.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::process::Signal;

use hive_core::reason::Reason;
use hive_in_process::Reaction;
use hive_proto::v1::BackupResponse;
use tonic::Response;

use super::hive::Hive;
use super::run::{Ran, assert_contains, assert_starts, ended, run, signal};
use super::terminal::Terminal;

/// A directory for backups, and the name of one in it.
struct Target {
    dir: tempfile::TempDir,
    path: String,
}

impl Target {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hive.db").to_str().expect("text").to_owned();
        Self { dir, path }
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.dir.path()).expect("a directory");
        entries
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("text"))
            .collect()
    }

    /// Returns the output of a run, with the same directory and duration for every run.
    fn output(&self, ran: &Ran) -> String {
        let dir = self.dir.path().to_str().expect("text");
        let mut output = ran.all().replace(dir, "DIR");
        if let Some((before, rest)) = output.split_once(" KiB, in ") {
            let (before, _) = before.rsplit_once(' ').expect("a size");
            let (_, after) = rest.split_once(" s").expect("a duration");
            output = format!("{before} SIZE KiB, in 0.0 s{after}");
        }
        output
    }
}

/// A hive, and the last backup that its broker sent.
fn hive() -> (Hive, Arc<Mutex<Vec<u8>>>) {
    let hive = Hive::new("[agents.ada]");
    let sent = Arc::<Mutex<Vec<u8>>>::default();
    let handed_out = Arc::clone(&sent);
    hive.edit("Backup", move |piece: &mut Response<BackupResponse>| {
        let mut sent = handed_out.lock().expect("no panic");
        if sent.len() as u64 == piece.get_ref().total_bytes {
            sent.clear();
        }
        sent.extend(&piece.get_ref().chunk);
    });
    (hive, sent)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_a_private_file_and_nothing_else() {
    let ((hive, database), target) = (hive(), Target::new());
    let ran = hive.run(&["backup", &target.path]).await;
    insta::assert_snapshot!(target.output(&ran), @r"
    exit 0
    --- stdout
    DIR/hive.db: SIZE KiB, in 0.0 s
    --- stderr
    to restore: stop hived, run `hivectl restore FILE` with the --config or --state-dir of hived, and start hived
    ");
    assert_eq!(std::fs::read(&target.path).expect("a file"), *database.lock().expect("no panic"));
    assert_eq!(
        Path::new(&target.path).metadata().expect("its metadata").permissions().mode() & 0o777,
        0o600
    );
    assert_eq!(target.names(), ["hive.db"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_path_the_size_and_the_duration() {
    let ((hive, database), target) = (hive(), Target::new());
    let ran = hive.run(&["backup", &target.path, "--json"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let output: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(output["schema"], "hive.backup.v1");
    assert_eq!(
        (output["path"].as_str(), output["bytes"].as_u64()),
        (Some(target.path.as_str()), Some(database.lock().expect("no panic").len() as u64))
    );
    assert!(output["duration_ms"].is_u64());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_there_is_not_overwritten_unless_that_is_wanted() {
    let ((hive, database), target) = (hive(), Target::new());
    std::fs::write(&target.path, "precious").expect("a file");
    let ran = hive.run(&["backup", &target.path]).await;
    insta::assert_snapshot!(target.output(&ran), @r"
    exit 5
    --- stdout
    --- stderr
    error: DIR/hive.db is there already
    hint: choose another name, or overwrite it with --force
    ");
    assert_eq!(std::fs::read(&target.path).expect("a file"), b"precious");
    assert_eq!(hive.run(&["backup", &target.path, "--force"]).await.code, 0);
    assert_eq!(std::fs::read(&target.path).expect("a file"), *database.lock().expect("no panic"));
    assert_eq!(target.names(), ["hive.db"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_incomplete_backup_is_a_failure_and_no_file() {
    let (hive, target) = (Hive::empty(), Target::new());
    hive.edit("Backup", |piece: &mut Response<BackupResponse>| {
        piece.get_mut().total_bytes += 1500;
    });
    let ran = hive.run(&["backup", &target.path]).await;
    let numbers: Vec<u64> = ran.err.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [came, all] = numbers[..] else { panic!("{}", ran.err) };
    assert_eq!((ran.code, ran.out.as_str(), all), (1, "", came + 1500));
    let output = ran.err.replace(&format!("{came} of {all}"), "2000 of 3500");
    insta::assert_snapshot!(output, @r"
    error: the backup is incomplete: 2000 of 3500 bytes came
    hint: nothing of it was kept; `hivectl status` shows whether the broker is back
    ");
    assert_eq!(target.names(), [] as [&str; 0]);
    std::fs::write(&target.path, "yesterday's").expect("a file");
    assert_eq!(hive.run(&["backup", &target.path, "--force"]).await.code, 1);
    assert_eq!(
        std::fs::read(&target.path).expect("a file"),
        b"yesterday's",
        "the one before is kept"
    );
    assert_eq!(target.names(), ["hive.db"]);
    let output = hive.hivectl(&["backup", "-"]).output().await.expect("the binary runs");
    assert_eq!(output.status.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_leaves_nothing_behind() {
    let (hive, target) = (Hive::empty(), Target::new());
    hive.react(Reaction::Stall);
    let child = hive.spawn(&["backup", &target.path]);
    hive.wait_for_calls(1).await;
    signal(&child, Signal::INT);
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.err.as_str()), (1, "error: interrupted; no backup was made\n"));
    assert_eq!(target.names(), [] as [&str; 0]);
    // The broker of before may still have the first one to clear away.
    let hive = Hive::empty();
    hive.react(Reaction::Stall);
    let ran = hive.run(&["backup", &target.path, "--timeout", "0.2"]).await;
    assert_eq!(ran.code, 6, "{}", ran.err);
    assert_eq!(target.names(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_backup_can_be_made_or_put_nothing_is_left_and_it_is_said_why() {
    let (hive, target) = (Hive::empty(), Target::new());
    let reason = Reason::StorageUnavailable;
    hive.refuse(reason, "another backup is under way", Some(Duration::from_secs(10)));
    let dir = target.dir.path().to_str().expect("text");
    let missing = format!("{dir}/missing/hive.db");
    let mut output = String::new();
    for path in [target.path.as_str(), &missing, dir, "/dev/null", "/", ".."] {
        output.push_str(&target.output(&hive.run(&["backup", path]).await));
    }
    output.push_str(
        &target.output(&run(Path::new("/nonexistent/hived.sock"), &["backup", &target.path]).await),
    );
    insta::assert_snapshot!(output);
    assert_eq!(target.names(), [] as [&str; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_goes_to_a_program_byte_by_byte_but_not_to_a_terminal() {
    let ((hive, database), target) = (hive(), Target::new());
    let output = hive.hivectl(&["backup", "-"]).output().await.expect("the binary runs");
    assert_eq!(
        (output.status.code(), output.stdout),
        (Some(0), database.lock().expect("no panic").clone())
    );
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("to restore: stop hived"));

    let ran_json = hive.run(&["backup", "-", "--json"]).await;
    assert_eq!((ran_json.code, ran_json.out.as_str()), (2, ""), "{}", ran_json.err);
    let command = hive.hivectl(&["backup", "-"]);
    let (ran, shown) = Hive::run_on(Terminal::open(), command).await;
    insta::assert_snapshot!(target.output(&ran), @r"
    exit 2
    --- stdout
    --- stderr
    error: a backup is no text, and stdout is a terminal
    hint: name a file, or send it to a program: `hivectl backup - | gzip > hive.db.gz`
    ");
    assert_eq!(shown, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_has_no_backup() {
    let hive = Hive::empty();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let ran = ended(hive.hivectl(&["backup", "-"]).stdout(writer).spawn().expect("it runs")).await;
    assert_eq!(ran.code, 1);
    assert_starts(&ran.err, "error: stdout cannot be written: Broken pipe");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_shows_progress_and_clears_it_at_the_end() {
    let (hive, target, terminal) = (Hive::empty(), Target::new(), Terminal::open());
    let mut command = hive.hivectl(&["backup", &target.path, "--json"]);
    let child = command.stderr(terminal.side()).spawn().expect("the binary runs");
    // The command holds the terminal's other side until it is dropped.
    drop(command);
    assert_eq!(ended(child).await.code, 0);
    let shown = terminal.shown();
    assert_starts(&shown, "\rthe broker copies its database ...\r");
    assert_contains(&shown, "\r0 of 1 MiB ");
    let last = shown.trim_end_matches('\r').rsplit('\r').next().expect("a line");
    assert_eq!(last.trim(), "", "{shown:?}");
}

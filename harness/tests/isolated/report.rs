//! The report of an isolated harness, and the start of its claude.

use std::os::fd::{AsRawFd as _, OwnedFd};

use hive_core::isolation::{Found, REPORT_FD_ENV, Severity};
use hive_proto::v1::TurnOutcome as Outcome;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::support::Stage;

/// A script that saves the status and open files that claude got from the harness.
const SHOW: &str = "grep -E '^(NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t' > $HOME/status; ls -l /proc/self/fd > $HOME/fds; well";

#[tokio::test]
async fn claude_is_fenced_and_its_state_is_below_its_directory() {
    let stage = Stage::new();
    std::fs::write(stage.path("home/.claude.json"), r#"{"userID":"x"}"#).expect("written");
    let more =
        [("TMPDIR", "/tmp"), ("XDG_RUNTIME_DIR", "/run/user/1"), ("LOCALE_ARCHIVE", "/locales")];
    let _hive = stage.serve(SHOW, &more);
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
    assert_eq!(stage.read("home/status"), "NoNewPrivs:1\nSeccomp:2\n");
    let environment = stage.read("home/environment.1");
    let config_dir = format!(
        "CLAUDE_CONFIG_DIR={}\n",
        stage.path("home").canonicalize().expect("there").join(".claude").display()
    );
    assert!(
        environment.contains(&config_dir) && environment.contains("LOCALE_ARCHIVE=/locales\n"),
        "{environment}"
    );
    assert!(
        !environment.contains("\nTMPDIR=") && !environment.contains("XDG_RUNTIME_DIR"),
        "{environment}"
    );
    assert_eq!(stage.read("home/.claude/.claude.json"), r#"{"userID":"x"}"#);
    assert!(!stage.path("home/.claude.json").exists());
    let arguments = stage.read("home/arguments.1");
    assert!(
        arguments.contains(&format!("--add-dir\n{}\n", stage.path("project").display())),
        "{arguments}"
    );
    let settings = stage.read("home/.hive/claude-settings.json");
    assert!(
        settings.contains(&format!(" guard --private='{}' '", stage.path("private").display())),
        "{settings}"
    );
}

#[tokio::test]
async fn findings_are_reported_once_and_no_child_gets_the_descriptor() {
    let stage = Stage::new();
    std::fs::write(stage.path("hidden"), "").expect("written");
    let (mut report, other) = inherited();
    let number = other.as_raw_fd().to_string();
    let _hive = stage.serve(SHOW, &[(REPORT_FD_ENV, &number)]);
    let text = report_line(&mut report).await;
    // claude waits for the answer.
    assert!(!stage.path("home/status").exists());
    report.write_all(b"\n").await.expect("it is read");
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
    assert_eq!(text.lines().count(), 1, "{text}");
    let found: Found = serde_json::from_str(&text).expect("a report");
    let has = |severity, words: &str| {
        found.findings.iter().any(|f| f.severity == severity && f.sentence.contains(words))
    };
    assert!(has(Severity::Broken, "hidden, which must be hidden"), "{text}");
    assert!(has(Severity::Broken, "sees the processes of the host"), "{text}");
    assert!(has(Severity::Partly, "shares the files of its user"), "{text}");
    assert!(!text.contains(&format!("inherited the descriptor {number}:")), "{text}");
    let fds = stage.read("home/fds");
    assert!(!fds.contains(&format!(" {number} -> ")), "{fds}");
}

#[tokio::test]
async fn a_report_that_is_not_accepted_ends_the_harness_before_claude_starts() {
    let stage = Stage::new();
    let (mut report, other) = inherited();
    let number = other.as_raw_fd().to_string();
    let mut hive = stage.serve(SHOW, &[(REPORT_FD_ENV, &number)]);
    report_line(&mut report).await;
    drop(report);
    assert_eq!(hive.exit().await.code(), Some(1));
    let log = stage.read("hive.log");
    assert!(log.contains("`hivectl up` rejects what this agent can reach"), "{log}");
    assert!(!stage.path("home/status").exists());
}

/// A socket, and its other end, which harnesses that are started from now on have.
fn inherited() -> (UnixStream, OwnedFd) {
    let (own, other) = std::os::unix::net::UnixStream::pair().expect("a pair");
    own.set_nonblocking(true).expect("set");
    rustix::io::fcntl_setfd(&other, rustix::io::FdFlags::empty()).expect("set");
    (UnixStream::from_std(own).expect("a socket"), other.into())
}

/// The line that was written.
async fn report_line(report: &mut UnixStream) -> String {
    let mut line = String::new();
    BufReader::new(report).read_line(&mut line).await.expect("text");
    line
}

#[tokio::test]
async fn expectations_that_cannot_be_read_end_the_harness() {
    let stage = Stage::new();
    let mut hive = stage.serve("well", &[("HIVE_ISOLATION_FD", "77")]);
    assert_eq!(hive.exit().await.code(), Some(1));
    let log = stage.read("hive.log");
    assert!(log.contains("HIVE_ISOLATION_FD") && log.contains("77 is no descriptor"), "{log}");
}

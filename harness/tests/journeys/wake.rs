//! `hive wake`: receipts, refusals and exit codes.

use std::io::Write as _;
use std::process::{Output, Stdio};

use crate::support::Stage;
use hive_proto::v1;
use tokio::process::Command;

async fn wake(socket: &std::path::Path, arguments: &[&str], stdin: &[u8]) -> Output {
    let mut input = tempfile::tempfile().expect("a file");
    input.write_all(stdin).expect("written");
    std::io::Seek::rewind(&mut input).expect("rewound");
    let mut command = Command::new(env!("CARGO_BIN_EXE_hive"));
    command
        .arg("wake")
        .args(arguments)
        .env_clear()
        .env("HIVE_SOCKET", socket)
        .stdin(Stdio::from(input));
    command.output().await.expect("hive starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[tokio::test]
async fn a_message_is_accepted_and_its_id_printed() {
    let stage = Stage::new();
    let socket = stage.broker.socket();
    let output =
        wake(&socket, &["--from", "ci", "--body", "-", "--key", "nightly"], "grün\n".as_bytes())
            .await;
    let [message] = stage.broker.inbox("bob").await[..] else { panic!("one message") };
    assert_eq!(
        (output.status.code(), output.stdout),
        (Some(0), format!("{message}\n").into_bytes()),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let asked: v1::WakeRequest = stage.next("Wake").await;
    assert_eq!(
        (asked.label.as_str(), asked.body.as_str(), asked.coalescing_key.as_str()),
        ("ci", "grün\n", "nightly")
    );
    assert!(!asked.request_id.is_empty());
}

#[tokio::test]
async fn each_failure_has_its_code_and_says_what_to_do_next() {
    let stage = Stage::new();
    let socket = stage.broker.socket();
    let long = "x".repeat(40_000);
    let table: [(&[&str], &[u8], i32, &str); 5] = [
        (&["--from", "ci", "--body", &long], b"", 1, "BODY_TOO_LARGE"),
        (&["--from", "operator", "--body", "x"], b"", 2, "reserved"),
        (&["--from", "ci"], b"", 2, "--body"),
        (&["--from", "ci", "--body", "-"], b"a\xff", 2, "UTF-8"),
        (&["--from", "ci", "--body", ""], b"", 2, "empty"),
    ];
    for (arguments, stdin, code, says) in table {
        let output = wake(&socket, arguments, stdin).await;
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
    let output = wake(&stage.path("no.sock"), &["--from", "ci", "--body", "x"], b"").await;
    assert_eq!(output.status.code(), Some(7));
    assert!(
        stderr(&output).contains("no broker answers") && stderr(&output).contains("next:"),
        "{}",
        stderr(&output)
    );
}

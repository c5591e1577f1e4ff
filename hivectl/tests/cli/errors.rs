//! Every exit code, and what is said with it.

use std::path::Path;

use super::fake::Broker;
use super::run::{run, run_with};

/// 0: done.
#[tokio::test(flavor = "multi_thread")]
async fn exit_0_ok() {
    let broker = Broker::start();
    assert_eq!(run(&broker.socket(), &["send", "ada", "hello"]).await.code, 0);
}

/// 1: the broker refuses for a reason that has no code of its own.
#[tokio::test(flavor = "multi_thread")]
async fn exit_1_failure() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["send", "hasty", "hello"]).await;
    insta::assert_snapshot!(ran.all(), @r"
    exit 1
    --- stdout
    --- stderr
    error: 600 messages a minute are allowed
    reason: RATE_LIMITED
    hint: try again in 2.0 s
    ");
}

/// 1: for reasons of their own, that have no code of their own either.
#[tokio::test(flavor = "multi_thread")]
async fn exit_1_question_limit() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["ask", "greedy", "Done?"]).await;
    insta::assert_snapshot!(ran.all());
}

/// 2: the command line is wrong, by our own judgement or the broker's.
#[tokio::test(flavor = "multi_thread")]
async fn exit_2_usage() {
    let broker = Broker::start();
    let told = [
        run(&broker.socket(), &["send", "operator", "hello"]).await,
        run(&broker.socket(), &["send", "A B", "hello"]).await,
        run(&broker.socket(), &["send", "ada", ""]).await,
        run_with(&broker.socket(), &["send", "ada", "-"], b"a\xff").await,
        run(&broker.socket(), &["agent", "create", "Bad"]).await,
        run(&broker.socket(), &["ask", "operator", "Done?"]).await,
        run(&broker.socket(), &["ask", "*", "Done?"]).await,
        run(&broker.socket(), &["answer", "30"]).await,
        run(&broker.socket(), &["answer", "30", "--choice", "maybe"]).await,
        run(&broker.socket(), &["agent", "set-policy", "bob", "--tool-group", "magic"]).await,
        run(&broker.socket(), &["stats", "--window", "400d"]).await,
        run(&broker.socket(), &["login", "ada"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
    assert_eq!(broker.changes().len(), 3, "only what the broker alone can judge reaches it");
}

/// 3: it does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn exit_3_not_found() {
    let broker = Broker::start();
    let told = [
        run(&broker.socket(), &["send", "bbo", "hello"]).await,
        run(&broker.socket(), &["inbox", "read", "99"]).await,
        run(&broker.socket(), &["inbox", "read", "10"]).await,
        run(&broker.socket(), &["turn", "show", "99"]).await,
        run(&broker.socket(), &["turn", "show", "bbo"]).await,
        run(&broker.socket(), &["turn", "show", "cy", "--output"]).await,
        run(&broker.socket(), &["stats", "bbo"]).await,
        run(&broker.socket(), &["dead-letters", "show", "10"]).await,
        run(&broker.socket(), &["turn", "release", "bob", "--all"]).await,
        run(&broker.socket(), &["trace", "99"]).await,
        run(&broker.socket(), &["config", "check", "/nonexistent/hive.toml"]).await,
        run(&broker.socket(), &["ask", "bbo", "Done?"]).await,
        run(&broker.socket(), &["answer", "99", "yes"]).await,
        run(&broker.socket(), &["answer", "99", "--choice", "yes"]).await,
        run(&broker.socket(), &["questions", "show", "99"]).await,
        run(&broker.socket(), &["questions", "cancel", "30", "99"]).await,
        run(&broker.socket(), &["reminders", "bbo"]).await,
        run(&broker.socket(), &["reminders", "cancel", "99"]).await,
        run(&broker.socket(), &["loose-ends", "bbo"]).await,
        run(&broker.socket(), &["search", "green", "--agent", "bbo"]).await,
        run(&broker.socket(), &["agent", "set-policy", "bbo", "--allow-everyone"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
}

/// 4: it is not allowed.
#[tokio::test(flavor = "multi_thread")]
async fn exit_4_denied() {
    let broker = Broker::start();
    let told = [
        run(&broker.socket(), &["send", "walled", "hello"]).await,
        run(&broker.socket(), &["ask", "walled", "Done?"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
}

/// 5: it does not fit the present state.
#[tokio::test(flavor = "multi_thread")]
async fn exit_5_conflict() {
    let broker = Broker::start();
    let told = [
        run(&broker.socket(), &["agent", "create", "ada"]).await,
        run(&broker.socket(), &["agent", "set-parent", "ada", "bob"]).await,
        run(&broker.socket(), &["inbox", "ack", "12", "--agent", "bob"]).await,
        run(&broker.socket(), &["answer", "33", "yes"]).await,
        run(&broker.socket(), &["questions", "cancel", "33"]).await,
        run(&broker.socket(), &["reminders", "cancel", "52"]).await,
        run(&broker.socket(), &["ask", "fickle", "Done?", "--wait"]).await,
        run(&broker.socket(), &["ask", "fickle", "Done?", "--wait", "--json"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
}

/// 6: the broker does not answer in time.
#[tokio::test(flavor = "multi_thread")]
async fn exit_6_timed_out() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["--timeout", "0.05", "send", "silent", "hello"]).await;
    insta::assert_snapshot!(ran.all());
    assert_eq!(broker.changes().len(), 1, "a broker that is slow is not asked twice");
}

/// 6: nobody answered the question in time, by its deadline or by our patience.
#[tokio::test(flavor = "multi_thread")]
async fn exit_6_not_answered() {
    let broker = Broker::start();
    let told = [
        run(&broker.socket(), &["ask", "late", "Done?", "--wait"]).await,
        run(&broker.socket(), &["ask", "late", "Done?", "--wait", "--json"]).await,
        run(&broker.socket(), &["ask", "mute", "Done?", "--wait", "--timeout", "0.5"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
}

/// 7: nobody is there, or not for long.
#[tokio::test(flavor = "multi_thread")]
async fn exit_7_unreachable() {
    let broker = Broker::start();
    let told = [
        run(Path::new("/nonexistent/hived.sock"), &["agents"]).await,
        run(Path::new("/nonexistent/hived.sock"), &["inbox", "--follow"]).await,
        run(&broker.socket(), &["send", "draining", "hello"]).await,
        run(&broker.socket(), &["send", "lost", "hello"]).await,
        run(&broker.socket(), &["ask", "draining", "Done?", "--wait"]).await,
        run(Path::new("/nonexistent/hived.sock"), &["questions", "--follow"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(told.join(""));
    let long = format!("/{}", "x".repeat(120));
    let ran = run(Path::new(&long), &["agents"]).await;
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("has 121 bytes, more than the 107 that Linux allows"), "{}", ran.err);
}

/// 8: the command worked, and found something wrong.
#[tokio::test(flavor = "multi_thread")]
async fn exit_8_findings() {
    let broker = Broker::start();
    assert_eq!(run(&broker.socket(), &["status"]).await.code, 8);
    let file = broker.dir().join("hive.toml");
    std::fs::write(&file, "[agents.ada]\nparnet = \"bob\"\n[zoo]\n").expect("a file");
    let path = file.to_str().expect("text");
    let told = [
        run(&broker.socket(), &["config", "check", path]).await,
        run(&broker.socket(), &["config", "check", path, "--json"]).await,
    ]
    .map(|ran| ran.all().replace(path, "FILE"));
    insta::assert_snapshot!(told.join(""));
}

/// A remark is printed with the findings, and the file is valid.
#[tokio::test]
async fn config_check_remarks_on_an_empty_list_of_recipients() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("hive.toml");
    std::fs::write(&file, "[agents.ada]\nallowed_recipients = []\n").expect("a file");
    let file = file.to_str().expect("text");
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(
        ran.out.starts_with(&format!(
            "{file}: remark: line 2, column 22: `allowed_recipients = []` allows everyone"
        )),
        "{}",
        ran.out
    );
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file, "--json"]).await;
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, &found[0]["remark"], &found[0]["line"]),
        (0, &serde_json::json!(true), &serde_json::json!(2))
    );
}

#[tokio::test]
async fn the_example_is_valid() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/duo/hive.toml");
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert!(ran.err.ends_with("hive.toml: ok, 2 agents\n"), "{}", ran.err);
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file, "--json"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "[]\n"));
}

#[tokio::test]
async fn up_says_what_is_missing_before_it_starts_anything() {
    let dir = tempfile::tempdir().expect("a directory");
    let nowhere = Path::new("/nonexistent/hived.sock");
    let file = dir.path().join("hive.toml");
    let file = file.to_str().expect("text");
    assert_eq!(run(nowhere, &["up", "--config", file]).await.code, 3);
    std::fs::write(file, "[agents.Ada]\n").expect("a file");
    let ran = run(nowhere, &["up", "--config", file]).await;
    assert_eq!(ran.code, 8, "{}", ran.err);
    assert!(ran.err.contains("line 1, column 9: `Ada` is no name"), "{}", ran.err);
}

#[test]
fn every_code_has_its_test() {
    let tests = include_str!("errors.rs");
    let codes = 0..=hivectl::exit::Exit::Findings as u8;
    let without: Vec<u8> =
        codes.filter(|code| !tests.contains(&format!("async fn exit_{code}_"))).collect();
    assert!(without.is_empty(), "no test ends with {without:?}");
}

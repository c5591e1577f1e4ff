//! Every exit code with its output.

use std::path::Path;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_in_process::Reaction;

use super::hive::Hive;
use super::run::{assert_contains, assert_ends, assert_starts, run, run_with};

const ONE: &str = "[agents.ada]";

/// 0: done.
#[tokio::test(flavor = "multi_thread")]
async fn exit_0_ok() {
    let hive = Hive::new(ONE);
    assert_eq!(hive.run(&["send", "ada", "hello"]).await.code, 0);
}

/// 1: the broker refuses for a reason without a code of its own.
#[tokio::test(flavor = "multi_thread")]
async fn exit_1_failure() {
    let hive = Hive::new(ONE);
    let words = "600 messages a minute are allowed";
    hive.refuse(Reason::RateLimited, words, Some(Duration::from_secs(2)));
    let ran = hive.run(&["send", "ada", "hello"]).await;
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
async fn exit_1_limits() {
    let hive = Hive::new(ONE);
    let words = "50 of your questions are open; that is the most";
    hive.refuse(Reason::QuestionLimit, words, None);
    let asked = hive.run(&["ask", "ada", "Done?"]).await.all();
    let words = "5 of ada's schedules have not ended; that is the most";
    hive.refuse(Reason::ScheduleLimit, words, None);
    let approved = hive.run(&["answer", "1", "--choice", "approve", "--diff", "0"]).await.all();
    insta::assert_snapshot!(asked + &approved);
}

/// 2: the command line is wrong, by our own judgement or the broker's.
#[tokio::test(flavor = "multi_thread")]
async fn exit_2_usage() {
    let hive = Hive::start().await;
    let output = [
        hive.run(&["send", "operator", "hello"]).await,
        hive.run(&["send", "A B", "hello"]).await,
        hive.run(&["send", "ada", ""]).await,
        run_with(&hive.socket(), &["send", "ada", "-"], b"a\xff").await,
        hive.run(&["agent", "create", "Bad"]).await,
        hive.run(&["ask", "operator", "Done?"]).await,
        hive.run(&["ask", "*", "Done?"]).await,
        hive.run(&["answer", "37"]).await,
        hive.run(&["answer", "37", "--choice", "maybe"]).await,
        hive.run(&["agent", "set-policy", "bob", "--tool-group", "magic"]).await,
        hive.run(&["stats", "--window", "400d"]).await,
        hive.run(&["login", "ada"]).await,
    ]
    .map(|ran| hive.output(&ran));
    insta::assert_snapshot!(output.join(""));
    assert_eq!(hive.changes().len(), 3, "only what the broker alone can judge reaches it");
}

/// 3: it does not exist.
#[tokio::test(flavor = "multi_thread")]
async fn exit_3_not_found() {
    let hive = Hive::start().await;
    let output = [
        hive.run(&["send", "bbo", "hello"]).await,
        hive.run(&["inbox", "read", "999"]).await,
        hive.run(&["inbox", "read", "1"]).await,
        hive.run(&["turn", "show", "999"]).await,
        hive.run(&["turn", "show", "bbo"]).await,
        hive.run(&["turn", "show", "old", "--output"]).await,
        hive.run(&["stats", "bbo"]).await,
        hive.run(&["dead-letters", "show", "1"]).await,
        hive.run(&["turn", "release", "bob", "--all"]).await,
        hive.run(&["trace", "999"]).await,
        hive.run(&["config", "check", "/nonexistent/hive.toml"]).await,
        hive.run(&["ask", "bbo", "Done?"]).await,
        hive.run(&["answer", "999", "yes"]).await,
        hive.run(&["answer", "999", "--choice", "yes"]).await,
        hive.run(&["questions", "show", "999"]).await,
        hive.run(&["questions", "cancel", "37", "999"]).await,
        hive.run(&["reminders", "bbo"]).await,
        hive.run(&["reminders", "cancel", "999"]).await,
        hive.run(&["schedules", "--agent", "bbo"]).await,
        hive.run(&["schedules", "show", "999"]).await,
        hive.run(&["schedules", "pause", "999"]).await,
        hive.run(&["loose-ends", "bbo"]).await,
        hive.run(&["search", "green", "--agent", "bbo"]).await,
        hive.run(&["agent", "set-policy", "bbo", "--allow-everyone"]).await,
    ]
    .map(|ran| hive.output(&ran));
    insta::assert_snapshot!(output.join(""));
}

/// 4: it is not allowed.
#[tokio::test(flavor = "multi_thread")]
async fn exit_4_denied() {
    let hive = Hive::new(ONE);
    let mut output = String::new();
    for (verb, words) in [("send", "you may not send to `ada`"), ("ask", "you may not ask `ada`")] {
        hive.refuse(Reason::RecipientNotAllowed, words, None);
        output.push_str(&hive.run(&[verb, "ada", "hello"]).await.all());
    }
    insta::assert_snapshot!(output);
}

/// 5: it does not fit the present state.
#[tokio::test(flavor = "multi_thread")]
async fn exit_5_conflict() {
    let hive = Hive::start().await;
    let mut output = Vec::new();
    for args in [
        &["agent", "create", "ada"][..],
        &["agent", "set-parent", "ada", "bob"],
        &["inbox", "ack", "42", "--agent", "bob"],
        &["answer", "41", "yes"],
        &["questions", "cancel", "41"],
        &["reminders", "cancel", "53"],
    ] {
        output.push(hive.output(&hive.run(args).await));
    }
    let ask = ["ask", "bob", "Done?", "--option", "yes", "--wait"];
    let cancel = async |question| hive.operator().await.withdraw(question).await;
    output.push(hive.output(&hive.asking(&ask, cancel).await));
    let retire = async |_| hive.operate(&["agent", "retire", "bob"]).await;
    output.push(hive.output(&hive.asking(&[&ask[..], &["--json"]].concat(), retire).await));
    insta::assert_snapshot!(output.join(""));
}

/// 6: the broker does not answer in time.
#[tokio::test(flavor = "multi_thread")]
async fn exit_6_timed_out() {
    let hive = Hive::new(ONE);
    hive.react(Reaction::Hang);
    let ran = hive.run(&["--timeout", "1.5", "send", "ada", "hello"]).await;
    insta::assert_snapshot!(ran.all());
    assert_eq!(hive.changes().len(), 1, "a broker that is slow is not asked twice");
}

/// 6: the question has no answer by its deadline, or within --timeout.
#[tokio::test(flavor = "multi_thread")]
async fn exit_6_not_answered() {
    let hive = Hive::new(ONE);
    let mut output = Vec::new();
    for more in [&[][..], &["--json"]] {
        let args = [&["ask", "ada", "Done?", "--wait", "--ttl", "1m"], more].concat();
        let expire = async |_| hive.advance(Duration::from_secs(61));
        output.push(hive.asking(&args, expire).await.all());
    }
    let mute = ["ask", "ada", "Done?", "--wait", "--timeout", "0.5"];
    output.push(hive.run(&mute).await.all());
    insta::assert_snapshot!(output.join(""));
}

/// 7: no broker answers, or it is shutting down.
#[tokio::test(flavor = "multi_thread")]
async fn exit_7_unreachable() {
    let hive = Hive::new(ONE);
    let draining = |retry| hive.refuse(Reason::Draining, "the broker is shutting down", retry);
    draining(None);
    let draining_send = hive.run(&["send", "ada", "hello"]).await;
    hive.breaks();
    hive.breaks();
    let lost = hive.run(&["send", "ada", "hello"]).await;
    draining(Some(Duration::from_secs(2)));
    let draining_ask = hive.run(&["ask", "ada", "Done?", "--wait"]).await;
    let output = [
        run(Path::new("/nonexistent/hived.sock"), &["agents"]).await,
        run(Path::new("/nonexistent/hived.sock"), &["inbox", "--follow"]).await,
        draining_send,
        lost,
        draining_ask,
        run(Path::new("/nonexistent/hived.sock"), &["questions", "--follow"]).await,
    ]
    .map(|ran| ran.all());
    insta::assert_snapshot!(output.join(""));
    let long = format!("/{}", "x".repeat(120));
    let ran = run(Path::new(&long), &["agents"]).await;
    assert_eq!(ran.code, 2);
    assert_contains(&ran.err, "has 121 bytes, more than the 107 that Linux allows");
    let ran = run(Path::new("unix:/run/hive/hived.sock"), &["agents"]).await;
    assert_eq!(ran.code, 2);
    assert_contains(&ran.err, "is a URI; Hive's programs take the path alone");
}

/// 8: the command worked, and found something wrong.
#[tokio::test(flavor = "multi_thread")]
async fn exit_8_findings() {
    let hive = Hive::in_trouble().await;
    assert_eq!(hive.run(&["status"]).await.code, 8);
    let file = hive.dir().join("wrong.toml");
    std::fs::write(&file, "[agents.ada]\nparnet = \"bob\"\n[zoo]\n").expect("a file");
    let path = file.to_str().expect("text");
    let output = [
        hive.run(&["config", "check", path]).await,
        hive.run(&["config", "check", path, "--json"]).await,
    ]
    .map(|ran| ran.all().replace(path, "FILE"));
    insta::assert_snapshot!(output.join(""));
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
    assert_starts(
        &ran.out,
        &format!("{file}: remark: line 2, column 22: `allowed_recipients = []` allows everyone"),
    );
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file, "--json"]).await;
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, &found[0]["remark"], &found[0]["line"]),
        (0, &serde_json::json!(true), &serde_json::json!(2))
    );
}

/// The list needs neither a broker nor a file.
#[tokio::test]
async fn config_keys_lists_what_the_parser_reads() {
    let nowhere = Path::new("/nonexistent/hived.sock");
    let ran = run(nowhere, &["config", "keys"]).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    assert_starts(&ran.out, "KEY ");
    let ran = run(nowhere, &["config", "keys", "--json"]).await;
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let found = found.as_array().expect("a list");
    let key = |path: &str| found.iter().find(|key| key["key"] == path).expect("a known key");
    let days = key("broker.retention_days");
    assert_eq!((&days["least"], &days["greatest"]), (&1.into(), &36_500.into()));
    assert_eq!(key("agents.NAME.extra_mcp_servers.KEY.env")["values"], "secrets");
    assert_eq!(found.len(), hive_core::config::keys().len());
}

#[tokio::test]
async fn the_example_is_valid() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/duo/hive.toml");
    let ran = run(Path::new("/nonexistent/hived.sock"), &["config", "check", file]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    assert_ends(&ran.err, "hive.toml: ok, 2 agents\n");
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
    assert_contains(&ran.err, "line 1, column 9: `Ada` is no name");
}

#[test]
fn every_code_has_its_test() {
    let tests = include_str!("errors.rs");
    let codes = 0..=hivectl::exit::Exit::Findings as u8;
    let without: Vec<u8> =
        codes.filter(|code| !tests.contains(&format!("async fn exit_{code}_"))).collect();
    assert!(without.is_empty(), "no test ends with {without:?}");
}

//! Every command's table and JSON.

use super::fake::Broker;
use super::run::{Ran, hivectl, run, run_with};

/// Commands that only look, and the name of their snapshots.
pub(crate) const LOOKS: [&[&str]; 46] = [
    &["inbox"],
    &["inbox", "ada"],
    &["inbox", "--threads"],
    &["inbox", "read", "14"],
    &["inbox", "read", "14", "--message"],
    &["inbox", "read", "31"],
    &["inbox", "read", "31", "--message"],
    &["inbox", "read", "14", "--thread"],
    &["inbox", "read", "--thread", "10"],
    &["questions"],
    &["questions", "--all"],
    &["questions", "--asker", "ada", "--state", "open", "--state", "answered"],
    &["questions", "--target", "bob", "--state", "expired"],
    &["questions", "--all", "--last", "1"],
    &["questions", "show", "30"],
    &["questions", "show", "33"],
    &["questions", "show", "35"],
    &["reminders"],
    &["reminders", "ada", "--all"],
    &["reminders", "--state", "fired"],
    &["loose-ends"],
    &["loose-ends", "operator"],
    &["search", "green", "I"],
    &["search", "green", "--agent", "ada"],
    &["agents"],
    &["agents", "--all"],
    &["agent", "show", "ada"],
    &["agent", "show", "bob"],
    &["topology"],
    &["turn", "list"],
    &["turn", "list", "bob"],
    &["turn", "show", "11"],
    &["turn", "show", "11", "--output"],
    &["turn", "show", "13"],
    &["turn", "show", "bob"],
    &["turn", "show"],
    &["turn", "show", "ada", "--output"],
    &["stats"],
    &["stats", "ada", "--window", "7d"],
    &["events"],
    &["events", "--agent", "ada", "--last", "2"],
    &["dead-letters"],
    &["dead-letters", "show", "12"],
    &["trace", "10"],
    &["trace", "31"],
    &["status"],
];

/// Commands that change something.
pub(crate) const CHANGES: [&[&str]; 42] = [
    &["send", "ada", "hello"],
    &["send", "ada", "-x\n", "--reply-to", "14"],
    &["send", "*", "all hands"],
    &["inbox", "ack", "14", "16"],
    &["inbox", "ack", "10", "--agent", "ada"],
    &["inbox", "ack", "--all"],
    &["inbox", "ack", "--all", "--yes"],
    &["ask", "ada", "Done?"],
    &["ask", "ada", "-x\n", "--option", "yes", "--option", "-no", "--multi", "--ttl", "2h"],
    &["ask", "ada", "Done?", "--wait"],
    &["answer", "30", "--choice", "yes"],
    &["answer", "30", "--choice", "2", "but not today"],
    &["answer", "32", "in the place of ada"],
    &["answer", "34", "--choice", "1", "--choice", "LINT"],
    &["questions", "cancel", "30", "32"],
    &["reminders", "cancel", "51"],
    &[
        "agent",
        "set-policy",
        "bob",
        "--tool-group",
        "inbox",
        "--tool-group",
        "meta",
        "--sends-per-minute",
        "5",
    ],
    &[
        "agent",
        "set-policy",
        "bob",
        "--tool-group",
        "default",
        "--allow",
        "default",
        "--capability",
        "query_agent_state",
    ],
    &[
        "agent",
        "set-policy",
        "bob",
        "--allow-everyone",
        "--no-capabilities",
        "--stored-bytes",
        "default",
    ],
    &[
        "agent",
        "set-policy",
        "bob",
        "--questions-open",
        "3",
        "--reminders-pending",
        "7",
        "--stored-bytes",
        "5000000000",
    ],
    &["agent", "create", "cy"],
    &[
        "agent", "create", "cy", "--parent", "bob", "--role", "r", "--model", "m", "--allow",
        "bob", "--adopt",
    ],
    &["agent", "stop", "ada"],
    &["agent", "stop", "bob", "--wait"],
    &["agent", "start", "ada"],
    &["agent", "restart", "ada"],
    &["agent", "remove", "bob"],
    &["agent", "remove", "bob", "--purge", "--yes"],
    &["agent", "set-parent", "bob", "operator"],
    &["turn", "cancel", "ada"],
    &["turn", "cancel", "ada", "--turn", "21"],
    &["turn", "compact", "ada"],
    &["turn", "new-session", "ada"],
    &["turn", "model", "ada", "opus"],
    &["turn", "restart", "ada"],
    &["turn", "release", "ada", "10"],
    &["turn", "release", "ada", "--all"],
    &["turn", "drop", "ada", "--all"],
    &["dead-letters", "redrive", "12"],
    &["dead-letters", "redrive", "--all", "--agent", "bob"],
    &["dead-letters", "drop", "12"],
    &["drain"],
];

fn name(args: &[&str]) -> String {
    args.join("_").replace("--", "")
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_as_they_were() {
    let broker = Broker::start();
    for args in LOOKS {
        let ran = run(&broker.socket(), args).await;
        assert_eq!(ran.err, "", "{args:?}");
        insta::assert_snapshot!(format!("table_{}", name(args)), ran.all());
    }
    assert!(broker.changes().is_empty(), "who looks changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_as_documented() {
    let broker = Broker::start();
    for args in LOOKS {
        let mut all = args.to_vec();
        all.push("--json");
        let ran = run(&broker.socket(), &all).await;
        for line in ran.out.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
            let first = value.get(0).unwrap_or(&value);
            let schema = first["schema"].as_str().expect("an object names its schema");
            assert!(schema.starts_with("hive.") && schema.ends_with(".v1"), "{schema}");
        }
        insta::assert_snapshot!(format!("json_{}", name(args)), ran.all());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_an_empty_array_for_programs_and_a_note_for_people() {
    let broker = Broker::empty();
    for (args, note) in [
        (&["inbox"][..], "no mail\n"),
        (&["agents"], "no agents\n"),
        (&["turn", "list"], "no turns\n"),
        (&["events"], "no events\n"),
        (&["dead-letters"], "no dead letters\n"),
        (&["questions"], "no questions\n"),
        (&["reminders"], "no reminders\n"),
        (&["loose-ends"], "no loose ends\n"),
        (&["search", "nothing"], "nothing found\n"),
    ] {
        let ran = run(&broker.socket(), args).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", note), "{args:?}");
        let mut json = args.to_vec();
        json.push("--json");
        let ran = run(&broker.socket(), &json).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "[]\n", ""), "{args:?}");
    }
    for (args, note) in [
        (&["turn", "drop", "ada", "--all"][..], "nothing is held for ada\n"),
        (&["turn", "release", "ada", "--all"], "nothing is held for ada\n"),
        (&["dead-letters", "drop", "--all"], "there are no dead letters\n"),
        (&["dead-letters", "redrive", "--all", "--agent", "ada"], "ada has no dead letters\n"),
        (&["inbox", "ack", "--all"], "no unread mail\n"),
    ] {
        let ran = run(&broker.socket(), args).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", note), "{args:?}");
    }
    assert_eq!(run(&broker.socket(), &["topology"]).await.out, "operator\n");
    assert_eq!(run(&broker.socket(), &["topology", "--json"]).await.out, "[]\n");
    assert_eq!(run(&broker.socket(), &["status"]).await.code, 0, "nothing is wrong with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_asked_for_as_they_were_meant() {
    let broker = Broker::start();
    let mut told = String::new();
    for args in CHANGES {
        for json in [false, true] {
            let mut all = args.to_vec();
            all.extend(json.then_some("--json"));
            let Ran { code, out, err } = run(&broker.socket(), &all).await;
            assert_eq!(code, 0, "{all:?}: {err}");
            told.push_str(&format!("$ {}\n{out}{err}", all.join(" ").escape_debug()));
        }
    }
    insta::assert_snapshot!("changes_told", told);
    let mut changes = broker.changes();
    changes.dedup();
    insta::assert_snapshot!("changes_asked_for", changes.join("\n"));
    let mut ids = broker.request_ids();
    ids.retain(|id| !id.is_empty());
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "each change has a request id of its own");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_come_from_stdin() {
    let broker = Broker::start();
    let ran =
        run_with(&broker.socket(), &["send", "ada", "-"], "zwei\nZeilen ä\n\n".as_bytes()).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(broker.changes(), ["send ada: \"zwei\\nZeilen ä\\n\", answers 0"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_tried_once_more_with_the_same_request_id() {
    let broker = Broker::start();
    assert_eq!(run(&broker.socket(), &["send", "flaky", "hello"]).await.code, 0);
    let ids = broker.request_ids();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
    assert_eq!(run(&broker.socket(), &["send", "lost", "hello"]).await.code, 7);
    assert_eq!(broker.request_ids().len(), 4, "not more than once more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let broker = Broker::start();
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    // Spawned by hand: `output` would put a pipe of its own in the place of this one.
    let mut command = hivectl(&broker.socket());
    command.arg("events").stdout(writer).stderr(std::process::Stdio::piped());
    let output =
        command.spawn().expect("the binary runs").wait_with_output().await.expect("it ends");
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn into_a_pipe_goes_no_colour_and_the_body_as_it_is() {
    let broker = Broker::start();
    let table = run(&broker.socket(), &["agents"]).await.out;
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let read = run(&broker.socket(), &["inbox", "read", "14"]).await.out;
    assert!(read.ends_with("It is 42.\nI asked bob.\u{1b}]0;owned\u{7}\n"), "{read:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_of_the_runtime_directory_is_found() {
    let broker = Broker::start();
    let mut command = hivectl(&broker.socket());
    command.env_remove("HIVE_SOCKET").env("HIVE_RUNTIME_DIR", broker.dir());
    let output = command.args(["agents", "--json"]).output().await.expect("the binary runs");
    assert!(output.status.success());
}

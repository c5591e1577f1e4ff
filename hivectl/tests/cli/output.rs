//! Every command's table and JSON.

use std::collections::BTreeSet;

use hive_in_process::Reaction;
use hive_proto::v1::{CreateAgentRequest, SendMessageResponse};
use tonic::{Response, Status};

use super::hive::Hive;
use super::run::{Ran, assert_ends, ended, hivectl, run_with};

/// Commands that change nothing; their words name the snapshots.
pub(crate) const LOOKS: [&[&str]; 44] = [
    &["inbox"],
    &["inbox", "ada"],
    &["inbox", "--threads"],
    &["inbox", "read", "3"],
    &["inbox", "read", "3", "--message"],
    &["inbox", "read", "38"],
    &["inbox", "read", "38", "--message"],
    &["inbox", "read", "3", "--thread"],
    &["inbox", "read", "--thread", "1"],
    &["questions"],
    &["questions", "--all"],
    &["questions", "--asker", "ada", "--state", "open", "--state", "answered"],
    &["questions", "--target", "bob", "--state", "expired"],
    &["questions", "--all", "--last", "1"],
    &["questions", "show", "37"],
    &["questions", "show", "41"],
    &["questions", "show", "48"],
    &["reminders"],
    &["reminders", "ada", "--all"],
    &["reminders", "--state", "fired"],
    &["loose-ends"],
    &["loose-ends", "operator"],
    &["search", "what", "is"],
    &["search", "42", "--agent", "ada"],
    &["agents"],
    &["agents", "--all"],
    &["agent", "show", "ada"],
    &["agent", "show", "bob"],
    &["topology"],
    &["turn", "list"],
    &["turn", "list", "bob"],
    &["turn", "show", "2"],
    &["turn", "show", "2", "--output"],
    &["turn", "show", "29"],
    &["turn", "show", "bob"],
    &["turn", "show"],
    &["turn", "show", "ada", "--output"],
    &["events", "--last", "200"],
    &["events", "--agent", "ada", "--last", "2"],
    &["dead-letters"],
    &["dead-letters", "show", "13"],
    &["trace", "1"],
    &["trace", "38"],
    &["status"],
];

/// Statistics commands for a hive with a week of turns.
pub(crate) const STATS: [&[&str]; 2] = [&["stats"], &["stats", "ada", "--window", "7d"]];

/// Commands that change something, in an order in which each can be carried out.
#[rustfmt::skip]
pub(crate) const CHANGES: [&[&str]; 48] = [
    &["send", "ada", "hello"],
    &["send", "ada", "-x\n", "--reply-to", "3"],
    &["send", "*", "all hands"],
    &["inbox", "ack", "3", "15"],
    &["inbox", "ack", "18", "--agent", "ada"],
    &["inbox", "ack", "--all"],
    &["ask", "ada", "Done?"],
    &["ask", "ada", "-x\n", "--option", "yes", "--option", "-no", "--multi", "--ttl", "2h"],
    ASK_AND_WAIT,
    &["inbox", "ack", "--all", "--yes"],
    &["answer", "39", "--choice", "yes"],
    &["answer", "37", "--choice", "2", "but not today"],
    &["answer", "35", "in the place of ada"],
    &["answer", "14", "--choice", "1", "--choice", "LINT"],
    &["questions", "cancel", "60", "62"],
    &["reminders", "cancel", "52"],
    &["agent", "set-policy", "bob", "--tool-group", "inbox", "--tool-group", "meta",
        "--sends-per-minute", "5"],
    &["agent", "set-policy", "bob", "--tool-group", "default", "--allow", "default",
        "--capability", "query_agent_state"],
    &["agent", "set-policy", "bob", "--allow-everyone", "--no-capabilities",
        "--stored-bytes", "default"],
    &["agent", "set-policy", "bob", "--questions-open", "3", "--reminders-pending", "7",
        "--stored-bytes", "5000000000"],
    &["agent", "set-policy", "bob", "--grant", "create_agent", "--grant", "own_schedules"],
    &["agent", "set-policy", "bob", "--children", "4"],
    &["agent", "set-policy", "bob", "--schedules", "5"],
    &["agent", "set-policy", "bob", "--no-grants"],
    &["agent", "create", "cy"],
    &["agent", "create", "dy", "--parent", "bob", "--role", "r", "--model", "m", "--allow", "bob",
        "--adopt"],
    &["agent", "stop", "ada"],
    &["agent", "stop", "bob", "--wait"],
    &["agent", "start", "ada"],
    &["agent", "restart", "ada"],
    &["agent", "retire", "dy", "--purge", "--yes"],
    &["agent", "set-parent", "bob", "operator"],
    &["turn", "cancel", "ada"],
    &["turn", "cancel", "ada", "--turn", "34"],
    &["turn", "compact", "ada"],
    &["turn", "new-session", "ada"],
    &["turn", "model", "ada", "opus"],
    &["turn", "restart", "ada"],
    &["turn", "release", "ada", "6"],
    &["turn", "drop", "ada", "8"],
    &["turn", "drop", "ada", "--all"],
    &["dead-letters", "redrive", "5"],
    &["dead-letters", "drop", "12"],
    &["dead-letters", "redrive", "--all", "--agent", "bob"],
    &["agent", "retire", "bob"],
    &["inbox", "ada", "--all"],
    &["events", "--agent", "ada", "--last", "20"],
    &["drain"],
];

/// The command of [`CHANGES`] that waits for an answer.
pub(crate) const ASK_AND_WAIT: &[&str] = &["ask", "ada", "Really?", "--option", "yes", "--wait"];

/// Runs a command; ada answers the question that it waits for.
pub(crate) async fn run_answered(hive: &Hive, args: &[&str]) -> Ran {
    if args.starts_with(ASK_AND_WAIT) {
        hive.asking(args, async |question| hive.answers(question).await).await
    } else {
        hive.run(args).await
    }
}

fn name(args: &[&str]) -> String {
    args.join("_").replace("--", "")
}

/// Runs each command that changes nothing, on its hive.
async fn looks(more: &[&str], mut each: impl FnMut(&[&str], &Ran, String)) {
    let (hive, busy) = (Hive::start().await, Hive::busy().await);
    let on = LOOKS.map(|args| (&hive, args)).into_iter().chain(STATS.map(|args| (&busy, args)));
    for (hive, args) in on {
        let ran = hive.run(&[args, more].concat()).await;
        each(args, &ran, hive.output(&ran));
    }
    assert!(hive.changes().is_empty() && busy.changes().is_empty(), "who looks changes nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_as_they_were() {
    looks(&[], |args, ran, output| {
        assert_eq!(ran.err, "", "{args:?}");
        insta::assert_snapshot!(format!("table_{}", name(args)), output);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_is_as_documented() {
    looks(&["--json"], |args, ran, output| {
        for line in ran.out.lines() {
            let value: serde_json::Value = serde_json::from_str(line).expect("each line is JSON");
            let first = value.get(0).unwrap_or(&value);
            let schema = first["schema"].as_str().expect("an object names its schema");
            assert!(schema.starts_with("hive.") && schema.ends_with(".v1"), "{schema}");
        }
        insta::assert_snapshot!(format!("json_{}", name(args)), output);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_list_is_an_empty_array_for_programs_and_a_note_for_people() {
    let hive = Hive::empty();
    for (args, note) in [
        (&["inbox"][..], "no mail\n"),
        (&["agents"], "no agents\n"),
        (&["turn", "list"], "no turns\n"),
        (&["events"], "no events\n"),
        (&["dead-letters"], "no dead letters\n"),
        (&["questions"], "no questions\n"),
        (&["reminders"], "no reminders\n"),
        (&["schedules"], "no schedules\n"),
        (&["loose-ends"], "no loose ends\n"),
        (&["search", "nothing"], "nothing found\n"),
    ] {
        let ran = hive.run(args).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", note), "{args:?}");
        let mut json = args.to_vec();
        json.push("--json");
        let ran = hive.run(&json).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "[]\n", ""), "{args:?}");
    }
    let one = Hive::new("[agents.ada]");
    for (args, note) in [
        (&["turn", "drop", "ada", "--all"][..], "nothing is held for ada\n"),
        (&["turn", "release", "ada", "--all"], "nothing is held for ada\n"),
        (&["dead-letters", "drop", "--all"], "there are no dead letters\n"),
        (&["dead-letters", "redrive", "--all", "--agent", "ada"], "ada has no dead letters\n"),
        (&["inbox", "ack", "--all"], "no unread mail\n"),
    ] {
        let ran = one.run(args).await;
        assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "", note), "{args:?}");
    }
    assert_eq!(hive.run(&["topology"]).await.out, "operator\n");
    assert_eq!(hive.run(&["topology", "--json"]).await.out, "[]\n");
    assert_eq!(hive.run(&["status"]).await.code, 0, "nothing is wrong with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_are_asked_for_as_they_were_meant() {
    let mut output = String::new();
    for more in [&[][..], &["--json"]] {
        let hive = Hive::start().await;
        hive.edit("SendMessage", |sent: &mut Response<SendMessageResponse>| {
            let sent = sent.get_mut();
            // No inbox of this hive is full.
            sent.skipped_agents.extend((sent.recipient_count > 1).then(|| "full".to_owned()));
        });
        for args in CHANGES {
            let all = [args, more].concat();
            let Ran { code, out, err } = run_answered(&hive, &all).await;
            assert_eq!(code, 0, "{all:?}: {err}");
            output.push_str(&format!("$ {}\n{out}{err}", all.join(" ").escape_debug()));
        }
        output = hive.masked(&output);
        let created: Vec<CreateAgentRequest> = hive.requests("CreateAgent");
        assert_eq!(created.iter().map(|created| created.adopt).collect::<Vec<_>>(), [false, true]);
        let ids = hive.changes();
        let distinct: BTreeSet<&String> = ids.iter().collect();
        assert_eq!(distinct.len(), ids.len(), "each change has a request id of its own");
    }
    insta::assert_snapshot!("changes_told", output);
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_is_held_is_released() {
    let hive = Hive::start().await;
    let ran = hive.run(&["turn", "release", "ada", "--all"]).await;
    let released = [6, 8, 10].map(|id| format!("message {id} of ada released\n")).concat();
    assert_eq!((ran.code, ran.out, ran.err.as_str()), (0, released, ""));
    let ran = hive.run(&["turn", "release", "ada", "--all", "--json"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "[]\n"), "none is left: {}", ran.err);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_may_come_from_stdin() {
    let hive = Hive::new("[agents.ada]");
    let ran =
        run_with(&hive.socket(), &["send", "ada", "-"], "zwei\nZeilen ä\n\n".as_bytes()).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let sent = hive.operator().await.messages().await;
    assert_eq!(sent[0].body, "zwei\nZeilen ä\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_tried_once_more_with_the_same_request_id() {
    let hive = Hive::new("[agents.ada]");
    hive.react(Reaction::ActAndRefuse(Status::unavailable("transport lost")));
    assert_eq!(hive.run(&["send", "ada", "hello"]).await.code, 0);
    let ids = hive.changes();
    assert_eq!(ids.len(), 2);
    assert_eq!(ids[0], ids[1]);
    assert_eq!(hive.operator().await.messages().await.len(), 1, "it is sent once");
    hive.breaks();
    hive.breaks();
    assert_eq!(hive.run(&["send", "ada", "hello"]).await.code, 7);
    assert_eq!(hive.changes().len(), 4, "not more than once more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_is_no_error() {
    let hive = Hive::start().await;
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let child = hive.hivectl(&["events"]).stdout(writer).spawn().expect("the binary runs");
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn into_a_pipe_goes_no_colour_and_the_body_as_it_is() {
    let hive = Hive::start().await;
    let table = hive.run(&["agents"]).await.out;
    assert!(!table.contains('\u{1b}'), "{table:?}");
    let read = hive.run(&["inbox", "read", "3"]).await.out;
    assert_ends(&read, "It is 42.\nI asked bob.\u{1b}]0;owned\u{7}\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_socket_of_the_runtime_directory_is_found() {
    let hive = Hive::start().await;
    let mut command = hivectl(&hive.socket());
    command.env_remove("HIVE_SOCKET").env("HIVE_RUNTIME_DIR", hive.dir().join("run"));
    let output = command.args(["agents", "--json"]).output().await.expect("the binary runs");
    assert!(output.status.success());
}

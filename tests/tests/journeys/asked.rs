//! Questions, reminders and policies from the operator's side: `hivectl` against a real broker, and
//! agents that speak for themselves.

use std::process::Stdio;

use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::{
    AnswerQuestionRequest, AskQuestionRequest, EventKind, SystemKind, create_reminder_request,
};
use hive_tests::binary;
use hive_tests::rig::{
    Client, Process, Rig,
    request::{self, texts},
    soon,
};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader};

/// An agent asks; the question's id.
async fn ask(agent: &Client, target: &str, text: &str, options: &[&str]) -> u64 {
    let request = AskQuestionRequest { options: texts(options), ..request::ask(target, text) };
    let asked = QuestionServiceClient::new(agent.channel())
        .ask_question(request)
        .await
        .expect("it may ask");
    asked.into_inner().question.expect("a question").id
}

/// Runs `hivectl` and parses its JSON output.
async fn json(rig: &Rig, args: &[&str]) -> Value {
    let mut all = args.to_vec();
    all.push("--json");
    let said = rig.hivectl(&all).await;
    assert_eq!(said.code, 0, "{args:?}: {said:?}");
    serde_json::from_str(&said.stdout).expect("JSON")
}

#[tokio::test]
async fn an_agent_is_asked_and_the_wait_for_its_answer_outlives_the_broker() {
    let mut rig = Rig::duo().await;
    let mut watch = rig.watch().await;
    let mut waiting = Process::command(&binary::find("hivectl", "hivectl"));
    waiting
        .arg("--socket")
        .arg(rig.operator_socket())
        .args(["ask", "bob", "Ready?", "--option", "yes", "--option", "no", "--wait"]);
    waiting.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut waiting = waiting.spawn().expect("the binary runs");
    let mut says = BufReader::new(waiting.stderr.take().expect("stderr is a pipe")).lines();
    let mut line = async || {
        soon("hivectl says something", says.next_line())
            .await
            .expect("text")
            .expect("one more line")
    };
    let question_id = watch.kind("operator", EventKind::QuestionAsked).await.question_id;
    assert_eq!(line().await, format!("question {question_id} is asked; waiting for bob"));
    rig.kill_broker().await;
    assert_eq!(line().await, "the broker is gone; waiting for it to come back");
    rig.start_broker().await;
    assert_eq!(line().await, "the broker is back");
    let answer = AnswerQuestionRequest {
        choices: texts(&["yes"]),
        ..request::answer(question_id, "since noon")
    };
    let bob = rig.agent("bob").await;
    QuestionServiceClient::new(bob.channel()).answer_question(answer).await.expect("bob was asked");
    let output = soon("hivectl has its answer", waiting.wait_with_output()).await.expect("it ends");
    assert_eq!(
        (output.status.code(), output.stdout.as_slice()),
        (Some(0), &b"yes\nsince noon\n"[..])
    );
    rig.end().await;
}

#[tokio::test]
async fn the_operator_answers_once_and_its_mail_is_done() {
    let rig = Rig::duo().await;
    let bob = rig.agent("bob").await;
    let question = ask(&bob, "operator", "Deploy?", &["yes", "no"]).await;
    let id = question.to_string();
    let waits = json(&rig, &["questions"]).await;
    assert_eq!(
        (waits[0]["id"].as_u64(), waits[0]["asker"].as_str()),
        (Some(question), Some("bob"))
    );
    let mail = json(&rig, &["inbox"]).await;
    assert_eq!(mail[0]["message"]["question_id"].as_u64(), Some(question));
    let asked = mail[0]["message"]["id"].as_u64().expect("an id").to_string();

    assert_eq!(rig.hivectl(&["answer", &id]).await.code, 2, "there is no terminal");
    assert_eq!(
        rig.hivectl(&["answer", &id, "--choice", "maybe"]).await.code,
        2,
        "it was not offered"
    );
    let said = rig.hivectl(&["answer", &id, "--choice", "1", "but carefully"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.stdout.ends_with(": yes; but carefully\n"), "{said:?}");
    let again = rig.hivectl(&["answer", &id, "no"]).await;
    assert!(again.code == 5 && again.stderr.contains("reason: QUESTION_CLOSED"), "{again:?}");
    assert_eq!(rig.hivectl(&["questions", "cancel", &id]).await.code, 5);
    assert_eq!(json(&rig, &["questions"]).await, Value::Array(Vec::new()));
    assert_eq!(
        json(&rig, &["inbox"]).await,
        Value::Array(Vec::new()),
        "an answer is the ack of the ask"
    );

    let told = bob.deliveries("", &[]).await;
    let told = told[0].message.as_ref().expect("a message");
    assert_eq!((told.system_kind(), told.question_id), (SystemKind::QuestionAnswered, question));
    // The whole journey, from either end of it.
    for message in [asked, told.id.to_string()] {
        let hops = json(&rig, &["trace", &message]).await;
        let kinds: Vec<&str> = hops
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|hop| hop["kind"].as_str())
            .collect();
        assert!(
            kinds.contains(&"question_asked") && kinds.contains(&"question_answered"),
            "{kinds:?}"
        );
        assert_eq!(
            kinds.iter().filter(|kind| **kind == "message_accepted").count(),
            2,
            "the ask and its outcome: {kinds:?}"
        );
        assert!(
            hops.as_array().expect("a list").iter().all(|hop| hop["time"].is_string()),
            "{hops}"
        );
    }
    rig.end().await;
}

#[tokio::test]
async fn the_operator_can_answer_or_withdraw_questions_to_others() {
    let rig = Rig::duo().await;
    let ada = rig.agent("ada").await;
    let (first, second) =
        (ask(&ada, "bob", "First?", &[]).await, ask(&ada, "bob", "Second?", &[]).await);
    assert_eq!(
        json(&rig, &["questions"]).await,
        Value::Array(Vec::new()),
        "the operator is asked nothing"
    );
    assert_eq!(json(&rig, &["questions", "--all"]).await.as_array().map(Vec::len), Some(2));
    let answered = json(&rig, &["answer", &first.to_string(), "by me"]).await;
    assert_eq!(answered["operator_override"].as_bool(), Some(true));
    let cancelled = json(&rig, &["questions", "cancel", &second.to_string()]).await;
    assert_eq!(cancelled[0]["state"].as_str(), Some("cancelled"));
    let topology = json(&rig, &["topology"]).await;
    assert_eq!(topology[0]["loose_end_count"].as_u64(), Some(0), "{topology}");
    rig.end().await;
}

#[tokio::test]
async fn a_reply_is_the_ack_of_what_it_answers() {
    let rig = Rig::duo().await;
    let bob = rig.agent("bob").await;
    let (first, second) =
        (bob.send("operator", "First.").await, bob.send("operator", "Second.").await);
    assert_eq!(
        rig.hivectl(&["send", "bob", "Seen.", "--reply-to", &first.to_string()]).await.code,
        0
    );
    let unread = json(&rig, &["inbox"]).await;
    let ids: Vec<_> = unread
        .as_array()
        .expect("a list")
        .iter()
        .map(|delivery| delivery["message"]["id"].as_u64())
        .collect();
    assert_eq!(ids, [Some(second)]);
    rig.end().await;
}

#[tokio::test]
async fn reminders_are_seen_counted_and_withdrawn() {
    let rig = Rig::duo().await;
    let bob = rig.agent("bob").await;
    let due =
        create_reminder_request::Due::Delay(prost_types::Duration { seconds: 3600, nanos: 0 });
    let request = request::remind("look again", due);
    let set =
        ReminderServiceClient::new(bob.channel()).create_reminder(request).await.expect("bob may");
    let id = set.into_inner().reminder.expect("a reminder").id.to_string();
    let listed = rig.hivectl(&["reminders", "bob"]).await;
    assert!(listed.code == 0 && listed.stdout.contains("pending  in 59 min"), "{listed:?}");
    let loose_ends = json(&rig, &["loose-ends"]).await;
    assert_eq!(
        (loose_ends[0]["kind"].as_str(), loose_ends[0]["agent"].as_str()),
        (Some("reminder"), Some("bob"))
    );
    let topology = rig.hivectl(&["topology"]).await;
    assert!(
        topology.stdout.lines().any(|line| line.contains("bob") && line.contains("1 loose end")),
        "{topology:?}"
    );
    assert_eq!(rig.hivectl(&["reminders", "cancel", &id]).await.code, 0);
    assert_eq!(rig.hivectl(&["reminders", "cancel", &id]).await.code, 5);
    assert_eq!(json(&rig, &["reminders"]).await, Value::Array(Vec::new()));
    assert_eq!(json(&rig, &["reminders", "--all"]).await[0]["state"].as_str(), Some("cancelled"));
    for unknown in [
        &["answer", "999", "yes"][..],
        &["questions", "show", "999"],
        &["reminders", "cancel", "999"],
        &["reminders", "nobody"],
    ] {
        assert_eq!(rig.hivectl(unknown).await.code, 3, "{unknown:?}");
    }
    rig.end().await;
}

#[tokio::test]
async fn a_policy_changes_by_the_fields_that_are_named_and_binds_at_once() {
    let rig = Rig::duo().await;
    let policy = async |args: &[&str]| {
        let mut all = vec!["agent", "set-policy", "bob"];
        all.extend(args);
        json(&rig, &all).await["policy"].clone()
    };
    let before = json(&rig, &["agent", "show", "bob"]).await["policy"].clone();
    let walled = policy(&["--allow", "bob", "--questions-open", "1"]).await;
    assert_eq!(walled["allowed_recipients"], serde_json::json!(["bob"]));
    assert_eq!(
        (walled["tool_groups"].clone(), walled["questions_open_max"].as_u64()),
        (before["tool_groups"].clone(), Some(1))
    );
    let bob = rig.agent("bob").await;
    ask(&bob, "ada", "May I?", &[]).await;
    let request = request::ask("<parent>", "And this?");
    let refused = QuestionServiceClient::new(bob.channel())
        .ask_question(request)
        .await
        .expect_err("one may be open");
    assert_eq!(
        hive_proto::status::reason(&refused),
        Some(hive_core::reason::Reason::QuestionLimit)
    );
    let quiet = policy(&["--tool-group", "meta"]).await;
    assert_eq!(quiet["allowed_recipients"], serde_json::json!(["bob"]));
    let refused = bob.try_send("<parent>", "hello").await.expect_err("it may not send");
    assert_eq!(
        hive_proto::status::reason(&refused),
        Some(hive_core::reason::Reason::CapabilityMissing)
    );
    let back =
        policy(&["--tool-group", "default", "--allow-everyone", "--questions-open", "default"])
            .await;
    assert_eq!(back, before);
    assert_eq!(rig.hivectl(&["agent", "set-policy", "bob", "--tool-group", "magic"]).await.code, 2);
    rig.end().await;
}

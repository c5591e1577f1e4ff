//! What is open, reminders, and the line of status.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::{LooseEnd, LooseEndKind};
use hive_tests::fake_broker::{FakeBroker, Reaction, Rpc};
use serde_json::json;

use crate::rig::{TOKEN, call, connected, good};

fn last(broker: &FakeBroker) -> Rpc {
    let call = broker.with(|state| state.calls.last().cloned()).expect("a call came");
    assert_eq!(call.process_token.as_deref(), Some(TOKEN));
    call.rpc
}

#[tokio::test]
async fn get_loose_ends_tells_of_oneself_or_a_child() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    assert_eq!(good(&mut client, "get_loose_ends", json!({}), "toolu_1").await, "No loose ends.");
    let Rpc::ListLooseEnds(request) = last(&broker) else { panic!("no list") };
    assert_eq!(
        (request.agent.as_str(), request.page_size, request.page_token.as_str()),
        ("", 500, "")
    );

    let kind = LooseEndKind::QuestionOwed.into();
    let owed = LooseEnd {
        kind,
        id: 7,
        peer: "bob".to_owned(),
        text: "which?".to_owned(),
        ..LooseEnd::default()
    };
    broker.with(|state| state.loose_ends.push(owed));
    let own = "Questions owed an answer:\n#7 from bob: which?\n\
        Close what you owe with answer; withdraw the kinds question and reminder with cancel_loose_end.";
    assert_eq!(good(&mut client, "get_loose_ends", json!({"agent": " "}), "toolu_2").await, own);
    let childs = good(&mut client, "get_loose_ends", json!({"agent": "carol"}), "toolu_3").await;
    assert_eq!(childs, "Loose ends of carol\nQuestions owed an answer:\n#7 from bob: which?");
    let Rpc::ListLooseEnds(request) = last(&broker) else { panic!("no list") };
    assert_eq!(request.agent, "carol");
}

#[tokio::test]
async fn cancel_loose_end_withdraws_a_question_or_a_reminder() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (input, kind, said) in [
        (
            json!({"kind": "question", "id": 7}),
            LooseEndKind::QuestionAsked,
            "Question #7 is withdrawn, and no answer to it will come.",
        ),
        (
            json!({"kind": "reminder", "id": "#8"}),
            LooseEndKind::Reminder,
            "Reminder #8 is cancelled.",
        ),
    ] {
        let text = good(&mut client, "cancel_loose_end", input, &format!("toolu_{kind:?}")).await;
        assert_eq!(text, said);
        let Rpc::CancelLooseEnd(request) = last(&broker) else { panic!("no cancel") };
        assert_eq!(request.kind(), kind);
        assert!((1..=128).contains(&request.request_id.len()));
    }
}

#[tokio::test]
async fn a_reminder_has_one_time() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    let text =
        good(&mut client, "remind", json!({"message": "look", "delay_seconds": 60}), "toolu_1")
            .await;
    assert_eq!(text, "Reminder #101 is set for 2023-11-14T22:14:20Z.");
    let Rpc::Remind(request) = last(&broker) else { panic!("no reminder") };
    assert_eq!(
        (request.body.as_str(), request.due),
        ("look", Some(Due::Delay(prost_types::Duration { seconds: 60, nanos: 0 })))
    );
    let at = json!({"message": "look", "delay_seconds": null, "at_unix_timestamp": "1800000000"});
    assert_eq!(
        good(&mut client, "remind", at, "toolu_2").await,
        "Reminder #102 is set for 2027-01-15T08:00:00Z."
    );

    broker.with(|state| state.already_done = true);
    let text =
        good(&mut client, "remind", json!({"message": "look", "delay_seconds": 60}), "toolu_3")
            .await;
    let not_again =
        "Not set again: an earlier attempt of this turn has already set this as reminder #103";
    assert_eq!(text, format!("{not_again} for 2023-11-14T22:14:20Z."));
}

#[tokio::test]
async fn a_reminder_that_was_accepted_by_a_dying_broker_is_not_doubled() {
    let mut broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    broker.react(Reaction::ActAndHang);
    let input = json!({"message": "once", "delay_seconds": 60});
    let pending = client.start_tool("remind", input, "toolu_1").await.expect("the bridge reads");
    broker.wait_for_calls(1).await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(!is_error && text.starts_with("Reminder #101 is set"), "{text}");
    broker.with(|state| assert!(matches!(&state.calls[..], [first, second] if first == second)));
}

#[tokio::test]
async fn set_status_sets_and_clears_the_line() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (index, (text, sent, said)) in
        [(" builds it \n", "builds it", "The status is set."), ("", "", "The status is cleared.")]
            .into_iter()
            .enumerate()
    {
        assert_eq!(
            good(&mut client, "set_status", json!({"text": text}), &format!("toolu_{index}")).await,
            said
        );
        let Rpc::SetStatusText(request) = last(&broker) else { panic!("no status") };
        assert_eq!(request.text, sent);
    }
}

#[tokio::test]
async fn what_makes_no_sense_is_told_without_asking_the_broker() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (tool, input, problem) in [
        ("get_loose_ends", json!({"agent": "*"}), "`*` is no agent: name one of your children"),
        (
            "cancel_loose_end",
            json!({"kind": "question_owed", "id": 7}),
            "a question that you owe is closed with answer",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "dead letter", "id": 7}),
            "redriven or dropped by the operator",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "external", "id": 7}),
            "closed by the program that told it",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "turn", "id": 7}),
            "there is no kind `turn` to cancel: kind is question or reminder",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "question", "id": 0}),
            "an id is a whole number above 0",
        ),
        (
            "remind",
            json!({"message": "x"}),
            "it has no time: give delay_seconds or at_unix_timestamp",
        ),
        (
            "remind",
            json!({"message": "x", "delay_seconds": 1, "at_unix_timestamp": 2}),
            "it has two times",
        ),
        ("remind", json!({"message": "x", "delay_seconds": 1.5}), "1.5 is no whole number"),
        ("set_status", json!({}), "missing field `text`"),
    ] {
        let (text, is_error) = call(&mut client, tool, input, "toolu_1").await;
        assert!(
            is_error && text.starts_with("FIELD_INVALID: ") && text.contains(problem),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1, "{text}");
    }
    assert!(broker.with(|state| state.calls.is_empty()));
}

#[tokio::test]
async fn refusals_of_the_broker_say_what_to_do() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (tool, input, reason, advice) in [
        (
            "get_loose_ends",
            json!({"agent": "bob"}),
            Reason::NotYourChild,
            "your direct children only: ask the agent itself",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "question", "id": 7}),
            Reason::QuestionClosed,
            "go on with the outcome it has",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "question", "id": 7}),
            Reason::NotYours,
            "it belongs to somebody else",
        ),
        (
            "cancel_loose_end",
            json!({"kind": "reminder", "id": 7}),
            Reason::ReminderNotFound,
            "get_loose_ends lists yours",
        ),
        (
            "remind",
            json!({"message": "x", "delay_seconds": 1}),
            Reason::ReminderLimit,
            "withdraw a reminder with cancel_loose_end",
        ),
        ("set_status", json!({"text": "x"}), Reason::StatusTooLong, "shorten it and call again"),
    ] {
        broker.react(Reaction::Refuse(status::refusal(reason, "no", None)));
        let (text, is_error) = call(&mut client, tool, input, &format!("toolu_{reason}")).await;
        assert!(
            is_error && text.starts_with(&format!("{reason}: no; ")) && text.contains(advice),
            "{text}"
        );
    }
}

//! Loose ends, reminders, and the status.

use hive_core::reason::Reason;
use hive_in_process::{Broker, Reaction};
use hive_proto::status;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::{
    CancelLooseEndRequest, CreateReminderRequest, ListLooseEndsRequest, LooseEndKind,
    QuestionState, ReminderState, SetStatusTextRequest,
};
use hive_tests::rig::request;
use prost::Message;
use serde_json::json;

use crate::rig::{self, TOKEN, call, connected, good, hive, retried};

/// Returns the last request, which must be of this method.
fn last<M: Message + Default>(broker: &Broker, method: &str) -> M {
    let call = broker.with(|state| state.calls.last().cloned()).expect("a call came");
    assert_eq!(call.process_token.as_deref(), Some(TOKEN));
    call.request(method).unwrap_or_else(|| panic!("{call:?} is no {method}"))
}

#[tokio::test]
async fn get_loose_ends_lists_those_of_the_caller_or_a_child() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    assert_eq!(good(&mut client, "get_loose_ends", json!({}), "toolu_1").await, "No loose ends.");
    let request: ListLooseEndsRequest = last(&broker, "ListLooseEnds");
    assert_eq!(
        (request.agent.as_str(), request.page_size, request.page_token.as_str()),
        ("", 500, "")
    );

    let bob = broker.client("bob").await;
    let [owed, childs] = [bob.ask("alice", "which?").await, bob.ask("carol", "which?").await];
    let since = ", since 2100-01-01T00:00:00Z";
    let own = format!(
        "Questions owed an answer:\n#{owed} from bob{since}: which?\n\
         Close what you owe with answer; withdraw the kinds question and reminder with cancel_loose_end."
    );
    assert_eq!(good(&mut client, "get_loose_ends", json!({"agent": " "}), "toolu_2").await, own);
    let text = good(&mut client, "get_loose_ends", json!({"agent": "carol"}), "toolu_3").await;
    let of_carol = "Loose ends of carol\nQuestions owed an answer:\n";
    assert_eq!(text, format!("{of_carol}#{childs} from bob{since}: which?"));
    let request: ListLooseEndsRequest = last(&broker, "ListLooseEnds");
    assert_eq!(request.agent, "carol");
}

#[tokio::test]
async fn cancel_loose_end_withdraws_a_question_or_a_reminder() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let alice = rig::alice(&broker).await;
    let question = alice.ask("bob", "which?").await;
    let due = prost_types::Timestamp { seconds: 4_200_000_000, nanos: 0 };
    let reminder = alice.remind("look", due).await.id;
    for (input, kind, said) in [
        (
            json!({"kind": "question", "id": question}),
            LooseEndKind::QuestionAsked,
            format!("Question #{question} is withdrawn, and no answer to it will come."),
        ),
        (
            json!({"kind": "reminder", "id": format!("#{reminder}")}),
            LooseEndKind::Reminder,
            format!("Reminder #{reminder} is cancelled."),
        ),
    ] {
        let text = good(&mut client, "cancel_loose_end", input, &format!("toolu_{kind:?}")).await;
        assert_eq!(text, said);
        let request: CancelLooseEndRequest = last(&broker, "CancelLooseEnd");
        assert_eq!(request.kind(), kind);
        assert!((1..=128).contains(&request.request_id.len()));
    }
    assert_eq!(alice.question(question).await.state(), QuestionState::Cancelled);
    assert_eq!(alice.reminders("").await[0].state(), ReminderState::Cancelled);
}

#[tokio::test]
async fn a_reminder_has_one_time() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let text =
        good(&mut client, "remind", json!({"message": "look", "delay_seconds": 60}), "toolu_1")
            .await;
    let request: CreateReminderRequest = last(&broker, "CreateReminder");
    assert_eq!(
        (request.body.as_str(), request.due),
        ("look", Some(Due::Delay(prost_types::Duration { seconds: 60, nanos: 0 })))
    );
    let at = json!({"message": "look", "delay_seconds": null, "at_unix_timestamp": "4200000000"});
    let later = good(&mut client, "remind", at, "toolu_2").await;
    let [first, second] = &broker.client("alice").await.reminders("").await[..] else {
        panic!("two reminders")
    };
    assert_eq!(text, format!("Reminder #{} is set for 2100-01-01T00:01:00Z.", first.id));
    assert_eq!(later, format!("Reminder #{} is set for 2103-02-04T02:40:00Z.", second.id));
}

#[tokio::test]
async fn a_reminder_of_an_earlier_attempt_is_not_set_again() {
    let due = Due::Delay(prost_types::Duration { seconds: 86_400, nanos: 0 });
    let broker = retried(1, async |alice| {
        let request = alice.request(request::remind("look", due));
        let set = ReminderServiceClient::new(alice.channel()).create_reminder(request).await;
        set.expect("the reminder is set");
    })
    .await;
    let input = json!({"message": "look", "delay_seconds": 86_400});
    let text = good(&mut connected(&broker).await, "remind", input, "toolu_3").await;
    let [set] = &broker.client("alice").await.reminders("").await[..] else { panic!("one") };
    let not_again =
        "Not set again: an earlier attempt of this turn has already set this as reminder";
    assert_eq!(text, format!("{not_again} #{} for 2100-01-02T00:00:00Z.", set.id));
}

#[tokio::test]
async fn a_reminder_that_was_accepted_by_a_dying_broker_is_not_doubled() {
    let mut broker = hive().await;
    let mut client = connected(&broker).await;
    broker.react(Reaction::ActAndHang);
    let input = json!({"message": "once", "delay_seconds": 60});
    let pending = client.start_tool("remind", input, "toolu_1").await.expect("the bridge reads");
    broker.withheld().await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    let [set] = &broker.client("alice").await.reminders("").await[..] else { panic!("one") };
    assert!(!is_error && text.starts_with(&format!("Reminder #{} is set", set.id)), "{text}");
    broker.with(|state| assert!(matches!(&state.calls[..], [first, second] if first == second)));
}

#[tokio::test]
async fn set_status_sets_and_clears_the_line() {
    let broker = hive().await;
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
        assert_eq!(last::<SetStatusTextRequest>(&broker, "SetStatusText").text, sent);
    }
}

#[tokio::test]
async fn invalid_values_are_refused_without_a_call_to_the_broker() {
    let broker = hive().await;
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
    let broker = hive().await;
    let mut client = connected(&broker).await;
    for (tool, input, reason, advice) in [
        (
            "get_loose_ends",
            json!({"agent": "bob"}),
            Reason::NotYourChild,
            "ask the agent itself or its parent",
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

//! Asking, answering, and the outcomes.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_in_process::{Broker, Reaction};
use hive_proto::status;
use hive_proto::v1::recipient::To;
use hive_proto::v1::{
    AskQuestionRequest, OperatorRecipient, ParentRecipient, Question, SystemKind,
};
use hive_tests::mcp::Client;
use hive_tests::rig::request::{self, texts};

use serde_json::{Value, json};

use crate::rig::{self, TOKEN, call, connected, good, hive, retried};

/// Asks with these arguments; returns the text for the model, the request, and the question.
async fn ask_with(input: Value) -> (String, AskQuestionRequest, Question) {
    let broker = hive().await;
    let text = good(&mut connected(&broker).await, "ask", input, "toolu_1").await;
    let call = broker.with(|state| state.calls[0].clone());
    assert_eq!(call.process_token.as_deref(), Some(TOKEN));
    let question = broker.client("alice").await.questions().await.remove(0);
    (text, call.request("AskQuestion").expect("a question"), question)
}

#[tokio::test]
async fn ask_goes_to_the_operator_by_default() {
    let input = json!({"question": "which one?", "options": ["red", "blue"], "multi": true, "ttl_seconds": 60});
    let (text, request, Question { id, .. }) = ask_with(input).await;
    let open_until = format!("question #{id} (open until 2100-01-01T00:01:00Z)");
    assert_eq!(
        text,
        format!(
            "Asked operator: {open_until}. The answer comes as a message; do not wait for it idly."
        )
    );
    assert_eq!(request.to.and_then(|to| to.to), Some(To::Operator(OperatorRecipient {})));
    assert_eq!((request.text.as_str(), request.multi), ("which one?", true));
    assert_eq!(request.options, ["red", "blue"]);
    assert_eq!(request.ttl, Some(prost_types::Duration { seconds: 60, nanos: 0 }));
    assert!((1..=128).contains(&request.request_id.len()));

    let (text, request, Question { id, .. }) =
        ask_with(json!({"question": "done?", "to": " bob "})).await;
    assert!(text.starts_with(&format!("Asked bob: question #{id}. ")), "{text}");
    assert_eq!(request.to.and_then(|to| to.to), Some(To::Agent("bob".to_owned())));
    assert_eq!((request.options.len(), request.multi, request.ttl), (0, false, None));
    for (to, whom) in
        [("<parent>", To::Parent(ParentRecipient {})), ("", To::Operator(OperatorRecipient {}))]
    {
        assert_eq!(
            ask_with(json!({"question": "x", "to": to})).await.1.to.and_then(|to| to.to),
            Some(whom)
        );
    }
}

#[tokio::test]
async fn ask_takes_its_arguments_as_models_write_them() {
    let input = json!({"question": "x", "options": "[\"a\", \"b\"]", "multi": "true", "ttl_seconds": "5", "to": null});
    let request = ask_with(input).await.1;
    assert_eq!(
        (request.options.len(), request.multi, request.ttl.map(|ttl| ttl.seconds)),
        (2, true, Some(5))
    );
    let request =
        ask_with(json!({"question": "x", "options": null, "multi": null, "ttl_seconds": null}))
            .await
            .1;
    assert_eq!((request.options.len(), request.multi, request.ttl), (0, false, None));
}

#[tokio::test]
async fn invalid_questions_and_answers_are_refused_without_a_call_to_the_broker() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    for (tool, input, problem) in [
        (
            "ask",
            json!({"question": "x", "to": "*"}),
            "a question goes to one: name an agent, `operator` or `<parent>`",
        ),
        ("ask", json!({"options": ["a"]}), "missing field `question`"),
        ("ask", json!({"question": "x", "options": [1]}), "a list of texts is needed"),
        ("ask", json!({"question": "x", "multi": 2}), "2 is neither true nor false"),
        ("ask", json!({"question": "x", "ttl_seconds": u64::MAX}), "ttl_seconds is too long"),
        ("ask", json!({"question": "x", "ttl_seconds": -1}), "is no whole number"),
        (
            "answer",
            json!({"id": 7}),
            "there is no answer: give answer (a text), choices (of the options), or both",
        ),
        ("answer", json!({"id": 7, "answer": " ", "choices": []}), "there is no answer"),
        ("answer", json!({"answer": "yes"}), "missing field `id`"),
        ("answer", json!({"id": 0, "answer": "yes"}), "an id is a whole number above 0"),
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
async fn a_question_of_an_earlier_attempt_is_not_asked_again() {
    let broker = retried(1, async |alice| _ = alice.ask("operator", "x").await).await;
    let text =
        good(&mut connected(&broker).await, "ask", json!({"question": "x"}), "toolu_1").await;
    let [question] = &broker.client("alice").await.questions().await[..] else { panic!("one") };
    assert_eq!(
        text,
        format!(
            "Not asked again: an earlier attempt of this turn has already asked this as question \
             #{}, which is open; the answer comes as a message.",
            question.id
        )
    );
}

#[tokio::test]
async fn a_question_that_was_accepted_by_a_dying_broker_is_not_doubled() {
    let mut broker = hive().await;
    let mut client = connected(&broker).await;
    broker.react(Reaction::ActAndHang);
    let pending = client
        .start_tool("ask", json!({"question": "once?"}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.withheld().await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    let [question] = &broker.client("alice").await.questions().await[..] else { panic!("one") };
    let asked = format!("Asked operator: question #{}. ", question.id);
    assert!(!is_error && text.starts_with(&asked), "{text}");
    broker.with(|state| {
        assert_eq!(state.calls.len(), 2);
        assert_eq!(
            state.calls[0], state.calls[1],
            "every attempt is the same request, process token included"
        );
    });
}

#[tokio::test]
async fn an_answer_has_text_or_choices_or_both() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let bob = broker.client("bob").await;
    let colours = || AskQuestionRequest {
        options: texts(&["red", "blue"]),
        multi: true,
        ..request::ask("alice", "which?")
    };
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(bob.question_of(colours()).await);
    }
    for (id, input, choices, text) in [
        (ids[0], json!({"id": ids[0], "answer": "neither"}), vec![], "neither"),
        (
            ids[1],
            json!({"id": format!("#{}", ids[1]), "choices": ["red", "blue"]}),
            vec!["red", "blue"],
            "",
        ),
        (
            ids[2],
            json!({"id": ids[2].to_string(), "choices": "red", "answer": "it is warmer"}),
            vec!["red"],
            "it is warmer",
        ),
    ] {
        let answered = good(&mut client, "answer", input, &format!("toolu_{id}")).await;
        assert_eq!(answered, format!("Answered question #{id}; bob is told."));
        let answer = bob.question(id).await.answer.expect("it is there");
        assert_eq!((answer.choices, answer.text.as_str()), (texts(&choices), text));
    }
    let late = json!({"id": ids[0], "answer": "late"});
    let (text, is_error) = call(&mut client, "answer", late, "toolu_late").await;
    let advice = "nothing was changed: go on with the outcome it has";
    let closed = format!("question {} has its outcome already: answered by alice", ids[0]);
    assert!(is_error && text == format!("QUESTION_CLOSED: {closed}; {advice}"), "{text}");
    let (text, is_error) =
        call(&mut client, "answer", json!({"id": 70_000, "answer": "x"}), "toolu_none").await;
    let none = "QUESTION_NOT_FOUND: there is no question 70000 that you asked or were asked; use the id of";
    assert!(is_error && text.starts_with(none), "{text}");
}

#[tokio::test]
async fn refusals_about_questions_say_what_to_do() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let (ask, answer) = (json!({"question": "x", "to": "bob"}), json!({"id": 7, "answer": "x"}));
    for (index, (tool, input, reason, advice)) in [
        (
            "ask",
            &ask,
            Reason::QuestionLimit,
            "wait for answers, or withdraw a question with cancel_loose_end",
        ),
        ("ask", &ask, Reason::RecipientNotAllowed, "ask <parent> to pass it on"),
        ("ask", &ask, Reason::AgentRetired, "write to another agent or to <parent>"),
        ("ask", &ask, Reason::BodyTooLarge, "shorten it"),
        ("answer", &answer, Reason::NotTheTarget, "leave the answer to whom it was put"),
        ("answer", &answer, Reason::CapabilityMissing, "you have no right to it"),
    ]
    .into_iter()
    .enumerate()
    {
        broker.react(Reaction::Refuse(status::refusal(reason, "no", None)));
        let (text, is_error) =
            call(&mut client, tool, input.clone(), &format!("toolu_{index}")).await;
        assert!(
            is_error && text.starts_with(&format!("{reason}: no; ")) && text.contains(advice),
            "{text}"
        );
    }
    assert_eq!(broker.with(|state| state.calls.len()), 6, "a refusal is not tried again");
}

/// Receives one message of this kind, and checks its subject.
async fn receive_notice(broker: &Broker, client: &mut Client, kind: SystemKind, about: &str) {
    let wait = json!({"wait_seconds": 60});
    let text = good(client, "recv", wait, &format!("toolu_{about}")).await;
    let deliveries = broker.client("alice").await.all_deliveries("").await;
    let mut messages = deliveries.into_iter().filter_map(|delivery| delivery.message);
    let message = messages.find(|message| message.system_kind() == kind).expect("it has come");
    let lines: String = message.body.lines().map(|line| format!("| {line}\n")).collect();
    let reply = match message.in_reply_to {
        0 => String::new(),
        asked => format!(", in reply to #{asked}"),
    };
    assert_eq!(text, format!("#{} from system ({about}){reply}\n{lines}", message.id));
    assert!(
        kind == SystemKind::Reminder || message.body.contains("\n> #9 from operator"),
        "{text}"
    );
}

#[tokio::test]
async fn recv_names_the_question_or_reminder_of_a_message() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let (alice, bob) = (rig::alice(&broker).await, broker.client("bob").await);
    let words = "which?\n#9 from operator";
    let question = bob.ask("alice", words).await;
    let about = format!("question #{question} for you: close it with answer");
    receive_notice(&broker, &mut client, SystemKind::QuestionAsked, &about).await;
    bob.withdraw(question).await;
    let about = format!("question #{question} is withdrawn");
    receive_notice(&broker, &mut client, SystemKind::QuestionCancelled, &about).await;
    let question = alice.ask("bob", words).await;
    bob.answer(question, words).await;
    let about = format!("question #{question} is answered");
    receive_notice(&broker, &mut client, SystemKind::QuestionAnswered, &about).await;
    let ttl = Some(prost_types::Duration { seconds: 1, nanos: 0 });
    let question =
        alice.question_of(AskQuestionRequest { ttl, ..request::ask("bob", words) }).await;
    let due = prost_types::Timestamp { seconds: 4_102_444_805, nanos: 0 };
    let reminder = alice.remind("look", due).await.id;
    broker.advance(Duration::from_secs(2));
    let about = format!("question #{question} has expired");
    receive_notice(&broker, &mut client, SystemKind::QuestionExpired, &about).await;
    broker.advance(Duration::from_secs(4));
    let about = format!("your reminder #{reminder}");
    receive_notice(&broker, &mut client, SystemKind::Reminder, &about).await;
}

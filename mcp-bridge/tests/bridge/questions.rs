//! Asking, answering, and what comes of it.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::recipient::To;
use hive_proto::v1::{
    AskQuestionRequest, Delivery, Message, OperatorRecipient, Origin, OriginKind, ParentRecipient,
    Question, SystemKind,
};
use hive_tests::fake_broker::{FakeBroker, Reaction, Rpc};
use serde_json::{Value, json};

use crate::rig::{TOKEN, call, connected, good};

async fn asked(input: Value) -> (String, AskQuestionRequest) {
    let broker = FakeBroker::start();
    let text = good(&mut connected(&broker).await, "ask", input, "toolu_1").await;
    let call = broker.with(|state| state.calls[0].clone());
    assert_eq!(call.process_token.as_deref(), Some(TOKEN));
    let Rpc::Ask(request) = call.rpc else { panic!("{call:?} is no question") };
    (text, request)
}

#[tokio::test]
async fn ask_goes_to_the_operator_unless_somebody_is_named() {
    let input = json!({"question": "which one?", "options": ["red", "blue"], "multi": true, "ttl_seconds": 60});
    let (text, request) = asked(input).await;
    let open_until = "question #101 (open until 2023-11-14T22:14:20Z)";
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

    let (text, request) = asked(json!({"question": "done?", "to": " bob "})).await;
    assert!(text.starts_with("Asked bob: question #101. "), "{text}");
    assert_eq!(request.to.and_then(|to| to.to), Some(To::Agent("bob".to_owned())));
    assert_eq!((request.options.len(), request.multi, request.ttl), (0, false, None));
    for (to, whom) in
        [("<parent>", To::Parent(ParentRecipient {})), ("", To::Operator(OperatorRecipient {}))]
    {
        assert_eq!(
            asked(json!({"question": "x", "to": to})).await.1.to.and_then(|to| to.to),
            Some(whom)
        );
    }
}

#[tokio::test]
async fn ask_takes_its_arguments_as_models_write_them() {
    let input = json!({"question": "x", "options": "[\"a\", \"b\"]", "multi": "true", "ttl_seconds": "5", "to": null});
    let request = asked(input).await.1;
    assert_eq!(
        (request.options.len(), request.multi, request.ttl.map(|ttl| ttl.seconds)),
        (2, true, Some(5))
    );
    let request =
        asked(json!({"question": "x", "options": null, "multi": null, "ttl_seconds": null}))
            .await
            .1;
    assert_eq!((request.options.len(), request.multi, request.ttl), (0, false, None));
}

#[tokio::test]
async fn what_cannot_be_asked_or_answered_is_told_without_asking_the_broker() {
    let broker = FakeBroker::start();
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
    let broker = FakeBroker::start();
    broker.with(|state| state.already_done = true);
    let text =
        good(&mut connected(&broker).await, "ask", json!({"question": "x"}), "toolu_1").await;
    assert_eq!(
        text,
        "Not asked again: an earlier attempt of this turn has already asked this as question #101, which is open; \
         the answer comes as a message."
    );
}

#[tokio::test]
async fn a_question_that_was_accepted_by_a_dying_broker_is_not_doubled() {
    let mut broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    broker.react(Reaction::ActAndHang);
    let pending = client
        .start_tool("ask", json!({"question": "once?"}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.wait_for_calls(1).await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(!is_error && text.starts_with("Asked operator: question #101. "), "{text}");
    broker.with(|state| {
        assert_eq!((state.calls.len(), state.questions.len()), (2, 1));
        assert_eq!(
            state.calls[0], state.calls[1],
            "every attempt is the same request, process token included"
        );
    });
}

#[tokio::test]
async fn an_answer_has_words_or_choices_or_both() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (id, input, choices, text) in [
        (7, json!({"id": 7, "answer": "neither"}), vec![], "neither"),
        (8, json!({"id": "#8", "choices": ["red", "blue"]}), vec!["red", "blue"], ""),
        (
            9,
            json!({"id": "9", "choices": "red", "answer": "it is warmer"}),
            vec!["red"],
            "it is warmer",
        ),
    ] {
        broker.with(|state| {
            state.put(Question { id, asker: "bob".to_owned(), ..Question::default() });
        });
        let answered = good(&mut client, "answer", input, &format!("toolu_{id}")).await;
        assert_eq!(answered, format!("Answered question #{id}; bob is told."));
        let answer = broker
            .with(|state| state.question(id).and_then(|question| question.answer.clone()))
            .expect("it is there");
        assert_eq!(
            (answer.choices, answer.text.as_str()),
            (choices.into_iter().map(str::to_owned).collect(), text)
        );
    }
    let (text, is_error) =
        call(&mut client, "answer", json!({"id": 7, "answer": "late"}), "toolu_late").await;
    let advice = "nothing was changed: go on with the outcome it has";
    assert!(
        is_error && text == format!("QUESTION_CLOSED: question 7 is closed; {advice}"),
        "{text}"
    );
    let (text, is_error) =
        call(&mut client, "answer", json!({"id": 70, "answer": "x"}), "toolu_none").await;
    assert!(
        is_error && text.starts_with("QUESTION_NOT_FOUND: there is no question 70; use the id of"),
        "{text}"
    );
}

#[tokio::test]
async fn refusals_about_questions_say_what_to_do() {
    let broker = FakeBroker::start();
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

#[tokio::test]
async fn recv_says_of_which_question_or_reminder_a_message_is() {
    let broker = FakeBroker::start();
    let mut client = connected(&broker).await;
    for (kind, about) in [
        (SystemKind::QuestionAsked, "question #40 for you: close it with answer"),
        (SystemKind::QuestionAnswered, "question #40 is answered"),
        (SystemKind::QuestionExpired, "question #40 has expired"),
        (SystemKind::QuestionCancelled, "question #40 is withdrawn"),
        (SystemKind::Reminder, "your reminder #50"),
    ] {
        let origin = Some(Origin { kind: OriginKind::System.into(), name: String::new() });
        let body = "bob asks you:\n#9 from operator".to_owned();
        let mut message = Message {
            id: 41,
            origin,
            body,
            question_id: 40,
            reminder_id: 50,
            ..Message::default()
        };
        message.set_system_kind(kind);
        let delivery = Delivery { message: Some(message), attempt: 1, ..Delivery::default() };
        broker.with(|state| state.mail.push_back(delivery));
        let text = good(&mut client, "recv", json!({}), &format!("toolu_{about}")).await;
        assert_eq!(
            text,
            format!("#41 from system ({about})\n| bob asks you:\n| #9 from operator\n")
        );
    }
}

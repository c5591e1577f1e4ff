//! Questions, reminders, loose ends and searches with invalid requests: the field is named, and
//! nothing is stored.

use hive_core::reason::Reason;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
use hive_tests::rig::{
    Rig, fresh_id,
    request::{self, texts},
    to,
};
use prost::Message as _;
use prost_types::{Duration, Timestamp};
use tonic::transport::Channel;

use crate::ask::{bad_field, call_bytes, did, done, refused};

/// Request ids that are none.
fn bad_ids() -> [String; 3] {
    [String::new(), "x".repeat(129), "with\nline".to_owned()]
}

/// Numbers that are no id of anything here.
const FAR_IDS: [u64; 2] = [(1 << 53) - 1, (1 << 53) - 2];

async fn hive() -> (Rig, Channel, Channel) {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let (ada, operator) = (rig.agent("ada").await.channel(), rig.operator().await.channel());
    (rig, ada, operator)
}

fn ask() -> AskQuestionRequest {
    request::ask("bob", "well?")
}

fn remind(due: Option<Due>) -> CreateReminderRequest {
    CreateReminderRequest { request_id: fresh_id(), body: "look again".to_owned(), due }
}

fn delay(seconds: i64, nanos: i32) -> Option<Due> {
    Some(Due::Delay(Duration { seconds, nanos }))
}

fn due_time(seconds: i64, nanos: i32) -> Option<Due> {
    Some(Due::DueTime(Timestamp { seconds, nanos }))
}

/// About what time the broker thinks it is, in seconds: it was just started.
async fn now(operator: &Channel) -> i64 {
    let status: GetBrokerStatusResponse = done(operator, &GetBrokerStatusRequest {}).await;
    status.start_time.expect("it was started").seconds
}

async fn asked(channel: &Channel, ask: AskQuestionRequest) -> u64 {
    let asked: AskQuestionResponse = done(channel, &ask).await;
    asked.question.expect("a question").id
}

async fn reminded(channel: &Channel, remind: CreateReminderRequest) -> Reminder {
    let set: CreateReminderResponse = done(channel, &remind).await;
    set.reminder.expect("a reminder")
}

#[tokio::test]
async fn a_question_has_one_target_a_text_and_distinct_options() {
    let (rig, ada, operator) = hive().await;
    let before = rig.on_disk();
    for request_id in bad_ids() {
        bad_field(&ada, &AskQuestionRequest { request_id, ..ask() }, "request_id").await;
    }
    for (wrong, field) in
        [(None, "to"), (Some(Recipient { to: None }), "to"), (to("*"), "to"), (to("ada"), "to")]
    {
        bad_field(&ada, &AskQuestionRequest { to: wrong, ..ask() }, field).await;
    }
    for wrong in ["", "Bob", "bob ", "../bob", "operator\n"] {
        bad_field(&ada, &AskQuestionRequest { to: to(wrong), ..ask() }, "to.agent").await;
    }
    refused(
        &ada,
        &AskQuestionRequest { to: to("bobb"), ..ask() },
        Reason::AgentNotFound,
        &["did you mean `bob`"],
    )
    .await;
    for wrong in ["operator", "<parent>", "*"] {
        bad_field(&operator, &AskQuestionRequest { to: to(wrong), ..ask() }, "to").await;
    }
    for text in ["", " ", "\n\t\r\n", "\u{2003}"] {
        bad_field(&ada, &AskQuestionRequest { text: text.to_owned(), ..ask() }, "text").await;
    }
    for text in ["x".repeat(8_193), "\u{1f41d}".repeat(2_049), "x".repeat(100_000)] {
        let bytes = text.len().to_string();
        refused(
            &ada,
            &AskQuestionRequest { text, ..ask() },
            Reason::BodyTooLarge,
            &[&bytes, "8192"],
        )
        .await;
    }
    // Refused by its length, before it is read.
    let long = AskQuestionRequest { text: "x".repeat(1 << 20), ..ask() };
    refused(&ada, &long, Reason::BodyTooLarge, &[&long.encoded_len().to_string(), "8192"]).await;
    let many: Vec<String> = (0..21).map(|number| number.to_string()).collect();
    let option = |option: &str| vec!["fine".to_owned(), option.to_owned()];
    for options in [
        many,
        option(""),
        option("  "),
        option("a\nb"),
        option("\u{1b}[1m"),
        option(&"x".repeat(201)),
        option("fine"),
    ] {
        bad_field(&ada, &AskQuestionRequest { options, ..ask() }, "options").await;
    }
    bad_field(&ada, &AskQuestionRequest { multi: true, ..ask() }, "multi").await;
    let day = 24 * 3600;
    for (seconds, nanos) in
        [(0, 0), (0, 999_999_999), (-1, 0), (5, -1), (366 * day, 1), (i64::MAX, 0), (1, i32::MAX)]
    {
        bad_field(
            &ada,
            &AskQuestionRequest { ttl: Some(Duration { seconds, nanos }), ..ask() },
            "ttl",
        )
        .await;
    }
    rig.unchanged(&before, "a question that cannot be asked");

    // At the bounds it can be.
    let options: Vec<String> = (0..20).map(|number| format!("{number:0>200}")).collect();
    let ttl = Some(Duration { seconds: 366 * day, nanos: 0 });
    let widest = AskQuestionRequest {
        text: "x".repeat(8_192),
        options: options.clone(),
        multi: true,
        ttl,
        ..ask()
    };
    let id = asked(&ada, widest).await;
    let all =
        AnswerQuestionRequest { choices: options, ..request::answer(id, &"y".repeat(16_384)) };
    let bob = rig.agent("bob").await.channel();
    did(&bob, &all).await;
    let told = rig.agent("ada").await.deliveries("", &[]).await;
    let body = told
        .first()
        .and_then(|delivery| delivery.message.clone())
        .expect("the outcome is delivered")
        .body;
    assert!(body.contains(&"y".repeat(16_384)), "all of it");
}

#[tokio::test]
async fn an_answer_names_a_question_and_chooses_an_offered_option() {
    let (rig, ada, operator) = hive().await;
    let bob = rig.agent("bob").await.channel();
    let options = vec!["red".to_owned(), "blue".to_owned()];
    let one = asked(&ada, AskQuestionRequest { options: options.clone(), ..ask() }).await;
    let free = asked(&ada, ask()).await;
    let answer = |question_id: u64, choices: &[&str], text: &str| AnswerQuestionRequest {
        choices: texts(choices),
        ..request::answer(question_id, text)
    };
    let cancel = request::withdraw;
    let before = rig.on_disk();
    for request_id in bad_ids() {
        bad_field(
            &bob,
            &AnswerQuestionRequest { request_id: request_id.clone(), ..answer(one, &["red"], "") },
            "request_id",
        )
        .await;
        bad_field(&ada, &CancelQuestionRequest { request_id, question_id: one }, "request_id")
            .await;
    }
    for channel in [&bob, &operator] {
        for (wrong, field) in [
            (answer(0, &["red"], ""), "question_id"),
            (answer(one, &[], ""), "text"),
            (answer(one, &[], " \n"), "text"),
            (answer(one, &["green"], ""), "choices"),
            (answer(one, &["Red"], ""), "choices"),
            (answer(one, &["red "], ""), "choices"),
            (answer(one, &[""], "text"), "choices"),
            (answer(one, &["red", "blue"], ""), "choices"),
            (answer(one, &["red", "green"], "or both"), "choices"),
            (answer(free, &["red"], ""), "choices"),
            (answer(free, &[], ""), "text"),
        ] {
            bad_field(channel, &wrong, field).await;
        }
        let long = answer(free, &[], &"x".repeat(16_385));
        refused(channel, &long, Reason::BodyTooLarge, &["16385", "16384"]).await;
        for id in FAR_IDS {
            refused(channel, &answer(id, &[], "yes"), Reason::QuestionNotFound, &[&id.to_string()])
                .await;
            refused(channel, &cancel(id), Reason::QuestionNotFound, &[]).await;
            let get = GetQuestionRequest { question_id: id };
            refused(channel, &get, Reason::QuestionNotFound, &[]).await;
            let watch =
                WatchQuestionsRequest { question_id: id, ..WatchQuestionsRequest::default() };
            refused(channel, &watch, Reason::QuestionNotFound, &[]).await;
        }
        bad_field(channel, &cancel(0), "question_id").await;
        bad_field(channel, &GetQuestionRequest { question_id: 0 }, "question_id").await;
    }
    let terse = refused(
        &bob,
        &answer(one, &["green"], ""),
        Reason::FieldInvalid,
        &["offered are: red, blue"],
    )
    .await;
    assert!(terse.message().contains("free text"), "{terse:?}");
    rig.unchanged(&before, "an answer that does not fit");
    // The id of a message is no question's, and the id of the question is no message's.
    let message =
        rig.agent("bob").await.deliveries("", &[]).await[0].message.clone().expect("a message");
    refused(&bob, &answer(message.id, &[], "yes"), Reason::QuestionNotFound, &[]).await;
    refused(&bob, &GetMessageRequest { message_id: one }, Reason::MessageNotFound, &[]).await;
    rig.unchanged(&before, "an id of another kind");
    // Said twice is said once, and words beside the choice are fine.
    let doubled = answer(one, &["red", "red"], "no doubt");
    let answered: AnswerQuestionResponse = done(&bob, &doubled).await;
    let kept = answered.question.and_then(|question| question.answer).expect("an answer");
    assert_eq!(kept, Answer { choices: vec!["red".to_owned()], text: "no doubt".to_owned() });
}

#[tokio::test]
async fn lists_and_watches_know_their_filters_and_pages() {
    let (rig, ada, operator) = hive().await;
    asked(&ada, ask()).await;
    reminded(&ada, remind(delay(3600, 0))).await;
    let before = rig.on_disk();
    for channel in [&ada, &operator] {
        for state in [0, 99, -1, i32::MAX] {
            let list =
                ListQuestionsRequest { states: vec![1, state], ..ListQuestionsRequest::default() };
            bad_field(channel, &list, "states").await;
            let list =
                ListRemindersRequest { states: vec![1, state], ..ListRemindersRequest::default() };
            bad_field(channel, &list, "states").await;
        }
        for name in ["nobody", "Bob", "../ada", "a\0b"] {
            let list =
                ListQuestionsRequest { asker: name.to_owned(), ..ListQuestionsRequest::default() };
            refused(channel, &list, Reason::AgentNotFound, &[]).await;
            let watch = WatchQuestionsRequest {
                target: name.to_owned(),
                ..WatchQuestionsRequest::default()
            };
            refused(channel, &watch, Reason::AgentNotFound, &[]).await;
            let list =
                ListLooseEndsRequest { agent: name.to_owned(), ..ListLooseEndsRequest::default() };
            refused(channel, &list, Reason::AgentNotFound, &[]).await;
            let reason = if std::ptr::eq(channel, &raw const operator) {
                Reason::AgentNotFound
            } else {
                Reason::NotYours
            };
            let list =
                ListRemindersRequest { agent: name.to_owned(), ..ListRemindersRequest::default() };
            refused(channel, &list, reason, &[]).await;
            let agent = name.to_owned();
            let search = SearchMessagesRequest {
                agent,
                query: "well".to_owned(),
                ..SearchMessagesRequest::default()
            };
            refused(channel, &search, reason, &[]).await;
        }
        let words = "word ".repeat(17);
        for query in ["", " ", "*", "\"\"", "->", "a*", "\0", &"x".repeat(257), &words] {
            let search = SearchMessagesRequest {
                query: query.to_owned(),
                ..SearchMessagesRequest::default()
            };
            bad_field(channel, &search, "query").await;
        }
    }
    rig.unchanged(&before, "a list");
}

#[tokio::test]
async fn a_reminder_has_a_body_and_one_possible_time() {
    let (rig, ada, operator) = hive().await;
    let before = rig.on_disk();
    for request_id in bad_ids() {
        bad_field(
            &ada,
            &CreateReminderRequest { request_id, ..remind(delay(60, 0)) },
            "request_id",
        )
        .await;
    }
    bad_field(&ada, &CreateReminderRequest { body: String::new(), ..remind(delay(60, 0)) }, "body")
        .await;
    let body = "x".repeat(32_769);
    let words = ["32769", "32768"];
    refused(
        &ada,
        &CreateReminderRequest { body, ..remind(delay(60, 0)) },
        Reason::BodyTooLarge,
        &words,
    )
    .await;
    bad_field(&ada, &remind(None), "due").await;
    let most = 3_660 * 24 * 3600;
    for (seconds, nanos) in [
        (0, 0),
        (0, 999_999_999),
        (-1, 0),
        (0, -1),
        (most, 1),
        (i64::MAX, 0),
        (i64::MIN, 0),
        (1, i32::MAX),
    ] {
        bad_field(&ada, &remind(delay(seconds, nanos)), "delay").await;
    }
    let now = now(&operator).await;
    for (seconds, nanos) in [
        (now - 2, 0),
        (0, 0),
        (-1, 0),
        (now + most + 60, 0),
        (i64::MAX, 0),
        (i64::MAX / 1000, 0),
        (i64::MIN, 0),
        (now + 60, -1),
        (now + 60, 1_000_000_000),
    ] {
        bad_field(&ada, &remind(due_time(seconds, nanos)), "due_time").await;
    }
    let past =
        refused(&ada, &remind(due_time(0, 0)), Reason::FieldInvalid, &["1970-01-01T00:00:00Z"])
            .await;
    assert!(past.message().contains("it is 20"), "it says what time it is: {past:?}");
    refused(&operator, &remind(delay(60, 0)), Reason::NotAnAgent, &[]).await;

    // Of a choice that is made twice on the wire the last one counts.
    let both = |first: Option<Due>, second: Option<Due>| {
        let second =
            CreateReminderRequest { request_id: String::new(), body: String::new(), due: second };
        [remind(first).encode_to_vec(), second.encode_to_vec()].concat()
    };
    for (first, second, field) in
        [(delay(60, 0), due_time(1, 0), "due_time"), (due_time(now + 60, 0), delay(0, 5), "delay")]
    {
        let refusal = call_bytes::<CreateReminderRequest>(&ada, both(first, second))
            .await
            .map(drop)
            .expect_err("the last one is wrong");
        assert!(refusal.message().starts_with(field), "{refusal:?}");
    }
    rig.unchanged(&before, "a reminder that cannot be set");

    let set = reminded(&ada, remind(delay(most, 0))).await;
    let (due, set) = (set.due_time.expect("a time"), set.create_time.expect("a time"));
    assert_eq!((due.seconds - set.seconds, due.nanos - set.nanos), (most, 0));
    let exact = due_time(now + 3600, 123_456_789);
    let millis = Some(Timestamp { seconds: now + 3600, nanos: 123_000_000 });
    assert_eq!(reminded(&ada, remind(exact)).await.due_time, millis, "to the millisecond");
}

#[tokio::test]
async fn an_item_to_close_is_named_by_kind_and_number() {
    let (rig, ada, operator) = hive().await;
    let question = asked(&ada, ask()).await;
    let reminder = reminded(&ada, remind(delay(3600, 0))).await.id;
    let close = |kind: i32, id: u64| CancelLooseEndRequest { request_id: fresh_id(), kind, id };
    let (asked_kind, reminder_kind) =
        (LooseEndKind::QuestionAsked.into(), LooseEndKind::Reminder.into());
    let unremind = |reminder_id| CancelReminderRequest { request_id: fresh_id(), reminder_id };
    let before = rig.on_disk();
    for request_id in bad_ids() {
        bad_field(
            &ada,
            &CancelLooseEndRequest {
                request_id: request_id.clone(),
                ..close(asked_kind, question)
            },
            "request_id",
        )
        .await;
        bad_field(&ada, &CancelReminderRequest { request_id, reminder_id: reminder }, "request_id")
            .await;
    }
    for channel in [&ada, &operator] {
        for kind in [0, 99, -1, i32::MAX] {
            bad_field(channel, &close(kind, question), "kind").await;
        }
        for (kind, words) in [
            (LooseEndKind::QuestionOwed, "answer"),
            (LooseEndKind::DeadLetter, "redriven or dropped"),
            (LooseEndKind::External, "co-process"),
        ] {
            bad_field(channel, &close(kind.into(), question), "kind").await;
            refused(channel, &close(kind.into(), question), Reason::FieldInvalid, &[words]).await;
        }
        bad_field(channel, &close(asked_kind, 0), "id").await;
        bad_field(channel, &unremind(0), "reminder_id").await;
        for id in FAR_IDS {
            refused(channel, &close(asked_kind, id), Reason::QuestionNotFound, &[]).await;
            refused(channel, &close(reminder_kind, id), Reason::ReminderNotFound, &[]).await;
            refused(channel, &unremind(id), Reason::ReminderNotFound, &[]).await;
        }
        // The number of the one kind under the name of the other.
        refused(channel, &close(asked_kind, reminder), Reason::QuestionNotFound, &[]).await;
        refused(channel, &close(reminder_kind, question), Reason::ReminderNotFound, &[]).await;
        refused(channel, &unremind(question), Reason::ReminderNotFound, &[]).await;
    }
    rig.unchanged(&before, "a loose end that is none");
    did(&ada, &close(asked_kind, question)).await;
    did(&ada, &close(reminder_kind, reminder)).await;
    let before = rig.on_disk();
    refused(&ada, &close(asked_kind, question), Reason::QuestionClosed, &["cancelled by ada"])
        .await;
    refused(&ada, &close(reminder_kind, reminder), Reason::WrongState, &["cancelled"]).await;
    rig.unchanged(&before, "what was closed before");
}

#[tokio::test]
async fn a_published_set_has_a_label_and_entries_on_one_line() {
    let (rig, ada, operator) = hive().await;
    let entry =
        |key: &str, text: &str| PublishedLooseEnd { key: key.to_owned(), text: text.to_owned() };
    let publish = |label: &str, loose_ends: Vec<PublishedLooseEnd>| ReplaceLooseEndsRequest {
        request_id: fresh_id(),
        label: label.to_owned(),
        loose_ends,
    };
    let fine = || vec![entry("build", "the build runs")];
    let before = rig.on_disk();
    for request_id in bad_ids() {
        bad_field(
            &ada,
            &ReplaceLooseEndsRequest { request_id, ..publish("ci", fine()) },
            "request_id",
        )
        .await;
    }
    for label in [
        "",
        "Ci",
        "c i",
        "ci\n",
        "operator",
        "system",
        "reminder",
        "self",
        "external:ci",
        "ada",
        "bob",
        &"c".repeat(64),
    ] {
        bad_field(&ada, &publish(label, fine()), "label").await;
    }
    let many: Vec<PublishedLooseEnd> =
        (0..101).map(|number| entry(&number.to_string(), "x")).collect();
    for (place, loose_ends) in [
        many,
        vec![entry("", "x")],
        vec![entry(&"k".repeat(129), "x")],
        vec![entry("a\tb", "x")],
        vec![entry("k", "")],
        vec![entry("k", &"x".repeat(501))],
        vec![entry("k", "two\nlines")],
        vec![entry("k", "\u{1b}[2J")],
        vec![entry("k", "x"), entry("k", "y")],
    ]
    .into_iter()
    .enumerate()
    {
        let refusal = refused(&ada, &publish("ci", loose_ends), Reason::FieldInvalid, &[]).await;
        assert!(refusal.message().starts_with("loose_ends: "), "{place}: {refusal:?}");
    }
    refused(&operator, &publish("ci", fine()), Reason::NotAnAgent, &[]).await;
    rig.unchanged(&before, "a set that cannot be published");

    let most: Vec<PublishedLooseEnd> =
        (0..100).map(|number| entry(&format!("{number:0>128}"), &"\u{e4}".repeat(500))).collect();
    did(&ada, &publish("ci", most)).await;
    for number in 1..16 {
        did(&ada, &publish(&format!("ci.{number}"), fine())).await;
    }
    let before = rig.on_disk();
    bad_field(&ada, &publish("ci.16", fine()), "label").await;
    rig.unchanged(&before, "one label too many");
    did(&ada, &publish("ci.16", Vec::new())).await;
    did(&ada, &publish("ci.3", Vec::new())).await;
    did(&ada, &publish("ci.16", fine())).await;
}

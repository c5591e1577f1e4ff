//! Schedules: asked for as approvals or granted, changed, fired, listed and ended.

use hive_in_process::Broker;
use hive_proto::v1::effect::Effect;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::schedule_service_client::ScheduleServiceClient;
use hive_proto::v1::{
    AnswerQuestionRequest, AskQuestionRequest, ChangeScheduleEffect, CreateScheduleEffect,
    ListSchedulesRequest, ListSchedulesResponse, Question, Schedule, SystemKind,
};
use hive_tests::mcp::Client;
use hive_tests::rig::request;
use prost_types::{Duration, Timestamp};
use serde_json::{Value, json};
use tonic::Response;

use crate::rig::{self, TOKEN, call, good};

/// Alice with the group and no grant; bob; and carol, her child.
const HIVE: &str = r#"
[agents.alice]
tool_groups = ["messaging", "scheduling"]
[agents.bob]
[agents.carol]
parent = "alice"
"#;

/// An hour after the broker's clock begins: 2100-01-01T01:00:00Z.
const FIRST: i64 = 4_102_448_400;

/// Starts a broker in which alice has an open turn; `granted` gives her the grant.
async fn hive(granted: bool) -> Broker {
    let grants =
        if granted { "grants = [\"own_schedules\"]\n[agents.bob]" } else { "[agents.bob]" };
    Broker::in_turn(&HIVE.replace("[agents.bob]", grants), "alice", TOKEN).await
}

async fn connected(broker: &Broker) -> Client {
    let mut command = rig::command(&broker.socket());
    command.env("HIVE_TOOL_GROUPS", "scheduling");
    let mut client = Client::spawn(&mut command).expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    client
}

/// The arguments of a schedule to bob and carol, every hour.
fn hourly() -> Value {
    json!({
        "body": "Report.\nBriefly.", "targets": ["bob", "carol"], "first_fire_at_unix": FIRST,
        "interval_seconds": 3600, "zone": "Europe/Berlin", "late_max_seconds": 600,
        "why": "I need their reports.",
    })
}

/// Returns alice's only schedule that has not ended.
async fn only(broker: &Broker) -> Schedule {
    let channel = broker.client("alice").await.channel();
    let mut service = ScheduleServiceClient::new(channel);
    let listed = service.list_schedules(ListSchedulesRequest::default()).await.expect("listed");
    let [schedule] = &listed.into_inner().schedules[..] else { panic!("one schedule") };
    schedule.clone()
}

/// Approves alice's last question as the operator does, with the digest of what it shows.
async fn approve(broker: &Broker) {
    let operator = broker.operator().await;
    let Question { id, approval, .. } = operator.questions().await.pop().expect("a question");
    let answer = AnswerQuestionRequest {
        choices: vec!["approve".to_owned()],
        diff_digest: approval.expect("an approval").diff_digest,
        ..request::answer(id, "")
    };
    let answered = QuestionServiceClient::new(operator.channel()).answer_question(answer).await;
    answered.expect("approved");
}

/// Asks for the hourly schedule, and has it approved; its id.
async fn approved(broker: &Broker, client: &mut Client) -> u64 {
    good(client, "request_schedule_prompt", hourly(), "toolu_create").await;
    approve(broker).await;
    only(broker).await.id
}

/// Returns the effects that were asked for.
fn effects(broker: &Broker) -> Vec<Effect> {
    let asked = broker.requests::<AskQuestionRequest>("AskQuestion");
    asked.into_iter().filter_map(|asked| asked.effect.and_then(|effect| effect.effect)).collect()
}

#[tokio::test]
async fn a_schedule_that_is_asked_for_waits_for_the_operator() {
    let broker = hive(false).await;
    let mut client = connected(&broker).await;
    let mut input = hourly();
    input["ttl_seconds"] = json!("60");
    let text = good(&mut client, "request_schedule_prompt", input, "toolu_1").await;
    assert!(text.starts_with("Asked the operator to approve it: question #"), "{text}");
    assert!(text.contains("Nothing is changed yet") && text.contains("bob"), "{text}");

    let span = |seconds| Some(Duration { seconds, nanos: 0 });
    let wanted = CreateScheduleEffect {
        body: "Report.\nBriefly.".to_owned(),
        targets: vec!["bob".to_owned(), "carol".to_owned()],
        first_time: Some(Timestamp { seconds: FIRST, nanos: 0 }),
        interval: span(3600),
        zone: "Europe/Berlin".to_owned(),
        late_max: span(600),
    };
    assert_eq!(effects(&broker), [Effect::CreateSchedule(wanted)]);
    let [asked] = &broker.requests::<AskQuestionRequest>("AskQuestion")[..] else { panic!("one") };
    assert_eq!((asked.text.as_str(), asked.ttl), ("I need their reports.", span(60)));
    let listed = good(&mut client, "list_schedules", json!({}), "toolu_2").await;
    assert_eq!(listed, "You have no schedules.");

    approve(&broker).await;
    let id = only(&broker).await.id;
    assert_eq!(
        good(&mut client, "list_schedules", json!({}), "toolu_3").await,
        format!(
            "#{id}: active; next 2100-01-01T01:00:00Z; every 3600 s in Europe/Berlin; \
             at most 600 s late; to bob, carol: Report.⏎Briefly."
        )
    );
}

#[tokio::test]
async fn a_granted_schedule_fires_on_demand_and_ends() {
    let broker = hive(true).await;
    let mut client = connected(&broker).await;
    let text = good(&mut client, "request_schedule_prompt", hourly(), "toolu_1").await;
    assert!(text.starts_with("Done: your policy grants it, without an approval"), "{text}");
    let id = only(&broker).await.id;
    assert!(text.lines().any(|line| line == format!("schedule.id: {id}")), "{text}");

    let input = json!({"id": format!("#{id}")});
    let text = good(&mut client, "fire_schedule_now", input, "toolu_2").await;
    let [bobs, carols] = [broker.inbox("bob").await, broker.inbox("carol").await];
    let ([bobs], [carols]) = (&bobs[..], &carols[..]) else { panic!("{bobs:?} {carols:?}") };
    let head =
        format!("Schedule #{id} has fired; its next due time is still 2100-01-01T01:00:00Z.");
    assert_eq!(text, format!("{head}\nbob: message #{bobs}\ncarol: message #{carols}"));

    // Bob reads his and has not settled it; carol's is replaced.
    let bob = broker.harness("bob").await;
    bob.begin().await;
    let text = good(&mut client, "fire_schedule_now", json!({"id": id}), "toolu_3").await;
    let lines: Vec<&str> = text.lines().collect();
    let [first, bobs, carols] = lines[..] else { panic!("{text}") };
    assert_eq!(first, head);
    assert!(bobs.starts_with("bob: no message: ") && carols.starts_with("carol: message #"));

    let text = good(&mut client, "cancel_schedule", json!({"id": id}), "toolu_4").await;
    assert_eq!(text, format!("Schedule #{id} has ended; the messages that it has sent stay."));
    let listed = good(&mut client, "list_schedules", json!({}), "toolu_5").await;
    assert_eq!(listed, "You have no schedules.");
    // Its own doing is no news to the agent.
    let notices = broker.operator().await.notices("alice", SystemKind::ScheduleEnded).await;
    assert!(notices.is_empty(), "{notices:?}");
    for (number, tool) in ["cancel_schedule", "fire_schedule_now"].into_iter().enumerate() {
        let tool_use_id = format!("toolu_ended_{number}");
        let (text, is_error) = call(&mut client, tool, json!({"id": id}), &tool_use_id).await;
        assert!(is_error && text.starts_with("WRONG_STATE: "), "{text}");
    }
}

#[tokio::test]
async fn one_that_is_due_once_ends_with_its_firing() {
    let broker = hive(true).await;
    let mut client = connected(&broker).await;
    let input = json!({"body": "Look.", "targets": "alice", "first_fire_at_unix": FIRST.to_string(), "why": "x"});
    good(&mut client, "request_schedule_prompt", input, "toolu_1").await;
    let id = only(&broker).await.id;
    let listed = good(&mut client, "list_schedules", json!({}), "toolu_2").await;
    assert_eq!(listed, format!("#{id}: active; next 2100-01-01T01:00:00Z; once; to alice: Look."));
    let text = good(&mut client, "fire_schedule_now", json!({"id": id}), "toolu_3").await;
    let head =
        format!("Schedule #{id} has fired; it was due once, so it has ended.\nalice: message #");
    assert!(text.starts_with(&head), "{text}");
}

#[tokio::test]
async fn a_change_that_narrows_is_made_at_once_and_another_waits() {
    let broker = hive(false).await;
    let mut client = connected(&broker).await;
    let id = approved(&broker, &mut client).await;

    let fewer =
        json!({"id": id, "targets_remove": ["carol"], "interval_seconds": 7200, "why": "x"});
    let text = good(&mut client, "edit_schedule", fewer, "toolu_1").await;
    assert!(text.starts_with("Done: it needs no approval (question #"), "{text}");
    let schedule = only(&broker).await;
    let targets: Vec<&str> = schedule.targets.iter().map(|target| &target.agent[..]).collect();
    assert_eq!(
        (targets, schedule.interval),
        (vec!["bob"], Some(Duration { seconds: 7200, nanos: 0 }))
    );

    let more = json!({"id": id, "targets_add": "carol", "why": "She is back."});
    let text = good(&mut client, "edit_schedule", more, "toolu_2").await;
    assert!(text.starts_with("Asked the operator to approve it: question #"), "{text}");
    assert_eq!(only(&broker).await.targets.len(), 1);
    let changed = ChangeScheduleEffect {
        schedule_id: id,
        targets_add: vec!["carol".to_owned()],
        ..ChangeScheduleEffect::default()
    };
    assert_eq!(effects(&broker).pop(), Some(Effect::ChangeSchedule(changed)));
    approve(&broker).await;
    assert_eq!(only(&broker).await.targets.len(), 2);
}

#[tokio::test]
async fn all_pages_are_listed_with_what_was_skipped() {
    let broker = hive(true).await;
    let mut client = connected(&broker).await;
    for tool_use_id in ["toolu_1", "toolu_2"] {
        let mut input = hourly();
        input["body"] = json!(tool_use_id);
        good(&mut client, "request_schedule_prompt", input, tool_use_id).await;
    }
    broker.edit_request("ListSchedules", |request: &mut ListSchedulesRequest| {
        request.page_size = 1;
    });
    broker.edit("ListSchedules", |listed: &mut Response<ListSchedulesResponse>| {
        let schedules = listed.get_mut().schedules.iter_mut();
        schedules.for_each(|schedule| schedule.targets[0].skipped_count = 3);
    });
    let listed = good(&mut client, "list_schedules", json!({}), "toolu_3").await;
    let [first, second] = listed.lines().collect::<Vec<_>>()[..] else { panic!("{listed}") };
    assert!(first.ends_with("; to bob (3 skipped), carol: toolu_1"), "{first}");
    assert!(second.ends_with("; to bob (3 skipped), carol: toolu_2"), "{second}");
    let pages = broker.requests::<ListSchedulesRequest>("ListSchedules");
    assert_eq!(pages.len(), 2);
    for request in pages {
        assert!(request.agent.is_empty() && request.states.is_empty(), "{request:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let broker = hive(false).await;
    let mut client = connected(&broker).await;
    let with = |field: &str, value: Value| {
        let mut input = hourly();
        input[field] = value;
        input
    };
    for (number, (tool, input, code, says)) in [
        ("cancel_schedule", json!({"id": 999}), "SCHEDULE_NOT_FOUND", "list_schedules lists"),
        ("fire_schedule_now", json!({"id": 999}), "SCHEDULE_NOT_FOUND", "list_schedules lists"),
        ("cancel_schedule", json!({"id": "last"}), "FIELD_INVALID", "is no whole number"),
        (
            "edit_schedule",
            json!({"id": 999, "body": "x", "why": "x"}),
            "SCHEDULE_NOT_FOUND",
            "list_schedules lists",
        ),
        ("edit_schedule", json!({"id": 999, "why": "x"}), "FIELD_INVALID", "a new value"),
        ("request_schedule_prompt", with("zone", json!("Mars/Base")), "FIELD_INVALID", "zone"),
        (
            "request_schedule_prompt",
            with("interval_seconds", json!(59)),
            "FIELD_INVALID",
            "whole seconds, from 60 s",
        ),
        (
            "request_schedule_prompt",
            with("late_max_seconds", json!(59)),
            "FIELD_INVALID",
            "whole seconds, from 60 s",
        ),
        (
            "request_schedule_prompt",
            with("first_fire_at_unix", json!("noon")),
            "FIELD_INVALID",
            "`first_fire_at_unix`: \"noon\" is no whole number",
        ),
        (
            "request_schedule_prompt",
            with("first_fire_at_unix", json!(FIRST * 1000)),
            "FIELD_INVALID",
            "first_fire_at_unix is too far ahead; it is in seconds",
        ),
        ("request_schedule_prompt", with("body", json!(" ")), "FIELD_INVALID", "needs a text"),
        ("request_schedule_prompt", with("targets", json!([])), "FIELD_INVALID", "has 0 targets"),
        ("request_schedule_prompt", with("targets", json!("eve")), "AGENT_NOT_FOUND", "eve"),
    ]
    .into_iter()
    .enumerate()
    {
        let (text, is_error) = call(&mut client, tool, input, &format!("toolu_{number}")).await;
        assert!(is_error && text.starts_with(&format!("{code}: ")), "{text}");
        assert!(text.contains(says) && text.lines().count() == 1, "{text}");
    }
    assert!(broker.operator().await.questions().await.is_empty());
}

#[tokio::test]
async fn an_agent_without_the_group_is_refused_by_the_broker() {
    let config = HIVE.replace(", \"scheduling\"", "");
    let broker = Broker::in_turn(&config, "alice", TOKEN).await;
    let mut client = connected(&broker).await;
    // For an agent without the group there are no schedules either.
    for (tool, input, code) in [
        ("request_schedule_prompt", hourly(), "CAPABILITY_MISSING"),
        ("edit_schedule", json!({"id": 1, "body": "x", "why": "x"}), "CAPABILITY_MISSING"),
        ("fire_schedule_now", json!({"id": 1}), "SCHEDULE_NOT_FOUND"),
        ("cancel_schedule", json!({"id": 1}), "SCHEDULE_NOT_FOUND"),
    ] {
        let (text, is_error) = call(&mut client, tool, input, tool).await;
        assert!(is_error && text.starts_with(&format!("{code}: ")), "{text}");
    }
}

//! Schedules with a real broker: asked for by a claude, approved and changed with `hivectl`, fired
//! once, however the broker ends.
//!
//! Invariant: each due time is some seconds ahead of the real clock, and what happens then is read
//! from the event log.

use std::collections::BTreeMap;

use hive_proto::v1::effect::Effect;
use hive_proto::v1::event::Facts;
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{
    CreateScheduleEffect, Event, EventKind, ListEventsRequest, Message, Schedule, ScheduleState,
    SystemKind,
};
use hive_tests::rig::{Client, QUICK_LIMITS, Rig, clock, request};
use prost_types::{Duration, Timestamp};
use serde_json::json;
use tokio::task::JoinSet;

use crate::steps::{acked, rule, text, tool};

/// A hive in which ada may set schedules without asking, and cy has to ask.
fn hive() -> Rig {
    let groups = "tool_groups = [\"messaging\", \"inbox\", \"scheduling\"]\n";
    Rig::new(&format!(
        "[hive]\nname = \"test\"\n{QUICK_LIMITS}schedules_max = 200\n\
         [agents.ada]\n{groups}grants = [\"own_schedules\"]\n[agents.bob]\n[agents.cy]\n{groups}"
    ))
}

/// The whole second that is this many seconds ahead.
fn in_seconds(seconds: i64) -> Timestamp {
    Timestamp { nanos: 0, ..clock::in_millis(1000 * seconds) }
}

/// A schedule to these targets that is first due then, and every minute after it.
fn each_minute(targets: &[&str], first_time: Timestamp) -> CreateScheduleEffect {
    CreateScheduleEffect {
        body: "Report.".to_owned(),
        targets: request::texts(targets),
        first_time: Some(first_time),
        interval: Some(Duration { seconds: 60, nanos: 0 }),
        ..CreateScheduleEffect::default()
    }
}

/// Creates a schedule as ada, who needs no approval; its id.
async fn create(rig: &Rig, schedule: CreateScheduleEffect) -> u64 {
    let ada = rig.agent("ada").await;
    let request = ada.request(request::effect(Effect::CreateSchedule(schedule)));
    let asked = QuestionServiceClient::new(ada.channel()).ask_question(request).await;
    let question = asked.expect("it is granted").into_inner().question.expect("a question");
    assert_eq!(question.answer.expect("it is approved").choices, ["approve"]);
    ada.schedules("").await.iter().map(|schedule| schedule.id).max().expect("a schedule")
}

/// Returns whether an event is a firing of this schedule.
fn is_firing(event: &Event, id: u64) -> bool {
    matches!(&event.facts, Some(Facts::ScheduleFired(fired)) if fired.schedule_id == id)
}

/// Waits until a schedule has fired, if it has not already; the event.
async fn fired(rig: &Rig, id: u64) -> Event {
    let fits = |event: &Event| is_firing(event, id);
    rig.watch().await.until(&format!("schedule {id} fires"), fits).await
}

/// Returns a schedule of an owner.
async fn schedule(client: &Client, owner: &str, id: u64) -> Schedule {
    let found = client.schedules(owner).await.into_iter().find(|schedule| schedule.id == id);
    found.unwrap_or_else(|| panic!("{owner} has schedule {id}"))
}

/// Returns all messages that a schedule has sent to an agent, oldest first.
async fn messages(client: &Client, id: u64, to: &str) -> Vec<Message> {
    let head = format!("Schedule {id} of ");
    let deliveries = client.all_deliveries(to).await.into_iter();
    deliveries
        .filter_map(|delivery| delivery.message)
        .filter(|message| message.body.starts_with(&head))
        .collect()
}

/// Returns the number of times that each schedule fired, by the log.
async fn firings(client: &Client) -> BTreeMap<u64, usize> {
    let mut counts = BTreeMap::new();
    let mut events = EventServiceClient::new(client.channel());
    let (mut after_sequence, mut log_id) = (0, String::new());
    loop {
        let request = ListEventsRequest {
            page_size: 500,
            after_sequence,
            log_id,
            ..ListEventsRequest::default()
        };
        let page = events.list_events(request).await.expect("events are listed").into_inner();
        log_id = page.log_id;
        for event in &page.events {
            if let Some(Facts::ScheduleFired(fired)) = &event.facts {
                *counts.entry(fired.schedule_id).or_default() += 1;
            }
        }
        match page.events.last() {
            Some(last) => after_sequence = last.sequence,
            None => return counts,
        }
    }
}

/// Runs `hivectl`, which succeeds; what it prints.
async fn hivectl(rig: &Rig, args: &[&str]) -> String {
    let said = rig.hivectl(args).await;
    assert_eq!(said.code, 0, "{args:?}: {said:?}");
    said.stdout
}

/// The claude of an agent asks, the operator approves, and at the due time the claude of the target
/// reads the message.
#[tokio::test]
async fn a_schedule_is_asked_for_approved_fires_and_is_read() {
    let mut rig = hive();
    rig.start_broker().await;
    let first = in_seconds(12);
    let ask = tool(
        "request_schedule_prompt",
        json!({
            "body": "Write the report.\nBriefly.", "targets": ["bob"], "interval_seconds": 60,
            "first_fire_at_unix": first.seconds, "why": "I forget it.",
        }),
    );
    rig.start_harness("cy", &[rule("", vec![ask, text("Asked.")])]);
    rig.start_harness("bob", &[rule("", vec![text("It is written.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("cy", "Have bob report.").await;

    let asked = watch.kind("cy", EventKind::QuestionAsked).await.question_id;
    let id = asked.to_string();
    let shown = hivectl(&rig, &["questions", "show", &id]).await;
    for line in [
        "+ schedule.targets: bob",
        &format!("+ schedule.first_time: {first}"),
        "+ schedule.interval: 60 s",
        "+ schedule.body: Write the report.",
        "+ schedule.body: Briefly.",
        "> I forget it.",
    ] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    assert_eq!(operator.schedules("cy").await, [], "nothing is created before the approval");
    let digest = operator.question(asked).await.approval.expect("an approval").diff_digest;
    hivectl(&rig, &["answer", &id, "--choice", "approve", "--diff", &digest]).await;
    watch.kind("cy", EventKind::ScheduleCreated).await;
    let [created] = &operator.schedules("cy").await[..] else { panic!("one schedule") };
    assert_eq!((created.next_time, created.first_time), (Some(first), Some(first)));

    let event = watch.until("it fires", |event| is_firing(event, created.id)).await;
    assert_eq!(event.detail, format!("for {first}, to 1 of 1"));
    let [message] = &messages(&operator, created.id, "bob").await[..] else {
        panic!("one message")
    };
    acked(&rig, "bob", message.id).await;
    let expected = format!(
        "Message {} from agent cy:\n| Schedule {} of cy, for {first}.\n| \n| Write the report.\n| Briefly.\n",
        message.id, created.id
    );
    assert_eq!(rig.prompts("bob"), [expected]);
    let next = schedule(&operator, "cy", created.id).await.next_time.expect("it is due again");
    assert_eq!((next.seconds - first.seconds) % 60, 0, "{next} is a due time");
    let listed = hivectl(&rig, &["schedules", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
    assert_eq!(listed[0]["next_time"], next.to_string().replace('Z', ".000Z"), "{listed}");
    rig.end().await;
}

/// A due time without a broker is fired by the next one, once; and it is not fired again by a
/// broker that starts after one that died right after the firing.
#[tokio::test]
async fn due_while_the_broker_is_down() {
    let mut rig = hive();
    rig.start_broker().await;
    let first = in_seconds(6);
    let daily = CreateScheduleEffect {
        interval: Some(Duration { seconds: 24 * 3600, nanos: 0 }),
        ..each_minute(&["bob"], first)
    };
    let once = CreateScheduleEffect { interval: None, ..each_minute(&["bob"], first) };
    let (daily, once) = (create(&rig, daily).await, create(&rig, once).await);
    rig.kill_broker().await;
    for row in &rig.on_disk()["schedule"] {
        assert!(row.contains("state=Integer(1);"), "it was active when the broker died: {row}");
    }
    clock::shows(first).await;
    for _ in 0..2 {
        rig.start_broker().await;
        for id in [daily, once] {
            assert_eq!(fired(&rig, id).await.detail, format!("for {first}, to 1 of 1"));
        }
        rig.kill_broker().await;
    }
    rig.start_broker().await;
    let operator = rig.operator().await;
    assert_eq!(firings(&operator).await, BTreeMap::from([(daily, 1), (once, 1)]));
    for id in [daily, once] {
        let [message] = &messages(&operator, id, "bob").await[..] else { panic!("one message") };
        let body = format!("Schedule {id} of ada, for {first}.\n\nReport.");
        assert_eq!(message.body, body);
    }
    let daily = schedule(&operator, "ada", daily).await;
    let next = Timestamp { seconds: first.seconds + 24 * 3600, nanos: 0 };
    assert_eq!((daily.state(), daily.next_time), (ScheduleState::Active, Some(next)));
    let once = schedule(&operator, "ada", once).await;
    assert_eq!((once.state(), once.next_time), (ScheduleState::Ended, None));
    assert_eq!(once.end_cause, "it has no further due time");
    rig.end().await;
}

/// Many are due one after another, and the broker is killed among them, a little earlier or later
/// each round: each becomes one message.
#[tokio::test]
async fn killed_while_many_are_due() {
    const ROUNDS: usize = 4;
    const A_ROUND: usize = 40;
    let mut rig = hive();
    rig.start_broker().await;
    let mut seed = 20_260_101_u64;
    for round in 1..=ROUNDS {
        let due = clock::in_millis(3000);
        let mut creating = JoinSet::new();
        let ada = rig.agent("ada").await;
        for place in 0..A_ROUND {
            let first = clock::later(due, i64::try_from(place).expect("few") * 3);
            let once = CreateScheduleEffect { interval: None, ..each_minute(&["bob"], first) };
            let ada = ada.clone();
            creating.spawn(async move {
                ada.question_of(request::effect(Effect::CreateSchedule(once))).await
            });
        }
        creating.join_all().await;
        // Any good mixture does; what matters is that a failure can be seen again.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = i64::try_from(seed >> 57).expect("below 128") - 8;
        clock::shows(clock::later(due, offset)).await;
        rig.crash_broker().await;
        rig.watch().await.kinds(EventKind::ScheduleFired, round * A_ROUND).await;
    }
    // Whatever would fire twice has fired by the end of the broker.
    rig.stop_broker().await;
    rig.start_broker().await;
    let operator = rig.operator().await;
    let all = operator.schedules("ada").await;
    assert_eq!(all.len(), ROUNDS * A_ROUND);
    let set: Vec<u64> = all.iter().map(|schedule| schedule.id).collect();
    assert_eq!(firings(&operator).await, set.iter().map(|id| (*id, 1)).collect());
    let heads: Vec<String> = set.iter().map(|id| format!("Schedule {id} of ")).collect();
    let deliveries = operator.all_deliveries("bob").await;
    let bodies: Vec<&str> =
        deliveries.iter().flat_map(|delivery| &delivery.message).map(|m| m.body.as_str()).collect();
    assert_eq!(bodies.len(), set.len(), "nothing else came of it");
    for head in &heads {
        assert!(bodies.iter().any(|body| body.starts_with(head)), "{head}");
    }
    assert!(all.iter().all(|schedule| schedule.state() == ScheduleState::Ended));
    rig.end().await;
}

/// A paused schedule has no due times, a resumed one is due again, `fire` sends besides them, and
/// the owner is notified of the end.
#[tokio::test]
async fn the_operator_pauses_resumes_fires_and_ends_a_schedule() {
    let mut rig = hive();
    rig.start_broker().await;
    let (operator, first) = (rig.operator().await, in_seconds(6));
    let id = create(&rig, each_minute(&["bob", "cy"], first)).await;
    let arg = id.to_string();
    let name = format!("schedule {id} of ada");

    assert_eq!(hivectl(&rig, &["schedules", "pause", &arg]).await, format!("{name} is paused\n"));
    // The next reading of the clock that the broker makes is after the due time.
    clock::shows(first).await;
    let resumed = hivectl(&rig, &["schedules", "resume", &arg]).await;
    assert!(resumed.starts_with(&format!("{name} is active, next due ")), "{resumed}");
    let again = schedule(&operator, "ada", id).await.next_time.expect("it is due again");
    assert_eq!((again.seconds - first.seconds) % 60, 0, "{again} is a due time");
    assert!(again.seconds > first.seconds, "{again} is after the pause");

    rig.start_harness("bob", &[rule("", vec![text("Written.")])]);
    let said = hivectl(&rig, &["schedules", "fire", &arg]).await;
    let [sent] = &messages(&operator, id, "bob").await[..] else { panic!("one message: {said}") };
    assert!(said.contains(&sent.id.to_string()), "{said}");
    assert_eq!(sent.body, format!("Schedule {id} of ada, fired by hand.\n\nReport."));
    acked(&rig, "bob", sent.id).await;

    let said = hivectl(&rig, &["schedules", "cancel", &arg]).await;
    let cause = schedule(&operator, "ada", id).await.end_cause;
    assert!(cause.ends_with(" ended it"), "{cause}");
    assert_eq!(said, format!("{name} has ended: {cause}\n"));
    let [notice] = &operator.notices("ada", SystemKind::ScheduleEnded).await[..] else {
        panic!("one notice")
    };
    let beginning = format!("Your schedule {id} has ended: {cause}.");
    assert!(notice.body.starts_with(&beginning), "{}", notice.body);
    let refused = rig.hivectl(&["schedules", "cancel", &arg]).await;
    assert_ne!(refused.code, 0, "{refused:?}");
    assert!(!hivectl(&rig, &["schedules"]).await.contains("Report."), "an ended one is not listed");
    // Nothing fired for the due time of the pause.
    assert_eq!(firings(&operator).await, BTreeMap::from([(id, 1)]));
    rig.end().await;
}

/// What a schedule sends is decided by the policy of its owner at that time, and a due time that
/// sent nothing is counted in the next message.
#[tokio::test]
async fn an_agent_whose_policy_was_narrowed_sends_nothing_there_any_more() {
    let mut rig = hive();
    rig.start_broker().await;
    let (operator, first) = (rig.operator().await, in_seconds(6));
    let id = create(&rig, each_minute(&["bob", "cy"], first)).await;
    hivectl(&rig, &["agent", "set-policy", "ada", "--allow", "cy"]).await;
    assert_eq!(fired(&rig, id).await.detail, format!("for {first}, to 1 of 2"));
    assert_eq!(messages(&operator, id, "bob").await, []);
    let [sent] = &messages(&operator, id, "cy").await[..] else { panic!("one message") };
    assert_eq!(sent.body, format!("Schedule {id} of ada, for {first}.\n\nReport."));

    let arg = id.to_string();
    let shown = hivectl(&rig, &["schedules", "show", &arg]).await;
    assert!(shown.contains("bob: no message yet, 1 due time skipped"), "{shown}");
    let by_hand = hivectl(&rig, &["schedules", "fire", &arg]).await;
    assert!(by_hand.contains("the policy of ada does not allow it to send there"), "{by_hand}");
    assert_eq!(messages(&operator, id, "bob").await, []);

    hivectl(&rig, &["agent", "set-policy", "ada", "--allow-everyone"]).await;
    hivectl(&rig, &["schedules", "fire", &arg]).await;
    let [sent] = &messages(&operator, id, "bob").await[..] else { panic!("one message") };
    let head = format!("Schedule {id} of ada, fired by hand. 1 earlier due time was skipped.");
    assert_eq!(sent.body, format!("{head}\n\nReport."));
    rig.end().await;
}

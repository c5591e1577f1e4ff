//! Reminders fire once: even if they are due while the broker is down, or dies at that very
//! moment. A long one is a file.

use std::collections::BTreeMap;
use std::path::Path;

use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::{
    DeliveryState, EventKind, ListEventsRequest, Message, Reminder, ReminderState, TurnOutcome,
};
use hive_tests::rig::{Client, DUO, QUICK_LIMITS, Rig, clock};
use hive_tests::scripted::script::Rule;
use serde_json::json;
use tokio::task::JoinSet;

use crate::steps::{acked, ended, lives, rule, text, tool};

/// A hive in whose file bob has a state directory, where the rig has it too.
fn hive() -> Rig {
    Rig::new(&format!("{DUO}state_dir = \"agents/bob/state\"\n{QUICK_LIMITS}"))
}

/// Sets a reminder when a message arrives, and answers it.
fn forgetful(body: &str, delay_seconds: u64) -> Vec<Rule> {
    let remind = tool("remind", json!({"message": body, "delay_seconds": delay_seconds}));
    vec![
        rule(", your reminder ", vec![text("Now I know.")]),
        rule("", vec![remind, text("I shall.")]),
    ]
}

/// Returns a text that is longer than a message, and unique.
fn long(number: usize) -> String {
    format!("{number}: {} the end of {number}", "remember this, ".repeat(400))
}

/// The messages that a reminder became.
async fn messages(client: &Client, reminder: u64) -> Vec<Message> {
    let deliveries = client.all_deliveries("bob").await;
    let messages = deliveries.into_iter().filter_map(|delivery| delivery.message);
    messages.filter(|message| message.reminder_id == reminder).collect()
}

/// Waits until a reminder has fired; its message.
async fn fired(rig: &Rig, reminder: u64) -> u64 {
    let fits = |event: &hive_proto::v1::Event| {
        event.kind() == EventKind::ReminderFired && event.reminder_id == reminder
    };
    rig.watch().await.until(&format!("reminder {reminder} fires"), fits).await.message_id
}

/// Returns the number of times that each reminder fired, by the log.
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
        let page = page.events;
        for event in page.iter().filter(|event| event.kind() == EventKind::ReminderFired) {
            *counts.entry(event.reminder_id).or_default() += 1;
        }
        match page.last() {
            Some(last) => after_sequence = last.sequence,
            None => return counts,
        }
    }
}

/// Claude sets it, the broker dies, the reminder becomes due without a broker, and the next broker
/// fires it once.
#[tokio::test]
async fn due_while_the_broker_is_down() {
    let mut rig = hive();
    rig.start_broker().await;
    rig.start_harness("bob", &forgetful("Look at the oven.", 5));
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Do not forget the oven.").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    let [reminder] = &operator.reminders("bob").await[..] else { panic!("one reminder") };
    assert_eq!(
        rig.tool_results("bob"),
        [format!("Reminder #{} is set for {}.", reminder.id, whole_seconds(reminder))]
    );
    rig.kill_broker().await;
    let row = rig.on_disk()["reminder"][0].clone();
    assert!(row.contains("state=Integer(1);"), "it was pending when the broker died: {row}");
    clock::shows(reminder.due_time.expect("it has a time")).await;
    // Twice, so that the second finds nothing to fire any more.
    for _ in 0..2 {
        rig.start_broker().await;
        let message = fired(&rig, reminder.id).await;
        acked(&rig, "bob", message).await;
        rig.stop_broker().await;
    }
    rig.start_broker().await;
    let operator = rig.operator().await;
    assert_eq!(firings(&operator).await, BTreeMap::from([(reminder.id, 1)]));
    let [message] = &messages(&operator, reminder.id).await[..] else { panic!("one message") };
    assert_eq!(operator.delivery("bob", message.id).await.state(), DeliveryState::Acked);
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    let prompts = rig.prompts("bob");
    let opening = format!(
        "Message {} from Hive itself, your reminder {}:\n| Reminder {1}, which you set at ",
        message.id, reminder.id
    );
    assert!(
        prompts[1].starts_with(&opening) && prompts[1].ends_with(":\n| \n| Look at the oven.\n"),
        "{prompts:?}"
    );
    let [reminder] = &operator.reminders("bob").await[..] else { panic!("one reminder") };
    assert_eq!((reminder.state(), reminder.message_id), (ReminderState::Fired, message.id));
    rig.end().await;
}

/// Returns the reminder's time, as a tool shows it.
fn whole_seconds(reminder: &Reminder) -> String {
    let due = reminder.due_time.expect("it has a time");
    prost_types::Timestamp { nanos: 0, ..due }.to_string()
}

/// Many come due one after another, and the broker is killed among them, a little earlier or later
/// each round: each becomes one message, and each long one a whole file.
#[tokio::test]
async fn the_broker_is_killed_at_the_moment_of_firing() {
    const ROUNDS: usize = 6;
    const A_ROUND: usize = 12;
    let mut rig = hive();
    std::fs::create_dir_all(rig.path("agents/bob/state")).expect("bob's directory");
    rig.start_broker().await;
    let mut set = BTreeMap::new();
    let mut seed = 20_260_101_u64;
    for round in 0..ROUNDS {
        let (bob, due) = (rig.agent("bob").await, clock::in_millis(1500));
        let mut setting = JoinSet::new();
        for place in 0..A_ROUND {
            let (bob, number) = (bob.clone(), round * A_ROUND + place);
            let body =
                if place % 3 == 0 { long(number) } else { format!("{number}: remember this") };
            let due = clock::later(due, i64::try_from(place).expect("few") * 3);
            setting.spawn(async move { (bob.remind(&body, due).await.id, body) });
        }
        let round: Vec<(u64, String)> = setting.join_all().await;
        // Any good mixture does; what matters is that a failure can be seen again.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let offset = i64::try_from(seed >> 58).expect("below 64") - 8;
        clock::shows(clock::later(due, offset)).await;
        rig.crash_broker().await;
        for (reminder, _) in &round {
            fired(&rig, *reminder).await;
        }
        set.extend(round);
    }
    rig.stop_broker().await;
    rig.start_broker().await;
    let operator = rig.operator().await;
    assert_eq!(firings(&operator).await, set.keys().map(|reminder| (*reminder, 1)).collect());
    let mut files = Vec::new();
    for (reminder, body) in &set {
        let [message] = &messages(&operator, *reminder).await[..] else {
            panic!("reminder {reminder} is one message")
        };
        if body.len() > 4096 {
            let name = format!("{reminder}.md");
            assert!(message.body.contains(&format!("as `reminders/{name}`")), "{}", message.body);
            assert_eq!(&rig.read(&format!("agents/bob/state/reminders/{name}")), body);
            files.push(name);
        } else {
            assert!(message.body.ends_with(&format!(":\n\n{body}")), "{}", message.body);
        }
    }
    files.sort();
    assert_eq!(
        listing(&rig.path("agents/bob/state/reminders")),
        files,
        "nothing half-written is left"
    );
    assert_eq!(
        operator.all_deliveries("bob").await.len(),
        set.len(),
        "and nothing else came of it"
    );
    rig.end().await;
}

fn listing(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// The prompt names the path of the file, as seen from claude's working directory.
#[tokio::test]
async fn a_long_one_is_a_file_that_the_message_names() {
    let mut rig = hive();
    rig.start_broker().await;
    let body = long(1);
    rig.start_harness("bob", &forgetful(&body, 1));
    let operator = rig.operator().await;
    operator.send("bob", "Do not forget this.").await;
    let reminder = rig.watch().await.kind("bob", EventKind::ReminderSet).await.reminder_id;
    let message = fired(&rig, reminder).await;
    acked(&rig, "bob", message).await;
    let file = format!("reminders/{reminder}.md");
    assert_eq!(rig.read(&format!("agents/bob/state/{file}")), body);
    let prompts = rig.prompts("bob");
    let told = format!(
        "It has {} bytes and lies in your state directory as `{file}`. It begins:\n| \n| 1: remember this, ",
        body.len()
    );
    assert!(prompts[1].contains(&told) && !prompts[1].contains("the end of 1"), "{prompts:?}");
    rig.end().await;
}

/// The agent owns its directory, and may have laid a link in it: nothing is written where it leads,
/// and the message carries the body.
#[tokio::test]
async fn a_hostile_link_gets_nothing_written_and_the_message_carries_the_body() {
    let mut rig = hive();
    let (state, elsewhere) = (rig.path("agents/bob/state"), rig.path("elsewhere"));
    std::fs::create_dir_all(&state).expect("bob's directory");
    std::fs::create_dir(&elsewhere).expect("a directory");
    std::os::unix::fs::symlink(&elsewhere, state.join("reminders")).expect("a link");
    rig.start_broker().await;
    let body = long(1);
    rig.start_harness("bob", &forgetful(&body, 1));
    rig.operator().await.send("bob", "Do not forget this.").await;
    let reminder = rig.watch().await.kind("bob", EventKind::ReminderSet).await.reminder_id;
    let message = fired(&rig, reminder).await;
    acked(&rig, "bob", message).await;
    assert_eq!(listing(&elsewhere), [""; 0]);
    let prompts = rig.prompts("bob");
    assert!(
        prompts[1].contains(&format!(":\n| \n| {body}\n")) && !prompts[1].contains("reminders/"),
        "{prompts:?}"
    );
    rig.broker().says("no file could be written; the message carries the body").await;
    assert_eq!(firings(&rig.operator().await).await, BTreeMap::from([(reminder, 1)]));
    rig.end().await;
}

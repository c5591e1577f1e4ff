//! Backups: made while mail flows; a hive that is started on one continues from there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::watch_events_response::Step;
use hive_proto::v1::{
    BackupRequest, EventSnapshot, GetMessageRequest, QuestionState, ReminderState,
    WatchEventsRequest,
};
use hive_tests::rig::small_disk::SmallDisk;
use hive_tests::rig::{Client, DUO, Rig, clock, soon};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Two agents who may send as fast as they can.
fn hive() -> Rig {
    Rig::new(&format!("{DUO}[broker.limits]\nsends_per_minute_max = 1000000\n"))
}

/// The accepted messages, by number.
type Accepted = Arc<Mutex<BTreeMap<u64, String>>>;

/// Sends without a pause until it is stopped; each receipt is recorded when it arrives.
async fn load(
    client: Client,
    sender: usize,
    accepted: Accepted,
    count: watch::Sender<usize>,
    stop: watch::Receiver<bool>,
) {
    let mut number = 0;
    while !*stop.borrow() {
        let body = format!("{number} of sender {sender}, {}", "x".repeat(200));
        let id = client.send("bob", &body).await;
        accepted.lock().expect("no panic").insert(id, body);
        count.send_modify(|count| *count += 1);
        number += 1;
    }
}

/// Waits until this many more messages were accepted.
async fn more(count: &watch::Sender<usize>, many: usize) {
    let mut seen = count.subscribe();
    let enough = *seen.borrow() + many;
    let reached = seen.wait_for(|count| *count >= enough);
    drop(soon("mail is accepted", reached).await.expect("the sender runs"));
}

/// Lists the names in a directory.
fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name());
    entries.map(|name| name.into_string().expect("text")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hive_that_is_started_on_a_backup_goes_on_from_there() {
    let mut rig = hive();
    rig.start_broker().await;
    let operator = rig.operator().await;
    let asked = rig.hivectl(&["ask", "bob", "Deploy now?", "--option", "yes", "--ttl", "2h"]).await;
    assert_eq!(asked.code, 0, "{asked:?}");
    let question: u64 = asked.stdout.trim().parse().expect("a number");
    let reminder =
        rig.agent("bob").await.remind("Look at the oven.", clock::in_millis(3_600_000)).await;

    let (accepted, count, (stop, stopped)) =
        (Accepted::default(), watch::Sender::new(0), watch::channel(false));
    let mut senders = JoinSet::new();
    for sender in 0..4 {
        senders.spawn(load(
            rig.agent("ada").await,
            sender,
            Arc::clone(&accepted),
            count.clone(),
            stopped.clone(),
        ));
    }
    more(&count, 50).await;
    let path = rig.path("backup.db");
    let file = path.to_str().expect("text");
    let mut before = BTreeMap::new();
    // The second takes the place of the first.
    for force in [&[][..], &["--force"]] {
        more(&count, 20).await;
        before = accepted.lock().expect("no panic").clone();
        let said = rig.hivectl(&[&["backup", file][..], force].concat()).await;
        assert_eq!(said.code, 0, "{said:?}");
        assert!(said.stderr.contains("to restore: stop hived"), "{said:?}");
    }
    // No client was stopped for it.
    more(&count, 20).await;
    stop.send_replace(true);
    while let Some(sent) = senders.join_next().await {
        sent.expect("every send is accepted");
    }
    assert!(
        !names(&rig.path("state")).iter().any(|name| name.starts_with("backup")),
        "nothing of it is left"
    );

    let mut there = hive();
    std::fs::create_dir(there.path("state")).expect("a directory");
    std::fs::copy(&path, there.path("state/hive.db")).expect("copied");
    there.start_broker().await;
    let restored = there.operator().await;
    for (id, body) in &before {
        let request = GetMessageRequest { message_id: *id };
        let found = MessageServiceClient::new(restored.channel()).get_message(request).await;
        let found = found.unwrap_or_else(|refusal| {
            panic!("message {id} was accepted before the backup: {refusal:?}")
        });
        assert_eq!(found.into_inner().message.expect("a message").body, *body);
    }
    let (here, open) = (operator.question(question).await, restored.question(question).await);
    assert_eq!((open.state(), &open), (QuestionState::Open, &here));
    assert_eq!(restored.reminders("bob").await, std::slice::from_ref(&reminder));
    assert_eq!(reminder.state(), ReminderState::Pending);
    there.agent("bob").await.answer(question, "yes").await;
    assert_eq!(restored.closed(question, QuestionState::Answered).await.id, question);
    let newest = before.keys().last().copied().expect("many");
    assert!(there.agent("ada").await.send("bob", "after").await > newest, "numbers go on");
    let doctor = there.hivectl(&["doctor", "--deep", "--json"]).await;
    let checks: Vec<serde_json::Value> = serde_json::from_str(&doctor.stdout).expect("JSON");
    for name in ["integrity", "storage", "schema", "version", "clock"] {
        let of_name: Vec<_> = checks
            .iter()
            .filter(|check| check["name"] == name)
            .map(|check| &check["state"])
            .collect();
        assert_eq!(of_name, ["ok"], "{name}: {}", doctor.stdout);
    }
    assert_eq!(
        operator.question(question).await.state(),
        QuestionState::Open,
        "the hive that was copied knows nothing of it"
    );
    there.end().await;
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_stalls_holds_up_neither_the_mail_nor_the_end() {
    let mut rig = hive();
    rig.start_broker().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    for number in 0..100 {
        ada.send("bob", &format!("{number}: {}", "x".repeat(30_000))).await;
    }
    // A client of its own, whose connection fills up.
    let mut stream =
        rig.operator().await.admin().backup(BackupRequest {}).await.expect("a backup").into_inner();
    let first = stream.message().await.expect("a piece").expect("a piece");
    assert!(
        first.total_bytes > 3_000_000 && (first.chunk.len() as u64) < first.total_bytes,
        "{}",
        first.total_bytes
    );

    let refusal = operator.admin().backup(BackupRequest {}).await.expect_err("one at a time");
    assert_eq!(status::reason(&refusal), Some(Reason::StorageUnavailable), "{refusal:?}");
    assert!(
        status::retry_after(&refusal).is_some()
            && refusal.message().contains("another backup is under way"),
        "{refusal:?}"
    );
    let said = rig.hivectl(&["backup", rig.path("b.db").to_str().expect("text")]).await;
    assert!(said.code == 1 && said.stderr.contains("another backup is under way"), "{said:?}");
    assert!(!rig.path("b.db").exists());
    ada.send("bob", "still").await;

    rig.stop_broker().await;
    let mut bytes = first.chunk.len() as u64;
    while let Ok(Some(piece)) = stream.message().await {
        bytes += piece.chunk.len() as u64;
    }
    assert!(bytes < first.total_bytes, "who counts sees that it is incomplete");
    rig.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_room_for_a_copy_there_is_no_backup_and_the_mail_goes_on() {
    let mut rig = hive();
    let Some(disk) = SmallDisk::mount(&rig.path("state"), 6 << 20).await else { return };
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    let ada = rig.agent("ada").await;
    ada.send("bob", "before").await;
    let path = rig.path("backup.db");
    let said = rig.hivectl(&["backup", path.to_str().expect("text")]).await;
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.stderr.contains("a copy of the database needs 17 MiB of room in "), "{said:?}");
    assert!(
        said.stderr.contains("make room there, then try again\nreason: STORAGE_UNAVAILABLE\n"),
        "{said:?}"
    );
    assert!(!path.exists() && !disk.has("backup.tmp"));
    ada.send("bob", "after").await;
    let said = rig.hivectl(&["status"]).await;
    assert!(!said.stdout.contains("cannot be written"), "{said:?}");
}

/// Resumes a watch of events after a number of a log; returns its snapshot.
async fn resumed(rig: &Rig, after: u64, log_id: &str) -> EventSnapshot {
    let request = WatchEventsRequest {
        after_sequence: Some(after),
        log_id: log_id.to_owned(),
        ..WatchEventsRequest::default()
    };
    let operator = rig.operator().await;
    let watched = EventServiceClient::new(operator.channel()).watch_events(request).await;
    let mut stream = watched.expect("it begins").into_inner();
    let first = soon("the snapshot comes", stream.message()).await.expect("a step");
    match first.and_then(|response| response.step) {
        Some(Step::Snapshot(snapshot)) => snapshot,
        other => panic!("the first step is {other:?}"),
    }
}

#[tokio::test]
async fn a_follower_of_a_hive_that_is_restored_is_told_so() {
    let mut rig = hive();
    rig.start_broker().await;
    rig.agent("ada").await.send("bob", "kept").await;
    let backup = rig.path("backup.db");
    let said = rig.hivectl(&["backup", backup.to_str().expect("text")]).await;
    assert_eq!(said.code, 0, "{said:?}");
    let lost = rig.agent("ada").await.send("bob", "lost").await;
    let before = resumed(&rig, 0, "").await;
    assert!(!before.log_changed);
    // What answers on the socket of the hive may also be a service manager.
    let mut command = rig.broker_command();
    let refused = command.arg("restore").arg(&backup).output().await.expect("it runs");
    assert_eq!(refused.status.code(), Some(5), "{refused:?}");
    let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(stderr.contains("systemctl stop hived.socket hived"), "{stderr}");
    let (state, file) = (rig.path("state"), backup.to_str().expect("text"));
    let restore = ["restore", file, "--state-dir", state.to_str().expect("text")];
    let refused = rig.hivectl(&restore).await;
    assert_eq!(refused.code, 5, "{refused:?}");
    assert!(refused.stderr.contains("stop it, then restore again"), "{refused:?}");

    rig.kill_broker().await;
    let done = rig.hivectl(&[&["--json"][..], &restore].concat()).await;
    assert_eq!(done.code, 0, "{done:?}");
    let done: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    assert_eq!(done["content"]["messages"], 1);
    assert_eq!(done["replaced_content"]["messages"], 2);
    let kept = done["replaced"].as_str().expect("a path");
    assert!(kept.ends_with("/hive.replaced-1.db"), "{kept}");
    // Again, in words: what was restored takes the place of what was restored.
    let done = rig.hivectl(&restore).await;
    assert!(done.stdout.contains("hive.db: 2 agents, 1 message (1 not settled), 0"), "{done:?}");
    assert!(done.stdout.contains("hive.replaced-2.db: 2 agents, 1 message"), "{done:?}");
    rig.start_broker().await;

    let after = resumed(&rig, before.last_sequence, &before.log_id).await;
    assert!(after.log_changed, "{after:?}");
    assert!(after.last_sequence > before.last_sequence, "{after:?}");
    assert_ne!(after.log_id, before.log_id);
    let again = resumed(&rig, after.last_sequence, &after.log_id).await;
    assert_eq!((again.log_changed, again.gap), (false, false));
    let next = rig.agent("ada").await.send("bob", "after").await;
    assert!(next > lost, "{next} is not larger than {lost}, which is lost");
    rig.end().await;
}

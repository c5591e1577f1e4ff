//! Memory that the broker keeps of a flood, and its refusals: every refusal names its limit and, if
//! waiting helps, a delay; once the limits are met, neither database nor memory nor log grows any
//! more.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_tests::rig::{Rig, soon};

use super::flood::{ALL_AT_ONCE, Flood, Tally};
use super::kinds::{Kind, READS, WRITES};
use crate::wire::scene::figures;

const MIB: u64 = 1024 * 1024;
/// Calls of a flood whose limits are met, or soon will be.
const CALLS: u64 = 700;
/// Maximum growth of the database in the second half of a flood, in bytes: sends within the rate,
/// and pages of the log.
const ADDED_MAX: u64 = 8 * MIB;
/// Maximum memory that the broker may keep, in bytes.
const KEPT_MAX: u64 = 160 * MIB;

/// Asserts one refusal for this reason, with these numbers in its sentence, and a delay if waiting
/// helps.
fn refused_with(tally: &Tally, reason: Reason, number: &str, waits: bool) {
    let (_, refusal) = tally
        .refused
        .get(&reason)
        .unwrap_or_else(|| panic!("nothing was refused as {reason}: {tally:?}"));
    let refusal = refusal.as_ref().expect("the first is kept");
    assert_eq!(refusal.code(), status::code(reason), "{refusal:?}");
    assert!(refusal.message().contains(number), "{number} is not named: {refusal:?}");
    assert_eq!(status::retry_after(refusal).is_some(), waits, "{refusal:?}");
}

/// Returns the bytes of all files of the state directory.
fn stored(rig: &Rig) -> u64 {
    let files = std::fs::read_dir(rig.path("state")).expect("a directory").flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

async fn start(config: &str) -> Rig {
    let mut rig = Rig::new(config);
    let mut command = rig.broker_command();
    command.env("HIVE_LOG", "info");
    rig.start_broker_by(command).await;
    rig
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_is_refused_with_the_limits_and_leaves_little_behind() {
    let mut rig =
        start("[agents.mallory]\nlimits = { sends_per_minute_max = 480 }\n[agents.erin]\n").await;
    let before = figures(&mut rig).memory;
    let mut flood = Flood::new(rig.agent_socket("mallory"), &WRITES, ALL_AT_ONCE, 0);
    flood.go();
    // Reminders and questions count as sends too; the rate allows more of them than the limit of
    // open ones.
    flood
        .refused(&[
            Reason::RateLimited,
            Reason::BodyTooLarge,
            Reason::QuestionLimit,
            Reason::ReminderLimit,
        ])
        .await;
    flood.stop().await;
    let (tally, first) = (flood.tally(), stored(&rig));
    assert!(tally.odd.is_empty(), "{:?}", tally.odd);
    let kinds: Vec<Kind> = WRITES.into_iter().chain(READS).collect();
    let mut flood = Flood::new(rig.agent_socket("mallory"), &kinds, ALL_AT_ONCE, 0);
    flood.go();
    flood.answered(CALLS).await;
    flood.stop().await;
    let second = stored(&rig);
    assert!(flood.tally().odd.is_empty(), "{:?}", flood.tally().odd);
    refused_with(&tally, Reason::RateLimited, "480", true);
    refused_with(&tally, Reason::BodyTooLarge, "32768", false);
    refused_with(&tally, Reason::QuestionLimit, "50", false);
    refused_with(&tally, Reason::ReminderLimit, "50", false);
    assert!(
        second <= first + ADDED_MAX,
        "the database went on growing: {first} bytes, then {second}"
    );
    let grown = figures(&mut rig).memory.saturating_sub(before);
    assert!(grown <= KEPT_MAX, "the broker has kept {grown} bytes");
    let log = rig.broker().log();
    assert!(log.len() < 64 * 1024 && !log.contains("panicked"), "{log}");
    // Of thousands of refusals the operator sees a few, and a new client of the same agent is
    // served.
    let refused = rig.hivectl(&["events", "--json"]).await.stdout.matches("REFUSED").count();
    assert!(refused <= 16, "{refused} refusals are in the log of facts");
    soon("it is served", rig.agent("mallory")).await.get_agent("erin").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_inboxes_and_full_stores_are_reported_and_stay_as_they_are() {
    let limits = "[broker.limits]\ninbox_depth_max = 20\nsender_stored_bytes_max = 400000\nsends_per_minute_max = 100000000\n";
    let rig = start(&format!("[agents.mallory]\n[agents.erin]\n[agents.frank]\n{limits}")).await;
    let mut flood = Flood::new(
        rig.agent_socket("mallory"),
        &[Kind::Send("erin"), Kind::Large("frank")],
        ALL_AT_ONCE,
        0,
    );
    flood.go();
    flood.answered(CALLS).await;
    let first = stored(&rig);
    flood.answered(CALLS).await;
    flood.stop().await;
    let (tally, second) = (flood.tally(), stored(&rig));
    assert!(tally.odd.is_empty(), "{:?}", tally.odd);
    refused_with(&tally, Reason::InboxFull, "20", true);
    refused_with(&tally, Reason::StorageFull, "400000", true);
    assert!(second <= first + MIB, "the database went on growing: {first} bytes, then {second}");
    let operator = rig.operator().await;
    assert_eq!(operator.deliveries("erin", &[]).await.len(), 20, "as many as may be");
    let bodies = operator
        .deliveries("frank", &[])
        .await
        .into_iter()
        .filter_map(|delivery| Some(delivery.message?.body.len()));
    let bytes: usize = bodies.sum();
    assert!((300_000..=400_000).contains(&bytes), "{bytes} bytes lie there");
}

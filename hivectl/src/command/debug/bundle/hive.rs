//! What the broker and the doctor know.
//!
//! Invariant: a sentence of the doctor is in a bundle only if its check is on the list of those
//! that quote no other text.

use hive_proto::v1::{self, QuestionState, ReminderState, ScheduleState};
use serde::Serialize;

use super::collect::Collector;
use crate::command::doctor::Reached;
use crate::connect::Broker;
use crate::error::Failure;
use crate::fetch::{self, Whose};
use crate::output::{View, tagged};
use crate::view::bundled::{self, said};
use crate::view::check::{Check, Fix, State};
use crate::view::{delivery, loose_end, message, question, reminder, schedule};

const AGENTS_MAX: usize = 10_000;
const EVENTS_MAX: usize = 1_000;
const TURNS_MAX: usize = 500;
const DEAD_LETTERS_MAX: usize = 500;
/// Most rows of each list with text. A message has up to 32 KiB.
const SAID_MAX: usize = 200;

/// The checks whose sentences have only names, numbers, times and paths.
const WITH_SENTENCES: [&str; 17] = [
    "socket",
    "broker",
    "version",
    "storage",
    "draining",
    "clock",
    "schema",
    "disk",
    "isolation",
    "dead_letters",
    "held",
    "questions",
    "mail",
    "bubblewrap",
    "files",
    "sockets",
    "unfinished",
];

/// A check; its sentence if that quotes no other text.
#[derive(Debug, Serialize)]
struct Judged<'a> {
    name: &'static str,
    state: State,
    agent: Option<&'a str>,
    sentence: Option<&'a str>,
    fix: Option<&'a Fix>,
}

pub(super) fn checks(collector: &mut Collector<'_>, checks: &[Check]) {
    let judged: Vec<Judged<'_>> = checks
        .iter()
        .map(|check| Judged {
            name: check.name,
            state: check.state,
            agent: check.agent.as_deref(),
            sentence: WITH_SENTENCES.contains(&check.name).then_some(check.sentence.as_str()),
            fix: check.fix.as_ref(),
        })
        .collect();
    collector.json("doctor.json", &judged);
}

/// Adds what the broker knows, and what was said to it if that is wanted.
pub(super) async fn all(collector: &mut Collector<'_>, reached: Option<&Reached>, bodies: bool) {
    let Some(reached) = reached else {
        let parts = ["status.json", "agents.jsonl", "topology.json", "turns.jsonl", "events.jsonl"];
        let of_broker = parts.into_iter().chain(["dead_letters.jsonl"]);
        for name in of_broker.chain(bodies.then_some("bodies")) {
            collector.missing(name, "no broker answers; doctor.json says why");
        }
        return;
    };
    collector.json("status.json", &bundled::Status::from(reached.status.clone()));
    let broker = &reached.broker;
    let agents = fetch::agents::<bundled::Agent>(broker, true, AGENTS_MAX).await;
    collector.rows("agents.jsonl", AGENTS_MAX, &agents);
    match &agents {
        Ok(agents) => collector.json("topology.json", &bundled::tree(agents)),
        Err(failure) => collector.missing("topology.json", &failure.in_one_line()),
    }
    let turns = fetch::turns::<bundled::Turn>(broker, "", TURNS_MAX).await;
    collector.rows("turns.jsonl", TURNS_MAX, &turns);
    let events = events::<bundled::Event>(reached).await;
    collector.rows("events.jsonl", EVENTS_MAX, &events);
    let dead = fetch::dead_letters::<bundled::DeadLetter>(broker, "", DEAD_LETTERS_MAX).await;
    collector.rows("dead_letters.jsonl", DEAD_LETTERS_MAX, &dead);
    if bodies {
        add_said(collector, reached).await;
    }
}

/// Reads the newest events.
async fn events<V: From<v1::Event>>(reached: &Reached) -> Result<Vec<V>, Failure> {
    let broker: &Broker = &reached.broker;
    let before = reached.status.last_event_sequence.saturating_sub(EVENTS_MAX as u64);
    fetch::events(broker, before, &broker.log_id().await?, "", EVENTS_MAX).await
}

/// Adds what agents, operators and models wrote.
async fn add_said(collector: &mut Collector<'_>, reached: &Reached) {
    let broker = &reached.broker;
    let agents = fetch::agents::<said::Agent>(broker, true, AGENTS_MAX).await;
    collector.rows("bodies/agents.jsonl", AGENTS_MAX, &agents);
    let turns = fetch::turns::<said::Turn>(broker, "", SAID_MAX).await;
    collector.rows("bodies/turns.jsonl", SAID_MAX, &turns);
    let events = events::<said::Event>(reached).await;
    collector.rows("bodies/events.jsonl", EVENTS_MAX, &events);
    let messages = fetch::messages::<message::Message>(broker, 0, SAID_MAX).await;
    add_views(collector, "bodies/messages.jsonl", messages);
    let dead = fetch::dead_letters::<delivery::Delivery>(broker, "", SAID_MAX).await;
    add_views(collector, "bodies/dead_letters.jsonl", dead);
    let all = Whose::default();
    let states: [QuestionState; 0] = [];
    let questions = fetch::questions::<question::Question>(broker, &all, &states, SAID_MAX).await;
    add_views(collector, "bodies/questions.jsonl", questions);
    let states: [ReminderState; 0] = [];
    let reminders = fetch::reminders::<reminder::Reminder>(broker, "", &states, SAID_MAX).await;
    add_views(collector, "bodies/reminders.jsonl", reminders);
    let states: [ScheduleState; 0] = [];
    let schedules = fetch::schedules::<schedule::Schedule>(broker, "", &states, SAID_MAX).await;
    add_views(collector, "bodies/schedules.jsonl", schedules);
    let loose_ends = fetch::loose_ends::<loose_end::LooseEnd>(broker, "", SAID_MAX).await;
    add_views(collector, "bodies/loose_ends.jsonl", loose_ends);
}

/// Adds rows as `--json` prints them, with their schema.
fn add_views<V: View>(collector: &mut Collector<'_>, name: &str, rows: Result<Vec<V>, Failure>) {
    let rows = rows.as_ref().map(|rows| rows.iter().map(tagged).collect::<Vec<_>>());
    match rows {
        Ok(rows) => collector.rows(name, SAID_MAX, &Ok(rows)),
        Err(failure) => collector.missing(name, &failure.in_one_line()),
    }
}

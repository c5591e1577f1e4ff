//! Refusals: each has the metadata that `proto/hive/v1/reason.proto` declares for its reason.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hive_core::delivery::State;
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::reason::{Reason, Retry};
use hive_core::{loose_end, question, reminder, schedule};

use crate::engine::Refusal;
use crate::engine::error::{
    AgentError, HarnessError, MailError, QuestionError, ReminderError, ScheduleError, TurnError,
};
use crate::files::Budget;
use crate::store::StoreError;
use crate::store::backup::CopyError;
use crate::store::search::SearchError;

const SECOND: Duration = Duration::from_secs(1);

fn text(word: &str) -> String {
    word.to_owned()
}

fn agents() -> Vec<Refusal> {
    let agent = || text("bob");
    [
        AgentError::NotFound { name: agent(), nearest: Vec::new() },
        AgentError::NotFound { name: agent(), nearest: vec![text("rob"), text("bo")] },
        AgentError::Retired { name: agent() },
        AgentError::NotYourChild { agent: agent() },
        AgentError::NotBelow { agent: agent() },
        AgentError::NotTheAskers { agent: agent(), asker: text("bob") },
        AgentError::Exists { name: agent() },
        AgentError::Changed {
            what: "agent",
            agent: agent(),
            given: text("e-1"),
            etag: text("e-2"),
        },
        AgentError::Parked { agent: agent(), error: text("no login"), retry_after: None },
        AgentError::Parked { agent: agent(), error: text("limit"), retry_after: Some(SECOND) },
        AgentError::Stopped { agent: agent() },
        AgentError::Purging { agent: agent() },
        AgentError::Cycle { name: agent(), parent: text("carol") },
        AgentError::NoFiles { agent: agent(), short: Budget::of(1024).shortage(400) },
        AgentError::StatusTooLong { chars: 201, max: 200 },
    ]
    .map(Refusal::from)
    .into()
}

fn turns_and_harnesses() -> Vec<Refusal> {
    let (agent, id) = (|| text("bob"), TurnId::new(7).expect("an id"));
    let turns = [
        TurnError::NotFound { id },
        TurnError::NoneOpen { agent: agent() },
        TurnError::Ended,
        TurnError::Open { id },
    ];
    let harnesses = [
        HarnessError::CommandNotFound { id: CommandId::new(7).expect("an id") },
        HarnessError::SessionLost { agent: agent() },
        HarnessError::Attached { agent: agent() },
        HarnessError::LauncherAttached,
        HarnessError::LauncherOffline { problem: text("none is attached") },
        HarnessError::Serving { agent: agent() },
        HarnessError::Offline { agent: agent() },
        HarnessError::LoginOpen { agent: agent() },
        HarnessError::LoginNotFound { id: 7 },
    ];
    turns.map(Refusal::from).into_iter().chain(harnesses.map(Refusal::from)).collect()
}

fn mail() -> Vec<Refusal> {
    let (agent, message) = (|| text("bob"), MessageId::new(7).expect("an id"));
    [
        MailError::MessageNotFound { id: message },
        MailError::DeliveryNotFound { agent: agent(), message },
        MailError::RecipientNotAllowed { recipient: agent(), allowed: vec![text("<parent>")] },
        MailError::WrongState { agent: agent(), message, state: State::Acked },
        MailError::LeaseOfStream { agent: agent(), message },
        MailError::StreamReplaced { stream: text("s-1") },
        MailError::StreamSilent { stream: text("s-1") },
        MailError::InboxFull { agent: agent(), depth: 3, max: 3 },
        MailError::BodyTooLarge { field: "body", bytes: 9, max: 8 },
        MailError::RateLimited { per_minute: 60, retry_after: SECOND },
        MailError::StorageFull { bytes: 9, max: 8 },
    ]
    .map(Refusal::from)
    .into()
}

fn open_things() -> Vec<Refusal> {
    let (id, reminder) = (QuestionId::new(7).expect("an id"), ReminderId::new(8).expect("an id"));
    let state = question::State::Expired;
    let questions = [
        QuestionError::NotFound { id },
        QuestionError::NotTheTarget { id, target: text("bob") },
        QuestionError::NotTheAsker { id, asker: text("operator") },
        QuestionError::Closed { id, state, closed_by: String::new() },
        QuestionError::Closed { id, state, closed_by: text("operator") },
        QuestionError::DiffChanged { id },
        QuestionError::Limit { open: 50, max: 50 },
    ];
    let reminders = [
        ReminderError::NotFound { id: reminder },
        ReminderError::Closed { id: reminder, state: reminder::State::Fired },
        ReminderError::Limit { pending: 50, max: 50 },
    ];
    let id = ScheduleId::new(7).expect("an id");
    let schedules = [
        ScheduleError::NotFound { id },
        ScheduleError::WrongState { id, state: schedule::State::Ended },
        ScheduleError::Limit { open: 20, max: 20 },
    ];
    let reminders = reminders.map(Refusal::from).into_iter().chain(schedules.map(Refusal::from));
    questions.map(Refusal::from).into_iter().chain(reminders).collect()
}

fn calls() -> Vec<Refusal> {
    let problem = || Arc::from("the disk is full");
    let sql = |code| {
        let error = rusqlite::ffi::Error::new(code);
        Refusal::Store(StoreError::Sql(rusqlite::Error::SqliteFailure(error, None)))
    };
    let method = || text("hive.v1.WakeService/Wake");
    vec![
        Refusal::Field { field: "to", problem: text("must be set") },
        Refusal::LooseEndNotFound { kind: loose_end::Kind::Reminder, id: 7 },
        Refusal::LooseEndNotFound { kind: loose_end::Kind::QuestionAsked, id: 7 },
        Refusal::GroupMissing { group: "inbox" },
        Refusal::CapabilityMissing { capability: "read_host_journal" },
        Refusal::RequestIdReused { id: text("r-1") },
        Refusal::NotYours { what: "that inbox" },
        Refusal::NotAnAgent,
        Refusal::LeaseLost,
        Refusal::RequestTooLarge { bytes: 9, part: "it", field: None, max: 8 },
        Refusal::RequestTooLarge { bytes: 9, part: "a body", field: Some("body"), max: 8 },
        Refusal::CallLimit { max: 64 },
        Refusal::OtherSocket { method: method(), other: "agent" },
        Refusal::NoSuchMethod { method: method(), nearest: None },
        Refusal::NoSuchMethod { method: method(), nearest: Some(text("Wake")) },
        Refusal::Compressed { encoding: text("gzip") },
        Refusal::PeerNotTrusted { sentence: text("another sandbox") },
        Refusal::Starting { sentence: text("not yet"), retry_after: SECOND },
        Refusal::Draining,
        Refusal::Backup(CopyError::UnderWay),
        Refusal::Backup(CopyError::NoRoom { dir: PathBuf::new(), needed: 2, free: 1 }),
        Refusal::BackupUnread(std::io::Error::other("it broke")),
        Refusal::Fault("it broke"),
        Refusal::Search(SearchError::Filling),
        Refusal::Search(SearchError::File { path: PathBuf::new(), problem: problem() }),
        Refusal::Store(StoreError::Unavailable { problem: problem() }),
        Refusal::Store(StoreError::Panicked),
        sql(rusqlite::ffi::SQLITE_FULL),
        sql(rusqlite::ffi::SQLITE_CONSTRAINT),
    ]
}

/// One refusal of each kind, and more where the metadata differs.
fn samples() -> Vec<Refusal> {
    [agents(), turns_and_harnesses(), mail(), open_things(), calls()]
        .into_iter()
        .flatten()
        .collect()
}

/// Returns the names of a refusal's variants: its noun, and the kind in it.
fn variant(refusal: &Refusal) -> String {
    let shown = format!("{refusal:?}");
    let is_noun = ["Agent(", "Turn(", "Harness(", "Mail(", "Question(", "Reminder(", "Schedule("]
        .iter()
        .any(|noun| shown.starts_with(noun));
    let words = shown.split(|c: char| !c.is_alphanumeric());
    words.take(if is_noun { 2 } else { 1 }).collect::<Vec<_>>().join(" ")
}

#[test]
fn each_kind_of_refusal_has_a_sample() {
    let source = include_str!("../error.rs");
    let kinds = source.matches("#[error(").count();
    // The seven nouns are no kinds of their own, they have some.
    let nouns = source.matches("#[error(transparent)]").count() - 1;
    let sampled: BTreeSet<String> = samples().iter().map(variant).collect();
    assert_eq!(sampled.len(), kinds - nouns, "add the new one: {sampled:#?}");
}

#[test]
fn each_refusal_has_the_metadata_that_its_reason_declares() {
    let mut made: BTreeSet<Reason> = BTreeSet::new();
    let mut keys: BTreeSet<(Reason, &str)> = BTreeSet::new();
    for refusal in samples() {
        let mut refused = refusal.on_wire();
        if refused.reason == Reason::Internal {
            // The edge makes the id, under which it logs the causes.
            refused = refused.with("error_id", "0badc0de");
        }
        assert_eq!(refused.undeclared(), None, "{refusal:?}");
        for (key, value) in &refused.metadata {
            assert!(!value.is_empty(), "{refusal:?}: {key}");
            keys.insert((refused.reason, key));
        }
        made.insert(refused.reason);
    }
    let all: BTreeSet<Reason> = Reason::ALL.iter().copied().collect();
    assert_eq!(made, all, "a reason that the broker never gives is no reason");
    let declared = Reason::ALL.iter().flat_map(|reason| {
        let keys = reason.metadata().iter().chain(reason.optional_metadata());
        keys.map(|key| (*reason, *key))
    });
    assert_eq!(keys, declared.collect(), "a key that the broker never gives is no key");
}

#[test]
fn a_difference_from_the_declaration_is_found() {
    let full = MailError::InboxFull { agent: text("bob"), depth: 3, max: 3 };
    let refused = Refusal::from(full).on_wire();
    assert_eq!(refused.undeclared(), None);
    let foreign = refused.clone().with("depth", 3).undeclared();
    assert_eq!(foreign.as_deref(), Some("INBOX_FULL does not declare `depth`"));
    let mut lacking = refused;
    lacking.metadata.remove("limit");
    assert_eq!(lacking.undeclared().as_deref(), Some("INBOX_FULL lacks `limit`"));
    let never = Refusal::LeaseLost.on_wire().after(Some(SECOND));
    assert_eq!(never.reason.retry(), Retry::Never);
    assert!(never.undeclared().is_some());
}

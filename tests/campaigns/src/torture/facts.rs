//! The permanent facts of a round: an answer or a read must agree with every later answer, from any
//! broker.
//!
//! It covers properties that the history has no rule for. Invariant: a contradiction is recorded
//! only if no allowed behaviour explains it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hive_history::{Final, ReminderState, Rule, Violation};
use hive_proto::v1;
use tokio::sync::watch;

/// Maximum number of recorded contradictions; more add no information.
const WRONG_MAX: usize = 20;
/// Maximum time that an attached harness may wait for a command that was accepted before.
const COMMAND_WAIT: Duration = Duration::from_secs(20);

/// What answers have shown so far, and what is permanent of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Bodies of messages, by id, that have a receipt.
    bodies: BTreeMap<u64, String>,
    events: BTreeMap<u64, v1::Event>,
    /// Turns that have ended, with their outcome.
    ended: BTreeMap<u64, v1::TurnOutcome>,
    /// Reminders that were withdrawn as loose ends.
    withdrawn: BTreeSet<u64>,
    /// Accepted commands to the harness made of calls.
    given: BTreeSet<u64>,
    /// Commands that it closed.
    closed: BTreeSet<u64>,
    answered: BTreeMap<String, u64>,
    wrong: Vec<String>,
}

/// The permanent facts, shared by all players.
#[derive(Debug)]
pub(crate) struct Facts {
    known: Mutex<Known>,
    /// Commands that the harness made of calls received.
    heard: watch::Sender<BTreeSet<u64>>,
}

impl Facts {
    pub(crate) fn new() -> Self {
        Self { known: Mutex::default(), heard: watch::Sender::new(BTreeSet::new()) }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is known now, so that a backup that begins after this has all of it.
    pub(crate) fn known(&self) -> Known {
        self.lock().clone()
    }

    /// Forgets all but what was known before a backup, which was restored.
    pub(crate) fn take_back(&self, before: &Known) {
        let mut known = self.lock();
        let (answered, wrong) =
            (std::mem::take(&mut known.answered), std::mem::take(&mut known.wrong));
        *known = Known { answered, wrong, ..before.clone() };
    }

    /// Records a broken promise.
    pub(crate) fn wrong(&self, what: String) {
        let wrong = &mut self.lock().wrong;
        if wrong.len() < WRONG_MAX {
            wrong.push(what);
        }
    }

    /// Records a contradiction unless `holds`.
    pub(crate) fn hold(&self, holds: bool, what: impl FnOnce() -> String) {
        if !holds {
            self.wrong(what());
        }
    }

    /// Counts a successful call that is not on the tape.
    pub(crate) fn answered(&self, rpc: &str) {
        *self.lock().answered.entry(rpc.to_owned()).or_default() += 1;
    }

    /// Records a message's receipt.
    pub(crate) fn receipt(&self, id: u64, body: &str) {
        self.lock().bodies.insert(id, body.to_owned());
    }

    /// Returns a recent message with a receipt.
    pub(crate) fn a_message(&self, pick: u64) -> Option<u64> {
        let known = self.lock();
        let back = usize::try_from(pick).unwrap_or(0) % known.bodies.len().max(1);
        known.bodies.keys().rev().nth(back).copied()
    }

    /// Checks a message that was read.
    pub(crate) fn message(&self, message: &v1::Message) {
        let body = self.lock().bodies.get(&message.id).cloned();
        self.hold(body.as_ref().is_none_or(|body| *body == message.body), || {
            format!(
                "message {} was accepted as {body:?} and read as {:?}",
                message.id, message.body
            )
        });
    }

    /// Checks an event that was read: a committed fact, and so the same for ever.
    pub(crate) fn event(&self, event: &v1::Event) {
        let before =
            self.lock().events.entry(event.sequence).or_insert_with(|| event.clone()).clone();
        self.hold(before == *event, || {
            format!("event {} was {before:?} and then {event:?}", event.sequence)
        });
    }

    /// Returns the greatest sequence number of an event read so far.
    pub(crate) fn last_event(&self) -> u64 {
        self.lock().events.last_key_value().map_or(0, |(sequence, _)| *sequence)
    }

    /// Checks a turn that was read.
    pub(crate) fn turn(&self, turn: &v1::Turn) {
        let mut known = self.lock();
        let before = known.ended.get(&turn.id).copied();
        if turn.end_time.is_some() {
            known.ended.insert(turn.id, turn.outcome());
        }
        drop(known);
        self.hold(before.is_none_or(|outcome| turn.outcome() == outcome), || {
            format!("turn {} had ended with outcome {before:?}, and was read as {turn:?}", turn.id)
        });
    }

    /// Records a reminder withdrawn as a loose end.
    pub(crate) fn withdrawn(&self, reminder: u64) {
        self.lock().withdrawn.insert(reminder);
    }

    /// Records an accepted command to the harness made of calls.
    pub(crate) fn given(&self, command: u64) {
        self.lock().given.insert(command);
    }

    /// Returns the commands known to be closed.
    pub(crate) fn closed(&self) -> BTreeSet<u64> {
        self.lock().closed.clone()
    }

    /// Records a closed command.
    pub(crate) fn close(&self, command: u64) {
        self.lock().closed.insert(command);
    }

    /// Checks a command that the harness made of calls received; `before` were closed when it
    /// asked.
    pub(crate) fn heard(&self, command: u64, before: &BTreeSet<u64>) {
        self.hold(!before.contains(&command), || {
            format!("command {command} was closed, and was handed over again")
        });
        self.heard.send_modify(|heard| heard.extend([command]));
    }

    /// Waits until the attached harness made of calls has received all commands accepted for it.
    pub(crate) async fn all_heard(&self) {
        let given = self.lock().given.clone();
        let mut heard = self.heard.subscribe();
        let all =
            tokio::time::timeout(COMMAND_WAIT, heard.wait_for(|heard| given.is_subset(heard)))
                .await
                .is_ok();
        self.hold(all, || {
            let heard = self.heard.borrow().clone();
            format!(
                "commands {:?} were accepted, and never handed to the harness",
                given.difference(&heard).collect::<Vec<_>>()
            )
        });
    }

    /// Returns the number of successful calls per RPC that is not on the tape.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        self.lock().answered.clone()
    }

    /// Returns every contradiction found, including those of the final state.
    pub(crate) fn violations(&self, last: &Final) -> Vec<Violation> {
        let known = self.lock();
        let mut wrong = known.wrong.clone();
        for reminder in
            last.reminders.iter().filter(|reminder| known.withdrawn.contains(&reminder.id))
        {
            if reminder.state != ReminderState::Cancelled {
                wrong.push(format!(
                    "reminder {} was withdrawn as a loose end, and is {:?}",
                    reminder.id, reminder.state
                ));
            }
        }
        for turn in &last.turns {
            if known.ended.contains_key(&turn.id) && turn.outcome.is_none() {
                wrong.push(format!("turn {} had ended, and is open", turn.id));
            }
        }
        wrong
            .into_iter()
            .map(|what| Violation { rule: Rule::Receipt, what, seen: Vec::new() })
            .collect()
    }
}

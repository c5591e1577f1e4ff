//! Restored backups: which part of a history the database still knows.
//!
//! A restore takes the hive back to its backup. What was done after the backup is lost, by the
//! operator's decision, so no rule may ask for it. Of a call under way during the backup it is not
//! known whether the backup has it: it counts as a call without an answer. Invariant: observations
//! keep their indices; one that is lost becomes a note. An id of something that is certainly lost
//! is kept, because it must never be used again.

use std::collections::{HashMap, HashSet};

use crate::call::{Op, Reply};
use crate::event::{Answer, CallNo, Event, History, Mark, Observation};
use crate::noun::Handed;
use crate::rule::made;

/// The history as far as the database knows it, and what is known of the rest.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) history: History,
    /// What is known of the part that was taken back.
    pub(crate) gone: Gone,
}

/// What is known of the parts of a history that restores took back.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// Ids of things that no backup has, with the answer that brought them.
    pub(crate) ids: HashMap<u64, usize>,
    /// Deliveries, by agent and message, that were handed over while a backup was made: the answer
    /// with the lease is not kept, and what followed it may be in the backup.
    pub(crate) handed: HashSet<(String, u64)>,
}

impl Gone {
    fn hand(&mut self, handed: &Handed) {
        self.handed.insert((handed.agent.clone(), handed.message));
    }
}

/// The key of a request: caller, RPC, request id.
type Request = (String, String, String);

impl Branch {
    pub(crate) fn of(history: &History) -> Self {
        let mut branch = Self { history: history.clone(), gone: Gone::default() };
        for at in 0..branch.history.observations.len() {
            let event = &branch.history.observations[at].event;
            if let Event::Mark(Mark::Restored { backup }) = event {
                branch.take_back(*backup, at);
            }
        }
        branch
    }

    /// Takes back what was done between a backup and its restore.
    fn take_back(&mut self, backup: u64, restored: usize) {
        let observations = &mut self.history.observations[..restored];
        let place = |wanted: Mark| {
            let is = |seen: &Observation| seen.event == Event::Mark(wanted.clone());
            observations.iter().rposition(is)
        };
        // A backup of a part that is itself lost takes back nothing more.
        let (Some(begun), Some(done)) =
            (place(Mark::BackupBegun { backup }), place(Mark::BackedUp { backup }))
        else {
            return;
        };
        let kept = requests_until(observations, done);
        let mut calls: HashMap<CallNo, Request> = HashMap::new();
        for (at, seen) in observations.iter_mut().enumerate().skip(begun + 1) {
            let lost = match &seen.event {
                Event::Invoked { call, caller, request_id, op } => {
                    calls.insert(*call, key(caller, op, request_id));
                    at > done
                }
                Event::Answered { call, answer } => {
                    let anew = calls
                        .get(call)
                        .is_some_and(|request| request.2.is_empty() || !kept.contains(request));
                    match answer {
                        Answer::Ok(reply) if at > done => {
                            let id = made(reply).filter(|_| anew);
                            id.map(|id| self.gone.ids.insert(id, at));
                        }
                        Answer::Ok(Reply::Leased(all)) => {
                            all.iter().for_each(|handed| self.gone.hand(handed));
                        }
                        Answer::Ok(Reply::Turn { delivery: Some(handed), .. }) => {
                            self.gone.hand(handed);
                        }
                        Answer::Ok(_) | Answer::Refused(_) | Answer::Unknown(_) => {}
                    }
                    true
                }
                Event::Saw(_) => true,
                // The other marks are kept: they say that something may have happened.
                Event::Mark(mark) => matches!(mark, Mark::Stopped { .. } | Mark::Purged { .. }),
            };
            if lost {
                seen.event = Event::Mark(Mark::Note("taken back by a restore".to_owned()));
            }
        }
    }
}

fn key(caller: &str, op: &Op, request_id: &str) -> Request {
    (caller.to_owned(), op.rpc().to_owned(), request_id.to_owned())
}

/// Returns the requests that left before the backup was complete: it may have their effects.
fn requests_until(observations: &[Observation], done: usize) -> HashSet<Request> {
    let left = observations[..done].iter().filter_map(|seen| match &seen.event {
        Event::Invoked { caller, request_id, op, .. } => Some(key(caller, op, request_id)),
        Event::Answered { .. } | Event::Saw(_) | Event::Mark(_) => None,
    });
    left.filter(|(_, _, request_id)| !request_id.is_empty()).collect()
}

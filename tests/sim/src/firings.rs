//! Firings: each due time of a schedule is fired once, or counted once in a message or in what a
//! target was skipped, and a target has at most one message of a schedule that nothing has read.
//!
//! The log says what the broker did and when. The due times by then are computed again, from the
//! terms that were asked for, and compared with what the messages state. Silent: about the times
//! while a schedule was paused, which are left out. Invariant: it reads only committed facts.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::delivery::RedeliveryCause;
use hive_core::effect::Effect;
use hive_core::event::{
    DeliveryReturned, Event, Facts, Kind, ScheduleChange, ScheduleChanged, ScheduleCreated,
    ScheduleEnded, ScheduleFired,
};
use hive_core::schedule::{Schedule, State, Terms, Timetable, begin};
use hive_core::time::WallTime;
use hive_history::{self as history, Final, Firing};

/// A schedule that has been due for this many ms at rest was forgotten.
pub(crate) const LATE_MS: i64 = 2_000;

/// What became of a message, as far as the next one depends on it.
#[derive(Clone, Copy, Debug, Default)]
struct Message {
    /// Whether a lease or a decision has taken it.
    taken: bool,
    failed: bool,
    superseded: bool,
}

/// A target since it became one.
#[derive(Clone, Debug, Default)]
struct Target {
    /// The due times since.
    due: u64,
    messages: Vec<u64>,
}

/// A schedule, as the log has it up to here.
#[derive(Debug)]
struct Followed {
    terms: Terms,
    state: State,
    /// The number of the next due time.
    next: u64,
    targets: BTreeMap<String, Target>,
    /// The messages of the firing that the log is in.
    sent: Vec<(String, u64)>,
}

impl Followed {
    fn timetable(&self) -> Timetable {
        self.terms.timetable().expect("the simulation's zones exist")
    }
}

/// Follows the log.
#[derive(Debug)]
pub(crate) struct Firings<'a> {
    /// The messages of schedules, by id.
    firings: BTreeMap<u64, Firing<'a>>,
    /// What was asked for, by question.
    effects: &'a BTreeMap<u64, Effect>,
    schedules: BTreeMap<u64, Followed>,
    messages: BTreeMap<u64, Message>,
    problems: Vec<String>,
}

impl<'a> Firings<'a> {
    pub(crate) fn new(last: &'a Final, effects: &'a BTreeMap<u64, Effect>) -> Self {
        let of = |message: &'a history::Message| Some((message.id, Firing::of(&message.body)?));
        Self {
            firings: last.messages.iter().filter_map(of).collect(),
            effects,
            schedules: BTreeMap::new(),
            messages: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    pub(crate) fn follow(&mut self, event: &Event) {
        if let Some(id) = event.message_id.map(hive_core::id::MessageId::get)
            && self.firings.contains_key(&id)
        {
            self.follow_message(id, event);
        }
        if let Facts::ScheduleCreated(Some(ScheduleCreated { schedule_id })) = event.facts {
            self.create(schedule_id.get(), event);
        } else if let Facts::ScheduleChanged(Some(changed)) = event.facts {
            self.change(changed, event);
        } else if let Facts::ScheduleFired(Some(ScheduleFired { schedule_id })) = event.facts {
            self.fire(schedule_id.get(), event);
        } else if let Facts::ScheduleEnded(Some(ScheduleEnded { schedule_id })) = event.facts {
            if let Some(followed) = self.open(schedule_id.get(), "ended") {
                followed.state = State::Ended;
            }
        } else if event.facts == Facts::AgentRetired {
            self.retire(&event.agent);
        }
    }

    /// Returns a schedule to which something happens.
    fn open(&mut self, id: u64, what: &str) -> Option<&mut Followed> {
        let open = self.schedules.get_mut(&id).filter(|followed| followed.state != State::Ended);
        if open.is_none() {
            self.problems.push(format!("Schedules: {id} is not open, and was {what}"));
        }
        open
    }

    /// Returns what was asked for, by the question that the log names.
    fn effect(&self, event: &Event) -> Option<&'a Effect> {
        let question = event.detail.rsplit(' ').next()?.parse().ok()?;
        self.effects.get(&question)
    }

    fn create(&mut self, id: u64, event: &Event) {
        let Some(Effect::CreateSchedule { terms }) = self.effect(event) else {
            self.problems.push(format!("Schedules: {id} was created without a request: {event:?}"));
            return;
        };
        let targets = terms.targets.iter().map(|name| (name.to_string(), Target::default()));
        let next = begin(terms, event.time).map_or(u64::MAX, |due| due.number);
        let followed = Followed {
            terms: terms.clone(),
            state: State::Active,
            next,
            targets: targets.collect(),
            sent: Vec::new(),
        };
        self.schedules.insert(id, followed);
    }

    fn change(&mut self, changed: ScheduleChanged, event: &Event) {
        let ScheduleChanged { schedule_id, change } = changed;
        let id = schedule_id.get();
        let effect = self.effect(event);
        let Some(followed) = self.open(id, "changed") else { return };
        match (change, effect) {
            (ScheduleChange::Paused, _) => followed.state = State::Paused,
            (ScheduleChange::Resumed, _) => {
                let last = followed.timetable().last(event.time);
                followed.next = followed.next.max(last.map_or(0, |due| due.number + 1));
                followed.state = State::Active;
            }
            (ScheduleChange::Edited, Some(Effect::ChangeSchedule { edit, .. })) => {
                let terms = edit.of(&followed.terms).expect("the broker has applied it");
                let times = |terms: &Terms| (terms.first_time, terms.interval, terms.zone.clone());
                if times(&terms) != times(&followed.terms) {
                    followed.next = match followed.state {
                        State::Active => {
                            begin(&terms, event.time).map_or(u64::MAX, |due| due.number)
                        }
                        State::Paused | State::Ended => 0,
                    };
                }
                for name in &edit.targets_remove {
                    followed.targets.remove(name.as_str());
                }
                for name in &edit.targets_add {
                    followed.targets.entry(name.to_string()).or_default();
                }
                followed.terms = terms;
            }
            (ScheduleChange::Edited, _) => {
                let what = format!("Schedules: {id} was changed without a request: {event:?}");
                self.problems.push(what);
            }
        }
    }

    fn retire(&mut self, agent: &str) {
        let open = self.schedules.values_mut().filter(|followed| followed.state != State::Ended);
        for followed in open.filter(|followed| followed.targets.len() > 1) {
            followed.targets.remove(agent);
            followed.terms.targets.retain(|name| name.as_str() != agent);
        }
    }

    fn follow_message(&mut self, id: u64, event: &Event) {
        let message = self.messages.entry(id).or_default();
        let kind = event.kind();
        if let Facts::DeliveryReturned(Some(DeliveryReturned { cause, .. })) = event.facts {
            message.failed |= is_failure(cause);
        } else if kind == Kind::DeliveryRedriven {
            message.failed = false;
        } else if kind == Kind::DeliverySuperseded {
            message.superseded = true;
            if message.failed {
                self.problems.push(format!("Schedules: message {id} failed, and was superseded"));
            }
        } else if kind == Kind::MessageAccepted {
            self.accept(id, &event.agent);
        } else if matches!(
            kind,
            Kind::DeliveryLeased
                | Kind::DeliveryAcked
                | Kind::DeliveryDropped
                | Kind::DeliveryDead
                | Kind::DeliveryHeld
        ) {
            message.taken = true;
        }
    }

    fn accept(&mut self, id: u64, agent: &str) {
        let schedule = self.firings[&id].schedule;
        let messages = &self.messages;
        let is_unread = |other: &&u64| {
            messages.get(other).is_some_and(|other| !other.taken && !other.superseded)
        };
        let followed = self.schedules.get_mut(&schedule);
        let target = followed.and_then(|followed| {
            followed.sent.push((agent.to_owned(), id));
            followed.targets.get_mut(agent)
        });
        let Some(target) = target else {
            let what = format!("Schedules: message {id} of {schedule} is to {agent}, no target");
            self.problems.push(what);
            return;
        };
        if let Some(other) = target.messages.iter().find(is_unread) {
            let what = format!(
                "Schedules: message {id} of {schedule} was sent to {agent}, and {other} is unread"
            );
            self.problems.push(what);
        }
        target.messages.push(id);
    }

    fn fire(&mut self, id: u64, event: &Event) {
        let Some(followed) = self.open(id, "fired") else { return };
        let sent = std::mem::take(&mut followed.sent);
        let mut stated = None;
        if event.detail.starts_with("for ") {
            let last = followed.timetable().last(event.time);
            let Some(due) = last.filter(|due| due.number >= followed.next) else {
                let next = followed.next;
                let what = format!(
                    "Schedules: {id} fired for {last:?}, and the next due time is number {next}"
                );
                self.problems.push(what);
                return;
            };
            for target in followed.targets.values_mut() {
                target.due += due.number + 1 - followed.next;
            }
            followed.next = due.number + 1;
            stated = Some(shown(due.time));
        }
        for (agent, message) in sent {
            let firing = self.firings[&message];
            let followed = &self.schedules[&id];
            let body = &followed.terms.body;
            if firing.due != stated.as_deref() || firing.body != body {
                let what = format!(
                    "Schedules: message {message} of {id}, {body:?} due at {stated:?}, is {firing:?}"
                );
                self.problems.push(what);
            }
            if let Some(target) = followed.targets.get(&agent) {
                let problem = self.miscounted(id, &agent, target, 0);
                self.problems.extend(problem);
            }
        }
    }

    /// Returns what is wrong if the messages that stand do not state each due time once.
    fn miscounted(&self, id: u64, agent: &str, target: &Target, skipped: u64) -> Option<String> {
        let stands = |id: &&u64| self.messages.get(id).is_none_or(|message| !message.superseded);
        let count = |firing: &Firing<'_>| u64::from(firing.due.is_some()) + firing.skipped;
        let standing: Vec<u64> = target.messages.iter().filter(stands).copied().collect();
        let stated: u64 = standing.iter().map(|id| count(&self.firings[id])).sum();
        (stated + skipped != target.due).then(|| {
            format!(
                "Schedules: {id} was due {} times for {agent}, messages {standing:?} state {stated} of them, and {skipped} were skipped since",
                target.due
            )
        })
    }

    /// Returns the problems found, with those of the schedules as they are at the end.
    pub(crate) fn finish(mut self, schedules: &[Schedule], last: &Final) -> Vec<String> {
        let known: BTreeSet<u64> = schedules.iter().map(|schedule| schedule.id.get()).collect();
        let lost: Vec<u64> =
            self.schedules.keys().copied().filter(|id| !known.contains(id)).collect();
        self.problems.extend(lost.iter().map(|id| format!("Schedules: {id} is not there")));
        for schedule in schedules {
            let id = schedule.id.get();
            let Some(followed) = self.schedules.get(&id) else {
                self.problems.push(format!("Schedules: {id} is there, and was not created"));
                continue;
            };
            let mut found = Vec::new();
            let next = followed.timetable().at(followed.next).map(|due| due.time);
            let next = next.filter(|_| followed.state == State::Active);
            if (schedule.state, schedule.next_time) != (followed.state, next) {
                found.push(format!(
                    "Schedules: {id} is {:?} until {:?}, and should be {:?} until {next:?}",
                    schedule.state, schedule.next_time, followed.state
                ));
            }
            if schedule.next_time.is_some_and(|next| next.0 + LATE_MS < last.wall) {
                found.push(format!("Schedules: {id} is due, and does not fire: {schedule:?}"));
            }
            for target in &schedule.targets {
                let agent = target.agent.as_str();
                let followed = followed.targets.get(agent).cloned().unwrap_or_default();
                found.extend(self.miscounted(id, agent, &followed, target.skipped_count));
            }
            found.extend(unsaid(schedule, last));
            self.problems.extend(found);
        }
        self.problems
    }
}

/// Returns what is wrong with the notices of an end: the owner gets one if it did not end it, or if
/// there are due times that no message states.
fn unsaid(schedule: &Schedule, last: &Final) -> Option<String> {
    let begin = format!("Your schedule {} has ended: ", schedule.id);
    let notices = last.messages.iter().filter(|message| {
        message.kind() == Some(history::Kind::ScheduleEnded) && message.body.starts_with(&begin)
    });
    let missed = schedule.targets.iter().any(|target| target.skipped_count > 0);
    let wanted = match (schedule.state, schedule.end_cause.as_str()) {
        (State::Active | State::Paused, _)
        | (_, "its owner ended it" | "its owner was retired") => false,
        (_, "it has no further due time" | "it was due once, and was fired by hand") => missed,
        (State::Ended, _) => true,
    };
    let count = notices.count();
    (count != usize::from(wanted))
        .then(|| format!("Schedules: {count} notices report the end of {schedule:?}"))
}

fn is_failure(cause: RedeliveryCause) -> bool {
    match cause {
        RedeliveryCause::TurnFailed
        | RedeliveryCause::HarnessVanished
        | RedeliveryCause::Nacked
        | RedeliveryCause::LeaseExpired => true,
        RedeliveryCause::RateLimited
        | RedeliveryCause::AuthFailed
        | RedeliveryCause::Unavailable
        | RedeliveryCause::Drained
        | RedeliveryCause::Released
        | RedeliveryCause::Redriven
        | RedeliveryCause::NotReceived
        | RedeliveryCause::Restored => false,
    }
}

/// Returns a time as messages show it.
fn shown(time: WallTime) -> String {
    let seconds = time.0.div_euclid(1_000);
    prost_types::Timestamp { seconds, nanos: 0 }.to_string()
}

#[cfg(test)]
mod tests;

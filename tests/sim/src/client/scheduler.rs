//! Schedules: agents ask for them, change, end and fire them, and the operator pauses them. A grant
//! allows what they ask for; agents without one need an approval.
//!
//! Invariant: each text of a schedule is used once, so that a message shows by which terms it was
//! sent. How far the due times are apart follows from the length of the run, so that even thirty
//! days have some hundred of them.

use std::rc::Rc;

use hive_core::schedule::{Schedule, State};
use hive_history::Terms;

use crate::call::{Call, Who};
use crate::firings::LATE_MS;
use crate::net::Heard;
use crate::serve::caller;
use crate::world::{World, say};

/// Most open schedules of one agent.
const OPEN_MAX: usize = 2;
const DAY_S: u64 = 24 * 3600;
/// Zones with and without summer time, the last one with half an hour of it.
const ZONES: [&str; 5] = ["", "", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"];
/// A schedule that is due within this time keeps the hive from coming to rest, in ms.
const SOON: i64 = 12 * 3_600_000;

impl World {
    /// Makes one call of an agent about its schedules.
    pub(crate) async fn manage_schedules(self: &Rc<Self>, who: &Who) -> Heard {
        let mine = self.open_schedules(&who.name).await.unwrap_or_default();
        let Some(one) =
            self.dice.pick(&mine).filter(|_| mine.len() >= OPEN_MAX || self.dice.chance(400))
        else {
            return self.create_schedule(who).await;
        };
        let schedule = one.id.get();
        let call = match self.dice.weighted(&[(9, 0), (2, 1), (2, 2)]) {
            0 => self.change(schedule, self.new_terms(one), 0),
            1 => Call::CancelSchedule { schedule },
            _ => Call::FireSchedule { schedule },
        };
        self.insist(who, call, 4).await
    }

    /// Returns a question about a schedule of an agent without a grant, which is open for this
    /// long.
    pub(crate) async fn wanted_schedule(&self, agent: &str, ttl_ms: u64) -> Call {
        let mine = self.open_schedules(agent).await.unwrap_or_default();
        match self.dice.pick(&mine).filter(|_| mine.len() >= OPEN_MAX || self.dice.chance(600)) {
            Some(one) => self.change(one.id.get(), self.new_terms(one), ttl_ms),
            None => self.change(0, self.first_terms(), ttl_ms),
        }
    }

    /// Returns whether an agent may create schedules now.
    pub(crate) fn may_schedule(&self, agent: &str) -> bool {
        !self.healing.get() && self.seat(agent).is_some_and(|seat| seat.rights.schedules)
    }

    async fn create_schedule(self: &Rc<Self>, who: &Who) -> Heard {
        self.insist(who, self.change(0, self.first_terms(), 0), 4).await
    }

    /// Returns the terms of a new schedule.
    fn first_terms(&self) -> Terms {
        let mut targets_add: Vec<String> = Vec::new();
        for _ in 0..self.dice.between(1, 3) {
            targets_add.extend(self.a_target().filter(|name| !targets_add.contains(name)));
        }
        let once = self.dice.chance(150);
        let times = self.new_times();
        let interval_s = times.interval_s.filter(|_| !once);
        Terms { targets_add, interval_s, ..times }
    }

    /// Returns other terms for a schedule.
    fn new_terms(&self, one: &Schedule) -> Terms {
        match self.dice.weighted(&[(4, 0), (3, 1), (2, 2)]) {
            0 => self.new_times(),
            1 => self.new_targets(one),
            _ => Terms { body: Some(self.fresh("plan")), ..Terms::default() },
        }
    }

    /// Does something of the operator about a schedule of any agent.
    pub(crate) async fn oversee(self: &Rc<Self>, who: &Who) {
        let open = self.open_schedules("operator").await.unwrap_or_default();
        let Some(one) = self.dice.pick(&open) else { return };
        let schedule = one.id.get();
        let call = match (one.state, self.dice.below(10)) {
            (_, 0) => Call::CancelSchedule { schedule },
            (_, 1 | 2) => Call::FireSchedule { schedule },
            (State::Paused, 3..=8) => Call::ResumeSchedule { schedule },
            (State::Active | State::Paused | State::Ended, _) => Call::PauseSchedule { schedule },
        };
        drop(self.insist(who, call, 5).await);
    }

    fn change(&self, schedule: u64, terms: Terms, ttl_ms: u64) -> Call {
        Call::Schedule { text: self.fresh("wish"), ttl_ms, schedule, terms }
    }

    fn a_target(&self) -> Option<String> {
        let seats = self.seats.borrow();
        self.dice.pick(&seats).map(|seat| seat.name.clone())
    }

    fn new_targets(&self, one: &Schedule) -> Terms {
        let has = |name: &String| one.targets.iter().any(|target| target.agent.as_str() == *name);
        let (mut targets_add, mut targets_remove) = (Vec::new(), Vec::new());
        if self.dice.chance(600) {
            targets_add.extend(self.a_target().filter(|name| !has(name)));
        }
        if targets_add.is_empty() || self.dice.chance(400) {
            let gone = self.dice.pick(&one.targets).map(|target| target.agent.to_string());
            targets_remove.extend(gone);
        }
        Terms { targets_add, targets_remove, ..Terms::default() }
    }

    /// Returns a text and times, without targets.
    fn new_times(&self) -> Terms {
        let run_s = self.plan.minutes * 60 * self.calm;
        let of_run = run_s / self.dice.weighted(&[(3, 8), (3, 20), (1, 60)]);
        let interval_s = match self.dice.below(3) {
            0 if run_s > 2 * DAY_S => DAY_S * self.dice.between(1, 2),
            _ => of_run.max(60) + self.dice.below(60),
        };
        let ahead = self.dice.weighted(&[(3, interval_s), (2, run_s / 4), (1, 5)]);
        let first_s = 1 + self.dice.below(ahead.max(1));
        let first_time = self.time.wall() + i64::try_from(first_s * 1_000).unwrap_or(0);
        let late_max_s = self.dice.weighted(&[(6, 0), (1, 60), (1, interval_s / 2 + 60)]);
        Terms {
            body: Some(self.fresh("plan")),
            first_time: Some(first_time),
            interval_s: Some(interval_s),
            zone: self.dice.pick(&ZONES).map(|zone| (*zone).to_owned()),
            late_max_s: Some(late_max_s),
            ..Terms::default()
        }
    }

    /// Returns schedules that have not ended: of an agent, or of all for the operator; `None` if
    /// they cannot be read.
    async fn open_schedules(&self, name: &str) -> Option<Vec<Schedule>> {
        let (_, engine) = self.serving()?;
        let listed = engine.list_schedules(caller(name), String::new(), Vec::new(), None, 500);
        listed.await.ok().map(|(open, _)| open)
    }

    /// Pauses or ends the schedules that are due soon, so that the hive can come to rest.
    pub(crate) async fn calm_schedules(self: &Rc<Self>) {
        let Some(open) = self.open_schedules("operator").await else {
            self.wrong("the schedules cannot be read".to_owned());
            return;
        };
        let now = self.time.wall();
        let soon = |one: &&Schedule| one.next_time.is_some_and(|next| next.0 < now + SOON);
        for one in open.iter().filter(soon) {
            let schedule = one.id.get();
            say!(self, "schedule {schedule} is due at {:?}", one.next_time);
            if one.next_time.is_some_and(|next| next.0 + LATE_MS < now) {
                self.wrong(format!("Schedules: {schedule} is due and does not fire: {one:?}"));
            }
            let call = if self.dice.chance(500) {
                Call::CancelSchedule { schedule }
            } else {
                Call::PauseSchedule { schedule }
            };
            // One that was due once may have ended since.
            drop(self.insist(&Who::operator(), call, 50).await);
        }
    }
}

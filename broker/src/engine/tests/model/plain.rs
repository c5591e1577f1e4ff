//! The model: the delivery contract in memory, as plainly as it can be said.
//!
//! Invariant: it uses nothing of the engine or the store, and of the core only the names of things.

use std::collections::HashSet;

use hive_core::delivery::{Decision, Lane, State};
use hive_core::park::LOGIN_PARK;
use hive_core::turn::{Kind, Outcome};

/// Bounds of the contract, in milliseconds where they are times.
const ATTEMPTS_MAX: u32 = 5;
const ALONE_FROM_FAILURES: u32 = 2;
const SYSTEM_RUN_MAX: u32 = 8;
const GRACE: i64 = 60_000;

/// The holder of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// The open turn; by a tool call, unless it woke the turn.
    Turn { tool_use: Option<String> },
    /// A consumer, until a time.
    Consumer { until: i64 },
}

/// What a consumer settled with its token: a repeat has the same result.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    Acked,
    Nacked { permanent: bool, state: State },
}

/// A delivery.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) message: u64,
    pub(super) lane: Lane,
    pub(super) state: State,
    pub(super) failures: u32,
    /// The number of the try that holds it, or held it last.
    pub(super) tried: u32,
    pub(super) not_before: Option<i64>,
    pub(super) holder: Option<Holder>,
    /// A consumer's last token, and how that consumer settled it.
    pub(super) token: Option<String>,
    pub(super) end: Option<End>,
    pub(super) key: Option<u8>,
    /// Whether it notifies the agent that its harness was restarted.
    pub(super) is_kick: bool,
}

/// The end of the last turn that was no upkeep.
#[derive(Clone, Copy, Debug)]
struct Last {
    outcome: Outcome,
    came_back: bool,
    asked_for_next: bool,
}

/// Why no turn begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Park {
    /// Until claude has a login, or until this time.
    Login {
        wall: Option<i64>,
    },
    Until {
        wall: Option<i64>,
        boot: Option<i64>,
    },
}

/// A harness's session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    pub(super) live: bool,
    pub(super) contact: i64,
    pub(super) turn_open: bool,
}

/// An agent and its inbox.
#[derive(Clone, Debug, Default)]
pub(super) struct Agent {
    pub(super) items: Vec<Item>,
    system_run: u32,
    pub(super) session: Option<Session>,
    /// The kind of the open or last turn; none for mail.
    kind: Option<Kind>,
    /// Whether the delivery that woke it is served alone.
    alone: bool,
    /// Whether it asked for a next one.
    pub(super) asked_for_next: bool,
    last: Option<Last>,
    park: Option<Park>,
    failures_in_a_row: u32,
    told: bool,
    /// The number of notices that its parent got about it.
    pub(super) to_parent: u32,
    /// The number of notices about its turns that the operator has not read, whichever parent it
    /// has: the newest takes the place of an older one.
    pub(super) to_operator: u32,
    /// Whether a parent that is an agent got a notice that it works again, and one that it was
    /// logged in; the newest of each takes the place of an older one.
    recovered: bool,
    logged_in: bool,
}

/// Both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) wall: i64,
    pub(super) boot: i64,
}

fn doubled(base: i64, max: i64, times: u32) -> i64 {
    (0..times.saturating_sub(1)).fold(base, |span, _| (span * 2).min(max))
}

/// The park that begins now because claude has no login. Its length is no part of the model.
fn login_park(at: At) -> Park {
    let length = LOGIN_PARK.map(|length| i64::try_from(length.as_millis()).expect("in range"));
    Park::Login { wall: length.map(|length| at.wall + length) }
}

impl Item {
    fn is_due(&self, at: At) -> bool {
        self.state == State::Ready && self.not_before.is_none_or(|due| due <= at.boot)
    }

    pub(super) fn is_settled(&self) -> bool {
        matches!(self.state, State::Acked | State::Dropped | State::Superseded)
    }

    /// Back into the inbox, or dead.
    fn fail(&mut self, for_good: bool, at: At) {
        self.failures += 1;
        self.holder = None;
        if for_good || self.failures >= ATTEMPTS_MAX {
            self.state = State::Dead;
        } else {
            self.state = State::Ready;
            self.not_before = Some(at.boot + doubled(5_000, 300_000, self.failures));
        }
    }

    fn back(&mut self) {
        (self.state, self.holder) = (State::Ready, None);
    }
}

impl Agent {
    /// Adds a delivery, which replaces an undelivered one with the same key.
    pub(super) fn accept(&mut self, message: u64, lane: Lane, key: Option<u8>) -> Option<u64> {
        let older = self
            .items
            .iter_mut()
            .rev()
            .find(|item| key.is_some() && item.key == key && item.state == State::Ready);
        let superseded = older.map(|item| {
            (item.state, item.not_before) = (State::Superseded, None);
            item.message
        });
        self.items.push(Item {
            message,
            lane,
            state: State::Ready,
            failures: 0,
            tried: 0,
            not_before: None,
            holder: None,
            token: None,
            end: None,
            key,
            is_kick: false,
        });
        superseded
    }

    /// Returns the delivery that is served next.
    fn next(&self, with_poison: bool, at: At) -> Option<usize> {
        let lanes = if self.system_run >= SYSTEM_RUN_MAX {
            [Lane::Normal, Lane::System]
        } else {
            [Lane::System, Lane::Normal]
        };
        lanes.into_iter().find_map(|lane| {
            let fits = |item: &Item| {
                item.lane == lane
                    && item.is_due(at)
                    && (with_poison || item.failures < ALONE_FROM_FAILURES)
            };
            self.items.iter().position(fits)
        })
    }

    fn serve(&mut self, index: usize, holder: Holder) -> u64 {
        let item = &mut self.items[index];
        (item.state, item.not_before, item.holder, item.token) =
            (State::Leased, None, Some(holder), None);
        item.end = None;
        item.tried = item.failures + 1;
        self.system_run = if item.lane == Lane::System { self.system_run + 1 } else { 0 };
        item.message
    }

    pub(super) fn is_parked(&self, at: At) -> bool {
        match &self.park {
            None => false,
            Some(Park::Login { wall }) => wall.is_none_or(|until| until > at.wall),
            Some(Park::Until { wall, boot }) => {
                wall.is_some_and(|until| until > at.wall)
                    || boot.is_some_and(|until| until > at.boot)
            }
        }
    }

    fn needs_login(&self, at: At) -> bool {
        matches!(self.park, Some(Park::Login { .. })) && self.is_parked(at)
    }

    /// A turn begins, if there is work and no park.
    pub(super) fn begin(&mut self, at: At) -> Option<u64> {
        let session = self.session.as_mut().expect("only a session begins turns");
        session.contact = at.boot;
        if self.is_parked(at) {
            return None;
        }
        let index = self.next(true, at)?;
        self.alone = self.items[index].failures >= ALONE_FROM_FAILURES;
        let message = self.serve(index, Holder::Turn { tool_use: None });
        self.session.as_mut().expect("it is there").turn_open = true;
        (self.kind, self.asked_for_next) = (None, false);
        Some(message)
    }

    /// A turn without mail is opened; `false` where a park forbids it.
    pub(super) fn open(&mut self, kind: Kind, at: At) -> bool {
        if self.is_parked(at) && kind != Kind::Compact {
            return false;
        }
        let session = self.session.as_mut().expect("only a session opens turns");
        (session.turn_open, session.contact) = (true, at.boot);
        (self.kind, self.alone, self.asked_for_next) = (Some(kind), false, false);
        true
    }

    /// The open turn takes more; `None` where its delivery is served alone.
    pub(super) fn recv(&mut self, max: u32, tool_use: &str, at: At) -> Option<Vec<u64>> {
        if self.alone {
            return None;
        }
        let mut taken = Vec::new();
        while taken.len() < max as usize
            && let Some(index) = self.next(false, at)
        {
            taken.push(self.serve(index, Holder::Turn { tool_use: Some(tool_use.to_owned()) }));
        }
        Some(taken)
    }

    /// A consumer takes mail.
    pub(super) fn receive(&mut self, max: u32, at: At) -> Vec<u64> {
        let mut taken = Vec::new();
        while taken.len() < max as usize
            && let Some(index) = self.next(taken.is_empty(), at)
        {
            let alone = self.items[index].failures >= ALONE_FROM_FAILURES;
            taken.push(self.serve(index, Holder::Consumer { until: at.boot + 60_000 }));
            if alone {
                break;
            }
        }
        taken
    }

    /// The open turn ends.
    pub(super) fn end(
        &mut self,
        outcome: Outcome,
        returned: &HashSet<String>,
        compacted: bool,
        limit_ends: Option<i64>,
        at: At,
    ) {
        let (mut deaths, mut returned_count) = (0, 0);
        for item in &mut self.items {
            let Some(Holder::Turn { tool_use }) = item.holder.clone() else { continue };
            item.end = None;
            match outcome {
                Outcome::Ok if tool_use.is_none_or(|id| returned.contains(&id)) => {
                    (item.state, item.holder) = (State::Acked, None);
                }
                Outcome::Failed | Outcome::Vanished => item.fail(false, at),
                Outcome::Cancelled => (item.state, item.holder) = (State::Held, None),
                Outcome::Ok
                | Outcome::RateLimited
                | Outcome::AuthFailed
                | Outcome::Unavailable
                | Outcome::Drained
                | Outcome::Fenced => item.back(),
            }
            deaths += u32::from(item.state == State::Dead);
            returned_count += u32::from(item.state == State::Ready);
        }
        let upkeep = matches!(self.kind, Some(Kind::Checkpoint | Kind::Compact));
        if !upkeep {
            let (came_back, asked_for_next) = (deaths + returned_count > 0, self.asked_for_next);
            self.last = Some(Last { outcome, came_back, asked_for_next });
        }
        self.to_parent += deaths + u32::from(outcome == Outcome::Failed && !upkeep);
        let did_nothing = self.kind == Some(Kind::Compact) && outcome == Outcome::Ok && !compacted;
        let broke = upkeep && outcome == Outcome::Failed;
        if !did_nothing && !broke {
            self.park_after(outcome, deaths, limit_ends, at);
        }
        let session = self.session.as_mut().expect("a turn has a session");
        (session.turn_open, session.contact) = (false, at.boot);
    }

    fn park_after(&mut self, outcome: Outcome, deaths: u32, limit_ends: Option<i64>, at: At) {
        match outcome {
            Outcome::Ok => {
                self.recovered |= self.told;
                (self.park, self.failures_in_a_row, self.told) = (None, 0, false);
            }
            Outcome::Cancelled | Outcome::Drained | Outcome::Fenced => {}
            Outcome::Failed
            | Outcome::Vanished
            | Outcome::RateLimited
            | Outcome::AuthFailed
            | Outcome::Unavailable => {
                self.failures_in_a_row += 1;
                let row = self.failures_in_a_row;
                let backoff = |times| Some(at.boot + doubled(10_000, 600_000, times));
                self.park = match outcome {
                    Outcome::AuthFailed => Some(login_park(at)),
                    Outcome::Unavailable => Some(Park::Until { wall: None, boot: backoff(row) }),
                    Outcome::RateLimited if limit_ends.is_none() => {
                        Some(Park::Until { wall: None, boot: Some(at.boot + 300_000) })
                    }
                    Outcome::RateLimited => Some(Park::Until {
                        wall: limit_ends,
                        boot: if row > 1 { backoff(row - 1) } else { None },
                    }),
                    Outcome::Failed | Outcome::Vanished if row >= 3 && deaths == 0 => {
                        Some(Park::Until { wall: None, boot: backoff(row - 2) })
                    }
                    Outcome::Failed | Outcome::Vanished => None,
                    Outcome::Ok | Outcome::Cancelled | Outcome::Drained | Outcome::Fenced => {
                        unreachable!("no failure")
                    }
                };
                if matches!(outcome, Outcome::AuthFailed | Outcome::Unavailable) && !self.told {
                    (self.told, self.to_operator) = (true, 1);
                }
                if deaths > 0 {
                    self.failures_in_a_row = 0;
                }
            }
        }
    }

    /// The harness says that it is logged in.
    pub(super) fn login(&mut self, at: At) {
        self.session.as_mut().expect("a harness says it").contact = at.boot;
        if self.needs_login(at) {
            self.logged_in |= self.told;
            (self.park, self.told) = (None, false);
        }
    }

    /// Returns how many notices of its state a parent that is an agent has.
    pub(super) fn states_told(&self) -> u32 {
        u32::from(self.recovered) + u32::from(self.logged_in)
    }

    /// The harness says that it is not logged in.
    pub(super) fn logout(&mut self, at: At) {
        self.session.as_mut().expect("a harness says it").contact = at.boot;
        if !self.needs_login(at) {
            self.park = Some(login_park(at));
            (self.told, self.to_operator) = (true, 1);
        }
    }

    /// A harness starts afresh; `false` where it is refused.
    pub(super) fn attach(&mut self, take_over: bool, at: At) -> bool {
        let live = self.session.as_ref().is_some_and(|session| session.live);
        if live && !take_over {
            return false;
        }
        if self.session.as_ref().is_some_and(|session| session.turn_open) {
            self.end(
                if live { Outcome::Fenced } else { Outcome::Vanished },
                &HashSet::new(),
                false,
                None,
                at,
            );
        }
        self.session = Some(Session { live: true, contact: at.boot, turn_open: false });
        true
    }

    /// Returns whether a session that just began notifies the agent to continue.
    pub(super) fn is_kicked(&self) -> bool {
        let Some(last) = self.last.filter(|last| !last.came_back) else { return false };
        let interrupted = match last.outcome {
            Outcome::Vanished | Outcome::Fenced | Outcome::Drained => true,
            Outcome::Cancelled => false,
            Outcome::Ok
            | Outcome::Failed
            | Outcome::RateLimited
            | Outcome::AuthFailed
            | Outcome::Unavailable => last.asked_for_next,
        };
        interrupted && !self.items.iter().any(|item| item.is_kick && !item.is_settled())
    }

    /// Attaches a harness to its session again.
    pub(super) fn resume(&mut self, at: At) {
        let session = self.session.as_mut().expect("a session to come back to");
        (session.live, session.contact) = (true, at.boot);
    }

    /// The harness's connection ends.
    pub(super) fn vanish(&mut self) {
        if let Some(session) = &mut self.session
            && session.live
        {
            session.live = false;
            if !session.turn_open {
                session.contact = i64::MIN;
            }
        }
    }

    /// Runs everything that is due at this time.
    pub(super) fn sweep(&mut self, at: At) {
        let mut deaths = 0;
        for item in &mut self.items {
            let Some(Holder::Consumer { until }) = item.holder else { continue };
            if until <= at.boot {
                item.end = None;
                // A time of 0 is from before a reboot: it ends without blame.
                if until == 0 {
                    item.back();
                } else {
                    item.fail(false, at);
                }
                deaths += u32::from(item.state == State::Dead);
            }
        }
        self.to_parent += deaths;
        if let Some(session) = &self.session
            && (!session.live || session.turn_open)
            && session.contact.saturating_add(GRACE) <= at.boot
        {
            if session.turn_open {
                self.end(Outcome::Vanished, &HashSet::new(), false, None, at);
            }
            self.session = None;
        }
    }

    /// The broker starts again.
    pub(super) fn restart(&mut self, at: At) {
        if let Some(session) = &mut self.session {
            (session.live, session.contact) = (false, at.boot);
        }
        for item in &mut self.items {
            if let Some(Holder::Consumer { until }) = &mut item.holder
                && *until > 0
            {
                *until = (*until).max(at.boot + 60_000);
            }
        }
    }

    /// The host starts again: everything that the old boot clock measured is over.
    pub(super) fn reboot(&mut self, at: At) {
        for item in &mut self.items {
            item.not_before = None;
            if let Some(Holder::Consumer { until }) = &mut item.holder {
                *until = 0;
            }
        }
        if let Some(Park::Until { boot, .. }) = &mut self.park {
            *boot = None;
        }
        if self.session.as_ref().is_some_and(|session| session.turn_open) {
            self.end(Outcome::Fenced, &HashSet::new(), false, None, at);
        }
        self.restart(at);
    }

    fn by_token(&mut self, message: u64, token: &str) -> Option<&mut Item> {
        self.items
            .iter_mut()
            .find(|item| item.message == message && item.token.as_deref() == Some(token))
    }

    /// A consumer acks; whether that is accepted.
    pub(super) fn ack(&mut self, message: u64, token: &str) -> bool {
        let Some(item) = self.by_token(message, token) else { return false };
        if item.state == State::Leased {
            (item.state, item.holder, item.end) = (State::Acked, None, Some(End::Acked));
            return true;
        }
        matches!(item.end, Some(End::Acked))
    }

    /// Nacks a consumer's delivery; returns its new state, if the nack is accepted.
    pub(super) fn nack(
        &mut self,
        message: u64,
        token: &str,
        permanent: bool,
        at: At,
    ) -> Option<State> {
        let item = self.by_token(message, token)?;
        if item.state == State::Leased {
            item.fail(permanent, at);
            let state = item.state;
            item.end = Some(End::Nacked { permanent, state });
            self.to_parent += u32::from(state == State::Dead);
            return Some(state);
        }
        match item.end {
            Some(End::Nacked { permanent: before, state }) if before == permanent => Some(state),
            _ => None,
        }
    }

    /// A consumer wants more time; whether it gets it.
    pub(super) fn extend(&mut self, message: u64, token: &str, at: At) -> bool {
        let Some(item) = self.by_token(message, token) else { return false };
        if item.state == State::Leased {
            item.holder = Some(Holder::Consumer { until: at.boot + 60_000 });
            return true;
        }
        false
    }

    /// The operator decides; whether that makes sense.
    pub(super) fn decide(&mut self, message: u64, decision: Decision) -> bool {
        let item = self.items.iter_mut().find(|item| item.message == message).expect("it is there");
        let after = match (decision, item.state) {
            (Decision::Ack, State::Acked) => return true,
            (Decision::Ack, _) if !item.is_settled() => State::Acked,
            (Decision::Drop, _) if !item.is_settled() => State::Dropped,
            (Decision::Release, State::Held) | (Decision::Redrive, State::Dead) => State::Ready,
            _ => return false,
        };
        if decision == Decision::Redrive {
            (item.failures, item.tried) = (0, 0);
        }
        (item.state, item.not_before, item.holder) = (after, None, None);
        true
    }
}

/// The model of both agents.
#[derive(Clone, Debug, Default)]
pub(super) struct Model {
    pub(super) agents: [Agent; 2],
}

//! The state machine of the screen: it takes an event, changes the state, and returns actions.
//!
//! What it is not: it reads no key, no clock and no broker. The [driver](super::driver) provides
//! events and performs actions.
//!
//! Invariant: the same events at the same times give the same screen and the same actions.

use hive_core::time::{BootTime, Now};
use hive_proto::v1::EventKind;

use super::change::{Asked, Change, Outcome};
use super::hive::{Part, Reading};
use super::item::{Item, Key as Name};
use super::key::Key;
use super::reads::{Next, Wanted};
use super::state::{Dialog, Link, State, Tone};
use super::{details, press};

#[derive(Debug)]
pub(crate) enum Event {
    Key(Key),
    /// The terminal has this many columns and lines.
    Resized(u16, u16),
    Tick,
    /// A time has come that was asked for by [`Action::WakeAt`].
    Wake,
    /// The broker answers, again or for the first time. Earlier events were not reported.
    Linked,
    /// The broker no longer answers, for this reason.
    Lost(String),
    Happened(EventKind, String),
    /// Events were committed that the broker no longer has.
    Missed,
    Read(Box<Reading>),
    /// The hive could not be read, for this reason.
    NotRead(String),
    Changed(Asked, Outcome),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Read this, and report [`Event::Read`] or [`Event::NotRead`].
    Read(Wanted),
    /// Report [`Event::Wake`] at this time, which replaces an earlier one.
    WakeAt(BootTime),
    /// Make this change, and report [`Event::Changed`].
    Change(Asked),
    Redraw,
    Quit,
}

pub(crate) fn update(state: &mut State, event: Event, now: Now) -> Vec<Action> {
    let mut actions = Vec::new();
    match event {
        Event::Key(key) => press::press(state, key, now, &mut actions),
        Event::Resized(columns, lines) => state.size = (columns, lines),
        Event::Tick => wake_parked(state, now),
        Event::Wake => {}
        Event::Linked => {
            if matches!(state.link, Link::Down { .. }) {
                state.link = Link::Up;
                state.say(Tone::Good, "the broker is back");
            }
            state.reads.want_all();
            state.reads.forgive();
        }
        Event::Lost(why) => {
            let since = match &state.link {
                Link::Down { since, .. } => *since,
                Link::Up | Link::Beginning => now.wall,
            };
            state.link = Link::Down { since, why };
        }
        Event::Happened(kind, agent) => {
            if kind == EventKind::DeliveryHeld {
                state.reads.want_holder(&agent);
            }
            state.reads.want(Part::touched(kind, &agent));
        }
        Event::Missed => state.reads.want_all(),
        Event::Read(reading) => {
            state.reads.end(true, now.boot);
            apply(state, *reading, now);
        }
        Event::NotRead(why) => {
            state.reads.end(false, now.boot);
            // An outage of the broker is shown already.
            if !matches!(state.link, Link::Down { .. }) {
                state.say(Tone::Bad, format!("cannot read the hive, trying again: {why}"));
            }
        }
        Event::Changed(asked, outcome) => changed(state, &asked, &outcome),
    }
    read_on(state, now, &mut actions);
    actions
}

fn apply(state: &mut State, reading: Reading, now: Now) {
    let first = matches!(state.link, Link::Beginning);
    state.hive.apply(reading);
    if first {
        state.link = Link::Up;
        state.focus_first_filled();
    }
    state.settle_choices();
    if let Some(Dialog::Answer(form)) = &mut state.dialog {
        match state.hive.find(&Name::Question(form.question)) {
            Some(Item::Question(question)) => form.renew(question),
            _ => form.fault = Some("it is not open any more; Esc leaves".to_owned()),
        }
    }
    if let Some(mut shown) = state.details.take() {
        details::refresh(&mut shown, state, now);
        state.details = Some(shown);
    }
}

/// A park that ends is no event; its time is known, so the agents are read once it has passed.
fn wake_parked(state: &mut State, now: Now) {
    let second = now.wall.before(std::time::Duration::from_secs(1));
    let ended = state.hive.agents.iter().any(|agent| {
        let until =
            agent.park.as_ref().and_then(|park| crate::output::time::from_wire(park.until_time));
        until.is_some_and(|until| second < until && until <= now.wall)
    });
    if ended {
        state.reads.want([Part::Agents]);
    }
}

fn changed(state: &mut State, asked: &Asked, outcome: &Outcome) {
    state.changes.end(asked, outcome);
    let change = &asked.change;
    match outcome {
        Outcome::Done => {
            state.draft = None;
            state.say(Tone::Good, change.describe().done);
        }
        Outcome::Refused(why) => {
            // What an approval would change may be something else now.
            if matches!(change, Change::Answer { .. }) {
                state.reads.want([Part::Questions]);
            }
            state.say(Tone::Bad, format!("{}: {why}", change.describe().failed));
        }
        Outcome::Unknown(why) => {
            let text = format!(
                "the outcome is unknown ({}?): {why}; press the key again, it is not done twice",
                change.describe().done
            );
            state.say(Tone::Bad, text);
        }
    }
}

fn read_on(state: &mut State, now: Now, actions: &mut Vec<Action>) {
    if matches!(state.link, Link::Down { .. }) {
        return;
    }
    match state.reads.next(state.hive.holders(), now.boot) {
        Next::Read(wanted) => actions.push(Action::Read(wanted)),
        Next::WakeAt(time) => actions.push(Action::WakeAt(time)),
        Next::Nothing => {}
    }
}

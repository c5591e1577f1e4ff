//! One row in full: every field, the whole text, the last error and the end of the output.
//!
//! Invariant: the text stays readable after the row disappears; then a note says so, and no key
//! acts on it.

use hive_core::time::Now;
use hive_proto::v1::{
    Agent, Delivery, HarnessState, LooseEndKind, Message, Park, Question, RedeliveryCause,
    TurnOutcome,
};
use jiff::Timestamp;
use prost_types::Timestamp as Wire;

use super::item::{Item, Key, sender};
use super::state::State;
use crate::output::text::visible_line;
use crate::output::time;
use crate::output::wrap::wrap;
use crate::view::isolation;

pub(super) fn model_in_use(agent: &Agent) -> &str {
    if agent.model_in_use.is_empty() { &agent.model } else { &agent.model_in_use }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Field(&'static str, String),
    Heading(&'static str),
    Block(String),
}

/// A row that is shown in full.
#[derive(Debug)]
pub(crate) struct Details {
    pub(crate) key: Key,
    pub(crate) title: String,
    pub(crate) pieces: Vec<Piece>,
    pub(crate) first: usize,
    pub(crate) gone: bool,
}

/// A line of it: whether it is a heading, and the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) heading: bool,
    pub(crate) text: String,
}

const NAMES: usize = 13;

impl Details {
    pub(crate) fn lines(&self, columns: u16) -> Vec<Line> {
        let columns = usize::from(columns);
        let plain = |text: String| Line { heading: false, text };
        let mut lines = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Field(name, value) => {
                    let mut name = *name;
                    for part in wrap(&visible_line(value), columns.saturating_sub(NAMES)) {
                        lines.push(plain(format!("{name:NAMES$}{part}")));
                        name = "";
                    }
                }
                Piece::Heading(words) => {
                    lines.push(plain(String::new()));
                    lines.push(Line { heading: true, text: (*words).to_owned() });
                }
                Piece::Block(text) => lines.extend(wrap(text, columns).into_iter().map(plain)),
            }
        }
        lines
    }

    /// Lines that fit on a screen: all but header, title, status and keys.
    pub(crate) fn room(lines: u16) -> usize {
        usize::from(lines.saturating_sub(4))
    }

    /// Scrolls by this many lines, within the text.
    pub(crate) fn scroll(&mut self, by: isize, (columns, lines): (u16, u16)) {
        let last = self.lines(columns).len().saturating_sub(Self::room(lines));
        self.first = self.first.min(last).saturating_add_signed(by).min(last);
    }
}

/// Shows a row in full, if it is still there.
pub(crate) fn open(state: &State, key: Key, now: Now) -> Option<Details> {
    let item = state.hive.find(&key)?;
    let (title, pieces) = compose(state, item, now);
    Some(Details { key, title, pieces, first: 0, gone: false })
}

pub(crate) fn refresh(details: &mut Details, state: &State, now: Now) {
    match state.hive.find(&details.key) {
        Some(item) => (details.title, details.pieces) = compose(state, item, now),
        None => details.gone = true,
    }
}

fn compose(state: &State, item: Item<'_>, now: Now) -> (String, Vec<Piece>) {
    let composer = Composer { state, now };
    match item {
        Item::Question(question) => {
            (format!("question {}", question.id), composer.question(question))
        }
        Item::Mail(delivery) => (named("message", delivery), composer.delivery(delivery)),
        Item::DeadLetter(delivery) => (named("dead letter", delivery), composer.delivery(delivery)),
        Item::Held(delivery) => (named("held message", delivery), composer.delivery(delivery)),
        Item::Login(agent) | Item::Parked(agent) | Item::Agent(agent) => {
            (format!("agent {}", agent.name), composer.agent(agent))
        }
    }
}

fn named(what: &str, delivery: &Delivery) -> String {
    format!("{what} {}", super::item::message_id(delivery))
}

/// Returns the word for a value of an enumeration, without what all its names begin with.
pub(crate) fn word(name: &str, prefix: &str) -> String {
    name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase().replace('_', " ")
}

/// Returns why an agent starts no turns, in a few words.
pub(crate) fn cause(park: &Park) -> String {
    word(park.cause().as_str_name(), "TURN_OUTCOME_")
}

struct Composer<'s> {
    state: &'s State,
    now: Now,
}

impl Composer<'_> {
    fn time(&self, time: Option<Wire>) -> String {
        let now = Timestamp::from_millisecond(self.now.wall.0).unwrap_or_default();
        time::from_wire(time)
            .map_or_else(|| "-".to_owned(), |time| time::short(time, now, &self.state.zone))
    }

    fn question(&self, question: &Question) -> Vec<Piece> {
        let mut pieces = vec![
            Piece::Field("from", question.asker.clone()),
            Piece::Field("asked", self.time(question.create_time)),
            Piece::Field(
                "deadline",
                question
                    .deadline_time
                    .map_or_else(|| "none".to_owned(), |time| self.time(Some(time))),
            ),
        ];
        pieces.extend(number("turn", question.turn_id));
        pieces.extend([Piece::Heading("question"), Piece::Block(question.text.clone())]);
        if !question.options.is_empty() {
            let heading =
                if question.multi { "options, any of them" } else { "options, one of them" };
            pieces.push(Piece::Heading(heading));
            pieces.extend(
                question
                    .options
                    .iter()
                    .map(|option| Piece::Block(format!("- {}", visible_line(option)))),
            );
        }
        pieces
    }

    fn delivery(&self, delivery: &Delivery) -> Vec<Piece> {
        let message = delivery.message.clone().unwrap_or_default();
        let mut pieces = vec![
            Piece::Field("from", sender(&message)),
            Piece::Field("to", to(&message)),
            Piece::Field("accepted", self.time(message.accept_time)),
        ];
        pieces.extend(number("answers", message.in_reply_to));
        pieces.extend([
            Piece::Field("inbox", delivery.agent.clone()),
            Piece::Field(
                "state",
                format!(
                    "{} since {}",
                    word(delivery.state().as_str_name(), "DELIVERY_STATE_"),
                    self.time(delivery.state_time)
                ),
            ),
            Piece::Field("attempt", delivery.attempt.to_string()),
        ]);
        if delivery.redelivery_cause() != RedeliveryCause::Unspecified {
            let cause = word(delivery.redelivery_cause().as_str_name(), "REDELIVERY_CAUSE_");
            pieces.push(Piece::Field("came back", cause));
        }
        pieces.extend(number("turn", delivery.turn_id));
        if !delivery.last_error.is_empty() {
            pieces
                .extend([Piece::Heading("last error"), Piece::Block(delivery.last_error.clone())]);
        }
        pieces.extend([Piece::Heading("message"), Piece::Block(message.body)]);
        if !delivery.output_tail.is_empty() {
            pieces.extend([
                Piece::Heading("end of the turn's output"),
                Piece::Block(delivery.output_tail.clone()),
            ]);
        }
        pieces
    }

    fn agent(&self, agent: &Agent) -> Vec<Piece> {
        let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        let state = word(agent.state().as_str_name(), "HARNESS_STATE_");
        let context = match (agent.context_tokens, agent.context_window_tokens) {
            (0, _) => "-".to_owned(),
            (used, 0) => format!("{used} tokens"),
            (used, window) => format!("{used} of {window} tokens"),
        };
        let mut pieces = vec![
            Piece::Field("role", or_none(&agent.role)),
            Piece::Field(
                "parent",
                if agent.parent.is_empty() { "operator".to_owned() } else { agent.parent.clone() },
            ),
            Piece::Field("state", format!("{state} since {}", self.time(agent.state_time))),
            Piece::Field("status", or_none(&agent.status_text)),
            Piece::Field("model", or_none(model_in_use(agent))),
            Piece::Field("context", context),
            Piece::Field("unread", agent.ready_count.to_string()),
            Piece::Field("dead letters", agent.dead_count.to_string()),
        ];
        pieces.extend(agent.open_turn_ids.iter().flat_map(|turn| number("turn", *turn)));
        if let Some(words) = isolation::label(agent.isolation()) {
            pieces.push(Piece::Field("isolation", words.to_owned()));
        }
        pieces.extend(
            agent.isolation_notes.iter().map(|note| Piece::Field("missing", visible_line(note))),
        );
        if let Some(park) = &agent.park {
            pieces.push(Piece::Heading("starts no turns"));
            pieces.push(Piece::Field("because", cause(park)));
            pieces.push(Piece::Field("until", self.until(agent, park)));
            if !park.error.is_empty() {
                pieces.push(Piece::Block(park.error.clone()));
            }
        }
        pieces.extend(self.loose_ends(agent));
        pieces
    }

    fn until(&self, agent: &Agent, park: &Park) -> String {
        if park.cause() == TurnOutcome::AuthFailed || agent.state() == HarnessState::NeedsLogin {
            return format!(
                "`hivectl login {}` logs claude in for it; it is tried again as soon as its login changes",
                agent.name
            );
        }
        self.time(park.until_time)
    }

    fn loose_ends(&self, agent: &Agent) -> Vec<Piece> {
        let mut pieces = vec![Piece::Heading("loose ends")];
        for end in self.state.hive.loose_ends_of(&agent.name) {
            let what = match end.kind() {
                LooseEndKind::QuestionAsked => format!("asked {}", end.peer),
                LooseEndKind::QuestionOwed => format!("owes {} an answer", end.peer),
                LooseEndKind::Approval => "asked for an approval".to_owned(),
                LooseEndKind::Reminder => "reminder".to_owned(),
                LooseEndKind::DeadLetter => format!("dead letter to {}", end.peer),
                LooseEndKind::External | LooseEndKind::Unspecified => end.peer.clone(),
            };
            let due = end
                .due_time
                .map(|time| format!(" (due {})", self.time(Some(time))))
                .unwrap_or_default();
            pieces
                .push(Piece::Block(visible_line(&format!("{} {what}{due}: {}", end.id, end.text))));
        }
        if pieces.len() == 1 {
            let none = if self.state.hive.has_more_loose_ends() {
                "none among the first ones of the hive"
            } else {
                "none"
            };
            pieces.push(Piece::Block(none.to_owned()));
        }
        pieces
    }
}

fn number(name: &'static str, id: u64) -> Option<Piece> {
    (id != 0).then(|| Piece::Field(name, id.to_string()))
}

/// Returns the recipient of a message; that of a broadcast with the number of recipients.
fn to(message: &Message) -> String {
    if message.broadcast {
        format!("everyone ({})", message.recipient_count)
    } else {
        message.recipients.join(", ")
    }
}

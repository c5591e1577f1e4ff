//! The follower of the event log: makes spans of what has been committed.
//!
//! ```text
//!   accepted ──► send                 leased, then settled ──► deliver
//!   turn ended ──► turn, and a span for each tool call, once its last line was reported
//! ```
//!
//! It does no IO: the caller reads the events, and the rows and lines that the follower asks for.
//! Invariant: what it remembers is bounded: the deliveries that wait, and the turns that ended a
//! moment ago.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use hive_core::event::{Event, Facts};
use hive_core::id::{MessageId, TurnId};
use hive_core::time::WallTime;
use hive_core::trace::{SpanId, TraceContext};
use hive_core::traced::{SentMessage, TracedTurn, WaitingDelivery};
use tokio::time::Instant;

use crate::derived::{delivery_span, tool_span};
use crate::queue::Queue;
use crate::span::{self, DEAD, Delivered, LeaseEnd};
use crate::tools::Tools;

/// Maximum deliveries that are remembered.
const WAITING_MAX: usize = 20_000;
/// How long the lines of a turn are waited for after its end.
const LINES_PATIENCE: Duration = Duration::from_secs(2);
/// The beginning of the last line of a turn, a remark of the harness.
const LAST_LINE: &str = "ended: ";
/// The outcome of a lease whose delivery is ready again.
const RETURNED: &str = "returned";

/// The source of a line of claude's output, as the contract numbers it.
pub const STDOUT: i32 = 1;
/// The source of a remark of the harness.
pub const NOTE: i32 = 3;

/// A delivery that waits, or is leased.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// The span in which its message was sent.
    sent: TraceContext,
    /// When it became ready.
    since: WallTime,
    /// When it was leased, and by which turn.
    leased: Option<(WallTime, Option<TurnId>)>,
}

/// A turn that has ended, and the part of its lines that was read.
#[derive(Debug)]
struct Ending {
    turn: TracedTurn,
    tools: Tools,
    /// The number of the last line that was read.
    last_line: u64,
    /// Whether no more lines are expected.
    is_whole: bool,
    /// Until when more lines are waited for.
    until: Instant,
}

/// What an event means for spans.
#[derive(Clone, Copy, Debug)]
enum Meaning {
    Accepted,
    Leased,
    /// The delivery waits again.
    Ready,
    Settled(LeaseEnd),
    TurnEnded,
    Nothing,
}

fn meaning(facts: Facts) -> Meaning {
    let settled = |outcome, attempt, cause| Meaning::Settled(LeaseEnd { outcome, attempt, cause });
    match facts {
        Facts::MessageAccepted => Meaning::Accepted,
        Facts::DeliveryLeased(_) => Meaning::Leased,
        Facts::DeliveryReleased | Facts::DeliveryRedriven => Meaning::Ready,
        Facts::DeliveryAcked(facts) => settled("acked", facts.map(|facts| facts.attempt), None),
        Facts::DeliveryReturned(facts) => {
            settled(RETURNED, facts.map(|facts| facts.attempt), facts.map(|facts| facts.cause))
        }
        Facts::DeliveryDead(facts) => {
            settled(DEAD, facts.map(|facts| facts.attempt), facts.map(|facts| facts.cause))
        }
        Facts::DeliveryHeld(facts) => settled("held", facts.map(|facts| facts.attempt), None),
        Facts::DeliveryDropped => settled("dropped", None, None),
        Facts::DeliverySuperseded => settled("superseded", None, None),
        Facts::TurnEnded(_) => Meaning::TurnEnded,
        Facts::TurnBegun(_)
        | Facts::HarnessAttached(_)
        | Facts::HarnessLost(_)
        | Facts::AgentCreated(_)
        | Facts::AgentChanged(_)
        | Facts::AgentRetired
        | Facts::StatusChanged
        | Facts::AgentParked(_)
        | Facts::CommandGiven(_)
        | Facts::CommandClosed(_)
        | Facts::Refused(_)
        | Facts::QuestionAsked
        | Facts::QuestionAnswered
        | Facts::QuestionExpired
        | Facts::QuestionCancelled
        | Facts::ReminderSet(_)
        | Facts::ReminderFired
        | Facts::ReminderCancelled
        | Facts::AgentStopped
        | Facts::AgentStarted
        | Facts::RestartRequested
        | Facts::HarnessCrashed
        | Facts::LogsRead
        | Facts::ActionBegun
        | Facts::ActionEnded
        | Facts::ScheduleCreated(_)
        | Facts::ScheduleChanged(_)
        | Facts::ScheduleFired(_)
        | Facts::ScheduleEnded(_)
        | Facts::AgentPurged
        | Facts::PurgeFinished
        | Facts::HarnessStateChanged(_)
        | Facts::LogBegun => Meaning::Nothing,
    }
}

/// Returns the message that an event accepts.
#[must_use]
pub fn accepted_message(event: &Event) -> Option<MessageId> {
    event.message_id.filter(|_| matches!(meaning(event.facts), Meaning::Accepted))
}

/// Returns the message that waits again after an event. Its delivery may have been forgotten, as a
/// dead letter is.
#[must_use]
pub fn returned_message(event: &Event) -> Option<MessageId> {
    event.message_id.filter(|_| matches!(meaning(event.facts), Meaning::Ready))
}

/// Returns the turn that an event ends.
#[must_use]
pub fn ended_turn(event: &Event) -> Option<TurnId> {
    event.turn_id.filter(|_| matches!(meaning(event.facts), Meaning::TurnEnded))
}

/// The next part of the event log, with the rows that it names as far as they are still there.
#[derive(Clone, Debug, Default)]
pub struct Part {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Messages in traces by their ids, see [`accepted_message`] and [`returned_message`].
    pub messages: BTreeMap<MessageId, SentMessage>,
    /// Turns in traces by their ids, see [`ended_turn`].
    pub turns: BTreeMap<TurnId, TracedTurn>,
}

/// The follower.
#[derive(Debug)]
pub struct Follower {
    /// The last event that it has read.
    position: u64,
    /// By message and recipient, so that the oldest are forgotten first.
    waiting: BTreeMap<(MessageId, String), Waiting>,
    ending: Vec<Ending>,
    /// The last message whose span was made; a broadcast is accepted once for each recipient.
    last_sent: Option<MessageId>,
    /// Makes the id of a span that nothing is below.
    random: fn() -> SpanId,
}

impl Follower {
    /// Returns a follower that begins behind an event. It knows the deliveries that wait then, so
    /// spans that an earlier broker has begun are ended.
    #[must_use]
    pub fn new(position: u64, waiting: Vec<WaitingDelivery>, random: fn() -> SpanId) -> Self {
        let waiting = waiting.into_iter().map(remembered).collect();
        Self { position, waiting, ending: Vec::new(), last_sent: None, random }
    }

    /// Returns the event behind which the next part begins.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Makes spans of the next part.
    pub fn take(&mut self, part: Part, queue: &Queue) {
        let Part { events, messages, mut turns } = part;
        for event in events {
            self.position = event.sequence;
            let message = event.message_id.and_then(|id| messages.get(&id));
            match meaning(event.facts) {
                Meaning::Accepted => {
                    if let Some(message) = message {
                        self.accepted(message, event, queue);
                    }
                }
                Meaning::Leased | Meaning::Ready | Meaning::Settled(_) => {
                    self.delivery(message, event, queue);
                }
                Meaning::TurnEnded => {
                    if let Some(turn) = event.turn_id.and_then(|id| turns.remove(&id)) {
                        self.turn_ended(turn, queue);
                    }
                }
                Meaning::Nothing => {}
            }
        }
        while self.waiting.len() > WAITING_MAX {
            self.waiting.pop_first();
        }
    }

    fn accepted(&mut self, message: &SentMessage, event: Event, queue: &Queue) {
        let Some(sent) = exported(message) else { return };
        if self.last_sent.replace(message.id) != Some(message.id) {
            queue.extend(span::send(message));
        }
        if message.recipient_count > 0 {
            let waiting = Waiting { sent, since: event.time, leased: None };
            self.waiting.insert((message.id, event.agent), waiting);
        }
    }

    fn delivery(&mut self, message: Option<&SentMessage>, event: Event, queue: &Queue) {
        let Event { time, agent, facts, message_id, turn_id, .. } = event;
        let Some(id) = message_id else { return };
        let key = (id, agent);
        // One that was forgotten, because too many waited, begins a new wait when it returns.
        let known = self.waiting.remove(&key).or_else(|| {
            let sent = exported(message?)?;
            Some(Waiting { sent, since: time, leased: None })
        });
        let Some(mut waiting) = known else { return };
        match meaning(facts) {
            Meaning::Leased => waiting.leased = Some((time, turn_id)),
            Meaning::Settled(end) => {
                let (until, by) = waiting.leased.unwrap_or((time, turn_id));
                let span_id = match by {
                    Some(turn) => delivery_span(waiting.sent, turn),
                    None => (self.random)(),
                };
                let (sent, since) = (waiting.sent, waiting.since);
                let delivered =
                    Delivered { agent: &key.1, message: id, sent, span_id, since, until, end };
                queue.extend([span::deliver(&delivered)]);
                if end.outcome != RETURNED {
                    return;
                }
                waiting = Waiting { since: time, leased: None, ..waiting };
            }
            Meaning::Ready => waiting = Waiting { since: time, leased: None, ..waiting },
            Meaning::Accepted | Meaning::TurnEnded | Meaning::Nothing => {}
        }
        self.waiting.insert(key, waiting);
    }

    fn turn_ended(&mut self, turn: TracedTurn, queue: &Queue) {
        if !turn.traced.context.is_sampled() {
            return;
        }
        queue.extend([span::turn(&turn)]);
        let until = Instant::now() + LINES_PATIENCE;
        let (tools, last_line, is_whole) = (Tools::default(), 0, false);
        self.ending.push(Ending { turn, tools, last_line, is_whole, until });
    }

    /// Returns the turns whose lines are to be read, each with the number of the last line that
    /// was read.
    #[must_use]
    pub fn unread(&self) -> Vec<(TurnId, u64)> {
        let unread = self.ending.iter().filter(|ending| !ending.is_whole);
        unread.map(|ending| (ending.turn.turn.id, ending.last_line)).collect()
    }

    /// Reads a line of a turn: its number, its source, its text and its time.
    pub fn read(&mut self, turn: TurnId, number: u64, source: i32, text: &str, time: WallTime) {
        let ending = self.ending.iter_mut().find(|ending| ending.turn.turn.id == turn);
        let Some(ending) = ending else { return };
        ending.last_line = number;
        match source {
            STDOUT => ending.tools.read(text, time),
            NOTE if text.starts_with(LAST_LINE) => ending.is_whole = true,
            _ => {}
        }
    }

    /// Makes spans of the tool calls of turns whose last line was read, or is not waited for any
    /// longer; all of them if there is no later time. Returns when that is so for the next one.
    pub fn finish(&mut self, queue: &Queue, is_last: bool) -> Option<Instant> {
        let now = Instant::now();
        let is_over = |ending: &mut Ending| is_last || ending.is_whole || ending.until <= now;
        for Ending { turn, tools, .. } in self.ending.extract_if(.., is_over) {
            let (calls, left_out) = tools.into_calls();
            queue.add_dropped(left_out);
            queue.extend(
                calls.iter().map(|(id, call)| {
                    span::tool(&turn, tool_span(turn.traced.context, id), id, call)
                }),
            );
        }
        self.ending.iter().map(|ending| ending.until).min()
    }
}

/// Returns the span of a message, if it is exported.
fn exported(message: &SentMessage) -> Option<TraceContext> {
    message.traced.map(|traced| traced.context).filter(|context| context.is_sampled())
}

fn remembered(delivery: WaitingDelivery) -> ((MessageId, String), Waiting) {
    let WaitingDelivery { message, agent, context, state_time, accept_time, is_leased, lease_turn } =
        delivery;
    // When a leased one became ready is not stored.
    let (since, leased) =
        if is_leased { (accept_time, Some((state_time, lease_turn))) } else { (state_time, None) };
    ((message, agent), Waiting { sent: context, since, leased })
}

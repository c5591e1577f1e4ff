//! `hivectl trace`: the journey of a message, hop by hop, from the event log.
//!
//! The trace follows the message, its answers, the turns that carried them, and what those turns
//! sent, asked and set for later. One pass over the log is enough, because a cause precedes its
//! effect.

use std::collections::BTreeSet;

use clap::Args;
use hive_proto::v1::MessageRecipient;

use super::inbox::thread;
use crate::complete;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::output::text::visible_line;
use crate::view::event::Event;
use crate::view::hop::Hop;
use crate::view::message::Message;
use crate::view::question::Question;
use crate::view::turn::Turn;

/// Characters of a body that a hop shows.
const BODY_CHARS: usize = 60;

/// The journey of a message, hop by hop: its deliveries, the turns that carried it, what they sent
/// and asked, and the answers.
///
/// A message that brought a question, or its outcome, is shown with the journey of the whole
/// question.
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The message
    #[arg(add = complete::messages())]
    id: u64,
}

impl Trace {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        // A wrong id is refused here, in the broker's words.
        let message = fetch::message::<Message>(&broker, self.id).await?;
        let log: Vec<Event> = fetch::events(&broker, 0, "", "", fetch::ALL).await?;
        let mut journey = Journey {
            messages: thread::below(&broker, self.id).await?.into_keys().collect(),
            turns: BTreeSet::new(),
            questions: message.question_id.into_iter().collect(),
            reminders: message.reminder_id.into_iter().collect(),
        };
        let events: Vec<Event> = log.into_iter().filter(|event| journey.includes(event)).collect();
        let first = events.first().and_then(|event| event.time);
        let mut hops = Vec::with_capacity(events.len());
        for event in events {
            let after = match (first, event.time) {
                (Some(first), Some(time)) => {
                    u64::try_from(time.since(first).as_millis()).unwrap_or(u64::MAX)
                }
                (Some(_) | None, _) => 0,
            };
            let Described { what, trace_id } = describe(&broker, &event).await?;
            hops.push(Hop {
                what,
                trace_id,
                time: event.time,
                sequence: event.sequence,
                kind: event.kind,
                agent: event.agent,
                message_id: event.message_id,
                turn_id: event.turn_id,
                question_id: event.question_id,
                reminder_id: event.reminder_id,
                after_ms: after,
            });
        }
        context.out.list(&hops)
    }
}

/// The ids that belong to the journey so far.
#[derive(Debug)]
struct Journey {
    messages: BTreeSet<u64>,
    turns: BTreeSet<u64>,
    questions: BTreeSet<u64>,
    reminders: BTreeSet<u64>,
}

impl Journey {
    /// Returns whether an event belongs to the journey, and adds its ids to it.
    fn includes(&mut self, event: &Event) -> bool {
        let is_of =
            |id: Option<u64>, known: &BTreeSet<u64>| id.is_some_and(|id| known.contains(&id));
        let by_message = is_of(event.message_id, &self.messages);
        let by_turn = is_of(event.turn_id, &self.turns);
        let by_question =
            is_of(event.question_id, &self.questions) || is_of(event.reminder_id, &self.reminders);
        if !(by_message || by_turn || by_question) {
            return false;
        }
        let kind = event.kind.as_deref().unwrap_or_default();
        if kind == "message_accepted"
            || kind.starts_with("question_")
            || kind.starts_with("reminder_")
        {
            self.messages.extend(event.message_id);
            self.questions.extend(event.question_id);
            self.reminders.extend(event.reminder_id);
        } else if by_message {
            // The turn in which a message was sent is no part of its journey; the one that carried
            // it is.
            self.turns.extend(event.turn_id);
        }
        true
    }
}

/// What a hop says.
#[derive(Debug)]
struct Described {
    what: String,
    trace_id: Option<String>,
}

impl From<String> for Described {
    fn from(what: String) -> Self {
        Self { what, trace_id: None }
    }
}

async fn describe(broker: &Broker, event: &Event) -> Result<Described, Failure> {
    let agent = visible_line(event.agent.as_deref().unwrap_or("-"));
    let id = event.message_id.map(|id| format!("message {id}")).unwrap_or_default();
    let turn = event.turn_id.map(|id| format!("turn {id}")).unwrap_or_default();
    let reminder = event.reminder_id.map(|id| format!("reminder {id}")).unwrap_or_default();
    let detail = event
        .detail
        .as_deref()
        .map(|detail| format!(" ({})", visible_line(detail)))
        .unwrap_or_default();
    let sentence = match event.kind.as_deref().unwrap_or("-") {
        "message_accepted" => return describe_accepted(broker, event).await,
        "turn_ended" => return Ok(describe_ended(broker, event, &agent).await?.into()),
        "delivery_leased" => format!("{id} handed to {agent}, {turn}"),
        "delivery_acked" => format!("{id} done by {agent}"),
        "delivery_returned" => format!("{id} back in the inbox of {agent}{detail}"),
        "delivery_dead" => format!("{id} is a dead letter of {agent}{detail}"),
        "delivery_held" => format!("{id} held for {agent}{detail}"),
        "delivery_released" => format!("{id} released to {agent}"),
        "delivery_redriven" => format!("{id} redriven to {agent}"),
        "delivery_dropped" => format!("{id} for {agent} dropped{detail}"),
        "delivery_superseded" => format!("{id} for {agent} superseded{detail}"),
        "turn_begun" => format!("{agent} begins {turn}"),
        "question_asked" | "question_answered" | "question_expired" | "question_cancelled" => {
            return Ok(describe_question(broker, event).await?.into());
        }
        "reminder_set" => format!("{reminder} set by {agent}{detail}"),
        "reminder_fired" => format!("{reminder} of {agent} fired"),
        "reminder_cancelled" => format!("{reminder} of {agent} cancelled{detail}"),
        kind => {
            let about: Vec<&str> = [agent.as_str(), id.as_str(), turn.as_str()]
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect();
            format!("{} {}{detail}", kind.replace('_', " "), about.join(", "))
        }
    };
    Ok(sentence.into())
}

async fn describe_accepted(broker: &Broker, event: &Event) -> Result<Described, Failure> {
    let Some(id) = event.message_id else { return Ok("a message was accepted".to_owned().into()) };
    let message: Message = fetch::message(broker, id).await?;
    let body = beginning(&message.preview());
    let names: Vec<MessageRecipient> = fetch::recipients(broker, id, fetch::ALL).await?;
    let names: Vec<String> = names.into_iter().map(|recipient| recipient.name).collect();
    let (from, to) = (visible_line(&message.from), visible_line(&names.join(", ")));
    let trace_id = message.trace_id();
    let trace = trace_id.as_ref().map(|id| format!(", trace {id}")).unwrap_or_default();
    Ok(Described {
        what: format!("message {id} accepted, {from} to {to}{trace}: {body}"),
        trace_id,
    })
}

async fn describe_question(broker: &Broker, event: &Event) -> Result<String, Failure> {
    let Some(id) = event.question_id else {
        return Ok("a question was asked or closed".to_owned());
    };
    let question = fetch::question::<Question>(broker, id).await?;
    if event.kind.as_deref() == Some("question_asked") {
        return Ok(format!(
            "question {id} asked, {}: {}",
            question.between(),
            beginning(&question.preview())
        ));
    }
    Ok(format!("question {id} {}", question.outcome()))
}

/// Returns the beginning of a text, as a hop shows it.
fn beginning(text: &str) -> String {
    let mut beginning: String = text.chars().take(BODY_CHARS).collect();
    if beginning.len() < text.len() {
        beginning.push('…');
    }
    beginning
}

async fn describe_ended(broker: &Broker, event: &Event, agent: &str) -> Result<String, Failure> {
    let Some(turn_id) = event.turn_id else { return Ok(format!("{agent} ends a turn")) };
    let turn: Turn = fetch::turn(broker, turn_id).await?;
    Ok(format!("{agent} ends turn {turn_id}: {}", turn.ending()))
}

//! `hivectl trace`: the journey of a message, hop by hop, as the event log tells it.
//!
//! Followed are the message, its answers, the turns that carried them, and what was sent in those turns. One pass over the log is enough,
//! because a cause always stands before its effect in it.

use std::collections::BTreeSet;

use clap::Args;
use hive_proto::v1::{GetMessageRequest, GetTurnRequest, ListMessagesRequest};

use super::events;
use crate::connect::{Broker, all_pages};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::text::visible_line;
use crate::view::event::Event;
use crate::view::hop::Hop;
use crate::view::message::Message;
use crate::view::turn::Turn;

/// Characters of a body that a hop shows.
const BODY_CHARS: usize = 60;

/// The journey of a message, hop by hop: its deliveries, the turns that carried it, what they sent, and the answers.
#[derive(Args, Debug)]
pub(crate) struct Trace {
    /// The message
    id: u64,
}

impl Trace {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        // A wrong id is refused here, in the broker's words.
        message(&broker, self.id).await?;
        let (log, _) = events::list(&broker, 0, "").await?;
        let mut journey = Journey { messages: thread(&broker, self.id).await?, turns: BTreeSet::new() };
        let events: Vec<Event> = log.into_iter().filter(|event| journey.takes(event)).collect();
        let first = events.first().and_then(|event| event.time);
        let mut hops = Vec::with_capacity(events.len());
        for event in events {
            let after = match (first, event.time) {
                (Some(first), Some(time)) => u64::try_from(time.since(first).as_millis()).unwrap_or(u64::MAX),
                (Some(_) | None, _) => 0,
            };
            let what = told(&broker, &event).await?;
            let Event { sequence, kind, time, agent, message_id, turn_id, detail: _ } = event;
            hops.push(Hop { time, sequence, kind, agent, message_id, turn_id, what, after_ms: after });
        }
        context.out.list(&hops)?;
        Ok(Exit::Ok)
    }
}

/// What belongs to the journey so far.
#[derive(Debug)]
struct Journey {
    messages: BTreeSet<u64>,
    turns: BTreeSet<u64>,
}

impl Journey {
    /// Whether an event belongs to it; what the event adds is followed from here on.
    fn takes(&mut self, event: &Event) -> bool {
        let by_message = event.message_id.is_some_and(|id| self.messages.contains(&id));
        let by_turn = event.turn_id.is_some_and(|id| self.turns.contains(&id));
        let kind = event.kind.as_deref();
        if by_message && kind != Some("message_accepted") {
            // The turn in which a message was sent is no part of its journey; the one that carried it is.
            self.turns.extend(event.turn_id);
        }
        if by_turn && kind == Some("message_accepted") {
            self.messages.extend(event.message_id);
        }
        by_message || by_turn
    }
}

/// The message and all answers to it, and to those.
async fn thread(broker: &Broker, id: u64) -> Result<BTreeSet<u64>, Failure> {
    let mut known = BTreeSet::from([id]);
    let mut open = vec![id];
    while let Some(thread_of) = open.pop() {
        let messages = all_pages(|page_token| async {
            let request = ListMessagesRequest { page_size: 500, page_token, agent: String::new(), thread_of };
            let page = broker.read(broker.messages().list_messages(request)).await?;
            Ok((page.messages, page.next_page_token))
        });
        // Ids of answers are greater, so this ends.
        open.extend(messages.await?.into_iter().map(|message| message.id).filter(|id| known.insert(*id)));
    }
    Ok(known)
}

async fn message(broker: &Broker, message_id: u64) -> Result<Message, Failure> {
    let message = broker.read(broker.messages().get_message(GetMessageRequest { message_id })).await?.message;
    Ok(message.ok_or(Failure::Incomplete { field: "message" })?.into())
}

/// An event in words.
async fn told(broker: &Broker, event: &Event) -> Result<String, Failure> {
    let agent = visible_line(event.agent.as_deref().unwrap_or("-"));
    let id = event.message_id.map(|id| format!("message {id}")).unwrap_or_default();
    let turn = event.turn_id.map(|id| format!("turn {id}")).unwrap_or_default();
    let detail = event.detail.as_deref().map(|detail| format!(" ({})", visible_line(detail))).unwrap_or_default();
    let words = match event.kind.as_deref().unwrap_or("-") {
        "message_accepted" => return accepted(broker, event).await,
        "turn_ended" => return ended(broker, event, &agent).await,
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
        kind => {
            let about: Vec<&str> =
                [agent.as_str(), id.as_str(), turn.as_str()].into_iter().filter(|word| !word.is_empty()).collect();
            format!("{} {}{detail}", kind.replace('_', " "), about.join(", "))
        }
    };
    Ok(words)
}

async fn accepted(broker: &Broker, event: &Event) -> Result<String, Failure> {
    let Some(id) = event.message_id else { return Ok("a message was accepted".to_owned()) };
    let message = message(broker, id).await?;
    let mut body: String = message.preview().chars().take(BODY_CHARS).collect();
    if body.len() < message.preview().len() {
        body.push('…');
    }
    let (from, to) = (visible_line(&message.from), visible_line(&message.recipients.join(", ")));
    Ok(format!("message {id} accepted, {from} to {to}: {body}"))
}

async fn ended(broker: &Broker, event: &Event, agent: &str) -> Result<String, Failure> {
    let Some(turn_id) = event.turn_id else { return Ok(format!("{agent} ends a turn")) };
    let turn = broker.read(broker.turns().get_turn(GetTurnRequest { turn_id })).await?.turn;
    let turn = Turn::from(turn.ok_or(Failure::Incomplete { field: "turn" })?);
    Ok(format!("{agent} ends turn {turn_id}: {}", turn.ending()))
}

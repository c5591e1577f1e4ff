//! A row of a pane: one thing that waits, is stuck, or simply is there; and the key that names it
//! over readings.

use hive_proto::v1::{Agent, Delivery, Message, Question};

use crate::view;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Question(u64),
    /// A message to the operator, by its id.
    Mail(u64),
    /// A dead letter, by its inbox and message.
    DeadLetter(String, u64),
    /// A held delivery, by its inbox and message.
    Held(String, u64),
    /// An agent that waits for a login.
    Login(String),
    /// An agent that starts no turns for now.
    Parked(String),
    Agent(String),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'h> {
    Question(&'h Question),
    Mail(&'h Delivery),
    DeadLetter(&'h Delivery),
    Held(&'h Delivery),
    Login(&'h Agent),
    Parked(&'h Agent),
    Agent(&'h Agent),
}

/// Returns the number of the message that a delivery carries.
pub(crate) fn message_id(delivery: &Delivery) -> u64 {
    delivery.message.as_ref().map_or(0, |message| message.id)
}

/// Returns the sender of a message in one word.
pub(crate) fn sender(message: &Message) -> String {
    message.origin.as_ref().map_or_else(|| "-".to_owned(), view::message::sender)
}

impl<'h> Item<'h> {
    pub(crate) fn key(&self) -> Key {
        match self {
            Self::Question(question) => Key::Question(question.id),
            Self::Mail(delivery) => Key::Mail(message_id(delivery)),
            Self::DeadLetter(delivery) => {
                Key::DeadLetter(delivery.agent.clone(), message_id(delivery))
            }
            Self::Held(delivery) => Key::Held(delivery.agent.clone(), message_id(delivery)),
            Self::Login(agent) => Key::Login(agent.name.clone()),
            Self::Parked(agent) => Key::Parked(agent.name.clone()),
            Self::Agent(agent) => Key::Agent(agent.name.clone()),
        }
    }

    pub(crate) fn is(&self, key: &Key) -> bool {
        match (self, key) {
            (Self::Question(question), Key::Question(id)) => question.id == *id,
            (Self::Mail(delivery), Key::Mail(id)) => message_id(delivery) == *id,
            (Self::DeadLetter(delivery), Key::DeadLetter(agent, id))
            | (Self::Held(delivery), Key::Held(agent, id)) => {
                message_id(delivery) == *id && delivery.agent == *agent
            }
            (Self::Login(agent), Key::Login(name))
            | (Self::Parked(agent), Key::Parked(name))
            | (Self::Agent(agent), Key::Agent(name)) => agent.name == *name,
            _ => false,
        }
    }

    /// Returns the agent of a row about an agent.
    pub(crate) fn agent(&self) -> Option<&'h Agent> {
        match self {
            Self::Login(agent) | Self::Parked(agent) | Self::Agent(agent) => Some(agent),
            Self::Question(_) | Self::Mail(_) | Self::DeadLetter(_) | Self::Held(_) => None,
        }
    }
}

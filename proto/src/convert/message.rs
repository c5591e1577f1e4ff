//! Messages, their origins and their recipients.

use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId, number};
use hive_core::message::{Message, Origin, Recipient, SystemKind};
use hive_core::name::{AgentName, Label};

use super::time::{required_wall_time, timestamp};
use super::{
    FromWire, IntoWire, Invalid, id, optional_id, optional_value, required_as, same_values, value,
};
use crate::v1;

same_values!(
    v1::SystemKind,
    SystemKind {
        TurnFailed,
        DeadLetter,
        Restarted,
        Unavailable,
        QuestionAsked,
        QuestionAnswered,
        QuestionExpired,
        QuestionCancelled,
        Reminder,
        Problem,
        Started,
        Stopped,
        Crashed,
        LoggedIn,
        Recovered,
        ActionEnded,
        ScheduleEnded,
        Heartbeat
    }
);

/// Parses an agent's name in a field that must have one.
pub fn agent_name(text: &str, path: &str) -> Result<AgentName, Invalid> {
    AgentName::parse(text).map_err(|fault| Invalid::new(path, fault.to_string()))
}

/// Parses an agent's name in a field that may be empty.
pub fn optional_agent_name(text: &str, path: &str) -> Result<Option<AgentName>, Invalid> {
    if text.is_empty() { Ok(None) } else { agent_name(text, path).map(Some) }
}

/// Parses the label of a `Wake`.
pub fn label(text: &str, path: &str) -> Result<Label, Invalid> {
    Label::parse(text).map_err(|fault| Invalid::new(path, fault.to_string()))
}

/// Returns a text; empty means none.
pub(super) fn optional_text(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

impl IntoWire for Origin {
    type Wire = v1::Origin;
    fn into_wire(self) -> v1::Origin {
        let (kind, name) = match self {
            Origin::Agent(name) => (v1::OriginKind::Agent, name.into()),
            Origin::Operator(user) => (v1::OriginKind::Operator, user),
            Origin::System => (v1::OriginKind::System, String::new()),
            Origin::External(label) => (v1::OriginKind::External, label.as_str().to_owned()),
        };
        v1::Origin { kind: kind.into(), name }
    }
}

/// The kind of an origin, before its name is parsed.
enum OriginKind {
    Agent,
    Operator,
    System,
    External,
}

same_values!(v1::OriginKind, OriginKind { Agent, Operator, System, External });

impl FromWire for Origin {
    type Wire = v1::Origin;
    fn from_wire(wire: v1::Origin) -> Result<Self, Invalid> {
        let v1::Origin { kind, name } = wire;
        Ok(match value::<OriginKind>(kind, "kind")? {
            OriginKind::Agent => Self::Agent(agent_name(&name, "name")?),
            OriginKind::Operator => Self::Operator(name),
            OriginKind::System => Self::System,
            OriginKind::External => Self::External(label(&name, "name")?),
        })
    }
}

impl IntoWire for Recipient {
    type Wire = v1::Recipient;
    fn into_wire(self) -> v1::Recipient {
        use v1::recipient::To;
        v1::Recipient {
            to: Some(match self {
                Recipient::Agent(name) => To::Agent(name.into()),
                Recipient::Operator => To::Operator(v1::OperatorRecipient {}),
                Recipient::Parent => To::Parent(v1::ParentRecipient {}),
                Recipient::Everyone => To::Everyone(v1::EveryoneRecipient {}),
            }),
        }
    }
}

impl FromWire for Recipient {
    type Wire = v1::Recipient;
    fn from_wire(wire: v1::Recipient) -> Result<Self, Invalid> {
        use v1::recipient::To;
        let v1::Recipient { to } = wire;
        let to = to.ok_or_else(|| {
            Invalid::new("", "must say one of agent, operator, parent and everyone")
        })?;
        Ok(match to {
            To::Agent(name) => Self::Agent(agent_name(&name, "agent")?),
            To::Operator(v1::OperatorRecipient {}) => Self::Operator,
            To::Parent(v1::ParentRecipient {}) => Self::Parent,
            To::Everyone(v1::EveryoneRecipient {}) => Self::Everyone,
        })
    }
}

impl IntoWire for Message {
    type Wire = v1::Message;
    fn into_wire(self) -> v1::Message {
        let Message {
            id,
            origin,
            recipients,
            recipient_count,
            body,
            in_reply_to,
            accept_time,
            system_kind,
            broadcast,
            turn_id,
            coalescing_key,
            question_id,
            reminder_id,
            traceparent,
        } = self;
        v1::Message {
            id: id.get(),
            origin: Some(origin.into_wire()),
            recipients,
            recipient_count,
            body,
            in_reply_to: number(in_reply_to, MessageId::get),
            accept_time: Some(timestamp(accept_time)),
            system_kind: super::optional_number(system_kind),
            broadcast,
            turn_id: number(turn_id, TurnId::get),
            coalescing_key: coalescing_key.unwrap_or_default(),
            question_id: number(question_id, QuestionId::get),
            reminder_id: number(reminder_id, ReminderId::get),
            traceparent: super::trace::text(traceparent),
        }
    }
}

impl FromWire for Message {
    type Wire = v1::Message;
    fn from_wire(wire: v1::Message) -> Result<Self, Invalid> {
        let v1::Message {
            id: number,
            origin,
            recipients,
            recipient_count,
            body,
            in_reply_to,
            accept_time,
            system_kind,
            broadcast,
            turn_id,
            coalescing_key,
            question_id,
            reminder_id,
            traceparent,
        } = wire;
        Ok(Self {
            id: id(number, MessageId::new, "id")?,
            origin: required_as(origin, "origin")?,
            recipients,
            recipient_count,
            body,
            in_reply_to: optional_id(in_reply_to, MessageId::new, "in_reply_to")?,
            accept_time: required_wall_time(accept_time, "accept_time")?,
            system_kind: optional_value(system_kind, "system_kind")?,
            broadcast,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
            coalescing_key: optional_text(coalescing_key),
            question_id: optional_id(question_id, QuestionId::new, "question_id")?,
            reminder_id: optional_id(reminder_id, ReminderId::new, "reminder_id")?,
            traceparent: super::trace::field(&traceparent),
        })
    }
}

//! A message: its sender, its recipients and its text.

use hive_core::message::OPERATOR;
use hive_core::time::WallTime;
use hive_core::trace::TraceContext;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, same};
use super::{Iso, Word, cell, id, optional_word, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_line};
use crate::output::{Text, time};

/// One message.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Message {
    /// The id of the message.
    pub(crate) id: u64,
    /// The sender, in one word: an agent's name, `operator`, `system` or `external:<label>`.
    pub(crate) from: String,
    /// The kind of its sender.
    #[schemars(with = "Word<v1::OriginKind>")]
    from_kind: Option<String>,
    /// The name of its sender: an agent, the person who is the operator, or a label.
    from_name: Option<String>,
    /// The recipient; empty for a broadcast.
    pub(crate) recipients: Vec<String>,
    /// The number of recipients.
    pub(crate) recipient_count: u32,
    /// The text.
    pub(crate) body: String,
    /// The message that it answers.
    pub(crate) in_reply_to: Option<u64>,
    /// When it was accepted.
    #[serde(with = "Iso")]
    pub(crate) accept_time: Option<WallTime>,
    /// The kind of the broker's notice; none if the message is not from the broker.
    #[schemars(with = "Word<v1::SystemKind>")]
    system_kind: Option<String>,
    /// Whether it was sent to everyone.
    broadcast: bool,
    /// The turn that sent it.
    pub(crate) turn_id: Option<u64>,
    /// A newer one with this key takes the place of one that was not delivered.
    coalescing_key: Option<String>,
    /// The question that it brings, or whose outcome it reports.
    pub(crate) question_id: Option<u64>,
    /// The reminder that fired.
    pub(crate) reminder_id: Option<u64>,
    /// The W3C trace context of the span in which it was sent.
    traceparent: Option<String>,
}

from_wire! {
    Message => Message {
        same => id, recipients, recipient_count, body, broadcast;
        text => coalescing_key, traceparent;
        id => in_reply_to, turn_id, question_id, reminder_id;
        time::from_wire => accept_time;
        optional_word::<v1::SystemKind> => system_kind;
    }
    without origin
    with
        from = |message: &v1::Message| sender(&origin(message)),
        from_kind = |message| word::<v1::OriginKind>(origin(message).kind),
        from_name = |message| text(origin(message).name)
}

fn origin(message: &v1::Message) -> v1::Origin {
    message.origin.clone().unwrap_or_default()
}

pub(crate) fn sender(origin: &v1::Origin) -> String {
    match origin.kind() {
        v1::OriginKind::Operator => OPERATOR.to_owned(),
        v1::OriginKind::System => "system".to_owned(),
        v1::OriginKind::External => format!("external:{}", origin.name),
        v1::OriginKind::Agent | v1::OriginKind::Unspecified => origin.name.clone(),
    }
}

impl Message {
    pub(crate) fn preview(&self) -> String {
        visible_line(self.body.trim_end())
    }

    pub(crate) fn answers(&self) -> String {
        cell(self.in_reply_to.as_ref())
    }

    /// Returns the question or reminder that it is about, as `question 12 answered`.
    pub(crate) fn about(&self) -> Option<String> {
        if let Some(question) = self.question_id {
            let kind = self.system_kind.as_deref().unwrap_or_default();
            return Some(match kind.strip_prefix("question_") {
                Some("asked") | None => format!("question {question}"),
                Some(outcome) => format!("question {question} {outcome}"),
            });
        }
        self.reminder_id.map(|reminder| format!("reminder {reminder}"))
    }

    /// Returns the recipient; that of a broadcast with the number of recipients.
    pub(crate) fn to(&self) -> String {
        if self.broadcast {
            format!("everyone ({})", self.recipient_count)
        } else {
            self.recipients.join(", ")
        }
    }

    /// Returns the sender, the recipients and the time, on one line.
    pub(crate) fn head(&self, style: &Style) -> String {
        let answers = self.in_reply_to.map(|id| format!(", answers {id}")).unwrap_or_default();
        let about = self.about().map(|about| format!(", {about}")).unwrap_or_default();
        let head = format!(
            "{}  {}  {} to {}{answers}{about}",
            self.id,
            style.time(self.accept_time),
            self.from,
            self.to()
        );
        visible_line(&head)
    }

    /// Returns the id of its trace.
    pub(crate) fn trace_id(&self) -> Option<String> {
        let context = TraceContext::parse(self.traceparent.as_deref()?)?;
        Some(context.trace_id.to_string())
    }

    /// Returns what it answers or is about, as a cell.
    pub(crate) fn regarding(&self) -> String {
        self.about().unwrap_or_else(|| self.answers())
    }
}

impl Text for Message {
    fn text(&self, style: &Style) -> String {
        format!("{}\n{}", style.head(&self.head(style)), indented(&style.body(&self.body), "    "))
    }
}

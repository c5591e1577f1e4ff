//! Spans of the broker's work, with attributes of the semantic conventions of OpenTelemetry.
//!
//! ```text
//!   send ──► deliver ──► turn ──► tool call ──► send (the reply) ──► deliver ──► turn …
//! ```
//!
//! Invariant: no span has a text of a message, of a model or of a tool, and no token.

use std::fmt::Display;

use hive_core::delivery::RedeliveryCause;
use hive_core::id::MessageId;
use hive_core::time::WallTime;
use hive_core::trace::{SpanId, TraceContext};
use hive_core::traced::{SentMessage, TracedTurn};
use hive_core::turn::{Turn, Usage};

use crate::tools::ToolCall;
use crate::wire::{AnyValue, KeyValue, Link, Span, SpanKind, Status, StatusCode, Value};

/// The flags of OTLP: that it is known whether the parent is of another program, and that it is.
const HAS_IS_REMOTE: u32 = 0x100;

/// Attributes in the making.
#[derive(Debug, Default)]
struct Attributes(Vec<KeyValue>);

impl Attributes {
    fn value(mut self, key: &str, value: Value) -> Self {
        let value = Some(AnyValue { value: Some(value) });
        self.0.push(KeyValue { key: key.to_owned(), value });
        self
    }

    fn text(self, key: &str, text: impl Display) -> Self {
        self.value(key, Value::Text(text.to_string()))
    }

    fn number(self, key: &str, number: u64) -> Self {
        self.value(key, Value::Number(i64::try_from(number).unwrap_or(i64::MAX)))
    }

    /// Adds what there is.
    fn some(self, key: &str, text: Option<impl Display>) -> Self {
        match text {
            Some(text) => self.text(key, text),
            None => self,
        }
    }
}

/// Returns the name of a value of an enum as one word, as in `question_asked`.
fn snake(name: &str) -> String {
    let mut word = String::with_capacity(name.len() + 2);
    for c in name.chars() {
        if c.is_ascii_uppercase() && !word.is_empty() {
            word.push('_');
        }
        word.push(c.to_ascii_lowercase());
    }
    word
}

fn nanos(time: WallTime) -> u64 {
    u64::try_from(time.0).unwrap_or(0).saturating_mul(1_000_000)
}

/// Returns a span without its name.
fn span(
    context: TraceContext,
    parent: Option<SpanId>,
    kind: SpanKind,
    start: WallTime,
    end: WallTime,
    attributes: Attributes,
) -> Span {
    Span {
        trace_id: context.trace_id.bytes().to_vec(),
        span_id: context.span_id.bytes().to_vec(),
        parent_span_id: parent.map(|parent| parent.bytes().to_vec()).unwrap_or_default(),
        kind: kind.into(),
        start_time_unix_nano: nanos(start),
        // The wall clock may have been set back.
        end_time_unix_nano: nanos(end.max(start)),
        attributes: attributes.0,
        flags: u32::from(context.flags()),
        ..Span::default()
    }
}

fn failed(message: impl Display) -> Option<Status> {
    Some(Status { message: message.to_string(), code: StatusCode::Error.into() })
}

fn link(context: TraceContext, message: MessageId) -> Link {
    Link {
        trace_id: context.trace_id.bytes().to_vec(),
        span_id: context.span_id.bytes().to_vec(),
        attributes: Attributes::default().text("messaging.message.id", message).0,
        flags: u32::from(context.flags()) | HAS_IS_REMOTE,
    }
}

fn messaging(operation: &str, kind: &str, destination: &str, message: MessageId) -> Attributes {
    Attributes::default()
        .text("messaging.system", "hive")
        .text("messaging.operation.name", operation)
        .text("messaging.operation.type", kind)
        .text("messaging.destination.name", destination)
        .text("messaging.message.id", message)
}

/// Returns the span in which a message was accepted, if it is in a trace that is exported.
pub(crate) fn send(message: &SentMessage) -> Option<Span> {
    let SentMessage { id, traced, origin, to, recipient_count, body_bytes, .. } = message;
    let traced = traced.filter(|traced| traced.context.is_sampled())?;
    let to = to.as_deref().unwrap_or("*");
    let attributes = messaging("send", "send", to, *id)
        .number("messaging.message.body.size", *body_bytes)
        .text("hive.message.origin", origin)
        .number("hive.message.recipient_count", u64::from(*recipient_count))
        .some(
            "hive.message.system_kind",
            message.system_kind.map(|kind| snake(&format!("{kind:?}"))),
        )
        .some("hive.message.in_reply_to", message.in_reply_to);
    let time = message.accept_time;
    let send = span(traced.context, traced.parent, SpanKind::Producer, time, time, attributes);
    Some(Span { name: format!("send {to}"), ..send })
}

/// The outcome of a delivery that became a dead letter.
pub(crate) const DEAD: &str = "dead";

/// How the wait of a delivery, or its lease, ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeaseEnd {
    /// The new state of the delivery, in a word.
    pub(crate) outcome: &'static str,
    pub(crate) attempt: Option<u32>,
    /// Why it was requeued, or is dead.
    pub(crate) cause: Option<RedeliveryCause>,
}

/// The wait of a delivery until it was leased, and how the lease ended.
#[derive(Clone, Debug)]
pub(crate) struct Delivered<'d> {
    pub(crate) agent: &'d str,
    pub(crate) message: MessageId,
    /// The span in which the message was sent.
    pub(crate) sent: TraceContext,
    pub(crate) span_id: SpanId,
    /// When it became ready.
    pub(crate) since: WallTime,
    /// When it was leased, or settled without a lease.
    pub(crate) until: WallTime,
    pub(crate) end: LeaseEnd,
}

/// Returns the span of a delivery.
pub(crate) fn deliver(delivered: &Delivered<'_>) -> Span {
    let Delivered { agent, message, sent, span_id, since, until, end } = delivered;
    let LeaseEnd { outcome, attempt, cause } = *end;
    let mut attributes = messaging("deliver", "receive", agent, *message)
        .text("hive.delivery.outcome", outcome)
        .some("hive.delivery.cause", cause);
    if let Some(attempt) = attempt {
        attributes = attributes.number("hive.delivery.attempt", u64::from(attempt));
    }
    let context = sent.with_span(*span_id);
    let deliver = span(context, Some(sent.span_id), SpanKind::Consumer, *since, *until, attributes);
    let status = if outcome == DEAD { failed("dead letter") } else { None };
    Span { name: format!("deliver {agent}"), status, ..deliver }
}

/// Returns the span of a turn that has ended.
pub(crate) fn turn(traced: &TracedTurn) -> Span {
    let TracedTurn { turn, traced, received } = traced;
    let Turn { agent, kind, model, usage, attempt, start_time, .. } = turn;
    let Usage {
        input_tokens,
        cache_read_tokens,
        cache_creation_tokens,
        output_tokens,
        cost_micro_usd,
        inference_count,
        tool_call_count,
    } = *usage;
    // The convention counts cached tokens as input, too.
    let all_input =
        input_tokens.saturating_add(cache_read_tokens).saturating_add(cache_creation_tokens);
    let mut attributes = Attributes::default()
        .text("gen_ai.operation.name", "invoke_agent")
        .text("gen_ai.provider.name", "anthropic")
        .text("gen_ai.agent.name", agent)
        .some("gen_ai.response.model", Some(model).filter(|model| !model.is_empty()))
        .number("gen_ai.usage.input_tokens", all_input)
        .number("gen_ai.usage.cache_read.input_tokens", cache_read_tokens)
        .number("gen_ai.usage.cache_creation.input_tokens", cache_creation_tokens)
        .number("gen_ai.usage.output_tokens", output_tokens)
        .value("hive.turn.cost_usd", Value::Fraction(cost_micro_usd as f64 / 1e6))
        .number("hive.turn.id", turn.id.get())
        .text("hive.turn.kind", snake(&format!("{kind:?}")))
        .some("hive.turn.outcome", turn.outcome)
        .number("hive.turn.inference_count", u64::from(inference_count))
        .number("hive.turn.tool_call_count", u64::from(tool_call_count))
        .some("messaging.message.id", turn.message_id);
    if *attempt > 0 {
        attributes = attributes.number("hive.delivery.attempt", u64::from(*attempt));
    }
    let end = turn.end_time.unwrap_or(*start_time);
    let (context, parent) = (traced.context, traced.parent);
    let ended = span(context, parent, SpanKind::Internal, *start_time, end, attributes);
    let status = turn.outcome.filter(|outcome| outcome.is_failure()).and_then(failed);
    let links = received.iter().map(|(message, context)| link(*context, *message)).collect();
    Span { name: format!("turn {agent}"), status, links, ..ended }
}

/// Returns the span of a tool call of a turn.
pub(crate) fn tool(of: &TracedTurn, span_id: SpanId, id: &str, call: &ToolCall) -> Span {
    let ToolCall { name, start, end, is_error } = call;
    let attributes = Attributes::default()
        .text("gen_ai.operation.name", "execute_tool")
        .text("gen_ai.tool.name", name)
        .text("gen_ai.tool.call.id", id)
        .text("gen_ai.agent.name", &of.turn.agent)
        .some("error.type", is_error.then_some("tool_error"));
    let end = end.or(of.turn.end_time).unwrap_or(*start);
    let (context, parent) = (of.traced.context.with_span(span_id), of.traced.context.span_id);
    let called = span(context, Some(parent), SpanKind::Internal, *start, end, attributes);
    let status = if *is_error { failed("the tool returned an error") } else { None };
    Span { name: format!("execute_tool {name}"), status, ..called }
}

//! Spans of the broker's work, with attributes of the semantic conventions of OpenTelemetry.
//!
//! ```text
//!   send ──► deliver ──► turn ──► tool call ──► send (the reply) ──► deliver ──► turn …
//! ```
//!
//! Invariant: no span has a text of a message, of a model or of a tool, and no token.

use hive_core::delivery::RedeliveryCause;
use hive_core::id::MessageId;
use hive_core::time::WallTime;
use hive_core::trace::{SpanId, TraceContext};
use hive_core::traced::{SentMessage, TracedTurn};
use hive_core::turn::{Turn, Usage};

use crate::tools::ToolCall;
use crate::wire::{Attributes, Draft, Span, SpanKind};

/// The flags of OTLP: that it is known whether the parent is of another program, and that it is.
const HAS_IS_REMOTE: u32 = 0x100;

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

/// Begins a span, which has these times.
fn span(
    context: TraceContext,
    parent: Option<SpanId>,
    kind: SpanKind,
    (start, end): (WallTime, WallTime),
) -> Draft {
    let mut span = Draft::new(context, parent, kind);
    // The wall clock may have been set back.
    span.times(nanos(start), nanos(end.max(start)));
    span
}

fn messaging(
    attributes: &mut Attributes<'_>,
    operation: &str,
    kind: &str,
    destination: &str,
    message: MessageId,
) {
    attributes
        .text("messaging.system", "hive")
        .text("messaging.operation.name", operation)
        .text("messaging.operation.type", kind)
        .text("messaging.destination.name", destination)
        .display("messaging.message.id", message);
}

/// Returns the span in which a message was accepted, if it is in a trace that is exported.
pub(crate) fn send(message: &SentMessage) -> Option<Span> {
    let SentMessage { id, traced, origin, to, recipient_count, body_bytes, .. } = message;
    let traced = traced.filter(|traced| traced.context.is_sampled())?;
    let to = to.as_deref().unwrap_or("*");
    let times = (message.accept_time, message.accept_time);
    let mut send = span(traced.context, traced.parent, SpanKind::Producer, times);
    send.name(format_args!("send {to}"));
    let mut attributes = send.attributes();
    messaging(&mut attributes, "send", "send", to, *id);
    attributes
        .number("messaging.message.body.size", *body_bytes)
        .display("hive.message.origin", origin)
        .number("hive.message.recipient_count", u64::from(*recipient_count))
        .some(
            "hive.message.system_kind",
            message.system_kind.map(|kind| snake(&format!("{kind:?}"))),
        )
        .some("hive.message.in_reply_to", message.in_reply_to);
    Some(send.end())
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
    let (context, parent) = (sent.with_span(*span_id), Some(sent.span_id));
    let mut deliver = span(context, parent, SpanKind::Consumer, (*since, *until));
    deliver.name(format_args!("deliver {agent}"));
    let mut attributes = deliver.attributes();
    messaging(&mut attributes, "deliver", "receive", agent, *message);
    attributes.text("hive.delivery.outcome", outcome).some("hive.delivery.cause", cause);
    if let Some(attempt) = attempt {
        attributes.number("hive.delivery.attempt", u64::from(attempt));
    }
    if outcome == DEAD {
        deliver.failed("dead letter");
    }
    deliver.end()
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
    let times = (*start_time, turn.end_time.unwrap_or(*start_time));
    let mut ended = span(traced.context, traced.parent, SpanKind::Internal, times);
    ended.name(format_args!("turn {agent}"));
    let mut attributes = ended.attributes();
    attributes
        .text("gen_ai.operation.name", "invoke_agent")
        .text("gen_ai.provider.name", "anthropic")
        .display("gen_ai.agent.name", agent)
        .some("gen_ai.response.model", Some(model).filter(|model| !model.is_empty()))
        .number("gen_ai.usage.input_tokens", all_input)
        .number("gen_ai.usage.cache_read.input_tokens", cache_read_tokens)
        .number("gen_ai.usage.cache_creation.input_tokens", cache_creation_tokens)
        .number("gen_ai.usage.output_tokens", output_tokens)
        .fraction("hive.turn.cost_usd", cost_micro_usd as f64 / 1e6)
        .number("hive.turn.id", turn.id.get())
        .text("hive.turn.kind", &snake(&format!("{kind:?}")))
        .some("hive.turn.outcome", turn.outcome)
        .number("hive.turn.inference_count", u64::from(inference_count))
        .number("hive.turn.tool_call_count", u64::from(tool_call_count))
        .some("messaging.message.id", turn.message_id);
    if *attempt > 0 {
        attributes.number("hive.delivery.attempt", u64::from(*attempt));
    }
    for (message, context) in received {
        let flags = u32::from(context.flags()) | HAS_IS_REMOTE;
        ended.link(*context, flags, |attributes| {
            attributes.display("messaging.message.id", message);
        });
    }
    if let Some(outcome) = turn.outcome.filter(|outcome| outcome.is_failure()) {
        ended.failed(outcome);
    }
    ended.end()
}

/// Returns the span of a tool call of a turn.
pub(crate) fn tool(of: &TracedTurn, span_id: SpanId, id: &str, call: &ToolCall) -> Span {
    let ToolCall { name, start, end, is_error } = call;
    let end = end.or(of.turn.end_time).unwrap_or(*start);
    let (context, parent) = (of.traced.context.with_span(span_id), of.traced.context.span_id);
    let mut called = span(context, Some(parent), SpanKind::Internal, (*start, end));
    called.name(format_args!("execute_tool {name}"));
    called
        .attributes()
        .text("gen_ai.operation.name", "execute_tool")
        .text("gen_ai.tool.name", name)
        .text("gen_ai.tool.call.id", id)
        .display("gen_ai.agent.name", &of.turn.agent)
        .some("error.type", is_error.then_some("tool_error"));
    if *is_error {
        called.failed("the tool returned an error");
    }
    called.end()
}

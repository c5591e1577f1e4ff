//! Trace contexts in fields and in metadata.

use hive_core::trace::TraceContext;

/// Returns the text of a field; empty for none.
pub(super) fn text(context: Option<TraceContext>) -> String {
    context.map(|context| context.to_string()).unwrap_or_default()
}

/// Reads a field. A text that this version does not know is none: a trace never makes an answer
/// unreadable.
pub(super) fn field(text: &str) -> Option<TraceContext> {
    TraceContext::parse(text)
}

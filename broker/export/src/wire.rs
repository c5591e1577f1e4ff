//! The messages of OTLP that carry spans, written field by field: version 1 of
//! `opentelemetry.proto.collector.trace.v1`.
//!
//! A span is encoded when it is made, waits as bytes, and is copied into a post. Structs with
//! derived encoders would need some thirty strings for a message. Invariant: the numbers and types
//! of fields are those of the specification, which does not change them.

#[cfg(test)]
pub(crate) mod read;

use std::fmt::{self, Display, Write as _};

use hive_core::trace::{SpanId, TraceContext};
use prost::Message;

/// Bytes of most spans, at most.
const SPAN_BYTES: usize = 384;

/// A message in the making: its fields, in any order.
#[derive(Debug, Default)]
pub(crate) struct Fields(Vec<u8>);

/// How a field is encoded, as the format of protobuf numbers it.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Varint = 0,
    Fixed64 = 1,
    Sized = 2,
    Fixed32 = 5,
}

impl Fields {
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }

    fn tag(&mut self, field: u32, encoding: Encoding) {
        self.varint(u64::from(field) << 3 | encoding as u64);
    }

    pub(crate) fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, Encoding::Sized);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    /// Writes a text as it is displayed.
    pub(crate) fn display(&mut self, field: u32, text: impl Display) {
        self.message(field, |fields| {
            // Memory takes it, and a text that cannot be displayed is left out.
            write!(fields, "{text}").unwrap_or_default();
        });
    }

    pub(crate) fn number(&mut self, field: u32, number: u64) {
        self.tag(field, Encoding::Varint);
        self.varint(number);
    }

    fn fixed32(&mut self, field: u32, number: u32) {
        self.tag(field, Encoding::Fixed32);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn fixed64(&mut self, field: u32, number: u64) {
        self.tag(field, Encoding::Fixed64);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// Writes a message within this one.
    pub(crate) fn message(&mut self, field: u32, write: impl FnOnce(&mut Self)) {
        self.tag(field, Encoding::Sized);
        let begin = self.0.len();
        // Most lengths have one byte.
        self.0.push(0);
        write(self);
        let length = self.0.len() - begin - 1;
        if let Ok(length @ ..0x80) = u8::try_from(length) {
            self.0[begin] = length;
        } else {
            let mut prefix = Self::default();
            prefix.varint(length as u64);
            self.0.splice(begin..=begin, prefix.0);
        }
    }

    /// Writes an attribute, which is a `KeyValue` with an `AnyValue`.
    fn attribute(&mut self, field: u32, key: &str, value: impl FnOnce(&mut Self)) {
        self.message(field, |pair| {
            pair.bytes(1, key.as_bytes());
            pair.message(2, value);
        });
    }
}

impl fmt::Write for Fields {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

/// The attributes of a span, a link or a resource in the making.
#[derive(Debug)]
pub(crate) struct Attributes<'f> {
    of: &'f mut Fields,
    /// The number of their field.
    field: u32,
}

impl Attributes<'_> {
    pub(crate) fn text(&mut self, key: &str, text: &str) -> &mut Self {
        self.of.attribute(self.field, key, |value| value.bytes(1, text.as_bytes()));
        self
    }

    pub(crate) fn display(&mut self, key: &str, text: impl Display) -> &mut Self {
        self.of.attribute(self.field, key, |value| value.display(1, text));
        self
    }

    /// Adds what there is.
    pub(crate) fn some(&mut self, key: &str, text: Option<impl Display>) -> &mut Self {
        match text {
            Some(text) => self.display(key, text),
            None => self,
        }
    }

    pub(crate) fn number(&mut self, key: &str, number: u64) -> &mut Self {
        // It is signed there.
        let number = number.min(i64::MAX as u64);
        self.of.attribute(self.field, key, |value| value.number(3, number));
        self
    }

    pub(crate) fn fraction(&mut self, key: &str, number: f64) -> &mut Self {
        self.of.attribute(self.field, key, |value| value.fixed64(4, number.to_bits()));
        self
    }
}

/// What a span is in the exchange of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SpanKind {
    Internal = 1,
    Producer = 4,
    Consumer = 5,
}

/// A span in the making.
#[derive(Debug)]
pub(crate) struct Draft(Fields);

impl Draft {
    pub(crate) fn new(context: TraceContext, parent: Option<SpanId>, kind: SpanKind) -> Self {
        let mut fields = Fields(Vec::with_capacity(SPAN_BYTES));
        fields.bytes(1, &context.trace_id.bytes());
        fields.bytes(2, &context.span_id.bytes());
        if let Some(parent) = parent {
            fields.bytes(4, &parent.bytes());
        }
        fields.number(6, kind as u64);
        fields.fixed32(16, u32::from(context.flags()));
        Self(fields)
    }

    pub(crate) fn name(&mut self, name: impl Display) -> &mut Self {
        self.0.display(5, name);
        self
    }

    /// Writes the begin and the end, in nanoseconds since the epoch.
    pub(crate) fn times(&mut self, start: u64, end: u64) -> &mut Self {
        self.0.fixed64(7, start);
        self.0.fixed64(8, end);
        self
    }

    pub(crate) fn attributes(&mut self) -> Attributes<'_> {
        Attributes { of: &mut self.0, field: 9 }
    }

    /// Writes a link to another span, with these flags and attributes.
    pub(crate) fn link(
        &mut self,
        to: TraceContext,
        flags: u32,
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) {
        self.0.message(13, |link| {
            link.bytes(1, &to.trace_id.bytes());
            link.bytes(2, &to.span_id.bytes());
            link.fixed32(6, flags);
            attributes(&mut Attributes { of: link, field: 4 });
        });
    }

    /// Writes that the span ended with an error.
    pub(crate) fn failed(&mut self, message: impl Display) {
        self.0.message(15, |status| {
            status.display(2, message);
            status.number(3, 2);
        });
    }

    pub(crate) fn end(self) -> Span {
        Span(self.0.0)
    }
}

/// A span, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span(Vec<u8>);

impl Span {
    /// Returns its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
impl Span {
    /// Returns a span of so many bytes, without meaning.
    pub(crate) fn of_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Returns the attributes of a `Resource`, which says whose spans these are.
pub(crate) fn resource(attributes: &[(&str, &str)]) -> Vec<u8> {
    let mut resource = Fields::default();
    let mut to = Attributes { of: &mut resource, field: 1 };
    for (key, text) in attributes {
        to.text(key, text);
    }
    resource.0
}

/// Returns an `ExportTraceServiceRequest` with these spans, of a resource and of a scope, which is
/// a part of a program and its version.
pub(crate) fn request(resource: &[u8], scope: (&str, &str), spans: &[Span]) -> Vec<u8> {
    let bytes = spans.iter().map(|span| span.len() + 8).sum::<usize>();
    let mut request = Fields(Vec::with_capacity(bytes + resource.len() + 128));
    request.message(1, |resource_spans| {
        resource_spans.bytes(1, resource);
        resource_spans.message(2, |scope_spans| {
            scope_spans.message(1, |fields| {
                fields.bytes(1, scope.0.as_bytes());
                fields.bytes(2, scope.1.as_bytes());
            });
            for span in spans {
                scope_spans.bytes(2, &span.0);
            }
        });
    });
    request.0
}

/// The answer.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

/// The part that the collector did not take.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected_spans: i64,
}

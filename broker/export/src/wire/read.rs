//! The same messages as structs, so that tests read what was written with the decoder of a library.

use hive_core::trace::TraceContext;
use prost::{Message, Oneof};

use super::{Draft, request, resource};

/// What is posted.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

/// The spans of one program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

/// A program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

/// The spans of one part of a program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<Span>,
}

/// A part of a program.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

/// A span.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    /// Empty for the first span of a trace.
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    #[prost(enumeration = "SpanKind", tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    pub(crate) links: Vec<Link>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
    #[prost(fixed32, tag = "16")]
    pub(crate) flags: u32,
}

/// What a span is in the exchange of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum SpanKind {
    Unspecified = 0,
    Internal = 1,
    Producer = 4,
    Consumer = 5,
}

/// Another span that has to do with this one.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Link {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(fixed32, tag = "6")]
    pub(crate) flags: u32,
}

/// How a span ended.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(enumeration = "StatusCode", tag = "3")]
    pub(crate) code: i32,
}

/// Whether a span ended with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub(crate) enum StatusCode {
    Unset = 0,
    Error = 2,
}

/// An attribute.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    pub(crate) value: Option<Value>,
}

/// A value by its type.
#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(bool, tag = "2")]
    Flag(bool),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(double, tag = "4")]
    Fraction(f64),
}

/// Reads a span.
pub(crate) fn span(span: &super::Span) -> Span {
    Span::decode(span.as_bytes()).expect("a span is a message")
}

#[test]
fn a_decoder_reads_what_was_written() {
    let context = |span| {
        let text = format!("00-0af7651916cd43dd8448eb211c80319c-{span}-01");
        TraceContext::parse(&text).expect("a context")
    };
    let (own, other) = (context("b7ad6b7169203331"), context("00f067aa0ba902b7"));
    // Lengths of one, two and three bytes.
    let texts = [1, 127, 128, 16_384].map(|chars| "x".repeat(chars));
    let spans = texts.clone().map(|text| {
        let mut span = Draft::new(own, Some(other.span_id), super::SpanKind::Consumer);
        span.name(&text).times(1, u64::MAX);
        span.attributes()
            .text("text", &text)
            .display("shown", 7)
            .some("absent", None::<&str>)
            .number("most", u64::MAX)
            .fraction("fraction", -0.5);
        span.link(other, 0x301, |attributes| {
            attributes.text("of", &text);
        });
        span.failed(&text);
        span.end()
    });
    let written = request(&resource(&[("service.name", "hived")]), ("scope", "1.2"), &spans);
    let read = ExportRequest::decode(&*written).expect("a message");
    let [ResourceSpans { resource: Some(resource), scope_spans }] = &read.resource_spans[..] else {
        panic!("{read:?}")
    };
    let pair = |key: &str, value| KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
    };
    let word = |text: &str| Value::Text(text.to_owned());
    assert_eq!(resource.attributes, [pair("service.name", word("hived"))]);
    let [ScopeSpans { scope: Some(scope), spans }] = &scope_spans[..] else { panic!("{read:?}") };
    assert_eq!((scope.name.as_str(), scope.version.as_str()), ("scope", "1.2"));
    for (text, span) in texts.iter().zip(spans) {
        let link = Link {
            trace_id: own.trace_id.bytes().to_vec(),
            span_id: other.span_id.bytes().to_vec(),
            attributes: vec![pair("of", word(text))],
            flags: 0x301,
        };
        let expected = Span {
            trace_id: own.trace_id.bytes().to_vec(),
            span_id: own.span_id.bytes().to_vec(),
            parent_span_id: other.span_id.bytes().to_vec(),
            name: text.clone(),
            kind: SpanKind::Consumer.into(),
            start_time_unix_nano: 1,
            end_time_unix_nano: u64::MAX,
            attributes: vec![
                pair("text", word(text)),
                pair("shown", word("7")),
                pair("most", Value::Number(i64::MAX)),
                pair("fraction", Value::Fraction(-0.5)),
            ],
            links: vec![link],
            status: Some(Status { message: text.clone(), code: StatusCode::Error.into() }),
            flags: 1,
        };
        assert_eq!(*span, expected);
    }
    assert_eq!(spans.len(), texts.len());
}

//! Trace contexts: the place of a piece of work in a trace, as the W3C recommendation "Trace
//! Context" writes it.
//!
//! ```text
//! 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//!    trace                            span             flags
//! ```
//!
//! Invariant: neither id is zero, and only the flags that the recommendation defines are set.

use std::fmt;

/// Characters of a trace context as text.
const TRACEPARENT_CHARS: usize = 55;

/// The flag of a trace whose spans are exported.
const SAMPLED: u8 = 1;
/// The flag of a trace whose id has random bits at its end.
const RANDOM: u8 = 2;

/// The id of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceId([u8; 16]);

/// The id of a span within its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanId([u8; 8]);

macro_rules! ids {
    ($($name:ident: $bytes:literal),+) => {$(
        impl $name {
            /// Returns the id with these bytes; `None` if all of them are zero.
            #[must_use]
            pub fn new(bytes: [u8; $bytes]) -> Option<Self> {
                (bytes != [0; $bytes]).then_some(Self(bytes))
            }

            /// Returns the bytes.
            #[must_use]
            pub const fn bytes(self) -> [u8; $bytes] {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut digits = [0; 2 * $bytes];
                write_digits(&self.0, &mut digits);
                f.write_str(str::from_utf8(&digits).map_err(|_| fmt::Error)?)
            }
        }
    )+};
}

ids!(TraceId: 16, SpanId: 8);

/// The place of a span: its trace, its id, and the flags of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace_id: TraceId,
    /// The span.
    pub span_id: SpanId,
    flags: u8,
}

impl TraceContext {
    /// Returns the context of a span of a new trace, with random ids, that is exported.
    #[must_use]
    pub const fn new(trace_id: TraceId, span_id: SpanId) -> Self {
        Self { trace_id, span_id, flags: SAMPLED | RANDOM }
    }

    /// Reads a `traceparent` of version 00; `None` for any other text, which a receiver ignores.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text: &[u8; TRACEPARENT_CHARS] = text.as_bytes().try_into().ok()?;
        let dashes = [text[2], text[35], text[52]];
        if text[..2] != *b"00" || dashes != *b"---" {
            return None;
        }
        let [flags] = hex(&text[53..])?;
        Some(Self {
            trace_id: TraceId::new(hex(&text[3..35])?)?,
            span_id: SpanId::new(hex(&text[36..52])?)?,
            flags: flags & (SAMPLED | RANDOM),
        })
    }

    /// Returns the context of another span of the same trace.
    #[must_use]
    pub const fn with_span(self, span_id: SpanId) -> Self {
        Self { span_id, ..self }
    }

    /// Returns whether spans of the trace are exported.
    #[must_use]
    pub const fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Returns the flags, as OTLP has them.
    #[must_use]
    pub const fn flags(self) -> u8 {
        self.flags
    }

    /// Returns the bytes in which a row stores it: the trace, the span, the flags.
    #[must_use]
    pub fn to_bytes(self) -> [u8; 25] {
        let mut bytes = [0; 25];
        bytes[..16].copy_from_slice(&self.trace_id.0);
        bytes[16..24].copy_from_slice(&self.span_id.0);
        bytes[24] = self.flags;
        bytes
    }

    /// Reads such bytes; `None` if they are of no context.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 25] = bytes.try_into().ok()?;
        let flags = bytes[24];
        if flags & !(SAMPLED | RANDOM) != 0 {
            return None;
        }
        Some(Self {
            trace_id: TraceId::new(bytes[..16].try_into().ok()?)?,
            span_id: SpanId::new(bytes[16..24].try_into().ok()?)?,
            flags,
        })
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Each message in a trace is delivered with this text; a format of each byte would cost a
        // fiftieth of all that is done for a message.
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        write_digits(&self.trace_id.0, &mut text[3..35]);
        write_digits(&self.span_id.0, &mut text[36..52]);
        write_digits(&[self.flags], &mut text[53..]);
        f.write_str(str::from_utf8(&text).map_err(|_| fmt::Error)?)
    }
}

/// Writes bytes as lower-case hexadecimal digits, two for each.
fn write_digits(bytes: &[u8], to: &mut [u8]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (byte, pair) in bytes.iter().zip(to.as_chunks_mut().0) {
        *pair = [byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]);
    }
}

/// Reads bytes of lower-case hexadecimal digits, two for each.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    let (pairs, rest) = digits.as_chunks::<2>();
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(bytes)
}

/// A span of the broker: its context, and the span that caused it, in the same trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The span.
    pub context: TraceContext,
    /// The span that caused it; `None` for the first of its trace.
    pub parent: Option<SpanId>,
}

impl Traced {
    /// Returns the bytes in which a row stores it: the context, and the parent if it has one.
    #[must_use]
    pub fn to_bytes(self) -> Vec<u8> {
        let mut bytes = self.context.to_bytes().to_vec();
        if let Some(parent) = self.parent {
            bytes.extend(parent.0);
        }
        bytes
    }

    /// Reads such bytes; `None` if they are of no span.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (context, parent) = bytes.split_at_checked(25)?;
        let parent = match parent {
            [] => None,
            parent => Some(SpanId::new(parent.try_into().ok()?)?),
        };
        Some(Self { context: TraceContext::from_bytes(context)?, parent })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The example of the recommendation.
    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_context_of_version_00_is_read_and_anything_else_is_not() {
        let context = TraceContext::parse(GOOD).expect("the example");
        assert_eq!(context.to_string(), GOOD);
        assert!(context.is_sampled());
        assert!(!TraceContext::parse(&GOOD.replace("-01", "-00")).expect("valid").is_sampled());
        let unknown_flags = TraceContext::parse(&GOOD.replace("-01", "-ff")).expect("valid");
        assert_eq!(unknown_flags.to_string(), GOOD.replace("-01", "-03"));
        let zero_trace = GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        let zero_span = GOOD.replace("b7ad6b7169203331", &"0".repeat(16));
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "01", 1),
            &GOOD.replacen("00", "ff", 1),
            &GOOD.replace("-01", "-0"),
            &GOOD.replace("-01", "-0g"),
            &GOOD.replace("-01", "_01"),
            &format!("{GOOD}-"),
            &format!(" {GOOD}"),
            &GOOD.replace("b7ad", "b7aé"),
            &zero_trace,
            &zero_span,
        ] {
            assert_eq!(TraceContext::parse(bad), None, "{bad}");
        }
    }

    fn context() -> impl Strategy<Value = TraceContext> {
        (any::<[u8; 16]>(), any::<[u8; 8]>(), 0..4_u8).prop_filter_map(
            "zero",
            |(trace, span, flags)| {
                Some(TraceContext {
                    trace_id: TraceId::new(trace)?,
                    span_id: SpanId::new(span)?,
                    flags,
                })
            },
        )
    }

    proptest! {
        #[test]
        fn text_and_bytes_round_trip(context in context(), parent in any::<[u8; 8]>()) {
            prop_assert_eq!(TraceContext::parse(&context.to_string()), Some(context));
            prop_assert_eq!(context.to_string().len(), TRACEPARENT_CHARS);
            let traced = Traced { context, parent: SpanId::new(parent) };
            prop_assert_eq!(Traced::from_bytes(&traced.to_bytes()), Some(traced));
        }

        #[test]
        fn no_text_makes_it_fail_and_what_is_read_is_written_alike(text in "(00-)?[0-9a-fg]{0,33}-?[0-9a-f]{0,17}-?.{0,3}") {
            if let Some(context) = TraceContext::parse(&text) {
                prop_assert_eq!(&context.to_string()[..53], &text[..53]);
            }
        }

        #[test]
        fn no_bytes_make_it_fail(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(traced) = Traced::from_bytes(&bytes) {
                prop_assert_eq!(traced.to_bytes(), bytes);
            }
        }
    }
}

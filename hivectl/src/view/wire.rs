//! Views made from messages of the wire.
//!
//! Invariant: a message is taken apart field by field, so that a new field of the contract breaks
//! this build until it is shown.

/// Implements `From` for a view with the fields of a message: each conversion with the fields that
/// it is for, then the fields that are not shown, and those that are made of the whole message.
macro_rules! from_wire {
    (
        $wire:ident => $view:ident { $($convert:expr => $($field:ident),+;)+ }
        $(without $($unused:ident),+)?
        $(with $($added:ident = $value:expr),+)?
    ) => {
        impl From<hive_proto::v1::$wire> for $view {
            fn from(message: hive_proto::v1::$wire) -> Self {
                let hive_proto::v1::$wire { $($($field: _,)+)+ $($($unused: _,)+)? } = &message;
                $($(let $added = ($value)(&message);)+)?
                Self { $($($field: ($convert)(message.$field),)+)+ $($($added,)+)? }
            }
        }
    };
}

pub(super) use from_wire;

/// Returns the value as it is.
pub(super) fn same<T>(value: T) -> T {
    value
}

/// Returns the view of a message that the broker always sends.
pub(super) fn present<T: Default, V: From<T>>(message: Option<T>) -> V {
    message.unwrap_or_default().into()
}

/// Returns the view of a message that may be absent.
pub(super) fn optional<T, V: From<T>>(message: Option<T>) -> Option<V> {
    message.map(V::from)
}

pub(super) fn all<T, V: From<T>>(messages: Vec<T>) -> Vec<V> {
    messages.into_iter().map(V::from).collect()
}

/// Returns a span of the wire; a negative one is none.
pub(super) fn millis(span: prost_types::Duration) -> u64 {
    let prost_types::Duration { seconds, nanos } = span;
    let millis = seconds.saturating_mul(1000).saturating_add(i64::from(nanos) / 1_000_000);
    u64::try_from(millis).unwrap_or(0)
}

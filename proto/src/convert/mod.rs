//! Conversions between the nouns of `hive-core` and the messages of `hive.v1`, one module per
//! resource, and checks of request fields.
//!
//! What it is not: it knows no rule of delivery and reads no clock. Invariant: every field is
//! destructured by name, so that a new field on either side breaks only this build. An invalid
//! field is [`Invalid`] with its path.

use hive_core::id::NUMBER_MAX;

pub mod agent;
pub mod command;
pub mod delivery;
pub mod effect;
pub mod event;
pub mod limits;
pub mod loose_end;
pub mod message;
pub mod page;
pub mod question;
pub mod reason;
pub mod reminder;
pub mod request;
pub mod schedule;
pub mod settlement;
pub mod time;
mod trace;
pub mod tree;
pub mod turn;

#[cfg(test)]
mod strategies;
#[cfg(test)]
mod tests;

/// A field with an invalid value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {sentence}")]
pub struct Invalid {
    /// Path of the field, from the outermost message inwards: `to.agent`.
    pub path: String,
    /// The fault of the field.
    pub sentence: String,
}

impl Invalid {
    /// Returns a fault of this field.
    pub fn new(path: impl Into<String>, sentence: impl Into<String>) -> Self {
        Self { path: path.into(), sentence: sentence.into() }
    }

    /// Returns the same fault for the message that contains it in this field.
    #[must_use]
    pub fn within(self, field: &str) -> Self {
        let path =
            if self.path.is_empty() { field.to_owned() } else { format!("{field}.{}", self.path) };
        Self { path, sentence: self.sentence }
    }
}

impl From<Invalid> for tonic::Status {
    fn from(fault: Invalid) -> Self {
        crate::status::bad_field(&fault.path, fault.sentence)
    }
}

/// Conversion of a noun of the core into its message or its enum on the wire.
pub trait IntoWire {
    /// The message or the enum.
    type Wire;
    /// Converts the noun.
    fn into_wire(self) -> Self::Wire;
}

/// Conversion of a message or an enum, which is checked, into a noun of the core. A message that
/// needs no check has a function in the module of its noun.
pub trait FromWire: Sized {
    /// The message or the enum.
    type Wire;
    /// Converts the message; a fault names its field.
    fn from_wire(wire: Self::Wire) -> Result<Self, Invalid>;
}

/// Returns the content of a field that must be set.
pub fn required<T>(value: Option<T>, path: &str) -> Result<T, Invalid> {
    value.ok_or_else(|| Invalid::new(path, "must be set"))
}

/// Converts a field that must be set.
pub fn required_as<C: FromWire>(value: Option<C::Wire>, path: &str) -> Result<C, Invalid> {
    C::from_wire(required(value, path)?).map_err(|fault| fault.within(path))
}

/// Converts a field that may be unset.
pub fn optional_as<C: FromWire>(value: Option<C::Wire>, path: &str) -> Result<Option<C>, Invalid> {
    value.map(C::from_wire).transpose().map_err(|fault| fault.within(path))
}

/// Converts an enum field; UNSPECIFIED and unknown numbers are refused.
pub fn value<C: FromWire<Wire: TryFrom<i32>>>(number: i32, path: &str) -> Result<C, Invalid> {
    let wire = C::Wire::try_from(number)
        .map_err(|_| Invalid::new(path, format!("{number} is no known value")))?;
    C::from_wire(wire).map_err(|fault| fault.within(path))
}

/// Returns the number of an enum value.
fn code<C: IntoWire<Wire: Into<i32>>>(value: C) -> i32 {
    value.into_wire().into()
}

/// Converts an enum field that may be unset; UNSPECIFIED and unknown numbers are refused.
pub fn optional_value<C: FromWire<Wire: TryFrom<i32>>>(
    number: Option<i32>,
    path: &str,
) -> Result<Option<C>, Invalid> {
    number.map(|number| value(number, path)).transpose()
}

/// Returns the number of an enum value that may be unset.
pub fn optional_number<C: IntoWire<Wire: Into<i32>>>(value: Option<C>) -> Option<i32> {
    value.map(code)
}

/// Converts an id in a field that must name something: `id(turn_id, TurnId::new, "turn_id")`.
pub fn id<T>(number: u64, new: impl FnOnce(u64) -> Option<T>, path: &str) -> Result<T, Invalid> {
    new(number).ok_or_else(|| not_an_id(path, number))
}

/// Converts an id in a field in which 0 means none.
pub fn optional_id<T>(
    number: u64,
    new: impl FnOnce(u64) -> Option<T>,
    path: &str,
) -> Result<Option<T>, Invalid> {
    if number == 0 { Ok(None) } else { id(number, new, path).map(Some) }
}

/// Checks a number of an event or a line, or an id that is only compared: at most [`NUMBER_MAX`].
pub fn bounded(number: u64, path: &str) -> Result<u64, Invalid> {
    if number > NUMBER_MAX { Err(not_an_id(path, number)) } else { Ok(number) }
}

fn not_an_id(path: &str, number: u64) -> Invalid {
    Invalid::new(path, format!("must be a number from 1 to {NUMBER_MAX}, not {number}"))
}

/// Converts the ids in a repeated field.
fn ids<T>(
    numbers: Vec<u64>,
    new: impl Fn(u64) -> Option<T>,
    path: &str,
) -> Result<Vec<T>, Invalid> {
    numbers.into_iter().map(|number| id(number, &new, path)).collect()
}

/// Converts an enum with the same values on both sides: a match each way, without a `_`.
macro_rules! same_values {
    ($wire:path, $core:path { $($variant:ident),+ $(,)? }) => {
        impl $crate::convert::IntoWire for $core {
            type Wire = $wire;
            fn into_wire(self) -> $wire {
                use $wire as Wire;
                match self { $(Self::$variant => Wire::$variant,)+ }
            }
        }

        impl $crate::convert::FromWire for $core {
            type Wire = $wire;
            fn from_wire(wire: $wire) -> Result<Self, $crate::convert::Invalid> {
                use $wire as Wire;
                match wire {
                    Wire::Unspecified => Err($crate::convert::Invalid::new("", "must not be UNSPECIFIED")),
                    $(Wire::$variant => Ok(Self::$variant),)+
                }
            }
        }
    };
}
use same_values;

//! Reasons of refusals.

use hive_core::reason::Reason;

use super::{FromWire, IntoWire, Invalid};
use crate::v1;

impl IntoWire for Reason {
    type Wire = v1::Reason;
    fn into_wire(self) -> v1::Reason {
        v1::Reason::try_from(self.number()).expect("both enums are made from the same declarations")
    }
}

impl FromWire for Reason {
    type Wire = v1::Reason;
    fn from_wire(wire: v1::Reason) -> Result<Self, Invalid> {
        Self::numbered(wire.into()).ok_or_else(|| Invalid::new("", "must not be UNSPECIFIED"))
    }
}

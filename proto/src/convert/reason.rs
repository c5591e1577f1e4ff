//! Reasons of refusals.

use hive_core::reason::Reason;

use super::Invalid;
use crate::v1;

impl From<Reason> for v1::Reason {
    fn from(reason: Reason) -> Self {
        Self::try_from(reason.number()).expect("both enums are made from the same declarations")
    }
}

impl TryFrom<v1::Reason> for Reason {
    type Error = Invalid;
    fn try_from(wire: v1::Reason) -> Result<Self, Invalid> {
        Self::numbered(wire.into()).ok_or_else(|| Invalid::new("", "must not be UNSPECIFIED"))
    }
}

//! The detail of an event whose facts say all of it.
//!
//! Such a detail is not stored: a reader makes it from the facts. An event that is older than its
//! facts has it as a text. Invariant: a kind with words here is logged without a detail.

use hive_core::event::{DeliveryLeased, DeliveryReturned, Facts, HarnessStateChanged, TurnBegun};

/// Returns the words for these facts; `None`: the kind has a detail of its own, or none.
pub(super) fn words(facts: Facts) -> Option<String> {
    if let Facts::DeliveryLeased(Some(DeliveryLeased { attempt, .. })) = facts {
        Some(format!("attempt {attempt}"))
    } else if let Facts::DeliveryReturned(Some(DeliveryReturned { cause, .. })) = facts {
        Some(cause.to_string())
    } else if let Facts::TurnBegun(Some(TurnBegun { kind, .. })) = facts {
        Some(kind.to_string())
    } else if let Facts::HarnessStateChanged(Some(HarnessStateChanged { state })) = facts {
        Some(state.to_string())
    } else {
        None
    }
}

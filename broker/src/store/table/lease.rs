//! Leases: the columns of table `delivery` that say who holds one, and until when.
//!
//! Invariant: the columns stay after the end of a lease until the delivery is leased again, so that
//! a repeated settlement is recognised.

use std::time::Duration;

use hive_core::delivery::LeaseEnd;
use hive_core::id::TurnId;
use hive_core::time::BootTime;
use rusqlite::Result;

use crate::store::columns::columns;
use crate::store::table::stream::LASTING;
use crate::store::write::tx::Tx;

columns! {
    /// The claim on a delivery.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Lease, pub(super) const LEASE {
        /// The secret that proves the claim.
        pub token: String = "d.lease_token",
        /// The turn that holds it; `None` for a consumer.
        pub turn: Option<TurnId> = "d.lease_turn_id",
        /// When a consumer's lease expires.
        pub until: Option<BootTime> = "d.lease_until_boot",
        /// The length of a consumer's lease, in milliseconds; for a lease of a stream its grace.
        pub length_ms: Option<u64> = "d.lease_ms",
        /// The stream that holds it.
        pub stream: Option<String> = "d.lease_stream",
        /// How its holder ended it.
        pub end: Option<LeaseEnd> = "d.lease_end",
    }
}

impl Lease {
    /// Returns the lease of a turn.
    #[must_use]
    pub fn of_turn(token: String, turn: TurnId) -> Self {
        Self { token, turn: Some(turn), until: None, length_ms: None, stream: None, end: None }
    }

    /// Returns the lease of a stream that lives.
    #[must_use]
    pub fn of_stream(token: String, stream: &str, grace: Duration) -> Self {
        Self { stream: Some(stream.to_owned()), ..Self::of_consumer(token, LASTING, grace) }
    }

    /// Returns the lease of a consumer.
    #[must_use]
    pub fn of_consumer(token: String, until: BootTime, length: Duration) -> Self {
        let length_ms = Some(u64::try_from(length.as_millis()).unwrap_or(u64::MAX));
        Self { token, turn: None, until: Some(until), length_ms, stream: None, end: None }
    }
}

/// Extends every consumer's lease to at least its own length from now, because consumers could not
/// reach the broker while it was down. Leases of streams get their grace from now.
pub fn renew_consumer_leases(tx: &Tx<'_>) -> Result<usize> {
    tx.execute(
        "UPDATE delivery SET lease_until_boot = CASE WHEN lease_stream IS NULL \
             THEN max(lease_until_boot, ?1 + coalesce(lease_ms, 0)) ELSE ?1 + coalesce(lease_ms, 0) END \
         WHERE state = 2 AND lease_until_boot IS NOT NULL AND lease_until_boot > 0",
        [tx.now.boot.0],
    )
}

//! A lease: the columns of a delivery that say who holds it, and until when.
//!
//! Invariant: the columns stay after the end of a lease until the delivery is leased again, so that
//! a repeated settlement is recognised.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;

use hive_core::delivery::LeaseEnd;
use hive_core::id::TurnId;
use hive_core::time::BootTime;
use rusqlite::{Result, Row};

use crate::store::columns::{Columns, columns};

/// The end of a lease whose stream lives.
pub const LASTING: BootTime = BootTime(i64::MAX);

/// Bytes of the digest of a request's content.
const DIGEST_BYTES: usize = 16;

columns! {
    /// The claim on a delivery.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Lease, pub(in crate::store) const LEASE {
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
        /// The receive that gave it.
        pub request: Option<LeaseRequest> = "d.lease_request",
        /// How its holder ended it.
        pub end: Option<LeaseEnd> = "d.lease_end",
    }
}

/// The receive that gave a lease: a repeat of it is answered with the same leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest(Arc<[u8]>);

impl LeaseRequest {
    /// Returns the receive with this digest of its content, and this id.
    #[must_use]
    pub fn new(digest: &[u8; DIGEST_BYTES], id: &str) -> Self {
        Self([digest.as_slice(), id.as_bytes()].concat().into())
    }

    /// Returns whether this is a receive with the id of the other.
    #[must_use]
    pub fn has_id_of(&self, other: &Self) -> bool {
        self.0.get(DIGEST_BYTES..) == other.0.get(DIGEST_BYTES..)
    }

    pub(in crate::store) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns a number that two receives with one id share.
    pub(in crate::store) fn hash_of_id(&self) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(self.0.get(DIGEST_BYTES..))
    }
}

impl Columns for LeaseRequest {
    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        row.get(at).map(|bytes: Vec<u8>| Self(bytes.into()))
    }
}

impl Lease {
    /// Returns the lease of a turn.
    #[must_use]
    pub fn of_turn(token: String, turn: TurnId) -> Self {
        Self {
            token,
            turn: Some(turn),
            until: None,
            length_ms: None,
            stream: None,
            request: None,
            end: None,
        }
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
        Self {
            token,
            turn: None,
            until: Some(until),
            length_ms,
            stream: None,
            request: None,
            end: None,
        }
    }
}

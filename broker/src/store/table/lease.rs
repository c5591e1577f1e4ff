//! Leases: the columns of table `delivery` that say who holds one, and until when.
//!
//! Invariant: the columns stay after the end of a lease until the delivery is leased again, so that
//! a repeated settlement is recognised.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use hive_core::delivery::LeaseEnd;
use hive_core::id::TurnId;
use hive_core::time::BootTime;
use rusqlite::{Connection, Result, Row};

use crate::store::columns::{Columns, columns};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{all, one, run};
use crate::store::table::delivery::{self, DeliveryRow};
use crate::store::table::request::RequestKey;
use crate::store::table::stream::LASTING;
use crate::store::write::tx::Tx;

/// Bytes of the digest of a request's content.
const DIGEST_BYTES: usize = 16;

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
        /// The receive that gave it.
        pub request: Option<LeaseRequest> = "d.lease_request",
        /// How its holder ended it.
        pub end: Option<LeaseEnd> = "d.lease_end",
    }
}

/// The receive that gave a lease: a repeat of it is answered with the same leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRequest(Vec<u8>);

impl LeaseRequest {
    /// Returns the receive with this key.
    #[must_use]
    pub fn new(key: &RequestKey) -> Self {
        Self([key.fingerprint.as_slice(), key.id.as_bytes()].concat())
    }

    /// Returns whether this is a receive with the id of the other.
    #[must_use]
    pub fn has_id_of(&self, other: &Self) -> bool {
        self.0.get(DIGEST_BYTES..) == other.0.get(DIGEST_BYTES..)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns a number that two receives with one id share.
    pub(in crate::store) fn hash_of_id(&self) -> u64 {
        BuildHasherDefault::<DefaultHasher>::default().hash_one(self.0.get(DIGEST_BYTES..))
    }
}

impl Columns for LeaseRequest {
    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        row.get(at).map(Self)
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

    /// Returns the lease with the receive that gives it.
    #[must_use]
    pub fn given_by(self, tx: &Tx<'_>, agent: AgentKey, request: &LeaseRequest) -> Self {
        tx.cache().gives(agent, request.hash_of_id());
        Self { request: Some(request.clone()), ..self }
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

/// Extends every consumer's lease to at least its own length from now, because consumers could not
/// reach the broker while it was down. Leases of streams get their grace from now.
pub fn renew_consumer_leases(tx: &Tx<'_>) -> Result<()> {
    let sql = "UPDATE open_delivery SET lease_until_boot = CASE WHEN lease_stream IS NULL \
             THEN max(lease_until_boot, ?1 + coalesce(lease_ms, 0)) ELSE ?1 + coalesce(lease_ms, 0) END \
         WHERE agent_id = ?2 AND queue = 3 AND lease_until_boot > 0";
    for agent in holders(tx)? {
        run(tx, sql, (tx.now.boot.0, agent.0))?;
    }
    tx.after_commit(Effect::Due(tx.now.boot));
    Ok(())
}

/// Returns the agents with leased deliveries.
pub fn holders(tx: &Tx<'_>) -> Result<Vec<AgentKey>> {
    tx.write_back()?;
    all(tx, "SELECT agent_id FROM inbox WHERE leased_count > 0", [])
}

/// Returns whether any delivery is leased, as of the last commit.
pub fn are_held(conn: &Connection) -> Result<bool> {
    one(conn, "SELECT EXISTS (SELECT 1 FROM inbox WHERE leased_count > 0)", [])
}

/// Returns the live leases that an earlier receive with this id gave, in order. The writer knows
/// the ids of an agent's leases, so that a new id costs no read.
pub fn given_by(tx: &Tx<'_>, agent: AgentKey, request: &LeaseRequest) -> Result<Vec<DeliveryRow>> {
    let ids = || {
        let rows = delivery::leased_of(tx, agent)?.into_iter();
        Ok(rows.filter_map(|row| Some(row.lease?.request?.hash_of_id())).collect())
    };
    if !tx.cache().may_have_given(agent, request.hash_of_id(), ids)? {
        return Ok(Vec::new());
    }
    let mut rows = delivery::leased_of(tx, agent)?;
    rows.retain(|row| {
        let given_by = row.lease.as_ref().and_then(|lease| lease.request.as_ref());
        given_by.is_some_and(|given_by| given_by.has_id_of(request))
    });
    Ok(rows)
}

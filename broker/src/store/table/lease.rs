//! Leases: the columns of table `delivery` that say who holds one, and until when.
//!
//! Invariant: the columns stay after the end of a lease until the delivery is leased again, so that
//! a repeated settlement is recognised.

use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

use hive_core::delivery::{LeaseEnd, State};
use hive_core::id::TurnId;
use hive_core::time::BootTime;
use rusqlite::{Connection, Result, Row};

use crate::store::columns::{Columns, columns, sql};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, one, run};
use crate::store::table::delivery::{self, COLUMNS, DeliveryRow};
use crate::store::table::inbox::{self, Moved};
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
        // A lease of a stream has an end from now on.
        tx.cache().lease_ends.add(agent, tx.now.boot);
    }
    tx.after_commit(Effect::Due(tx.now.boot));
    Ok(())
}

/// Notes when a lease ends, or that the agent holds none any more.
pub(super) fn moved(tx: &Tx<'_>, row: &DeliveryRow, moved: Moved) -> Result<()> {
    let Moved { before, after } = moved;
    if after == State::Leased {
        let until = row.lease.as_ref().and_then(|lease| lease.until);
        if let Some(until) = until.filter(|until| *until != LASTING) {
            ends_at(tx, row.agent, until);
        }
    } else if before == State::Leased && inbox::get(tx, row.agent)?.leased_count == 0 {
        tx.cache().lease_ends.set(row.agent, None);
    }
    Ok(())
}

/// Notes that leases of an agent end at this time.
pub(super) fn ends_at(tx: &Tx<'_>, agent: AgentKey, until: BootTime) {
    tx.cache().lease_ends.add(agent, until);
    tx.after_commit(Effect::Due(until));
}

/// Returns consumers' leases that have expired: after the agents that hold them, each in order. At
/// most `rows` agents are read.
pub fn expired(tx: &Tx<'_>, rows: u32) -> Result<Vec<DeliveryRow>> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM open_delivery d WHERE d.agent_id = ?1 AND d.queue = 3 \
          AND d.lease_until_boot <= ?2 ORDER BY d.message_id LIMIT ?3"
    );
    let ends = &tx.cache().lease_ends;
    if !ends.is_loaded() {
        ends.load(holders(tx)?);
    }
    let mut found: Vec<DeliveryRow> = Vec::new();
    let mut left = rows;
    for agent in ends.due(tx.now.boot, rows as usize) {
        let due = all::<DeliveryRow>(tx, SQL, (agent.0, tx.now.boot.0, left))?;
        if due.is_empty() {
            ends.set(agent, first_end(tx, agent)?);
        }
        left = left.saturating_sub(u32::try_from(due.len()).unwrap_or(u32::MAX));
        found.extend(due);
        if left == 0 {
            break;
        }
    }
    Ok(found)
}

/// Returns when the first lease of an agent ends. A lease of a stream that lives never does.
fn first_end(conn: &impl Statements, agent: AgentKey) -> Result<Option<BootTime>> {
    let sql = "SELECT min(lease_until_boot) FROM open_delivery \
         WHERE agent_id = ?1 AND queue = 3 AND lease_until_boot < ?2";
    one(conn, sql, (agent.0, LASTING.0))
}

/// Returns a time before which no lease expires, once expired ones were looked for.
#[must_use]
pub fn next_expiry(tx: &Tx<'_>) -> Option<BootTime> {
    tx.cache().lease_ends.next()
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

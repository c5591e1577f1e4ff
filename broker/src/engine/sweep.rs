//! Sweeps: expiring leases and sessions, and retention. Each is idempotent, limited, and reads the
//! due rows from the database.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use hive_core::delivery::{RedeliveryCause, Settlement};
use hive_core::time::BootTime;

use crate::engine::mail::settle;
use crate::engine::{Engine, Refusal};
use crate::store::agent::AgentRow;
use crate::store::retention::{Cursor, Cutoffs, old_requests, prune};
use crate::store::{AgentKey, Effect, agent, lease, turn};

/// Most rows of one step, so that a step never stalls a send.
const STEP_ROWS: u32 = 200;
/// Rows of each kind that one step of the retention reads. It has work for longer than any other,
/// so its steps are smaller: a send that comes during one waits for its end.
const RETENTION_ROWS: u32 = 100;
/// Most sessions that one step ends: each may have a turn with deliveries.
const STEP_SESSIONS: usize = 32;

impl Engine {
    /// Requeues the deliveries of expired consumer leases; returns when the next lease expires.
    pub async fn sweep_leases(&self) -> Result<Option<BootTime>, Refusal> {
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                for mut row in lease::expired(tx, STEP_ROWS)? {
                    let me = agent::by_key(tx, row.agent)?;
                    // A lease from before a reboot ends without blame.
                    let rebooted =
                        row.lease.as_ref().and_then(|lease| lease.until) == Some(BootTime(0));
                    let settlement = if rebooted {
                        "the host rebooted".clone_into(&mut row.last_error);
                        Settlement::GiveBack(RedeliveryCause::Drained)
                    } else {
                        "the consumer's lease ran out".clone_into(&mut row.last_error);
                        Settlement::Fail(RedeliveryCause::LeaseExpired)
                    };
                    settle::settle(tx, &limits, &me, row, settlement)?;
                }
                Ok(lease::next_expiry(tx))
            })
            .await
    }

    /// Ends sessions whose harness has stayed away; returns when the next grace time may run out.
    pub async fn sweep_sessions(&self) -> Result<Option<BootTime>, Refusal> {
        self.compare_memory().await?;
        let grace = self.limits.harness_grace();
        let away = self.presences.away(grace, self.clock.now().boot);
        // A broker that shuts down disconnects its harnesses itself; they reconnect to the next
        // one. Checked after the list of absent sessions was read.
        if self.draining.is_cancelled() {
            return Ok(None);
        }
        for sessions in away.chunks(STEP_SESSIONS) {
            self.end_away(sessions.to_vec()).await?;
        }
        Ok(self.presences.next_due(grace))
    }

    /// Updates memory from the database if the two may differ.
    async fn compare_memory(&self) -> Result<(), Refusal> {
        if !self.memory.take_doubt() {
            return Ok(());
        }
        let presences = Arc::clone(&self.presences);
        let compared = self
            .store
            .write(move |tx| {
                let mut rows: BTreeMap<AgentKey, AgentRow> =
                    agent::active(tx)?.into_iter().map(|row| (row.key, row)).collect();
                for key in presences.known() {
                    if let Entry::Vacant(retired) = rows.entry(key) {
                        retired.insert((*agent::by_key(tx, key)?).clone());
                    }
                }
                for row in rows.into_values() {
                    let open = !turn::open_all(tx, row.key)?.is_empty();
                    if let Some(change) = presences.change_to(tx, &row, open) {
                        tx.after_commit(Effect::Presence(row.key, change));
                    }
                }
                Ok::<_, Refusal>(())
            })
            .await;
        if compared.is_err() {
            self.memory.doubt();
        }
        compared
    }

    fn retention_cursor(&self) -> MutexGuard<'_, Option<Cursor>> {
        self.retention.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Deletes one step of settled rows older than `keep`; returns whether there is more.
    pub async fn sweep_retention(&self, keep: Duration) -> Result<bool, Refusal> {
        let now = self.clock.now().wall;
        let requests = Duration::from_secs(u64::from(self.limits.request_id_hours) * 3600);
        let cutoffs = Cutoffs { history: now.before(keep), requests: now.before(requests) };
        let cursor = self.retention_cursor().clone().unwrap_or_default();
        let cursor = Arc::new(cursor);
        let from = Arc::clone(&cursor);
        let old = self
            .store
            .read(move |conn, _| {
                Ok::<_, Refusal>(old_requests(conn, cutoffs, &from, RETENTION_ROWS)?)
            })
            .await?;
        let next = self
            .store
            .write(move |tx| {
                prune(tx, cutoffs, &cursor, old, RETENTION_ROWS).map_err(Refusal::from)
            })
            .await?;
        let more = next.is_some();
        *self.retention_cursor() = next;
        if more {
            // A file of lines that cannot be opened holds up no mail.
            return Ok(true);
        }
        let before =
            now.before(Duration::from_secs(u64::from(self.limits.turn_events_hours) * 3600));
        let (lines, bytes_max) = (Arc::clone(&self.turn_events), self.limits.turn_events_bytes_max);
        let lines_gone =
            self.store.blocking(move || lines.prune(before, bytes_max, RETENTION_ROWS)).await??;
        Ok(lines_gone > 0)
    }
}

//! Table `inbox`: the counts of an inbox that change with every message.
//!
//! The writer has them in memory, and writes each changed inbox once in a batch. Invariant:
//! `open_count`, `ready_count` and `leased_count` are numbers of deliveries, and `stored_bytes` the
//! bytes of unsettled bodies that its owner sent; on disk too, because they are written in the
//! batch of the change.

use hive_core::delivery::State;
use rusqlite::Result;

use crate::store::key::AgentKey;
use crate::store::row::inbox as row;
pub use crate::store::row::inbox::InboxRow;
use crate::store::table::delivery::DeliveryRow;
use crate::store::write::tx::Tx;

/// Returns the counts of an inbox, with what the present batch has changed.
pub fn get(tx: &Tx<'_>, key: AgentKey) -> Result<InboxRow> {
    tx.cache().counts(key, || row::read(tx, key))
}

/// A count below 0, which the schema refuses too: the counts were wrong before.
const NEGATIVE: rusqlite::Error = rusqlite::Error::IntegralValueOutOfRange(0, -1);

fn change(tx: &Tx<'_>, key: AgentKey, change: impl FnOnce(InboxRow) -> InboxRow) -> Result<()> {
    let before = get(tx, key)?;
    tx.cache().set_counts(key, before, change(before));
    Ok(())
}

/// Counts a new delivery, from a sender whose bytes count.
pub fn opened(
    tx: &Tx<'_>,
    agent: AgentKey,
    sender: Option<AgentKey>,
    body_bytes: u64,
) -> Result<()> {
    change(tx, agent, |row| InboxRow {
        open_count: row.open_count + 1,
        ready_count: row.ready_count + 1,
        ..row
    })?;
    let Some(sender) = sender else { return Ok(()) };
    change(tx, sender, |row| InboxRow { stored_bytes: row.stored_bytes + body_bytes, ..row })
}

/// The change of the state of a delivery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moved {
    pub(super) before: State,
    pub(super) after: State,
}

/// Counts a delivery in its new state.
pub(super) fn moved(tx: &Tx<'_>, delivery: &DeliveryRow, moved: Moved) -> Result<()> {
    let Moved { before, after } = moved;
    if before == after {
        return Ok(());
    }
    let is_settled = after.is_settled() && !before.is_settled();
    let moved_of = |count: u32, state: State| {
        let count = (count + u32::from(after == state)).checked_sub(u32::from(before == state));
        count.ok_or(NEGATIVE)
    };
    let row = get(tx, delivery.agent)?;
    let open_count = row.open_count.checked_sub(u32::from(is_settled)).ok_or(NEGATIVE)?;
    let ready_count = moved_of(row.ready_count, State::Ready)?;
    let leased_count = moved_of(row.leased_count, State::Leased)?;
    let counted = InboxRow { open_count, ready_count, leased_count, ..row };
    tx.cache().set_counts(delivery.agent, row, counted);
    let Some(sender) = delivery.sender.filter(|_| is_settled) else { return Ok(()) };
    let row = get(tx, sender)?;
    let stored_bytes = row.stored_bytes.checked_sub(delivery.body_bytes).ok_or(NEGATIVE)?;
    tx.cache().set_counts(sender, row, InboxRow { stored_bytes, ..row });
    Ok(())
}

/// Stores how many system deliveries were served in a row.
pub fn set_system_run(tx: &Tx<'_>, key: AgentKey, system_run: u32) -> Result<()> {
    change(tx, key, |row| InboxRow { system_run, ..row })
}

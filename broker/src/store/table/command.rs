//! Table `command`: orders of the operator to harnesses. A row is open until a harness has closed
//! it.

use hive_core::command::{Command, Order};
use hive_core::id::CommandId;
use hive_core::time::WallTime;
use rusqlite::{Connection, OptionalExtension as _, Result};

use crate::store::codec::{id, integer, json};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// Adds a command.
pub fn insert(
    tx: &Tx<'_>,
    id: CommandId,
    agent: AgentKey,
    order: &Order,
    given_by: &str,
) -> Result<()> {
    let order = serde_json::to_string(order).expect("an order is plain data");
    tx.prepare_cached("INSERT INTO command (id, agent_id, command, create_time, given_by) VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute((integer(id.get()), agent.0, order, tx.now.wall.0, given_by))?;
    tx.after_commit(Effect::Told(agent));
    Ok(())
}

/// Returns the open commands of an agent after `after`, oldest first.
pub fn open(conn: &Connection, agent: AgentKey, after: u64) -> Result<Vec<Command>> {
    let mut select = conn.prepare_cached(
        "SELECT id, command, create_time FROM command WHERE agent_id = ?1 AND id > ?2 AND close_time IS NULL ORDER BY id",
    )?;
    let found = select.query_map((agent.0, integer(after)), |row| {
        Ok(Command {
            id: id(row, 0, CommandId::new)?,
            order: json(row, 1)?,
            create_time: WallTime(row.get(2)?),
        })
    })?;
    found.collect()
}

/// Returns whether a command is closed; `None` if this agent has no such command.
pub fn is_closed(conn: &Connection, agent: AgentKey, id: CommandId) -> Result<Option<bool>> {
    conn.prepare_cached(
        "SELECT close_time IS NOT NULL FROM command WHERE agent_id = ?1 AND id = ?2",
    )?
    .query_row((agent.0, integer(id.get())), |row| row.get(0))
    .optional()
}

/// Returns the order in a command of this agent.
pub fn order(conn: &Connection, agent: AgentKey, id: CommandId) -> Result<Option<Order>> {
    conn.prepare_cached("SELECT command FROM command WHERE agent_id = ?1 AND id = ?2")?
        .query_row((agent.0, integer(id.get())), |row| json(row, 0))
        .optional()
}

/// Closes a command.
pub fn close(tx: &Tx<'_>, id: CommandId, error: &str) -> Result<()> {
    tx.prepare_cached("UPDATE command SET close_time = ?2, error = ?3 WHERE id = ?1")?
        .execute((integer(id.get()), tx.now.wall.0, error))
        .map(|_| ())
}

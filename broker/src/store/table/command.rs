//! Table `command`: orders of the operator to harnesses. A row is open until a harness has closed
//! it.

use hive_core::command::{Command, Order};
use hive_core::id::CommandId;
use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::{columns, sql};
use crate::store::effect::Effect;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, first, insert, run};
use crate::store::write::tx::Tx;

columns! {
    const COLUMNS: Command {
        id: CommandId = "id",
        order: Order = "command",
        create_time: WallTime = "create_time",
    }
}

/// Adds a command.
pub fn insert(
    tx: &Tx<'_>,
    id: CommandId,
    agent: AgentKey,
    order: &Order,
    given_by: &str,
) -> Result<()> {
    let order = serde_json::to_string(order).expect("an order is plain data");
    insert!(tx, into command {
        id: integer(id.get()),
        agent_id: agent.0,
        command: order,
        create_time: tx.now.wall.0,
        given_by: given_by,
    })?;
    tx.after_commit(Effect::Changed(agent));
    Ok(())
}

/// Returns the open commands of an agent after `after`, oldest first.
pub(crate) fn open(conn: &impl Statements, agent: AgentKey, after: u64) -> Result<Vec<Command>> {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM command WHERE agent_id = ?1 AND id > ?2 AND close_time IS NULL ORDER BY id"
    );
    all(conn, SQL, (agent.0, integer(after)))
}

/// Returns whether a command is closed; `None` if this agent has no such command.
pub(crate) fn is_closed(
    conn: &impl Statements,
    agent: AgentKey,
    id: CommandId,
) -> Result<Option<bool>> {
    let sql = "SELECT close_time IS NOT NULL FROM command WHERE agent_id = ?1 AND id = ?2";
    first(conn, sql, (agent.0, integer(id.get())))
}

/// Returns the order in a command of this agent.
pub(crate) fn order(
    conn: &impl Statements,
    agent: AgentKey,
    id: CommandId,
) -> Result<Option<Order>> {
    let sql = "SELECT command FROM command WHERE agent_id = ?1 AND id = ?2";
    first(conn, sql, (agent.0, integer(id.get())))
}

/// Closes a command.
pub fn close(tx: &Tx<'_>, id: CommandId, error: &str) -> Result<()> {
    let sql = "UPDATE command SET close_time = ?2, error = ?3 WHERE id = ?1";
    run(tx, sql, (integer(id.get()), tx.now.wall.0, error))
}

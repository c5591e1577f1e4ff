//! Table `turn_tool`: how often a turn called each tool.
//!
//! Invariant: rows are written in the transaction that ends their turn, and are deleted with it.

use hive_core::id::TurnId;
use hive_core::turn::ToolUse;
use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, insert};
use crate::store::table::turn_stats::{Window, turns};
use crate::store::write::tx::Tx;

/// Writes the tool calls of a turn; each name once.
pub fn insert(tx: &Tx<'_>, turn: TurnId, tools: &[ToolUse]) -> Result<()> {
    for tool in tools {
        let turn_id = integer(turn.get());
        insert!(tx, into turn_tool { turn_id: turn_id, name: tool.name, count: tool.count })?;
    }
    Ok(())
}

pub(in crate::store) fn sql(of_one_agent: bool, rows: usize) -> String {
    format!(
        "SELECT u.name, sum(u.count) FROM {} CROSS JOIN turn_tool u ON u.turn_id = t.id GROUP BY u.name ORDER BY 2 DESC, 1 LIMIT {rows}",
        turns(of_one_agent)
    )
}

/// Returns the tools that the turns of a window called most, of one agent or of all, most first.
pub(crate) fn most_called(
    conn: &impl Statements,
    window: Window,
    agent: Option<AgentKey>,
    rows: usize,
) -> Result<Vec<(String, u64)>> {
    let values = (window.start.0, window.end.0, agent.map(|key| key.0));
    all(conn, &sql(agent.is_some(), rows), values)
}

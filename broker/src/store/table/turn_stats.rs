//! Sums of turns: reads the turns of a window, one row at a time.
//!
//! The engine does the summing. Invariant: a window is read by the index of ends alone, so its cost
//! depends on the turns in it and not on earlier ones.

use hive_core::message::SystemKind;
use hive_core::time::WallTime;
use hive_core::turn::{Kind, Outcome, Usage};
use rusqlite::{Connection, Result, Row};

use crate::store::codec::{coded, coded_option, unsigned};
use crate::store::key::AgentKey;
use crate::store::table::message::{AGENT, EXTERNAL, OPERATOR, SYSTEM};

/// A time span for the ends of turns: after its start, and not after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its start; a turn that ended then is of the window before.
    pub start: WallTime,
    /// Its end; a turn that ended then belongs to it.
    pub end: WallTime,
}

/// The trigger of a turn.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Waker {
    /// Another agent.
    Agent,
    /// The operator.
    Operator,
    /// The broker, with a notice of this kind.
    System(SystemKind),
    /// A co-process, under this label.
    External(String),
    /// No message, or one that no longer exists: a turn of this kind.
    Turn(Kind),
}

/// The columns of an ended turn that are summed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndedTurn {
    /// The key of the agent.
    pub agent: AgentKey,
    /// The purpose of the turn.
    pub kind: Kind,
    /// The outcome of the turn.
    pub outcome: Outcome,
    /// When it was opened.
    pub start_time: WallTime,
    /// When it ended.
    pub end_time: WallTime,
    /// The tokens and the cost of the turn.
    pub usage: Usage,
    /// Whether a compaction ran.
    pub compacted: bool,
    /// The trigger of the turn.
    pub waker: Waker,
}

/// The columns that are read. `error`, `output_tail` and the texts of messages are not.
const COLUMNS: &str = "t.agent_id, t.kind, t.outcome, t.start_time, t.end_time, t.input_tokens, t.cache_read_tokens, \
     t.cache_creation_tokens, t.output_tokens, t.cost_micro_usd, t.inference_count, t.tool_call_count, t.compacted, m.origin_kind, \
     CASE m.origin_kind WHEN 4 THEN m.origin_name END, CASE m.origin_kind WHEN 3 THEN m.system_kind END";

fn from_row(row: &Row<'_>) -> Result<EndedTurn> {
    let kind = coded(row, 1)?;
    let waker = match row.get::<_, Option<i64>>(13)? {
        Some(AGENT) => Waker::Agent,
        Some(OPERATOR) => Waker::Operator,
        Some(SYSTEM) => coded_option(row, 15)?.map_or(Waker::Turn(kind), Waker::System),
        Some(EXTERNAL) => Waker::External(row.get(14)?),
        Some(_) | None => Waker::Turn(kind),
    };
    Ok(EndedTurn {
        agent: AgentKey(row.get(0)?),
        kind,
        outcome: coded(row, 2)?,
        start_time: WallTime(row.get(3)?),
        end_time: WallTime(row.get(4)?),
        usage: Usage {
            input_tokens: unsigned(row, 5)?,
            cache_read_tokens: unsigned(row, 6)?,
            cache_creation_tokens: unsigned(row, 7)?,
            output_tokens: unsigned(row, 8)?,
            cost_micro_usd: unsigned(row, 9)?,
            inference_count: unsigned(row, 10)?,
            tool_call_count: unsigned(row, 11)?,
        },
        compacted: row.get(12)?,
        waker,
    })
}

/// Returns the join of the turns `t` of a window: of agent `?3`, or of one agent after the other.
/// The joins are in the order of the loops.
pub(in crate::store) fn turns(of_one_agent: bool) -> &'static str {
    if of_one_agent {
        "(SELECT ?3 AS id) a CROSS JOIN turn t ON t.agent_id = a.id AND t.end_time > ?1 AND t.end_time <= ?2"
    } else {
        "agent a CROSS JOIN turn t ON t.agent_id = a.id AND t.end_time > ?1 AND t.end_time <= ?2 AND ?3 IS NULL"
    }
}

pub(in crate::store) fn sql(of_one_agent: bool) -> String {
    format!(
        "SELECT {COLUMNS} FROM {} LEFT JOIN message m ON m.id = t.message_id",
        turns(of_one_agent)
    )
}

/// Passes each turn that ended in a window to `take`, of one agent or of all.
pub fn each(
    conn: &Connection,
    window: Window,
    agent: Option<AgentKey>,
    mut take: impl FnMut(EndedTurn),
) -> Result<()> {
    let mut select = conn.prepare_cached(&sql(agent.is_some()))?;
    let mut rows = select.query((window.start.0, window.end.0, agent.map(|key| key.0)))?;
    while let Some(row) = rows.next()? {
        take(from_row(row)?);
    }
    Ok(())
}

//! Sums of turns: reads the turns of a window, one row at a time.
//!
//! The engine does the summing. Invariant: a window is read by the index of ends alone, so its cost
//! depends on the turns in it and not on earlier ones.

use hive_core::message::SystemKind;
use hive_core::time::WallTime;
use hive_core::turn::{Kind, Outcome, Usage};
use rusqlite::{Connection, Result, Row};

use crate::store::columns::{Columns, columns};
use crate::store::key::AgentKey;
use crate::store::table::message::{AGENT, EXTERNAL, OPERATOR, SYSTEM};
use crate::store::table::turn::USAGE;

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

columns! {
    /// The columns of an ended turn that are summed. `error`, `output_tail` and the texts of
    /// messages are not read.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct EndedTurn, const COLUMNS {
        pub agent: AgentKey = "t.agent_id",
        /// The purpose of the turn.
        pub kind: Kind = "t.kind",
        pub outcome: Outcome = "t.outcome",
        /// When it was opened.
        pub start_time: WallTime = "t.start_time",
        /// When it ended.
        pub end_time: WallTime = "t.end_time",
        /// The tokens and the cost of the turn.
        pub usage: Usage = USAGE,
        /// Whether a compaction ran.
        pub compacted: bool = "t.compacted",
        /// The trigger of the turn.
        pub waker: Waker = "t.kind, m.origin_kind, CASE m.origin_kind WHEN 4 THEN m.origin_name END, \
             CASE m.origin_kind WHEN 3 THEN m.system_kind END",
    }
}

impl Columns for Waker {
    const WIDTH: usize = 4;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let turn = || Kind::read(row, at).map(Self::Turn);
        match row.get(at + 1)? {
            Some(AGENT) => Ok(Self::Agent),
            Some(OPERATOR) => Ok(Self::Operator),
            Some(SYSTEM) => {
                Option::read(row, at + 3)?.map_or_else(turn, |kind| Ok(Self::System(kind)))
            }
            Some(EXTERNAL) => row.get(at + 2).map(Self::External),
            Some(_) | None => turn(),
        }
    }
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
        take(EndedTurn::read(row, 0)?);
    }
    Ok(())
}

//! Levels: the numbers of all inboxes and the states of all harnesses, in one statement.
//!
//! Invariant: it reads the rows of agents and of their inboxes, and by an index the oldest delivery
//! of each, so its cost depends on the number of agents and on that of held and dead deliveries,
//! which are few, and not on that of messages.

use hive_core::agent::HarnessState;
use hive_core::delivery::State;
use hive_core::park::Park;
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Outcome;
use rusqlite::{Connection, Result, Row};

use crate::store::columns::{Columns, columns, sql};
use crate::store::key::AgentKey;
use crate::store::statement::{all, first};
use crate::store::table::delivery::count_all;

columns! {
    /// An active agent, or the operator, with the numbers of the inbox.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Level, const COLUMNS {
        pub key: AgentKey = "a.id",
        /// The name.
        pub name: String = "a.name",
        /// The state that its harness reported.
        pub harness_state: HarnessState = "a.harness_state",
        /// Whether the operator stopped it.
        pub stopped: bool = "a.stopped",
        park: Option<Parking> = "a.park_cause, a.park_until_time, a.park_until_boot",
        /// Whether it is stopped and a turn of it is open.
        pub ends_turn: bool = "CASE WHEN a.stopped THEN \
             EXISTS (SELECT 1 FROM turn t WHERE t.agent_id = a.id AND t.outcome IS NULL) ELSE 0 END",
        /// Unsettled deliveries.
        pub unsettled: u32 = "i.open_count",
        /// Ready deliveries.
        pub ready: u32 = "i.ready_count",
        /// Leased deliveries.
        pub leased: u32 = "i.leased_count",
        /// The oldest ready message, by number.
        pub oldest_ready: Option<i64> = "CASE WHEN i.ready_count > 0 THEN min(\
             coalesce((SELECT min(message_id) FROM open_delivery WHERE agent_id = a.id AND queue = 1), 9223372036854775807), \
             coalesce((SELECT min(message_id) FROM open_delivery WHERE agent_id = a.id AND queue = 2), 9223372036854775807)) END",
    }
}

/// A park without its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Parking {
    cause: Outcome,
    park: Park,
}

impl Columns for Parking {
    const WIDTH: usize = 3;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let cause = Outcome::read(row, at)?;
        let (wall, boot) = <(Option<WallTime>, Option<BootTime>)>::read(row, at + 1)?;
        Ok(Self { cause, park: Park::new(cause, wall, boot) })
    }
}

impl Level {
    /// Returns why it is parked, if it is.
    #[must_use]
    pub fn parked(&self, now: Now) -> Option<Outcome> {
        self.park.filter(|parking| parking.park.holds(now)).map(|parking| parking.cause)
    }
}

/// Returns the levels of the active agents and of the operator.
pub fn levels(conn: &Connection) -> Result<Vec<Level>> {
    all(conn, sql(), [])
}

pub(in crate::store) fn sql() -> &'static str {
    const SQL: &str = sql!(
        "SELECT ",
        COLUMNS,
        " FROM agent a JOIN inbox i ON i.agent_id = a.id WHERE a.retired = 0"
    );
    SQL
}

/// Returns when a message was accepted.
pub fn accept_time(conn: &Connection, message: i64) -> Result<Option<WallTime>> {
    first(conn, "SELECT accept_time FROM message WHERE id = ?1", [message])
}

/// Returns how many deliveries of agents are held, and how many are dead letters.
pub fn apart(conn: &Connection) -> Result<(u64, u64)> {
    Ok((count_all(conn, State::Held)?, count_all(conn, State::Dead)?))
}

//! Reads of deliveries for people: counts, lists and views.
//!
//! Invariant: none of them reads the settled deliveries, unless it is asked for these. The counts
//! of ready and leased deliveries are those of the inbox, so here they are as of the last commit;
//! a command of the writer reads them by `inbox::get`.

use hive_core::delivery::{Delivery, State};
use hive_core::id::MessageId;
use hive_core::message::Message;
use hive_core::time::{Now, WallTime};
use rusqlite::Result;

use super::{COLUMNS, DeliveryRow};
use crate::store::codec::{Coded, integer};
use crate::store::columns::name_of;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, first, one, page as read_page};
use crate::store::table::message;
use crate::store::write::tx::Tx;

/// All columns of both tables, in one order.
const ALL: &str = "agent_id, message_id, lane, state, failures, cause, not_before_boot, lease_token, lease_turn_id, \
     lease_until_boot, lease_ms, lease_stream, lease_request, lease_end, turn_id, state_time, settled_by, sender_id, \
     body_bytes, last_error, output_tail";

/// Selects all agents, and not the operator.
const OF_ALL: &str = "<> 1";

/// Returns the statement that counts open deliveries in a state, of the agents that `whose`
/// selects.
pub(in crate::store) fn count_sql(whose: &str, state: State) -> String {
    match state {
        State::Ready => {
            format!("SELECT coalesce(sum(ready_count), 0) FROM inbox WHERE agent_id {whose}")
        }
        State::Leased => {
            format!("SELECT coalesce(sum(leased_count), 0) FROM inbox WHERE agent_id {whose}")
        }
        // Of one agent by the key, and of all by the index.
        State::Held | State::Dead => {
            let (index, agent) = if whose == OF_ALL {
                ("INDEXED BY open_delivery_apart", "+agent_id")
            } else {
                ("", "agent_id")
            };
            let code = state.code();
            format!(
                "SELECT count(*) FROM open_delivery {index} WHERE {agent} {whose} AND queue = 4 AND state = {code}"
            )
        }
        State::Acked | State::Dropped | State::Superseded => format!(
            "SELECT count(*) FROM settled_delivery WHERE agent_id {whose} AND state = {}",
            state.code()
        ),
    }
}

/// Returns how many deliveries of an inbox are in a state, as of the last commit.
pub(crate) fn count(conn: &impl Statements, agent: AgentKey, state: State) -> Result<u32> {
    one(conn, &count_sql("= ?1", state), [agent.0])
}

/// Returns how many deliveries of all agents (the operator's not counted) are in a state.
pub(crate) fn count_all(conn: &impl Statements, state: State) -> Result<u64> {
    one(conn, &count_sql(OF_ALL, state), [])
}

/// Returns when the oldest ready message of an inbox was accepted.
pub(crate) fn oldest_ready(conn: &impl Statements, agent: AgentKey) -> Result<Option<WallTime>> {
    let sql = "SELECT m.accept_time FROM message m WHERE m.id = (SELECT min(first) FROM \
         (SELECT min(message_id) AS first FROM open_delivery WHERE agent_id = ?1 AND queue = 1 \
          UNION ALL SELECT min(message_id) FROM open_delivery WHERE agent_id = ?1 AND queue = 2))";
    first(conn, sql, [agent.0])
}

/// The deliveries that a page shows.
#[derive(Clone, Debug)]
pub struct Filter {
    /// Only those of this inbox.
    pub agent: Option<AgentKey>,
    /// Only those in one of these states.
    pub states: Vec<State>,
    /// Only those after this one.
    pub after: Option<(MessageId, AgentKey)>,
}

/// Returns deliveries in the order of their messages, at most `rows` and well under one reply's
/// bytes; and whether there are more.
pub(crate) fn page(
    conn: &impl Statements,
    filter: &Filter,
    now: Now,
    rows: u32,
) -> Result<(Vec<(AgentKey, Delivery)>, bool)> {
    let states = |wanted: fn(&State) -> bool| {
        let codes = filter.states.iter().copied().filter(wanted).map(Coded::code);
        codes.map(|code| code.to_string()).collect::<Vec<_>>().join(", ")
    };
    let open = states(|state| !state.is_settled());
    let settled = states(|state| state.is_settled());
    let agent = if filter.agent.is_some() { "d.agent_id = ?1" } else { "?1 IS NULL" };
    // Held and dead deliveries of all agents are found without reading the others.
    let is_apart = filter.agent.is_none()
        && filter.states.iter().all(|state| matches!(state, State::Held | State::Dead));
    let from_open = if is_apart {
        "open_delivery d INDEXED BY open_delivery_apart WHERE d.queue = 4 AND"
    } else {
        "open_delivery d WHERE"
    };
    let arm = |from: &str, states: &str| {
        // The page is cut before the messages are read.
        format!(
            "SELECT * FROM (SELECT {ALL} FROM {from} {agent} AND d.state IN ({states}) \
             AND (d.message_id, d.agent_id) > (?2, ?3) ORDER BY d.message_id, d.agent_id LIMIT ?4)"
        )
    };
    let sql = format!(
        "SELECT {COLUMNS}, {}, {} FROM ({} UNION ALL {}) d JOIN message m ON m.id = d.message_id \
         ORDER BY d.message_id, d.agent_id LIMIT ?4",
        message::COLUMNS,
        name_of!("d.agent_id"),
        arm(from_open, &open),
        arm("settled_delivery d WHERE", &settled),
    );
    let (after_message, after_agent) =
        filter.after.map_or((0, 0), |(message, agent)| (integer(message.get()), agent.0));
    let values = (filter.agent.map(|key| key.0), after_message, after_agent, rows + 1);
    let bytes_of = |(row, message, _): &(DeliveryRow, Message, String)| {
        message.body.len() + row.output_tail.len() + row.last_error.len()
    };
    let (found, more) = read_page(conn, &sql, values, rows, bytes_of)?;
    let mut deliveries = Vec::with_capacity(found.len());
    for (row, message, agent) in found {
        deliveries.push((row.agent, shown(&row, message, agent, now)));
    }
    Ok((deliveries, more))
}

/// Returns a delivery that was just leased to the agent of this name, with its message.
pub(crate) fn view_leased(tx: &Tx<'_>, row: &DeliveryRow, agent: &str) -> Result<Delivery> {
    let message = message::get_leased(tx, row.message, agent)?;
    let message = message.ok_or(rusqlite::Error::QueryReturnedNoRows)?;
    Ok(shown(row, message, agent.to_owned(), tx.now))
}

fn shown(row: &DeliveryRow, message: Message, agent: String, now: Now) -> Delivery {
    Delivery {
        message,
        agent,
        lane: row.lane,
        state: row.progress.state,
        attempt: row.progress.attempt(!row.settled_by.is_empty()),
        cause: row.progress.cause,
        last_error: row.last_error.clone(),
        output_tail: row.output_tail.clone(),
        turn_id: row.turn,
        not_before: row.progress.not_before.map(|boot| now.wall_at(boot)),
        state_time: row.state_time,
        settled_by: row.settled_by.clone(),
    }
}

//! Operating: the operator's decisions about mail without a lease, and the totals of the broker.

use hive_core::agent::Isolation;
use hive_core::caller::Caller;
use hive_core::delivery::{Decision, Delivery, State};
use hive_core::id::MessageId;

use crate::engine::mail::decision::{by_key, decide_row};
use crate::engine::sandboxes::Shown;
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::{self, AgentRow};
use crate::store::delivery::{self, Filter};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Health};

/// The totals of the broker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Active agents.
    pub agents: u32,
    /// Agents with a harness attached.
    pub attached: u32,
    /// Ready deliveries.
    pub ready: u64,
    /// Claimed deliveries.
    pub leased: u64,
    /// Held deliveries.
    pub held: u64,
    /// Dead letters.
    pub dead: u64,
    /// Unread deliveries in the operator's inbox.
    pub operator_unread: u64,
    /// Attached agents that are not isolated.
    pub not_isolated: Vec<String>,
    /// Attached agents that are partly isolated.
    pub partly_isolated: Vec<String>,
    /// Attached agents whose isolation is what the configuration states.
    pub isolation_accepted: Vec<String>,
    /// The number of the newest event.
    pub last_event: u64,
    /// Open questions to the operator.
    pub operator_questions: u64,
    /// Open questions.
    pub open_questions: u64,
    /// Pending reminders.
    pub pending_reminders: u64,
}

/// A position in a list of deliveries, at which the next page begins.
pub type DeliveryCursor = (MessageId, AgentKey);

/// Returns the inbox that a caller means: the caller's own, or for the operator any.
fn inbox_of(conn: &rusqlite::Connection, caller: &Caller, name: &str) -> Result<AgentRow, Refusal> {
    let me = actor::row(conn, caller)?;
    if name.is_empty() || name == me.name {
        return Ok(me);
    }
    match caller {
        Caller::Operator(_) => actor::owner(conn, name),
        Caller::Agent(_) => Err(Refusal::NotYours { what: "that inbox" }),
    }
}

/// The totals of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InboxStatus {
    /// Ready deliveries.
    pub ready: u32,
    /// Claimed deliveries.
    pub leased: u32,
    /// Held deliveries.
    pub held: u32,
    /// Dead letters.
    pub dead: u32,
    /// When the oldest ready delivery was accepted.
    pub oldest_ready: Option<hive_core::time::WallTime>,
}

impl Engine {
    /// Applies the operator's decision about a delivery.
    pub async fn decide(
        &self,
        caller: Caller,
        request: RequestKey,
        agent: String,
        message: MessageId,
        decision: Decision,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        let Caller::Operator(who) = &caller else {
            return Err(Refusal::NotYours { what: "that delivery" });
        };
        let who = who.as_str().to_owned();
        self.command(caller, request, move |tx| {
            let (owner, row) = by_key(tx, &agent, message)?;
            decide_row(tx, &who, &owner, row, decision)
        })
        .await
    }

    /// Counts the deliveries of an inbox, by state.
    pub async fn inbox_status(
        &self,
        caller: Caller,
        agent: String,
    ) -> Result<InboxStatus, Refusal> {
        self.store
            .read(move |conn, _| {
                let key = inbox_of(conn, &caller, &agent)?.key;
                Ok(InboxStatus {
                    ready: delivery::count(conn, key, State::Ready)?,
                    leased: delivery::count(conn, key, State::Leased)?,
                    held: delivery::count(conn, key, State::Held)?,
                    dead: delivery::count(conn, key, State::Dead)?,
                    oldest_ready: delivery::oldest_ready(conn, key)?,
                })
            })
            .await
    }

    /// Lists deliveries of an inbox.
    pub async fn list_deliveries(
        &self,
        caller: Caller,
        agent: String,
        states: Vec<State>,
        after: Option<DeliveryCursor>,
        rows: u32,
    ) -> Result<(Vec<Delivery>, Option<DeliveryCursor>), Refusal> {
        self.store
            .read(move |conn, now| {
                let key = inbox_of(conn, &caller, &agent)?.key;
                let filter = Filter { agent: Some(key), states, after };
                Ok(paged(delivery::page(conn, &filter, now, rows)?))
            })
            .await
    }

    /// Lists dead letters, of one inbox or of all.
    pub async fn list_dead_letters(
        &self,
        agent: String,
        after: Option<DeliveryCursor>,
        rows: u32,
    ) -> Result<(Vec<Delivery>, Option<DeliveryCursor>), Refusal> {
        self.store
            .read(move |conn, now| {
                let agent =
                    if agent.is_empty() { None } else { Some(actor::owner(conn, &agent)?.key) };
                let filter = Filter { agent, states: vec![State::Dead], after };
                Ok(paged(delivery::page(conn, &filter, now, rows)?))
            })
            .await
    }

    /// Returns the totals of the broker.
    pub async fn totals(&self) -> Result<Totals, Refusal> {
        let (presences, sandboxes) =
            (std::sync::Arc::clone(&self.presences), std::sync::Arc::clone(&self.sandboxes));
        let accepts_none = self.identity.isolation_accepted;
        self.store
            .read(move |conn, _| {
                let mut totals = Totals {
                    ready: delivery::count_all(conn, State::Ready)?,
                    leased: delivery::count_all(conn, State::Leased)?,
                    held: delivery::count_all(conn, State::Held)?,
                    dead: delivery::count_all(conn, State::Dead)?,
                    operator_unread: u64::from(delivery::count(
                        conn,
                        AgentKey::OPERATOR,
                        State::Ready,
                    )?),
                    last_event: crate::store::event::span(conn)?.1,
                    operator_questions: crate::store::question::open_owed(
                        conn,
                        AgentKey::OPERATOR,
                    )?,
                    open_questions: crate::store::question::open_count(conn)?,
                    pending_reminders: crate::store::reminder::pending_count(conn)?,
                    ..Totals::default()
                };
                for row in agent::active(conn)? {
                    totals.agents += 1;
                    totals.attached += u32::from(presences.is_live(row.key));
                    if !presences.is_live(row.key) {
                        continue;
                    }
                    let Shown { isolation, accepted, notes: _ } =
                        sandboxes.shown(&row.name, presences.isolation(row.key));
                    // Without a supervisor the configuration can only accept that there is none.
                    if accepted.unwrap_or(accepts_none && isolation == Some(Isolation::None)) {
                        totals.isolation_accepted.push(row.name.clone());
                    }
                    match isolation {
                        Some(Isolation::None) => totals.not_isolated.push(row.name),
                        Some(Isolation::Partly) => totals.partly_isolated.push(row.name),
                        Some(Isolation::Sandbox | Isolation::Uid | Isolation::Unit) | None => {}
                    }
                }
                Ok(totals)
            })
            .await
    }

    /// Returns whether the database can be used.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        self.storage() == Health::Ok
    }

    /// Returns whether the database can be used, and if not, why.
    #[must_use]
    pub fn storage(&self) -> Health {
        self.store.health().borrow().clone()
    }
}

fn paged(
    (found, more): (Vec<(AgentKey, Delivery)>, bool),
) -> (Vec<Delivery>, Option<DeliveryCursor>) {
    let next = found.last().filter(|_| more).map(|(key, delivery)| (delivery.message.id, *key));
    (found.into_iter().map(|(_, delivery)| delivery).collect(), next)
}

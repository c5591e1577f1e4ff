//! Purging agents: their unsettled mail is dropped, their name is free, and a later agent of that
//! name inherits nothing.
//!
//! The mail is dropped in limited steps, so a large inbox stalls no other call. An interrupted
//! purge leaves the agent retired, and the next purge completes it. Invariant: the name is freed in
//! the transaction after which no delivery of the agent is unsettled. No harness attaches under the
//! name before the directories of the purged agent are deleted.

use std::sync::Arc;

use hive_core::caller::Caller;
use hive_core::delivery::Decision;
use hive_core::event::Facts;
use hive_core::name::AgentName;
use serde::{Deserialize, Serialize};

use super::agents::retire;
use crate::engine::mail::decision::decide_row;
use crate::engine::once::{keep, replay};
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::purge::PurgeRow;
use crate::store::request::RequestKey;
use crate::store::{Effect, Tx, agent, delivery, purge};

/// Most deliveries of each kind that one step drops.
const STEP_ROWS: u32 = 100;

/// The result of a purge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Purged {
    /// The number of dropped deliveries.
    pub dropped: u32,
    /// The entry under which directories are still to be deleted, if a program on this host does
    /// that.
    pub directories: Option<u64>,
}

/// The result of one step.
enum Step {
    /// The step dropped this number of deliveries, and more exist.
    More(u32),
    /// The purge is complete.
    Done(Purged),
}

impl Engine {
    /// Purges an agent, retired or not.
    pub async fn purge_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        name: AgentName,
    ) -> Result<Purged, Refusal> {
        self.check_open()?;
        let mut dropped = 0;
        loop {
            match self.purge_step(caller.clone(), request.clone(), name.clone(), dropped).await? {
                Step::More(now) => dropped += now,
                Step::Done(purged) => return Ok(purged),
            }
        }
    }

    async fn purge_step(
        &self,
        caller: Caller,
        request: RequestKey,
        name: AgentName,
        before: u32,
    ) -> Result<Step, Refusal> {
        let (limits, managed) = (Arc::clone(&self.limits), self.directories.are_managed());
        self.store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                if let Some(purged) = replay::<Purged>(tx, me.key, &request)? {
                    return Ok(Step::Done(purged));
                }
                let row = actor::known(tx, name.as_str())?;
                if !row.retired {
                    retire(tx, &limits, &row)?;
                }
                let dropped = drop_some(tx, &caller, &row)?;
                if dropped > 0 {
                    return Ok(Step::More(dropped));
                }
                agent::free_name(tx, row.key)?;
                tx.after_commit(Effect::NameFreed(name.to_string()));
                let directories =
                    if managed { Some(purge::insert(tx, row.key, &row.name)?) } else { None };
                let detail = format!("by {}", caller.name());
                log(tx, Fact::about(Facts::AgentPurged, row.key).detail(&detail))?;
                let purged = Purged { dropped: before, directories };
                keep(tx, me.key, &request, &purged)?;
                Ok(Step::Done(purged))
            })
            .await
    }

    /// Lists the purged agents whose directories are still to be deleted, after `after`; also
    /// returns whether there are more.
    pub async fn list_purges(
        &self,
        after: u64,
        rows: u32,
    ) -> Result<(Vec<PurgeRow>, bool), Refusal> {
        let mut found = self
            .store
            .read(move |conn, _| Ok::<_, Refusal>(purge::after(conn, after, rows + 1)?))
            .await?;
        let more = found.len() > rows as usize;
        found.truncate(rows as usize);
        Ok((found, more))
    }

    /// Notes that the directories of a purged agent are deleted.
    pub async fn finish_purge(
        &self,
        caller: Caller,
        request: RequestKey,
        id: u64,
    ) -> Result<(), Refusal> {
        self.check_open()?;
        self.command(caller, request, move |tx| {
            if purge::remove(tx, id)? {
                let key = crate::store::AgentKey(i64::try_from(id).unwrap_or_default());
                log(
                    tx,
                    Fact::about(Facts::PurgeFinished, key).detail("its directories are deleted"),
                )?;
            }
            Ok(())
        })
        .await
    }
}

fn drop_some(tx: &Tx<'_>, caller: &Caller, row: &AgentRow) -> Result<u32, Refusal> {
    let mut dropped = 0;
    if hive_fault::planted!(PurgeKeepsMail) {
        return Ok(dropped);
    }
    for delivery in delivery::unsettled_of(tx, row.key, STEP_ROWS)? {
        decide_row(tx, caller.name(), row, delivery, Decision::Drop)?;
        dropped += 1;
    }
    Ok(dropped)
}

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
use serde::{Deserialize, Serialize};

use super::agents::retire;
use super::etag::{Etags, Target};
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

/// What is stored about a request: in each step, so that a repeat of an interrupted purge completes
/// it, although the agent is no longer as the caller has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Stored {
    /// The request has retired this agent, and dropped this number of its deliveries.
    Begun { begun: i64, dropped: u32 },
    /// The purge is complete.
    Done(Purged),
}

/// The result of one step.
enum Step {
    /// The step dropped deliveries, and more may exist.
    More,
    /// The purge is complete.
    Done(Purged),
}

impl Engine {
    /// Purges an agent, retired or not.
    pub async fn purge_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
    ) -> Result<Purged, Refusal> {
        self.check_open()?;
        let target = target.into();
        loop {
            match self.purge_step(caller.clone(), request.clone(), target.clone()).await? {
                Step::More => {}
                Step::Done(purged) => return Ok(purged),
            }
        }
    }

    async fn purge_step(
        &self,
        caller: Caller,
        request: RequestKey,
        target: Target,
    ) -> Result<Step, Refusal> {
        // A launcher deletes the directories of what it has started.
        let managed = self.directories.are_managed() || self.has_launcher();
        let limits = Arc::clone(&self.limits);
        let log_id = Arc::clone(&self.log_id);
        self.store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                let stored = replay::<Stored>(tx, me.key, &request)?;
                if let Some(Stored::Done(purged)) = stored {
                    return Ok(Step::Done(purged));
                }
                let row = actor::known(tx, target.name.as_str())?;
                let before = match stored {
                    // An agent that was adopted in the meantime is not retired any more.
                    Some(Stored::Begun { begun, dropped }) if begun == row.key.0 && row.retired => {
                        dropped
                    }
                    _ => {
                        Etags::new(&log_id).check_agent(&target, &row)?;
                        0
                    }
                };
                if !row.retired {
                    retire(tx, &limits, &row)?;
                }
                let dropped = drop_some(tx, &caller, &row)?;
                if dropped > 0 {
                    let stored = Stored::Begun { begun: row.key.0, dropped: before + dropped };
                    keep(tx, me.key, &request, &stored)?;
                    return Ok(Step::More);
                }
                agent::free_name(tx, row.key)?;
                tx.after_commit(Effect::NameFreed(target.name.to_string()));
                tx.after_commit(Effect::Changed(row.key));
                let directories =
                    if managed { Some(purge::insert(tx, row.key, &row.name)?) } else { None };
                let detail = format!("by {}", caller.name());
                log(tx, Fact::about(Facts::AgentPurged, row.key).detail(&detail));
                let purged = Purged { dropped: before, directories };
                keep(tx, me.key, &request, &Stored::Done(purged))?;
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
                );
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

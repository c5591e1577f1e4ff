//! `LauncherService`: the program that starts and ends the harnesses of a host.
//!
//! Invariant: agents are read before purges, so an agent of which an earlier one was purged is
//! never sent without that purge. A state is sent again only when it differs.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hive_core::agent::{HarnessReport, Wanted};
use hive_core::time::BootTime;
use hive_proto::convert::{self, IntoWire, message, time};
use hive_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::watching::{Out, STEPS};
use crate::engine::error::HarnessError;
use crate::engine::launch::listing::{Listed, Listing};
use crate::engine::launch::report::Report;
use crate::engine::{Engine, Refusal};
use crate::launches::asked::{Answer, Source};
use crate::launches::{Launcher, News};
use crate::rpc::Rpc;
use crate::spawn::spawn;
use crate::store::AgentKey;

/// Agents that are read at once.
const ROWS: u32 = 64;

#[tonic::async_trait]
impl v1::launcher_service_server::LauncherService for Rpc {
    type LaunchStream = ReceiverStream<Result<v1::LaunchResponse, Status>>;

    async fn launch(
        &self,
        _request: Request<v1::LaunchRequest>,
    ) -> Result<Response<Self::LaunchStream>, Status> {
        let launcher = self.engine.attach_launcher();
        let launcher = launcher.ok_or(Refusal::from(HarnessError::LauncherAttached))?;
        let (out, stream) = mpsc::channel(STEPS);
        let engine = Arc::clone(&self.engine);
        spawn(&self.streams, async move {
            let mut launching = Launching::new(&engine, launcher, out.clone());
            if let Err(refusal) = launching.run().await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn answer_logs(
        &self,
        request: Request<v1::AnswerLogsRequest>,
    ) -> Result<Response<v1::AnswerLogsResponse>, Status> {
        let v1::AnswerLogsRequest { id, text, truncated, problem } = request.into_inner();
        self.engine.answer_logs(id, Answer { text, truncated, problem });
        Ok(Response::new(v1::AnswerLogsResponse {}))
    }

    async fn report_harness(
        &self,
        request: Request<v1::ReportHarnessRequest>,
    ) -> Result<Response<v1::ReportHarnessResponse>, Status> {
        let v1::ReportHarnessRequest { name, report, restart_count, text } = request.into_inner();
        let report = Report {
            name: message::agent_name(&name, "name")?,
            report: convert::value::<HarnessReport>(report, "report")?,
            restart_count,
            text,
        };
        self.engine.report_of_launcher(report).await?;
        Ok(Response::new(v1::ReportHarnessResponse {}))
    }
}

/// What was last sent of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sent {
    wanted: Wanted,
    restart_count: u64,
    start_now: bool,
}

/// A stream to the launcher.
struct Launching<'e> {
    engine: &'e Engine,
    launcher: Launcher,
    out: Out<v1::LaunchResponse>,
    sent: HashMap<AgentKey, Sent>,
    purges: BTreeSet<u64>,
    /// When agents that sleep are to be looked at again, the earliest first.
    due: BTreeSet<(BootTime, AgentKey)>,
}

/// The launcher has disconnected.
struct Gone;

impl<'e> Launching<'e> {
    fn new(engine: &'e Engine, launcher: Launcher, out: Out<v1::LaunchResponse>) -> Self {
        let (sent, purges, due) = Default::default();
        Self { engine, launcher, out, sent, purges, due }
    }

    /// Sends what is wanted, until the launcher disconnects or the broker ends.
    async fn run(&mut self) -> Result<(), Refusal> {
        if self.send_everything().await?.is_err() {
            return Ok(());
        }
        loop {
            let logs_wanted = self.launcher.take_asked().into_iter().map(logs_wanted).collect();
            let asked = v1::LaunchResponse { logs_wanted, ..Default::default() };
            if self.send(asked).await.is_err() {
                return Ok(());
            }
            let mut keys = match self.launcher.take(ROWS as usize) {
                News::Agents(keys) => keys,
                News::Everything => {
                    if self.send_everything().await?.is_err() {
                        return Ok(());
                    }
                    continue;
                }
            };
            keys.extend(self.take_due());
            if !keys.is_empty() {
                let step = self.step(keys).await?;
                if self.send(step).await.is_err() {
                    return Ok(());
                }
                continue;
            }
            let next = self.due.first().map(|(time, _)| *time);
            tokio::select! {
                () = self.launcher.changed() => {}
                () = self.engine.until(next) => {}
                () = self.out.closed() => return Ok(()),
                () = self.engine.draining().cancelled() => return Err(Refusal::Draining),
            }
        }
    }

    /// Sends how all agents are wanted.
    async fn send_everything(&mut self) -> Result<Result<(), Gone>, Refusal> {
        self.sent.clear();
        self.due.clear();
        self.purges.clear();
        let mut after = String::new();
        loop {
            let (keys, last) = self.engine.agents_after(after, ROWS).await?;
            let Some(last) = last else { break };
            after = last;
            self.launcher.look_at(&keys);
            let listing = self.engine.list_wanted(&self.launcher, keys).await?;
            let step = self.step_of(listing);
            if self.send(step).await.is_err() {
                return Ok(Err(Gone));
            }
        }
        let purges = self.new_purges().await?;
        let last = v1::LaunchResponse { purges, complete: true, ..Default::default() };
        Ok(self.out.send(Ok(last)).await.map_err(|_| Gone))
    }

    /// Returns the agents that are to be looked at again by now.
    fn take_due(&mut self) -> Vec<AgentKey> {
        let now = self.engine.clock().now().boot;
        let later = self.due.split_off(&(BootTime(now.0.saturating_add(1)), AgentKey(i64::MIN)));
        let due: Vec<AgentKey> =
            std::mem::replace(&mut self.due, later).into_iter().map(|(_, key)| key).collect();
        self.launcher.look_at(&due);
        due
    }

    /// Returns what differs from what was sent of these agents. A purge comes with the agent that
    /// was purged, which may have been sent as gone before.
    async fn step(&mut self, keys: Vec<AgentKey>) -> Result<v1::LaunchResponse, Refusal> {
        let listing = self.engine.list_wanted(&self.launcher, keys).await?;
        let may_have_purges = !listing.gone.is_empty();
        let mut step = self.step_of(listing);
        if may_have_purges || !step.harnesses.is_empty() {
            step.purges = self.new_purges().await?;
        }
        Ok(step)
    }

    /// Returns what differs from what was sent of these agents.
    fn step_of(&mut self, listing: Listing) -> v1::LaunchResponse {
        let Listing { listed, gone } = listing;
        let mut step = v1::LaunchResponse::default();
        for Listed { key, name, wanted, restart_count, start_now, look_again } in listed {
            self.due.extend(look_again.map(|time| (time, key)));
            let now = Sent { wanted, restart_count, start_now };
            if self.sent.insert(key, now) != Some(now) {
                let wanted = wanted.into_wire().into();
                step.harnesses.push(v1::WantedHarness { name, wanted, restart_count, start_now });
            }
        }
        for (key, name) in gone {
            // One that the launcher does not know any more may have a successor of its name.
            if self.sent.remove(&key).is_some() {
                step.gone.push(name);
            }
            self.due.retain(|(_, due)| *due != key);
        }
        step
    }

    /// Returns the purges that were not sent yet.
    async fn new_purges(&mut self) -> Result<Vec<v1::Purge>, Refusal> {
        let purges = self.engine.all_purges().await?;
        let known = std::mem::take(&mut self.purges);
        self.purges = purges.iter().map(|purge| purge.id).collect();
        let new = purges.into_iter().filter(|purge| !known.contains(&purge.id));
        let new = new.map(|purge| v1::Purge {
            id: purge.id,
            name: purge.name,
            purge_time: Some(time::timestamp(purge.time)),
        });
        Ok(new.collect())
    }

    /// Sends a step, unless it is empty.
    async fn send(&self, step: v1::LaunchResponse) -> Result<(), Gone> {
        if step == v1::LaunchResponse::default() {
            return Ok(());
        }
        self.out.send(Ok(step)).await.map_err(|_| Gone)
    }
}

/// Converts a request for logs.
fn logs_wanted((id, source, lines): (u64, Source, u32)) -> v1::LogsWanted {
    use v1::logs_wanted::Source as Wire;
    let source = match source {
        Source::Harness(name) => Wire::Agent(name.to_string()),
        Source::Journal { unit, since } => {
            Wire::Journal(v1::JournalOfUnit { unit, since: since.map(time::timestamp) })
        }
    };
    v1::LogsWanted { id, source: Some(source), lines }
}

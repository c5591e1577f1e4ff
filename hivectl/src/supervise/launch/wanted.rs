//! What the broker wants of this launcher: which harnesses run, and which purges are to be carried
//! out.
//!
//! Invariant: nothing is passed on before the broker has said how every agent is wanted, so no
//! harness is ended because its agent was not named yet.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hive_core::agent::Wanted as State;
use hive_core::name::AgentName;
use hive_proto::convert;
use hive_proto::v1::{LaunchRequest, LaunchResponse, LogsWanted, WantedHarness};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use crate::connect::Broker;
use crate::error::Failure;
use crate::output::note;

/// Pause before the broker is asked again after a failure.
const AGAIN: Duration = Duration::from_secs(1);

/// How the fleet is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) agents: BTreeMap<AgentName, Harness>,
    /// Purges whose directories must be deleted: id and name.
    pub(crate) purges: BTreeMap<u64, AgentName>,
}

/// How a harness is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Harness {
    pub(crate) state: State,
    /// A process that was started for another count is to be replaced.
    pub(crate) restart_count: u64,
    /// Whether there is work for an agent that runs on demand.
    pub(crate) start_now: bool,
}

impl Harness {
    /// Returns whether a missing process is to be started.
    pub(crate) fn is_due(self) -> bool {
        match self.state {
            State::Running => true,
            State::OnDemand => self.start_now,
            State::Stopped => false,
        }
    }
}

impl Wanted {
    /// Applies a step of the broker.
    fn apply(&mut self, step: LaunchResponse) {
        let LaunchResponse { harnesses, gone, purges, complete: _, logs_wanted: _ } = step;
        for name in gone.iter().filter_map(|name| AgentName::parse(name).ok()) {
            self.agents.remove(&name);
        }
        self.agents.extend(harnesses.into_iter().filter_map(harness));
        let purges = purges.into_iter();
        self.purges.extend(
            purges.filter_map(|purge| Some((purge.id, AgentName::parse(&purge.name).ok()?))),
        );
    }
}

/// Reads how an agent is wanted; `None` for a name or a state that this version does not know.
fn harness(wire: WantedHarness) -> Option<(AgentName, Harness)> {
    let WantedHarness { name, wanted, restart_count, start_now } = wire;
    let state = convert::value::<State>(wanted, "wanted").ok()?;
    Some((AgentName::parse(&name).ok()?, Harness { state, restart_count, start_now }))
}

/// Where to pass on what the broker wants.
#[derive(Debug)]
pub(crate) struct Wishes {
    /// How the fleet is wanted.
    pub(crate) fleet: watch::Sender<Wanted>,
    /// The logs that agents wait for.
    pub(crate) logs: UnboundedSender<LogsWanted>,
}

/// Passes on what the broker wants, until it is aborted.
pub(crate) async fn run(socket: PathBuf, timeout: Duration, wishes: Wishes) {
    let mut said = None;
    loop {
        match follow(&socket, timeout, &wishes).await {
            Ok(()) => said = None,
            Err(Failure::Refused(status)) if hive_proto::status::is_transient(&status) => {}
            Err(failure) => {
                let sentence = failure.to_string();
                if said.as_ref() != Some(&sentence) {
                    note(&format!("no harness is started or ended; trying again: {sentence}"));
                }
                said = Some(sentence);
            }
        }
        tokio::time::sleep(AGAIN).await;
    }
}

async fn follow(
    socket: &std::path::Path,
    timeout: Duration,
    wishes: &Wishes,
) -> Result<(), Failure> {
    let broker = Broker::connect(socket, timeout).await?;
    let mut steps = broker.read(broker.launcher().launch(LaunchRequest {})).await?;
    let (mut now, mut is_complete) = (Wanted::default(), false);
    // The first time it is passed on in any case: a hive without agents is news, too.
    let mut is_known = false;
    while let Some(mut step) = steps.message().await? {
        for logs in std::mem::take(&mut step.logs_wanted) {
            // At the end nothing answers, and the broker says so.
            let _ = wishes.logs.send(logs);
        }
        is_complete |= step.complete;
        now.apply(step);
        if is_complete {
            let is_first = !std::mem::replace(&mut is_known, true);
            wishes.fleet.send_if_modified(|before| {
                let is_changed = *before != now || is_first;
                before.clone_from(&now);
                is_changed
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::{Purge, WantedState};

    use super::*;

    fn wire(name: &str, wanted: WantedState, start_now: bool) -> WantedHarness {
        let name = name.to_owned();
        WantedHarness { name, wanted: wanted.into(), restart_count: 0, start_now }
    }

    fn names(wanted: &Wanted) -> Vec<(&str, bool)> {
        wanted.agents.iter().map(|(name, harness)| (name.as_str(), harness.is_due())).collect()
    }

    #[test]
    fn a_step_changes_what_it_names() {
        let mut wanted = Wanted::default();
        wanted.apply(LaunchResponse {
            harnesses: vec![
                wire("ada", WantedState::Running, false),
                wire("bob", WantedState::OnDemand, false),
                wire("cy", WantedState::Stopped, false),
                wire("No Name", WantedState::Running, false),
                wire("dee", WantedState::Unspecified, false),
            ],
            ..LaunchResponse::default()
        });
        assert_eq!(names(&wanted), [("ada", true), ("bob", false), ("cy", false)]);
        let purge = Purge { id: 7, name: "ada".to_owned(), purge_time: None };
        wanted.apply(LaunchResponse {
            harnesses: vec![
                wire("bob", WantedState::OnDemand, true),
                wire("ada", WantedState::Stopped, false),
            ],
            // An earlier agent of the name.
            gone: vec!["ada".to_owned()],
            purges: vec![purge],
            complete: true,
            logs_wanted: vec![],
        });
        assert_eq!(names(&wanted), [("ada", false), ("bob", true), ("cy", false)]);
        assert_eq!(wanted.purges.len(), 1);
    }
}

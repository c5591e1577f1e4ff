//! The sockets of a broker that starts.
//!
//! They are opened while the database is, and connections are taken; calls wait until there is an
//! engine. Invariant: no call is handled before that, and a broker that does not start leaves no
//! socket behind.

use std::sync::Arc;

use anyhow::Context as _;
use hive_core::name::AgentName;
use tokio::sync::{SetOnce, oneshot};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Settings;
use crate::engine::sandboxes::Sandboxes;
use crate::rpc::caller::Calls;
use crate::rpc::listen::{Given, Incoming, Layout, Sockets};
use crate::rpc::server;
use crate::service_manager::Inherited;
use crate::spawn::spawn;
use crate::supervisor::Supervisor;

/// What the process that started the broker has given it.
#[derive(Debug, Default)]
pub struct Parent {
    /// The link to `hivectl up`.
    pub supervisor: Option<Supervisor>,
    /// Open sockets.
    pub inherited: Vec<Inherited>,
    /// Whether the service manager keeps the sockets of agents between two runs.
    pub keeps_sockets: bool,
}

/// What ends the sockets of a broker and the tasks behind them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Cancelled by the operator's drain.
    pub(crate) shutdown: CancellationToken,
    /// Cancelled to stop taking calls.
    pub(crate) stop: CancellationToken,
    /// Cancelled to close connections.
    pub(crate) close: CancellationToken,
    pub(crate) servers: TaskTracker,
    pub(crate) tasks: TaskTracker,
    pub(crate) accepting: TaskTracker,
}

/// The open sockets, and the calls that their connections wait for.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) sockets: Arc<Sockets>,
    pub(crate) agent_calls: Arc<SetOnce<Calls>>,
    pub(crate) operator_calls: Arc<SetOnce<Calls>>,
}

/// The sockets before they are opened.
#[derive(Debug)]
struct Shut {
    ends: Ends,
    layout: Layout,
    given: Given,
    sandboxes: Arc<Sandboxes>,
    supervisor: Option<Supervisor>,
    /// The agents of the configuration file, which are active in any case.
    names: Vec<AgentName>,
}

/// The sockets while a broker starts.
#[derive(Debug)]
pub(crate) struct Doors {
    ends: Ends,
    shut: Option<Shut>,
    opening: Option<oneshot::Receiver<anyhow::Result<Open>>>,
    open: Option<Arc<Sockets>>,
}

impl Doors {
    pub(crate) fn new(
        settings: &Settings,
        ends: Ends,
        sandboxes: Arc<Sandboxes>,
        Parent { supervisor, inherited, keeps_sockets }: Parent,
    ) -> Self {
        let names = settings.agents.iter().flat_map(|agents| agents.keys().cloned()).collect();
        let layout = settings.layout();
        let given = Given::take(inherited, keeps_sockets, &layout);
        let shut = Shut { ends: ends.clone(), layout, given, sandboxes, supervisor, names };
        Self { ends, shut: Some(shut), opening: None, open: None }
    }

    /// Begins to open them, on another thread, unless some were handed over or kept: their clients
    /// wait in the kernel, also for the next broker, if this one does not start.
    pub(crate) fn begin(&mut self) {
        if self.shut.as_ref().is_some_and(|shut| shut.given.is_empty()) {
            self.begin_to_open();
        }
    }

    fn begin_to_open(&mut self) {
        if let Some(shut) = self.shut.take() {
            let (tell, opening) = oneshot::channel();
            let tasks = shut.ends.tasks.clone();
            // If the start has been given up, its sockets are not waited for.
            spawn(&tasks, async move { drop(tell.send(shut.open())) });
            self.opening = Some(opening);
        }
    }

    /// Opens them, or waits until they are open.
    pub(crate) async fn open(&mut self) -> anyhow::Result<Open> {
        self.begin_to_open();
        let opening = self.opening.take().context("the sockets are open already")?;
        let open = opening.await.context("the sockets could not be opened")??;
        self.open = Some(Arc::clone(&open.sockets));
        Ok(open)
    }

    /// Ends what has been begun, and removes the sockets.
    pub(crate) async fn abandon(mut self) {
        if self.opening.is_some() {
            // If they could not be opened, there is nothing to remove.
            drop(self.open().await);
        }
        self.ends.stop.cancel();
        self.ends.close.cancel();
        if let Some(sockets) = self.open {
            sockets.remove_files();
        }
    }
}

impl Shut {
    fn open(self) -> anyhow::Result<Open> {
        let Self { ends, layout, given, sandboxes, supervisor, names } = self;
        if let Some(supervisor) = supervisor {
            spawn(&ends.tasks, supervisor.serve(Arc::clone(&sandboxes), ends.stop.clone())?);
        }
        let (sockets, agents, operator) =
            Sockets::open(layout, given, sandboxes, ends.accepting.clone(), ends.close.clone())?;
        let serve = |conns: Incoming| {
            let calls = Arc::default();
            spawn(&ends.servers, server::serve(Arc::clone(&calls), conns, ends.stop.clone()));
            calls
        };
        let (agent_calls, operator_calls) = (serve(agents), serve(operator));
        // A socket that cannot be opened is tried again, and reported, with those of all agents.
        drop(sockets.reconcile(&names));
        Ok(Open { sockets, agent_calls, operator_calls })
    }
}

//! The wire: one file per service; each method decodes, calls the engine once, and encodes.
//!
//! `edge/` has everything in front of a handler, `service/` one file per service, and `server`
//! builds the two routers. Agents' sockets have no operator service at all, so it needs no refusal
//! there. Invariant: the caller comes from the connection (`edge/caller`), never from a request.

pub mod server;

mod edge;
mod reflection;
mod service;

use std::sync::Arc;

use hive_core::name::AgentName;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::{Engine, Refusal};
use crate::preview::Previews;
use crate::spawn::spawn;
use edge::listen::ListenError;
use edge::room::Seat;
pub(crate) use edge::socket_file;
pub use edge::{caller, conn, error, listen, method, peer};

/// Agents without a socket that one line of the log names.
const NAMES_SHOWN: usize = 20;

/// The state that every service shares.
#[derive(Clone, Debug)]
pub struct Rpc {
    engine: Arc<Engine>,
    /// Tasks of open streams, and work that outlives its call.
    streams: TaskTracker,
    /// Cancelled to end the process cleanly.
    shutdown: CancellationToken,
    sockets: Arc<listen::Sockets>,
    previews: Previews,
}

impl Rpc {
    /// Returns services on this engine.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        streams: TaskTracker,
        shutdown: CancellationToken,
        sockets: Arc<listen::Sockets>,
    ) -> Self {
        Self { engine, streams, shutdown, sockets, previews: Previews::default() }
    }

    /// Opens and closes agents' sockets to match the present agents.
    pub async fn reconcile_sockets(&self) -> Result<(), Refusal> {
        let _order = self.sockets.in_order().await;
        self.open_sockets(&self.engine.active_names().await?);
        self.sockets.settled().await;
        Ok(())
    }

    /// Opens the sockets of these agents, and closes all others.
    pub fn open_sockets(&self, names: &[String]) {
        let names: Vec<AgentName> =
            names.iter().filter_map(|name| AgentName::parse(name).ok()).collect();
        names.iter().for_each(|name| self.engine.directories().prepare(name));
        let errors = self.sockets.reconcile(&names);
        let (short, others): (Vec<_>, Vec<_>) =
            errors.into_iter().partition(|(_, error)| matches!(error, ListenError::NoFiles(_)));
        others.iter().for_each(|(_, error)| report(error));
        if !short.is_empty() {
            let named = short.iter().take(NAMES_SHOWN).map(|(name, _)| name.as_str());
            let named = named.collect::<Vec<_>>().join(", ");
            let error = self.sockets.shortage(names.len());
            tracing::error!(%error, agents = short.len(), named, "agents have no socket");
        }
    }

    /// Opens or closes the socket of one agent to match whether it is active. The cost does not
    /// depend on the number of agents, and no other socket is looked at.
    async fn reconcile_socket(&self, name: &AgentName, seat: Option<Seat>) -> Result<(), Refusal> {
        let _order = self.sockets.in_order().await;
        let is_active = self.engine.is_active(name.clone()).await?;
        if is_active {
            self.engine.directories().prepare(name);
        }
        if let Err(error) = self.sockets.reconcile_one(name, is_active, seat) {
            report(&error);
        }
        self.sockets.settled().await;
        Ok(())
    }

    /// Closes the socket of an agent that was retired, or purged.
    async fn close_retired(&self, name: &AgentName, purged: bool) -> Result<(), Refusal> {
        // By name first: a new agent may have the name already, and must not get the old agent's
        // connections. After a purge nothing of the old one may be worked on any more.
        self.sockets.close_agent(name, purged);
        self.reconcile_socket(name, None).await
    }

    /// Does work to its end, even if its caller has disconnected: after the commit of a change the
    /// sockets have to follow it.
    async fn to_its_end<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
    ) -> Result<T, Refusal> {
        let (out, answer) = oneshot::channel();
        spawn(&self.streams, async move {
            // A caller that has disconnected gets no answer.
            drop(out.send(work.await));
        });
        answer.await.unwrap_or(Err(Refusal::Fault("the change of an agent was not completed")))
    }
}

/// Logs that an agent has no socket.
fn report(error: &ListenError) {
    let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
    tracing::error!(%error, cause, "an agent has no socket");
}

//! The wire: one file per service; each method decodes, calls the engine once, and encodes.
//!
//! `edge/` has everything in front of a handler, `service/` one file per service, and `server`
//! builds the two routers. Agents' sockets have no operator service at all, so it needs no refusal
//! there. Invariant: the caller comes from the connection (`edge/caller`), never from a request.

pub mod server;

mod edge;
mod service;

use std::sync::Arc;

use hive_core::name::AgentName;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::{Engine, Refusal};
pub use edge::{caller, conn, error, listen, method, peer};

/// The state that every service shares.
#[derive(Clone, Debug)]
pub struct Rpc {
    engine: Arc<Engine>,
    /// Tasks of open streams, and work that outlives its call.
    streams: TaskTracker,
    /// Cancelled to end the process cleanly.
    shutdown: CancellationToken,
    sockets: Arc<listen::Sockets>,
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
        Self { engine, streams, shutdown, sockets }
    }

    /// Opens and closes agents' sockets to match the present agents.
    pub async fn reconcile_sockets(&self) -> Result<(), Refusal> {
        let names = self.engine.active_names().await?;
        let names: Vec<AgentName> =
            names.iter().filter_map(|name| AgentName::parse(name).ok()).collect();
        for error in self.sockets.reconcile(&names) {
            let cause =
                std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            tracing::error!(%error, cause, "an agent has no socket");
        }
        Ok(())
    }
}

//! The wire: one file per service, each method decode, one call of the engine, encode.
//!
//! Two sets of services stand on one engine: agents' sockets have no operator service at all, so
//! there is nothing to be refused there. Invariant: who calls comes from the connection (`caller`),
//! never from a request.

pub mod caller;
pub mod conn;
pub mod error;
mod handed;
pub mod listen;
pub mod method;
pub mod peer;
pub mod server;

mod admin;
mod answer;
mod backup;
mod event;
mod fair;
mod history;
mod inbox;
mod login;
mod loose_end;
mod message;
mod question;
mod reminder;
mod request;
mod server_info;
mod size;
mod socket_file;
mod stats;
mod status;
mod topology;
mod turn;
mod wake;

use std::sync::Arc;

use hive_core::name::AgentName;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::{Engine, Refusal};

/// What every service works on.
#[derive(Clone, Debug)]
pub struct Rpc {
    engine: Arc<Engine>,
    /// Tasks behind open streams, and what calls leave running.
    streams: TaskTracker,
    /// Cancelled to end the process in good order.
    shutdown: CancellationToken,
    sockets: Arc<listen::Sockets>,
}

impl Rpc {
    /// Services on this engine.
    #[must_use]
    pub fn new(
        engine: Arc<Engine>,
        streams: TaskTracker,
        shutdown: CancellationToken,
        sockets: Arc<listen::Sockets>,
    ) -> Self {
        Self { engine, streams, shutdown, sockets }
    }

    /// Opens and closes agents' sockets, as there are agents now.
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

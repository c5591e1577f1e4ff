//! The link to `hivectl up`, which describes the sandboxes of the agents: packets in, answers out.
//!
//! Invariant: a packet is answered after it is in force. When the link ends, its reports still hold
//! and no new sandbox is trusted.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::Context as _;
use hive_core::agent::Isolation;
use hive_core::name::AgentName;
use hive_proto::supervisor::{Link, LinkError, Reached, SUPERVISOR_FD_ENV, ToBroker, ToUp};
use tokio_util::sync::CancellationToken;

use crate::engine::sandboxes::{Report, Sandboxes};
use crate::kernel;
use crate::namespace::PidNamespace;
use crate::rpc::peer::knows_peers;

/// The broker's end of the link.
#[derive(Debug)]
pub struct Supervisor {
    link: Link,
}

impl Supervisor {
    /// Takes the socket that `hivectl up` left open, by its number in the environment; `None` if
    /// there is no such number.
    pub fn from_env() -> anyhow::Result<Option<Self>> {
        let Some(text) = std::env::var_os(SUPERVISOR_FD_ENV) else { return Ok(None) };
        let number = text.to_str().and_then(|text| text.parse().ok());
        let number = number.with_context(|| {
            format!("{SUPERVISOR_FD_ENV} is {text:?}, and no number of a descriptor; remove it")
        })?;
        let socket = kernel::inherited(number).with_context(|| {
            format!("the socket of the supervisor, descriptor {number}, cannot be used")
        })?;
        let link = Link::new(socket)
            .with_context(|| format!("descriptor {number} is no link to a supervisor"))?;
        Ok(Some(Self { link }))
    }

    /// Makes the supervisor's reports decide from now on, and returns the task that reads them
    /// until the link ends, or `stop`.
    pub fn serve(
        self,
        sandboxes: Arc<Sandboxes>,
        stop: CancellationToken,
    ) -> anyhow::Result<impl Future<Output = ()> + Send + 'static> {
        let own = PidNamespace::own()
            .context("the broker's own pid namespace cannot be read; /proc must be mounted")?;
        sandboxes.supervise(own, knows_peers());
        Ok(async move {
            tokio::select! {
                ended = self.follow(&sandboxes) => {
                    sandboxes.abandon();
                    tracing::warn!(error = %ended, "hivectl up has left the broker: sandboxes that it starts from now on are not trusted");
                }
                () = stop.cancelled() => {}
            }
        })
    }

    /// Applies each packet and answers it; returns why the link has ended.
    async fn follow(&self, sandboxes: &Sandboxes) -> LinkError {
        loop {
            let applied = match self.link.recv::<ToBroker>().await {
                Ok((packet, descriptor)) => apply(sandboxes, packet, descriptor),
                Err(LinkError::Garbage(why)) => Err(why),
                Err(error) => return error,
            };
            let answer = match applied {
                Ok(()) => ToUp::Done,
                Err(why) => {
                    tracing::warn!(why, "a packet of hivectl up was refused");
                    ToUp::Refused { why }
                }
            };
            if let Err(error) = self.link.send(&answer, None).await {
                return error;
            }
        }
    }
}

/// Puts a packet in force, or returns why not.
fn apply(
    sandboxes: &Sandboxes,
    packet: ToBroker,
    descriptor: Option<OwnedFd>,
) -> Result<(), String> {
    let name = |agent: &str| AgentName::parse(agent).map_err(|error| error.to_string());
    if descriptor.is_some() && !matches!(packet, ToBroker::Sandbox { .. }) {
        return Err("it carries a descriptor, which only `sandbox` has".to_owned());
    }
    match packet {
        ToBroker::Sandbox { agent } => {
            let descriptor = descriptor.ok_or("it carries no descriptor of a pid namespace")?;
            let namespace =
                PidNamespace::from_descriptor(descriptor).map_err(|error| error.to_string())?;
            sandboxes.confine(&name(&agent)?, namespace).map_err(|error| error.to_string())?;
            tracing::debug!(agent, "its sandbox is known");
        }
        ToBroker::Unconfined { agent } => {
            sandboxes.leave_unconfined(&name(&agent)?).map_err(|error| error.to_string())?;
            tracing::debug!(agent, "its programs are not confined");
        }
        ToBroker::Isolation { agent, reached, notes, accepted } => {
            let reached = match reached {
                Reached::None => Isolation::None,
                Reached::Partly => Isolation::Partly,
                Reached::Sandbox => Isolation::Sandbox,
            };
            tracing::debug!(
                agent,
                ?reached,
                notes = notes.len(),
                accepted,
                "its isolation is known"
            );
            sandboxes
                .report(&name(&agent)?, Report { reached, notes, accepted })
                .map_err(|error| error.to_string())?;
        }
        ToBroker::Gone { agent } => {
            sandboxes.remove(&name(&agent)?);
            tracing::debug!(agent, "its sandbox is gone");
        }
        ToBroker::Complete => {
            sandboxes.complete();
            tracing::debug!("the sandboxes of all agents are known");
        }
    }
    Ok(())
}

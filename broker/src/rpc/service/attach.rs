//! The stream to an attached harness: what it has to know, once and after each change.
//!
//! Invariant: the harness is attached as long as the stream lives. A step is sent after the state
//! that it shows was read, so a hint in between causes another reading.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::sync::Arc;

use hive_core::agent::Agent;
use hive_core::name::AgentName;
use hive_proto::convert::{IntoWire, time};
use hive_proto::v1;
use hive_proto::v1::attach_response::Step;

use super::login;
use super::resting::{Out, Resting};
use crate::engine::Refusal;
use crate::engine::error::HarnessError;
use crate::engine::presence::Attachment;
use crate::engine::turn::attach::Attached;
use crate::rpc::Rpc;

/// A digest of what the harness knows. It is compared only, and kept for as long as the stream, so
/// it is smaller than the values.
fn digest(of: impl Hash) -> u64 {
    let mut digest = DefaultHasher::new();
    of.hash(&mut digest);
    digest.finish()
}

/// Returns the digest of the parts of an agent whose changes its harness has to know.
fn known(agent: &Agent) -> u64 {
    let Agent { policy, parent, model, role, available_models, stopped, on_demand, .. } = agent;
    digest((policy, parent, model, role, available_models, stopped, on_demand))
}

/// See the module.
struct Feed {
    rpc: Rpc,
    attachment: Attachment,
    out: Out<v1::AttachResponse>,
    /// The name of the agent.
    name: AgentName,
    /// The digests of the state that the harness knows.
    known: u64,
    kin: u64,
    last_command: u64,
    last_login: u64,
}

/// Returns the steps to a harness, until it is fenced or the broker ends.
pub(super) fn steps(rpc: Rpc, attached: Attached) -> Resting<v1::AttachResponse> {
    let Attached { attachment, session_token, resumed, agent, kin, open_turn } = attached;
    let identity = rpc.engine.identity();
    let first = v1::Attached {
        session_token,
        session_epoch: attachment.epoch(),
        resumed,
        agent: Some(agent.clone().into_wire()),
        open_turns: open_turn.into_iter().map(IntoWire::into_wire).collect(),
        operator_pronouns: identity.operator_pronouns.clone(),
        hive_domain: identity.hive_domain.clone(),
        kin: Some(kin.clone().into_wire()),
        park_backoff: Some(rpc.engine.limits().park_backoff().into_wire()),
        leave_after: Some(time::duration(rpc.engine.limits().on_demand_idle())),
    };
    let (name, known, kin) = (agent.name.clone(), known(&agent), digest(&kin));
    Resting::new(|out| {
        let mut feed =
            Feed { rpc, attachment, out, name, known, kin, last_command: 0, last_login: 0 };
        let sent = feed.send(Step::Attached(first));
        async move {
            sent.await;
            let refusal = feed.run().await;
            feed.out.send(Err(refusal.into())).await;
        }
    })
}

impl Feed {
    /// Sends what changes, and returns why the stream ends.
    async fn run(&mut self) -> Refusal {
        let engine = Arc::clone(&self.rpc.engine);
        let hints = engine.hints().agent(self.attachment.agent());
        loop {
            let hint = hints.changed.notified();
            tokio::pin!(hint);
            hint.as_mut().enable();
            // A pointer, which the stream does not keep while it rests.
            if let Err(refusal) = Box::pin(self.send_changes()).await {
                return refusal;
            }
            tokio::select! {
                () = hint => {}
                () = self.attachment.ended().cancelled() => return self.session_lost(),
                () = engine.draining().cancelled() => return Refusal::Draining,
            }
        }
    }

    fn session_lost(&self) -> Refusal {
        HarnessError::SessionLost { agent: self.name.to_string() }.into()
    }

    /// Sends what has changed since the last call.
    async fn send_changes(&mut self) -> Result<(), Refusal> {
        let (engine, key) = (Arc::clone(&self.rpc.engine), self.attachment.agent());
        for command in engine.open_commands(key, self.last_command).await? {
            self.last_command = command.id.get();
            self.send(Step::Command(command.into_wire())).await;
        }
        let wanted = engine.login_wanted(key).filter(|(id, _)| *id != self.last_login);
        if let Some(wanted) = wanted {
            self.last_login = wanted.0;
            self.send(Step::LoginWanted(login::wanted(wanted))).await;
        }
        let agent = engine.agent_by_key(key).await?;
        let known = known(&agent);
        if known != self.known {
            self.known = known;
            self.send(Step::AgentChanged(agent.into_wire())).await;
        }
        let kin = engine.kin(key).await?;
        let digest = digest(&kin);
        if digest != self.kin {
            self.kin = digest;
            self.send(Step::KinChanged(kin.into_wire())).await;
        }
        Ok(())
    }

    /// Sends a step, and returns what waits until the connection has taken it.
    fn send(&self, step: Step) -> impl Future<Output = ()> + use<> {
        self.out.send(Ok(v1::AttachResponse { step: Some(step) }))
    }
}

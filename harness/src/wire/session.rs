//! The stream of a session.

use hive_core::agent::Agent;
use hive_core::command::Command;
use hive_core::limits::Backoff;
use hive_core::tree::Kin;
use hive_proto::convert::{FromWire as _, Invalid, required};
use hive_proto::handshake::Channel;
use hive_proto::in_session;
use hive_proto::v1;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tonic::{Status, Streaming};

use super::{read, unreadable};
use crate::turn::input::{Attachment, LoginWanted, Terminal};

/// The beginning of a session, or of its stream.
#[derive(Clone, Debug)]
pub struct Attached {
    /// Proof of the session.
    pub session_token: String,
    pub session_epoch: u64,
    /// Values for the machine.
    pub facts: Attachment,
}

/// A message of the broker over the stream.
#[derive(Debug)]
pub enum BrokerMessage {
    /// The session began, or continues.
    Attached(Box<Attached>),
    Command(Command),
    /// A command that this version does not know.
    UnknownCommand(u64),
    AgentChanged(Box<Agent>),
    /// The agent's parent or a child changed.
    KinChanged(Kin),
    /// An operator wants to log claude in.
    LoginWanted(LoginWanted),
}

#[derive(Debug)]
pub struct Stream(Streaming<v1::AttachResponse>);

/// Attaches, to the session of this token if it is not empty.
pub async fn attach(
    channel: Channel,
    session_token: String,
    take_over: bool,
) -> Result<Stream, Status> {
    let revision = env!("CARGO_PKG_VERSION").to_owned();
    let request = in_session(v1::AttachRequest { take_over, revision }, &session_token);
    Ok(Stream(TurnServiceClient::new(channel).attach(request).await?.into_inner()))
}

impl Stream {
    /// Waits for the next step that this version knows; `None`: the broker closed the stream.
    pub async fn next(&mut self) -> Result<Option<BrokerMessage>, Status> {
        while let Some(v1::AttachResponse { step }) = self.0.message().await? {
            // A step that this version does not know.
            let Some(step) = step else { continue };
            let is_first = matches!(step, Step::Attached(_));
            match read_step(step) {
                Ok(sent) => return Ok(Some(sent)),
                // Worth another try: the broker may be about to be replaced.
                Err(fault) if is_first => {
                    return Err(Status::unavailable(unreadable(fault).message()));
                }
                Err(fault) => {
                    tracing::warn!(%fault, "a step of the session cannot be read and is passed over");
                }
            }
        }
        Ok(None)
    }
}

fn read_step(step: Step) -> Result<BrokerMessage, Invalid> {
    Ok(match step {
        Step::Attached(wire) => BrokerMessage::Attached(Box::new(attached(wire)?)),
        Step::Command(wire) => {
            read::command(wire).map_or_else(BrokerMessage::UnknownCommand, BrokerMessage::Command)
        }
        Step::AgentChanged(wire) => BrokerMessage::AgentChanged(Box::new(read::agent(wire)?)),
        Step::KinChanged(wire) => BrokerMessage::KinChanged(read::kin(Some(wire))),
        Step::LoginWanted(v1::LoginWanted { login_id, terminal: size }) => {
            BrokerMessage::LoginWanted(LoginWanted {
                login_id,
                terminal: terminal(size.unwrap_or_default()),
            })
        }
    })
}

fn attached(wire: v1::Attached) -> Result<Attached, Invalid> {
    let v1::Attached {
        session_token,
        session_epoch,
        resumed,
        agent,
        open_turns,
        operator_pronouns,
        hive_domain,
        kin,
        park_backoff,
        leave_after,
    } = wire;
    let agent = read::agent(required(agent, "agent")?).map_err(|fault| fault.within("agent"))?;
    let facts = Attachment {
        resumed,
        agent: Some(agent),
        kin: read::kin(kin),
        open_turns: open_turns.into_iter().map(|turn| turn.id).collect(),
        operator_pronouns,
        hive_domain,
        // Brokers before this field have no other than the default.
        park_backoff: park_backoff
            .and_then(|wire| read::log_unreadable(Backoff::from_wire(wire), "the backoff"))
            .unwrap_or_default(),
        leave_after: leave_after.and_then(|span| std::time::Duration::try_from(span).ok()),
    };
    Ok(Attached { session_token, session_epoch, facts })
}

pub(super) fn terminal(wire: v1::Terminal) -> Terminal {
    let v1::Terminal { rows, columns, kind } = wire;
    Terminal { rows, columns, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_read_without_unknown_values() {
        let agent = v1::Agent { name: "bob".into(), ..v1::Agent::default() };
        let wire = v1::Attached {
            agent: Some(agent),
            kin: Some(v1::Kin {
                children: vec![v1::Child { name: "No Name".into(), role: String::new() }],
                children_count: 1,
                ..v1::Kin::default()
            }),
            park_backoff: Some(v1::Backoff::default()),
            ..v1::Attached::default()
        };
        let facts = attached(wire).expect("readable").facts;
        let kin = Kin { children_count: 1, ..Kin::default() };
        assert_eq!((facts.kin, facts.park_backoff), (kin, Default::default()));
        let fault = attached(v1::Attached::default()).expect_err("a session has an agent");
        assert_eq!(fault.path, "agent");
    }
}

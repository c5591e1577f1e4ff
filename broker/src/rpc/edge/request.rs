//! Requests that change something: their caller, and the name and the digest that identify a
//! repeated one.

use hive_proto::convert::request;
use hive_proto::v1;
use prost::Message;
use sha2::{Digest as _, Sha256};
use tonic::{Request, Status};

use super::caller;
use crate::engine::Actor;
use crate::store::request::RequestKey;
use hive_core::caller::Caller;

/// A request with an id.
///
/// Its name is stored with the id: under another name a repeated request would be carried out
/// again.
pub(in crate::rpc) trait Identified: Message + Sized {
    /// The name of its RPC.
    const RPC: &'static str;

    /// Removes the id, so that the digest covers the rest.
    fn take_id(&mut self) -> String;

    /// Returns the content that a repeat has to have, too.
    fn content(&self) -> Vec<u8> {
        self.encode_to_vec()
    }
}

macro_rules! identified {
    ($($message:ident $(($content:item))?),+ $(,)?) => {$(
        impl Identified for v1::$message {
            const RPC: &'static str =
                stringify!($message).split_at(stringify!($message).len() - "Request".len()).0;

            fn take_id(&mut self) -> String {
                std::mem::take(&mut self.request_id)
            }

            $($content)?
        }
    )+

    #[cfg(test)]
    const NAMES: &[&str] = &[$(<v1::$message as Identified>::RPC),+];
    };
}

identified! {
    AnswerQuestionRequest, AskQuestionRequest, BeginTurnRequest, CancelLooseEndRequest,
    CancelQuestionRequest, CancelReminderRequest, CreateAgentRequest, CreateReminderRequest, DropDeliveryRequest,
    EndTurnRequest, FinishPurgeRequest,
    ReceiveMessagesRequest (
        // How long a client waits, for how long it leases, and what it settles says nothing about
        // what it takes. A repeat has less time left, and may have settled the rest apart.
        fn content(&self) -> Vec<u8> {
            let Self { request_id, max_deliveries, max_bytes, tool_use_id, .. } = self;
            let content = Self {
                request_id: request_id.clone(),
                max_deliveries: *max_deliveries,
                max_bytes: *max_bytes,
                tool_use_id: tool_use_id.clone(),
                ..Self::default()
            };
            content.encode_to_vec()
        }
    ),
    RedriveDeliveryRequest, ReleaseDeliveryRequest, ReplaceLooseEndsRequest, ReportProblemRequest, RetireAgentRequest,
    SendCommandRequest, SendMessageRequest, SetParentRequest, SetPolicyRequest, SetStatusTextRequest, StartAgentRequest,
    StopAgentRequest, WakeRequest, StartChildRequest, StopChildRequest, RestartChildRequest,
    FireScheduleRequest, CancelScheduleRequest, PauseScheduleRequest, ResumeScheduleRequest,
}

/// Returns the caller of a command, its key, and its message without the id.
pub(in crate::rpc) fn command<M: Identified>(
    request: Request<M>,
) -> Result<(Caller, RequestKey, M), Status> {
    let caller = caller::identify(&request)?;
    let mut message = request.into_inner();
    let key = key(&mut message)?;
    note(&caller, &key);
    Ok((caller, key, message))
}

/// Returns the caller of a command in a session, its session token, its key, and its message
/// without the id.
pub(in crate::rpc) fn session_command<M: Identified>(
    request: Request<M>,
) -> Result<(Caller, String, RequestKey, M), Status> {
    let (caller, session_token) = caller::session(&request)?;
    let mut message = request.into_inner();
    let key = key(&mut message)?;
    note(&caller, &key);
    Ok((caller, session_token, key, message))
}

/// Returns the actor of a command, its key, and its message without the id.
pub(in crate::rpc) fn action<M: Identified>(
    request: Request<M>,
) -> Result<(Actor, RequestKey, M), Status> {
    let actor = caller::actor(&request)?;
    let mut message = request.into_inner();
    let key = key(&mut message)?;
    note(&actor.caller, &key);
    Ok((actor, key, message))
}

/// Returns the actor of a command that sends, with the cause that it states, its key, and its
/// message without the id.
pub(in crate::rpc) fn sending<M: Identified>(
    request: Request<M>,
) -> Result<(Actor, RequestKey, M), Status> {
    let actor = caller::sender(&request)?;
    let mut message = request.into_inner();
    let key = key(&mut message)?;
    note(&actor.caller, &key);
    Ok((actor, key, message))
}

/// Logs that a request has arrived, so that its id can be found.
fn note(caller: &Caller, RequestKey { rpc, id, .. }: &RequestKey) {
    tracing::debug!(agent = %caller.name(), request_id = id, rpc, "a request arrived");
}

/// Returns the key of a request, and removes its id.
pub(in crate::rpc) fn key<M: Identified>(message: &mut M) -> Result<RequestKey, Status> {
    let id = request::request_id(message.take_id())?;
    let digest = Sha256::digest(message.content());
    let mut fingerprint = [0u8; 16];
    fingerprint.copy_from_slice(&digest[..16]);
    Ok(RequestKey { rpc: M::RPC, id, fingerprint })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of requests have these names: under a new name a repeat would be carried out again.
    #[test]
    fn the_stored_names_of_rpcs_stay() {
        let names = "AnswerQuestion AskQuestion BeginTurn CancelLooseEnd CancelQuestion CancelReminder CreateAgent CreateReminder DropDelivery EndTurn FinishPurge \
            ReceiveMessages RedriveDelivery ReleaseDelivery ReplaceLooseEnds ReportProblem RetireAgent SendCommand SendMessage SetParent SetPolicy SetStatusText StartAgent StopAgent Wake StartChild StopChild RestartChild FireSchedule CancelSchedule PauseSchedule ResumeSchedule";
        assert_eq!(NAMES.join(" "), names);
    }
}

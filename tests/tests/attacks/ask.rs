//! Calls as an attacker makes them: any RPC, with any bytes and any metadata.
//!
//! Invariant: a refusal counts only with the reason that was expected, and its code.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::{AttachRequest, AttachResponse, BeginTurnResponse};
use hive_tests::rig::{raw, request, soon};
use prost::Message;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

/// Calls an RPC, named as `MessageService/SendMessage`.
pub(crate) async fn call(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
) -> Result<raw::Answer, Status> {
    call_with(channel, rpc, MetadataMap::new(), request).await
}

/// The same with this metadata.
pub(crate) async fn call_with(
    channel: &Channel,
    rpc: &str,
    metadata: MetadataMap,
    request: &impl Message,
) -> Result<raw::Answer, Status> {
    let path = format!("/hive.v1.{rpc}");
    soon(&format!("{rpc} answers"), raw::call(channel, &path, metadata, request.encode_to_vec()))
        .await
}

/// Calls it and insists.
pub(crate) async fn done<A: Message + Default>(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
) -> A {
    call(channel, rpc, request)
        .await
        .unwrap_or_else(|refusal| panic!("{rpc}: {refusal:?}"))
        .decode()
}

/// Calls it and insists, whatever the answer says.
pub(crate) async fn did(channel: &Channel, rpc: &str, request: &impl Message) {
    drop(call(channel, rpc, request).await.unwrap_or_else(|refusal| panic!("{rpc}: {refusal:?}")));
}

/// Asserts that an answer is a refusal for one of these reasons.
pub(crate) fn refused(
    what: &str,
    answer: Result<raw::Answer, Status>,
    reasons: &[Reason],
) -> Status {
    let refusal = answer.map(|answer| answer.first).expect_err(what);
    let reason = status::reason(&refusal);
    assert!(
        reason.is_some_and(|reason| reasons.contains(&reason)),
        "{what}: not one of {reasons:?}: {refusal:?}"
    );
    assert_eq!(Some(refusal.code()), reason.map(status::code), "{what}");
    refusal
}

/// A harness that is attached for as long as this lives.
#[derive(Debug)]
pub(crate) struct Harness {
    /// Its session.
    pub(crate) session: String,
    _attached: raw::Answer,
}

impl Harness {
    /// Attaches one.
    pub(crate) async fn attach(channel: &Channel, take_over: bool) -> Self {
        let request =
            AttachRequest { session_token: String::new(), take_over, revision: "test".to_owned() };
        let attached = call(channel, "TurnService/Attach", &request).await.expect("it may attach");
        match attached.decode::<AttachResponse>().step {
            Some(Step::Attached(first)) => {
                Self { session: first.session_token, _attached: attached }
            }
            step => panic!("{step:?}"),
        }
    }

    /// Begins the turn for which mail waits; its beginning and its process.
    pub(crate) async fn begin(&self, channel: &Channel) -> (BeginTurnResponse, String) {
        let request = request::begin(&self.session);
        (done(channel, "TurnService/BeginTurn", &request).await, request.process_token)
    }
}

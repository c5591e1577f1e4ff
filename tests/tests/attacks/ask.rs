//! Calls as an attacker makes them: any RPC, with any bytes and any metadata.
//!
//! Invariant: a refusal counts only with the expected reason and its code.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_tests::rig::{raw, soon};
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

/// Calls an RPC with this metadata.
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

/// Calls it and asserts that it succeeds.
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

/// Calls it and asserts that it succeeds with any answer.
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

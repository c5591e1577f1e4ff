//! Requests that ought to be refused, and how they are.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_tests::rig::raw;
use hive_tests::rig::soon;
use prost::Message;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Calls an RPC, named as `MessageService/SendMessage`, with these bytes.
pub(crate) async fn call(
    channel: &Channel,
    rpc: &str,
    request: Vec<u8>,
) -> Result<raw::Answer, Status> {
    let path = format!("/hive.v1.{rpc}");
    soon(&format!("{rpc} answers"), raw::call(channel, &path, MetadataMap::new(), request)).await
}

/// Asserts that a call is refused for this reason, with these words in it.
pub(crate) async fn refused(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
    reason: Reason,
    words: &[&str],
) -> Status {
    let refusal = call(channel, rpc, request.encode_to_vec()).await.map(drop).expect_err(rpc);
    assert_eq!(status::reason(&refusal), Some(reason), "{rpc}: {refusal:?}");
    assert_eq!(refusal.code(), status::code(reason), "{rpc}");
    for word in words {
        assert!(
            refusal.message().contains(word),
            "{rpc}: `{word}` is not in `{}`",
            refusal.message()
        );
    }
    refusal
}

/// Asserts that a field is refused, and that the details name it.
pub(crate) async fn bad_field(channel: &Channel, rpc: &str, request: &impl Message, field: &str) {
    let refusal = refused(channel, rpc, request, Reason::FieldInvalid, &[]).await;
    let named = tonic_types::StatusExt::get_details_bad_request(&refusal)
        .expect("the field is named")
        .field_violations;
    let fields: Vec<&str> = named.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, [field], "{rpc}: {refusal:?}");
    assert_eq!(refusal.code(), Code::InvalidArgument);
}

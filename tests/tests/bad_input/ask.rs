//! Requests that have to be refused, and how they are.

use hive_core::reason::Reason;
use tonic::transport::Channel;
use tonic::{Code, Status};

pub(crate) use hive_tests::rig::call::{
    Carried, call, call_bytes, call_with, did, done, in_session,
};

/// Asserts that a call is refused for this reason, with these words in it.
pub(crate) async fn refused<R: Carried>(
    channel: &Channel,
    request: &R,
    reason: Reason,
    words: &[&str],
) -> Status {
    let refusal = hive_tests::rig::call::refused(channel, request, reason).await;
    let (rpc, text) = (hive_tests::rig::call::path::<R::Message>(), refusal.message());
    for word in words {
        assert!(text.contains(word), "{rpc}: `{word}` is not in `{text}`");
    }
    refusal
}

/// Asserts that a field is refused, and that the details name it.
pub(crate) async fn bad_field(channel: &Channel, request: &impl Carried, field: &str) {
    let refusal = refused(channel, request, Reason::FieldInvalid, &[]).await;
    let named = tonic_types::StatusExt::get_details_bad_request(&refusal)
        .expect("the field is named")
        .field_violations;
    let fields: Vec<&str> = named.iter().map(|violation| violation.field.as_str()).collect();
    assert_eq!(fields, [field], "{refusal:?}");
    assert_eq!(refusal.code(), Code::InvalidArgument);
}

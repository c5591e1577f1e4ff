//! Request ids: the name and the digest that identify a repeated request.

use hive_proto::convert::request;
use prost::Message;
use sha2::{Digest as _, Sha256};
use tonic::Status;

use crate::store::request::RequestKey;

/// Returns the key of a request. The id was removed from it, so that the digest covers the rest.
pub(in crate::rpc) fn key<M: Message>(
    rpc: &'static str,
    request_id: String,
    rest: &M,
) -> Result<RequestKey, Status> {
    named(rpc, request_id, &rest.encode_to_vec())
}

fn named(rpc: &'static str, request_id: String, rest: &[u8]) -> Result<RequestKey, Status> {
    let id = request::request_id(request_id)?;
    let digest = Sha256::digest(rest);
    let mut fingerprint = [0u8; 16];
    fingerprint.copy_from_slice(&digest[..16]);
    Ok(RequestKey { rpc, id, fingerprint })
}

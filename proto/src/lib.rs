//! The contract of Hive on the wire: package `hive.v1`, conversions to and from `hive-core`,
//! connecting with a handshake, and errors.
//!
//! The client `hive-client` has the generated package and the connecting; broker and programs use
//! both through this crate. Invariant: everything that crosses a socket is defined in
//! `proto/hive/v1`; the Rust in `gen/` is generated and proven fresh by a test.

pub mod convert;
pub mod status;
pub mod supervisor;

pub use hive_client::{
    ERROR_DOMAIN, FILE_DESCRIPTOR_SET, PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY, TOOL_USE_ID_KEY,
    TRACEPARENT_ENV, TRACEPARENT_KEY, codec, connect, handshake, v1,
};
use tonic::metadata::MetadataValue;

/// The generated package `hive.harness.v1`: what the harness serves to its own agent's `bash` MCP
/// server.
#[allow(clippy::all, clippy::pedantic, clippy::clone_on_ref_ptr, clippy::wildcard_enum_match_arm, missing_debug_implementations, unreachable_pub, unused_qualifications)]
#[rustfmt::skip]
pub mod harness_v1 {
    include!("gen/hive.harness.v1.rs");
}

/// Descriptors of `google.rpc.Status` and its details, for reflection.
pub use tonic_types::pb::FILE_DESCRIPTOR_SET as ERROR_DESCRIPTOR_SET;

/// Returns the request, made in the span of this W3C trace context, 55 characters of version 00.
///
/// The broker ignores any other text, and so does this function if metadata cannot have it.
pub fn in_trace<T>(mut request: tonic::Request<T>, traceparent: &str) -> tonic::Request<T> {
    if let Ok(context) = MetadataValue::try_from(traceparent) {
        request.metadata_mut().insert(TRACEPARENT_KEY, context);
    }
    request
}

/// Returns a request in the session of this token; without one, if the token is empty.
///
/// The broker makes tokens of hexadecimal digits. A text that metadata cannot have is left out, and
/// the broker answers that the call needs a session.
pub fn in_session<T>(message: T, session_token: &str) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    if let Ok(token) = MetadataValue::try_from(session_token.as_bytes())
        && !session_token.is_empty()
    {
        request.metadata_mut().insert(SESSION_TOKEN_KEY, token);
    }
    request
}

/// The environment variable that names the socket for every client.
pub const SOCKET_ENV: &str = "HIVE_SOCKET";

/// Path of an agent's socket inside a container.
pub const DEFAULT_AGENT_SOCKET: &str = "/run/hive/hive.sock";

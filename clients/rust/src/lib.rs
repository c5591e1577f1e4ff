//! Client of Hive: the generated package `hive.v1`, and connecting to a broker over a unix socket.
//!
//! Invariant: this crate has no part of the broker, and depends on no other crate of the project.

pub mod codec;
pub mod connect;
mod connections;
pub mod handshake;

pub mod status;

/// The generated package.
#[allow(clippy::all, clippy::pedantic, clippy::clone_on_ref_ptr, clippy::wildcard_enum_match_arm, missing_debug_implementations, unreachable_pub, unused_qualifications)]
#[rustfmt::skip]
pub mod v1 {
    include!("gen/hive.v1.rs");
}

/// Descriptors of the package and its imports, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("gen/hive.v1.bin");

/// The domain of the reasons in `google.rpc.ErrorInfo`.
pub const ERROR_DOMAIN: &str = "hive";

/// The metadata key of a harness's session token.
pub const SESSION_TOKEN_KEY: &str = "hive-session-token";

/// The metadata key of the process token of a turn.
pub const PROCESS_TOKEN_KEY: &str = "hive-process-token";

/// The metadata key of the W3C trace context in which a call is made.
pub const TRACEPARENT_KEY: &str = "traceparent";

/// The environment variable in which programs state the trace context that they run in.
pub const TRACEPARENT_ENV: &str = "TRACEPARENT";

/// The metadata key of claude's id of the tool call in which a bridge makes a call.
pub const TOOL_USE_ID_KEY: &str = "hive-tool-use-id";

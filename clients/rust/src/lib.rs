//! The Rust client of Hive: the generated package `hive.v1`, calls that are repeated until they are
//! answered, and mail as a stream.
//!
//! Invariant: this crate has no part of the broker, and depends on no other crate of the project.
//!
#![doc = include_str!("../README.md")]

mod call;
pub mod codec;
pub mod connect;
mod connections;
mod error;
mod follow;
pub mod handshake;
mod hive;
#[cfg(feature = "json")]
pub mod json;
mod mail;
mod question;
mod retry;
pub mod status;
mod verbs;

pub use tonic::Code;

pub use self::call::Call;
pub use self::error::{Error, InvalidField};
pub use self::follow::{Follow, Followed, Position};
pub use self::hive::{Hive, Options};
pub use self::mail::{Delivery, Mail, MailCloser, MailOptions};
pub use self::question::Asked;

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

/// The environment variable that has the process token of the turn that a program is part of.
pub const PROCESS_TOKEN_ENV: &str = "HIVE_PROCESS_TOKEN";

/// The metadata key of the W3C trace context in which a call is made.
pub const TRACEPARENT_KEY: &str = "traceparent";

/// The environment variable in which programs state the trace context that they run in.
pub const TRACEPARENT_ENV: &str = "TRACEPARENT";

/// The metadata key of claude's id of the tool call in which a bridge makes a call.
pub const TOOL_USE_ID_KEY: &str = "hive-tool-use-id";

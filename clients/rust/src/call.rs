//! What a request is to a call: the path of its RPC, its answer, and its request id.
//!
//! `gen/calls.rs` has a line for each RPC with one request and one answer.

use std::time::Duration;

use prost::Message;

use crate::v1;

/// A request of an RPC with one answer; [`crate::Hive::call`] makes the call.
pub trait Call: Message {
    /// The answer.
    type Answer: Message + Default + 'static;

    /// The path of the RPC, as in `/hive.v1.MessageService/SendMessage`.
    const PATH: &'static str;

    /// The idempotency key, if the RPC has one. An empty one is filled in.
    fn request_id(&mut self) -> Option<&mut String> {
        None
    }

    /// How long the broker may wait before it answers.
    fn wait(&self) -> Duration {
        Duration::ZERO
    }
}

macro_rules! call {
    ($request:ident, $answer:ident, $path:literal $(, $field:ident)*) => {
        impl Call for v1::$request {
            type Answer = v1::$answer;
            const PATH: &'static str = $path;
            $(call!(@ $field);)*
        }
    };
    (@ request_id) => {
        fn request_id(&mut self) -> Option<&mut String> {
            Some(&mut self.request_id)
        }
    };
    (@ wait) => {
        fn wait(&self) -> Duration {
            self.wait.and_then(|wait| Duration::try_from(wait).ok()).unwrap_or_default()
        }
    };
}

include!("gen/calls.rs");

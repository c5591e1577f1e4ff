//! Refusals on the wire. Faults of the broker get an id; their details stay in the log.

use hive_core::reason::Reason;
use hive_proto::status::refuse;
use tonic::Status;

use crate::engine::Refusal;

impl From<Refusal> for Status {
    fn from(error: Refusal) -> Self {
        let refused = error.on_wire();
        let reason = refused.reason;
        if let Refusal::Field { field, problem } = &error {
            return hive_proto::status::bad_field(field, problem);
        }
        if reason == Reason::StorageUnavailable && std::error::Error::source(&error).is_some() {
            tracing::error!(error = %chain(&error), "the disk failed a call");
        }
        if reason != Reason::Internal {
            return refuse(refused, error.to_string());
        }
        let mut bytes = [0u8; 4];
        getrandom::fill(&mut bytes).expect("Linux has random numbers once it has booted");
        let id = u32::from_ne_bytes(bytes);
        tracing::error!(error_id = format!("{id:08x}"), error = %chain(&error), "a call failed inside the broker");
        let id = format!("{id:08x}");
        let sentence = format!("the broker failed; its log has more under error id {id}");
        refuse(refused.with("error_id", id), sentence)
    }
}

/// Returns an error with all its causes, on one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

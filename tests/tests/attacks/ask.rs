//! Calls as an attacker makes them.
//!
//! Invariant: a refusal counts only with the expected reason and its code.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_tests::rig::raw;
use tonic::Status;

pub(crate) use hive_tests::rig::call::{call, call_with, did, done, in_session};

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

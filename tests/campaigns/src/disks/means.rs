//! Helpers of a run inside: callers, faults, and the driver of a call to its answer.
//!
//! Invariant: they keep no state.

use std::path::Path;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use hive_broker::engine::{Actor, Refusal};
use hive_broker::store::SteppedStore;
use hive_broker::store::request::RequestKey;
use hive_core::caller::{Caller, OperatorName};
use hive_core::name::AgentName;
use hive_core::reason::Reason;
use hive_disk::{Error, Verdict};
use rand::{Rng, RngExt as _};

/// Maximum number of steps: more than any call that makes progress needs.
pub(super) const STEPS_MAX: usize = 64;

pub(super) fn caller(who: &str) -> Caller {
    if who == "operator" {
        return Caller::Operator(OperatorName::new(1000, Some("ada")));
    }
    Caller::Agent(name(who))
}

pub(super) fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a good name")
}

pub(super) fn actor(who: &str) -> Actor {
    Actor { caller: caller(who), process_token: None, cause: Default::default() }
}

/// Creates a directory in memory if possible.
pub(super) fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a run")
}

/// Returns whether the disk caused the refusal; such a refusal must say when to retry.
pub(super) fn is_unavailable(refusal: &Refusal) -> Result<bool, String> {
    let unavailable = refusal.reason() == Reason::StorageUnavailable;
    if unavailable && refusal.retry_after().is_none() {
        return Err(format!("it does not say when to try again: {refusal}"));
    }
    if refusal.reason() == Reason::Internal {
        return Err(format!("a fault of the disk is called a fault of the broker: {refusal:?}"));
    }
    Ok(unavailable)
}

pub(super) fn key(rpc: &'static str, number: u64) -> RequestKey {
    RequestKey { rpc, id: format!("r{number}"), fingerprint: [7; 16] }
}

/// Returns any fault.
pub(super) fn any(dice: &mut dyn Rng) -> Verdict {
    let error = [Error::Io, Error::Full, Error::NoMemory][dice.random_range(0..3)];
    match dice.random_range(0..5) {
        // Within a page or, as often, anywhere in the write of a commit.
        0 => {
            let most = [5000, 50_000][dice.random_range(0..2)];
            Verdict::Torn(dice.random_range(0..most), error)
        }
        1 => Verdict::Lose,
        2 => Verdict::LoseSome(dice.random_range(0..u64::MAX)),
        _ => Verdict::Fail(error),
    }
}

pub(super) fn drive<T>(
    hand: &mut SteppedStore,
    rng: &mut dyn Rng,
    call: impl Future<Output = T>,
) -> Option<T> {
    let context = &mut Context::from_waker(Waker::noop());
    let mut call = pin!(call);
    for _ in 0..STEPS_MAX {
        if let Poll::Ready(answer) = call.as_mut().poll(context) {
            return Some(answer);
        }
        hand.step(rng.random_range(1..4));
    }
    None
}

//! Kicks: the notice RESTARTED, with which the broker asks an agent to go on after its harness was
//! restarted.
//!
//! Invariant: while a notice RESTARTED is not settled, no session sends another one. So an agent
//! that crashes its harness at every turn uses up the attempts of one notice, and no more.

use hive_core::agent::KickOnStart;
use hive_core::delivery::State;
use hive_core::limits::Limits;
use hive_core::message::SystemKind;
use hive_core::turn::Outcome;

use super::end::Settled;
use crate::engine::Refusal;
use crate::engine::declared::kick_on_start;
use crate::engine::mail::notice::{self, Notice};
use crate::store::agent::AgentRow;
use crate::store::turn::TurnRow;
use crate::store::{Tx, message, turn};

/// Kicks the agent of a new session, as its configuration says: after an interrupted turn, or
/// always. No kick is sent if mail of the last turn was requeued or became a dead letter.
pub(super) fn at_new_session(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    let mode = kick_on_start(me);
    if mode == KickOnStart::Never {
        return Ok(());
    }
    let last = turn::last_work(tx, me.key)?;
    // A redelivery starts a turn by itself, and a dead letter may be what crashes the harness.
    if last.as_ref().is_some_and(came_back) {
        return Ok(());
    }
    let interrupted = last.as_ref().and_then(interruption);
    let body = match (interrupted, mode) {
        (Some(body), _) => body,
        (None, KickOnStart::Always) => {
            "Your harness was started. If you were in the middle of something, go on with it."
                .to_owned()
        }
        (None, KickOnStart::Interrupted | KickOnStart::Never) => return Ok(()),
    };
    send(tx, limits, me, &body, |_| true)
}

/// Kicks the agent whose harness was restarted on the operator's order. A dead letter of an earlier
/// kick does not prevent it, because the operator is present.
pub(crate) fn on_order(tx: &Tx<'_>, limits: &Limits, me: &AgentRow) -> Result<(), Refusal> {
    let body = "Your harness was restarted on the operator's order. If you were in the middle of something, go on with it.";
    send(tx, limits, me, body, |state| state != State::Dead)
}

/// Sends the notice, unless the state of an earlier one forbids it.
fn send(
    tx: &Tx<'_>,
    limits: &Limits,
    me: &AgentRow,
    body: &str,
    forbids: fn(State) -> bool,
) -> Result<(), Refusal> {
    let notice = Notice::about(&me.name, me.key, SystemKind::Restarted, body);
    let forbidden =
        message::unsettled_notices(tx, me.key, &notice.key().0)?.into_iter().any(forbids);
    if forbidden {
        return Ok(());
    }
    notice::send(tx, limits, notice).map(|_| ())
}

/// Returns whether mail of the turn was requeued at its end, or became a dead letter.
fn came_back(last: &TurnRow) -> bool {
    let settled =
        last.settled.as_deref().and_then(|json| serde_json::from_str::<Settled>(json).ok());
    settled.is_some_and(|settled| settled.returned > 0 || settled.dead > 0)
}

/// Returns how the turn was interrupted; `None` if it was not.
fn interruption(last: &TurnRow) -> Option<String> {
    let goes_on = "Go on where you were.";
    match last.outcome? {
        Outcome::Cancelled => None,
        Outcome::Vanished | Outcome::Fenced | Outcome::Drained => Some(format!(
            "Your harness was started again, and your last turn (turn {}) was cut off. {goes_on}",
            last.id
        )),
        Outcome::Ok
        | Outcome::Failed
        | Outcome::RateLimited
        | Outcome::AuthFailed
        | Outcome::Unavailable => {
            let words =
                "Your harness was started again before the turn that you asked for had begun.";
            last.next_turn_requested.then(|| format!("{words} {goes_on}"))
        }
    }
}

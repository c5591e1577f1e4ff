//! The calls of a turn. Each is repeated until it is answered, and its answer becomes an input for
//! the machine.
//!
//! Invariant: a repeated call has the same request id, so the broker executes it once.

use std::path::PathBuf;
use std::sync::Arc;

use hive_core::agent::HarnessState;
use hive_core::reason::Reason;
use hive_core::time::WallTime;
use hive_core::turn::Kind;
use tonic::{Code, Status};

use crate::driver::link::Link;
use crate::exit::describe;
use crate::heartbeat;
use crate::token;
use crate::turn::input::{Input, LeaveAnswer};
use crate::turn::output::Ending;
use crate::wire::turn;

/// Waits for a turn. For a heartbeat it reads the agent's file in its state directory.
pub async fn begin(
    mut link: Link,
    request_id: String,
    process_token: String,
    state_dir: PathBuf,
) -> Input {
    let begin = |channel, token| turn::begin(channel, token, &request_id, &process_token);
    input(link.persist(begin).await, |mut begun| {
        hive_fault::point("harness.begin.answered");
        begun.agenda = heartbeat::agenda(&begun.delivery.message, &state_dir);
        Input::Begun(Arc::new(begun))
    })
}

/// Opens a turn without a delivery.
pub async fn open(mut link: Link, process_token: String, kind: Kind) -> Input {
    let request_id = token::random();
    let open = |channel, token| turn::open(channel, token, &request_id, &process_token, kind);
    let opened = link.persist(open).await;
    match opened.as_ref().err().and_then(hive_proto::status::reason) {
        Some(Reason::AgentParked | Reason::AgentStopped | Reason::TurnOpen) => Input::NotOpened,
        _ => input(opened, Input::Opened),
    }
}

/// Ends a turn.
pub async fn end(mut link: Link, ending: Ending) -> Input {
    hive_fault::point("harness.end.leaving");
    let request_id = token::random();
    let end = |channel, token| turn::end(channel, token, &request_id, ending.clone());
    input(link.persist(end).await, |answer| {
        hive_fault::point("harness.end.answered");
        Input::Ended(answer)
    })
}

/// Reports a problem to the agent's parent.
pub async fn problem(mut link: Link, subject: String, text: String) {
    let request_id = token::random();
    let report =
        |channel, token| turn::report_problem(channel, token, &request_id, &subject, &text);
    if let Err(status) = link.persist(report).await {
        tracing::warn!(reason = %describe(&status), "a problem could not be reported to the parent");
    }
}

/// Closes a command.
pub async fn ack(mut link: Link, command_id: u64, error: String) {
    let ack = |channel, token| turn::ack_command(channel, token, command_id, &error);
    if let Err(status) = link.persist(ack).await {
        tracing::warn!(command = command_id, reason = %describe(&status), "a command could not be closed");
    }
}

/// Reports what the harness is doing.
pub async fn report(
    link: &mut Link,
    state: HarnessState,
    until: Option<WallTime>,
) -> Result<(), Input> {
    let report = |channel, token| turn::report_status(channel, token, state, until);
    link.persist(report).await.map_err(|status| refusal(&status))
}

/// Returns which turns the session has open. The call is not repeated: the next sign of life
/// follows soon.
pub async fn heartbeat(link: &mut Link) -> Result<Vec<u64>, Status> {
    let session_token = link.token().await;
    turn::heartbeat(link.channel.clone(), session_token).await
}

/// Makes sure that no turn is open. The status is a write like the start of a turn, so a turn that
/// began before is seen after it.
pub async fn leave(mut link: Link, state: HarnessState, until: Option<WallTime>) -> Input {
    if let Err(input) = report(&mut link, state, until).await {
        return input;
    }
    input(link.persist(turn::heartbeat).await, Input::Left)
}

/// Asks whether the harness may end.
pub async fn ask_to_leave(mut link: Link) -> Input {
    let answer = match link.persist(turn::leave).await {
        Ok(true) => LeaveAnswer::Left,
        Ok(false) => LeaveAnswer::Stays,
        Err(status) => leave_refused(&status),
    };
    Input::LeaveAnswered(answer)
}

/// Returns the answer that a refusal of the question means.
fn leave_refused(status: &Status) -> LeaveAnswer {
    if hive_proto::status::reason(status) == Some(Reason::SessionLost) {
        // An earlier attempt has ended the session, and its answer was lost; or another harness has
        // taken over, and this one is not needed.
        return LeaveAnswer::Left;
    }
    let reason = describe(status);
    if status.code() == Code::Unimplemented {
        tracing::info!(reason, "the broker cannot be asked whether this harness may end");
        return LeaveAnswer::Unserved;
    }
    tracing::warn!(reason, "the broker does not say whether this harness may end");
    LeaveAnswer::Stays
}

fn input<T>(answer: Result<T, Status>, read: impl FnOnce(T) -> Input) -> Input {
    answer.map_or_else(|status| refusal(&status), read)
}

/// Returns the input for a refusal that waiting does not change.
pub fn refusal(status: &Status) -> Input {
    match hive_proto::status::reason(status) {
        Some(Reason::LeaseLost | Reason::SessionLost | Reason::AgentRetired) => {
            Input::Fenced(describe(status))
        }
        _ => Input::Refused(describe(status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_session_is_left_and_an_older_broker_is_not_asked_again() {
        let refused = |reason| leave_refused(&hive_proto::status::refusal(reason, "no", None));
        assert_eq!(refused(Reason::SessionLost), LeaveAnswer::Left);
        assert_eq!(refused(Reason::MethodNotServed), LeaveAnswer::Unserved);
        assert_eq!(leave_refused(&Status::unimplemented("no")), LeaveAnswer::Unserved);
        // The stream of the session ends, too.
        assert_eq!(refused(Reason::AgentRetired), LeaveAnswer::Stays);
        assert_eq!(refused(Reason::Internal), LeaveAnswer::Stays);
    }
}

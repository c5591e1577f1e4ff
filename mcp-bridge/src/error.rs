//! Errors that a model can act on: the reason, and one sentence with the fault and the next step.
//!
//! Invariant: the match over the reasons is exhaustive, so a new reason without advice does not
//! compile.

use std::fmt;

use hive_core::reason::Reason;
use hive_proto::status;
use tonic::{Code, Status};

use crate::peer::{Failure, PeerKind};
use crate::render::one_line;

const SENTENCE_CHARS_MAX: usize = 600;

/// Why a tool call failed, as text for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason: one of the contract's, or one of the bridge's own (`BROKER_AWAY`,
    /// `HARNESS_AWAY`, `FAULT`, `CLOSING`, and those of tasks).
    pub code: &'static str,
    /// The fault and the next step.
    pub sentence: String,
}

impl Refusal {
    /// Returns the refusal of arguments that do not match the schema.
    #[must_use]
    pub fn arguments(problem: impl fmt::Display) -> Self {
        Self::new(Reason::FieldInvalid, &problem.to_string())
    }

    /// Returns a refusal by the bridge itself, with a reason of the contract.
    #[must_use]
    pub fn new(reason: Reason, problem: &str) -> Self {
        Self { code: reason.as_str(), sentence: joined(problem, advice(reason)) }
    }

    fn from_status(kind: PeerKind, refused: &Status) -> Self {
        let Some(reason) = status::reason(refused) else {
            return Self::without_reason(kind, refused);
        };
        let mut refusal = Self::new(reason, refused.message());
        if let Some(delay) = status::retry_after(refused) {
            refusal.sentence.push_str(&format!(" (in {} s)", delay.as_secs_f64().ceil()));
        }
        refusal
    }

    fn without_reason(kind: PeerKind, refused: &Status) -> Self {
        let (code, advice) = match (kind, refused.code()) {
            (PeerKind::Harness, Code::ResourceExhausted) => {
                ("TOO_MANY_TASKS", "wait for one of them with status, then call again")
            }
            (PeerKind::Harness, Code::NotFound) => {
                ("TASK_NOT_FOUND", "use an id that run gave you")
            }
            (PeerKind::Harness, Code::FailedPrecondition) => {
                ("TASK_NOT_STARTED", "tell the operator, and go on without this tool")
            }
            // The answering process is not a peer of this version.
            _ => {
                let problem = format!(
                    "the {} answered {:?}: {}",
                    kind.as_str(),
                    refused.code(),
                    refused.message()
                );
                return Self {
                    code: "FAULT",
                    sentence: joined(&problem, "tell the operator, and go on without this tool"),
                };
            }
        };
        Self { code, sentence: joined(refused.message(), advice) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.sentence)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Refused(kind, refused) => Self::from_status(kind, &refused),
            Failure::Away(kind, last) => {
                let away_secs = kind.away_max().as_secs();
                let problem = format!(
                    "the {} did not answer for {away_secs} s ({})",
                    kind.as_str(),
                    last.message()
                );
                let advice = match kind {
                    PeerKind::Broker => {
                        "whether this call took effect is unknown, so do not repeat a send, a question or a reminder blindly; end the turn if it stays so, mail is kept"
                    }
                    PeerKind::Harness => {
                        "it may be restarting, which ends all tasks, and whether this command was started is unknown: end the turn, you get mail about tasks that ended"
                    }
                };
                Self { code: away(kind), sentence: joined(&problem, advice) }
            }
            Failure::BadSocket(kind, error) => {
                let sentence =
                    joined(&error.to_string(), "tell the operator, and go on without this tool");
                Self { code: away(kind), sentence }
            }
            Failure::WaitOver | Failure::Closing => Self {
                code: "CLOSING",
                sentence: "the call was ended before its answer came".to_owned(),
            },
        }
    }
}

const fn away(kind: PeerKind) -> &'static str {
    match kind {
        PeerKind::Broker => "BROKER_AWAY",
        PeerKind::Harness => "HARNESS_AWAY",
    }
}

/// Returns the next step, as the second half of a sentence.
fn advice(reason: Reason) -> &'static str {
    match reason {
        Reason::FieldInvalid => "correct it and call again",
        Reason::AgentNotFound => "check the name and call again; nothing was done",
        Reason::AgentRetired => "it takes no mail any more: write to another agent or to <parent>",
        Reason::MessageNotFound => {
            "use the id of a message that you sent or received, or leave in_reply_to out"
        }
        Reason::QuestionNotFound => {
            "use the id of an open question: get_loose_ends lists those you asked and those you owe an answer"
        }
        Reason::ReminderNotFound => "use the id of a pending reminder: get_loose_ends lists yours",
        Reason::ScheduleNotFound => {
            "use the id of a schedule of yours: list_schedules lists those that have not ended"
        }
        Reason::DeliveryNotFound | Reason::TurnNotFound | Reason::CommandNotFound => {
            "nothing was changed; go on without it"
        }
        Reason::RequestIdReused => "that is no fault of yours: make the call once more",
        Reason::AgentExists => "choose another name",
        Reason::DiffChanged => "only the operator approves: leave it to them",
        Reason::RecipientNotAllowed => {
            "your policy does not let you write there: ask <parent> to pass it on"
        }
        Reason::NotYours => "it belongs to somebody else: leave it to them",
        Reason::NotTheTarget => {
            "leave the answer to whom it was put, or withdraw the question with cancel_loose_end"
        }
        Reason::NotYourChild => "ask the agent itself or its parent",
        Reason::NotAnAgent => {
            "this works on an agent's socket only: tell the operator that the bridge is set up wrongly"
        }
        Reason::CapabilityMissing => "you have no right to it: ask the operator if you need it",
        Reason::PeerNotTrusted => {
            "this program may not use the socket: tell the operator that the agent is set up wrongly"
        }
        Reason::LeaseLost | Reason::StreamReplaced | Reason::StreamSilent | Reason::SessionLost => {
            "another session of this agent has taken over: stop here, unsettled mail comes back to it"
        }
        Reason::TurnEnded => {
            "this turn is over and nothing was done: stop here, unsettled mail comes back in the next turn"
        }
        Reason::TurnOpen
        | Reason::AlreadyAttached
        | Reason::LauncherAttached
        | Reason::HarnessAttached => "a harness has this agent: leave it to the running turn",
        Reason::LauncherOffline => "go on without it, or ask the operator",
        Reason::AgentParked | Reason::AgentPurging => {
            "no turn starts for now: end this one and wait"
        }
        // Of the tools, only `restart` is refused so: an agent in a turn is not refused for itself.
        Reason::AgentStopped => "its mail waits until then: use start in place of restart",
        Reason::HarnessOffline | Reason::LoginOpen | Reason::LoginNotFound => {
            "only the operator logs claude in"
        }
        Reason::WrongState | Reason::EtagMismatch => {
            "it has changed in the meantime: look again before you repeat it"
        }
        Reason::QuestionClosed => "nothing was changed: go on with the outcome it has",
        Reason::TopologyCycle => "choose another parent",
        Reason::StatusTooLong => "shorten it and call again",
        Reason::InboxFull => {
            "nothing was sent: try again later, and write to <parent> if it stays so"
        }
        Reason::BodyTooLarge => {
            "nothing was sent: shorten it, or write it to a file and send where that is"
        }
        Reason::RateLimited => {
            "nothing was done: wait, call less often, and put several things into one message"
        }
        Reason::StorageFull => {
            "nothing was sent: too much of your mail waits unread; wait until it is read"
        }
        Reason::QuestionLimit => {
            "nothing was asked: wait for answers, or withdraw a question with cancel_loose_end"
        }
        Reason::ReminderLimit => {
            "nothing was set: withdraw a reminder with cancel_loose_end, or put several things into one"
        }
        Reason::ScheduleLimit => {
            "no schedule was created: end one with cancel_schedule, or add the targets to one with edit_schedule"
        }
        Reason::Starting | Reason::Draining | Reason::StorageUnavailable | Reason::CallLimit => {
            "the broker cannot take it now: try again in a minute"
        }
        Reason::MethodNotServed | Reason::RequestCompressed | Reason::SocketLimit => {
            "tell the operator, and go on without this tool"
        }
        Reason::Internal => {
            "that is a fault of the broker: try once more, then tell the operator the error id"
        }
    }
}

fn joined(problem: &str, advice: &str) -> String {
    let problem = one_line(problem.trim_end_matches(['.', '\n', ' ']), SENTENCE_CHARS_MAX);
    format!("{problem}; {advice}")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refusal(status: Status) -> String {
        Refusal::from(Failure::Refused(PeerKind::Broker, status)).to_string()
    }

    #[test]
    fn every_reason_is_one_line_that_begins_with_its_name() {
        for reason in Reason::ALL {
            let text = refusal(status::refusal(*reason, "it went wrong.\nbadly.", None));
            assert!(text.starts_with(&format!("{reason}: it went wrong.⏎badly; ")), "{text}");
            assert_eq!(text.lines().count(), 1);
        }
    }

    #[test]
    fn a_delay_is_said_in_seconds() {
        let text = refusal(status::refusal(
            Reason::RateLimited,
            "600 messages a minute are allowed",
            Some(Duration::from_millis(1500)),
        ));
        assert!(text.ends_with("(in 2 s)"), "{text}");
    }

    #[test]
    fn refusals_of_tasks_say_what_to_do() {
        let full = Status::resource_exhausted(
            "16 shell tasks run already, which is as many as may: [1, 2]",
        );
        let text = Refusal::from(Failure::Refused(PeerKind::Harness, full)).to_string();
        assert_eq!(
            text,
            "TOO_MANY_TASKS: 16 shell tasks run already, which is as many as may: [1, 2]; wait for one of them with status, then call again"
        );
        let text = Refusal::from(Failure::Refused(PeerKind::Harness, Status::unimplemented("no")))
            .to_string();
        assert!(text.starts_with("FAULT: the harness answered Unimplemented: no; "), "{text}");
    }

    #[test]
    fn a_status_without_a_reason_is_named_as_it_is() {
        let text = refusal(Status::unimplemented("no such method"));
        assert!(
            text.starts_with("FAULT: the broker answered Unimplemented: no such method; "),
            "{text}"
        );
    }
}

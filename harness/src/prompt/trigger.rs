//! The prompts of turns: the trigger of the turn, in a frame.
//!
//! Invariant: a prompt begins with text of Hive, `Message N from`, and all text of a sender is
//! framed or inert. The first line of the prompt for a message is the same at every attempt, so
//! that a search can find it in claude's session.

use std::path::Path;

use hive_core::delivery::{Delivery, RedeliveryCause};
use hive_core::id::{QuestionId, ReminderId, number};
use hive_core::message::{Message, Origin, SystemKind};

use crate::heartbeat::{Agenda, FILE};
use crate::prompt::{earlier, inert, placeholders};
use crate::turn::input::Begun;

const WAKE: &str = include_str!("../../../prompts/wake.md");
const AGAIN: &str = include_str!("../../../prompts/again.md");
const REDELIVERY: &str = include_str!("../../../prompts/redelivery.md");
const RETRY: &str = include_str!("../../../prompts/retry.md");
const RESET: &str = include_str!("../../../prompts/reset.md");
const CHECKPOINT: &str = include_str!("../../../prompts/checkpoint.md");
const CONTINUE: &str = include_str!("../../../prompts/continue.md");

/// Longest error that is shown of an earlier attempt, in characters.
const ERROR_CHARS_MAX: usize = 400;

/// Longest path that is shown, in characters.
const PATH_CHARS_MAX: usize = 1000;

/// The presentation of a message in a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presentation {
    /// With its text.
    Whole,
    /// The conversation holds the text from an earlier attempt.
    HeldAlready,
    /// The conversation holds the text from the run that failed a moment ago.
    Retry,
}

/// The input that claude takes as the order to compact the conversation.
pub const COMPACT: &str = "/compact";

/// The outcome for the conversation after its notes were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversationOutcome {
    /// A summary replaces it.
    Compacted,
    /// A new one begins.
    Replaced,
}

/// Returns the prompt that asks the agent for its notes.
pub fn checkpoint(outcome: ConversationOutcome) -> String {
    let outcome = match outcome {
        ConversationOutcome::Compacted => "cut down to a short summary",
        ConversationOutcome::Replaced => "left behind, and a new one begins",
    };
    tidy(&placeholders::fill(CHECKPOINT, &[("fate", outcome)]))
}

/// Returns the note about a conversation that was replaced without the agent's action: it names the
/// transcript of the old one.
pub fn reset(transcript: Option<&Path>) -> String {
    let transcript = transcript.map_or_else(String::new, |path| {
        let path = inert::one_line(&path.display().to_string(), PATH_CHARS_MAX);
        format!(" The whole earlier conversation, a JSON document a line, is in {path}: search it when you miss something.")
    });
    placeholders::fill(RESET, &[("transcript", &transcript)])
}

/// Returns the prompt of a turn that a message started; `reset` is empty, or states that the
/// conversation is new.
pub fn mail(
    begun: &Begun,
    presentation: Presentation,
    reset: &str,
    mcp_server_name: &str,
) -> String {
    let message = &begun.delivery.message;
    let template = match presentation {
        Presentation::Whole => WAKE,
        Presentation::HeldAlready => AGAIN,
        Presentation::Retry => RETRY,
    };
    let filled = placeholders::fill(
        template,
        &[
            ("id", &message.id.to_string()),
            ("from", &from(&message.origin)),
            ("about", &about(message)),
            ("body", &inert::frame(&message.body)),
            ("agenda", &agenda(begun.agenda.as_ref())),
            ("answer", &answer(message, mcp_server_name)),
            ("reset", reset),
            ("redelivery", &redelivery(begun)),
            ("pending", &pending(begun.pending_count, mcp_server_name)),
        ],
    );
    tidy(&filled)
}

/// Returns the prompt of a turn that the agent asked for.
pub fn self_continue() -> String {
    tidy(CONTINUE)
}

/// Returns the first words of this message's prompt, the same at every attempt.
pub fn opening(message_id: u64) -> String {
    format!("Message {message_id} from ")
}

/// Removes blank lines at the end.
fn tidy(prompt: &str) -> String {
    format!("{}\n", prompt.trim_end_matches('\n'))
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Agent(name) => format!("agent {name}"),
        // The user on the host is for the operator's own records.
        Origin::Operator(_) => "the operator".to_owned(),
        Origin::System => "Hive itself".to_owned(),
        Origin::External(label) => format!("the program {label} beside you"),
    }
}

fn about(message: &Message) -> String {
    let mut text = String::new();
    if let Some(id) = message.in_reply_to {
        text.push_str(&format!(", in reply to {id}"));
    }
    if message.broadcast {
        text.push_str(", to everyone");
    }
    text.push_str(&notice(message));
    text
}

/// Returns the subject of a message of Hive; empty for any other.
fn notice(message: &Message) -> String {
    let question_id = number(message.question_id, QuestionId::get);
    let reminder_id = number(message.reminder_id, ReminderId::get);
    let Some(kind) = message.system_kind else { return String::new() };
    match kind {
        SystemKind::TurnFailed => ", a notice: a turn of a child of yours failed".to_owned(),
        SystemKind::DeadLetter => {
            ", a notice: a message to a child of yours is given up".to_owned()
        }
        SystemKind::Restarted => ", a notice: you were started anew".to_owned(),
        SystemKind::Unavailable => ", a notice: a child of yours cannot work now".to_owned(),
        SystemKind::QuestionAsked => format!(", question {question_id} for you"),
        SystemKind::QuestionAnswered => format!(", question {question_id} is answered"),
        SystemKind::QuestionExpired => format!(", question {question_id} has expired"),
        SystemKind::QuestionCancelled => format!(", question {question_id} is withdrawn"),
        SystemKind::Reminder => format!(", your reminder {reminder_id}"),
        SystemKind::Problem => {
            ", a notice: something around a child of yours does not work".to_owned()
        }
        SystemKind::Started => ", a notice: a child of yours was started".to_owned(),
        SystemKind::Stopped => ", a notice: a child of yours is stopped".to_owned(),
        SystemKind::Crashed => ", a notice: a child of yours crashed".to_owned(),
        SystemKind::LoggedIn => ", a notice: a child of yours was logged in".to_owned(),
        SystemKind::ActionEnded => ", a notice: an action has ended".to_owned(),
        SystemKind::ScheduleEnded => ", a notice: a schedule has ended".to_owned(),
        SystemKind::Heartbeat => ", your heartbeat".to_owned(),
        SystemKind::Recovered => ", a notice: a child of yours works again".to_owned(),
    }
}

/// Returns the file that a heartbeat brings before the agent; empty for any other message.
fn agenda(agenda: Option<&Agenda>) -> String {
    match agenda {
        None | Some(Agenda::Nothing) => String::new(),
        Some(Agenda::Text(text)) => {
            format!("Your file {FILE}, in your own words:\n{}\n", inert::frame(text.trim_end()))
        }
        Some(Agenda::Unread(why)) => {
            let why = inert::one_line(why, ERROR_CHARS_MAX);
            format!("({FILE} was not read: {why}.)\n")
        }
    }
}

/// Returns the tool with which a question is answered; empty for any other message.
fn answer(message: &Message, mcp_server_name: &str) -> String {
    match (message.system_kind, message.question_id) {
        (Some(SystemKind::QuestionAsked), Some(id)) => {
            format!("(mcp__{mcp_server_name}__answer with id {id} answers it)\n")
        }
        _ => String::new(),
    }
}

fn pending(count: u32, mcp_server_name: &str) -> String {
    match count {
        0 => String::new(),
        1 => format!("(1 more pending: mcp__{mcp_server_name}__recv takes it)\n"),
        more => format!("({more} more pending: mcp__{mcp_server_name}__recv takes them)\n"),
    }
}

fn redelivery(begun: &Begun) -> String {
    let Delivery { attempt, cause, last_error, .. } = &begun.delivery;
    let Some(cause) = *cause else { return String::new() };
    // A repeated attempt keeps its number, and the prompt states that.
    let again = if cause.repeats_attempt() { " again" } else { "" };
    let error = inert::one_line(last_error, ERROR_CHARS_MAX);
    let error =
        if error.is_empty() { error } else { format!(" It said:\n{}{error}", inert::FRAME) };
    placeholders::fill(
        REDELIVERY,
        &[
            ("attempt", &format!("{attempt}{again}")),
            ("cause", cause_text(cause)),
            ("error", &error),
            ("sent", &earlier::render(begun)),
        ],
    )
}

fn cause_text(cause: RedeliveryCause) -> &'static str {
    use RedeliveryCause as Cause;
    match cause {
        Cause::TurnFailed => "the last turn failed",
        Cause::HarnessVanished => "the last turn was cut off",
        Cause::RateLimited => "the last turn hit the model's rate limit",
        Cause::AuthFailed => "the last turn found no valid login",
        Cause::Unavailable => "the last turn could not run to its end, the model was not available",
        Cause::Drained => "the last turn was cut off by a restart",
        Cause::Released => "the operator stopped the last turn and has released the message now",
        Cause::Redriven => "it had been given up, and the operator sends it round again",
        Cause::NotReceived => "its last delivery did not reach you",
        Cause::Nacked => "it was given back",
        Cause::LeaseExpired => "it was taken and not finished in time",
        Cause::Restored => "the hive was restored from a backup",
    }
}

#[cfg(test)]
#[path = "trigger_tests.rs"]
mod tests;

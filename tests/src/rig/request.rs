//! Requests as most tests make them: a fresh id, what the test is about, and nothing else set.
//!
//! Invariant: no other test names every field of a request that is made here. Where a test needs
//! one more field, it takes the rest from here: `SendMessageRequest { in_reply_to, ..send(..) }`.

use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::{
    AnswerQuestionRequest, AskQuestionRequest, BeginTurnRequest, CancelQuestionRequest, Command,
    CreateAgentRequest, CreateReminderRequest, CreateScheduleEffect, Effect, EndTurnRequest,
    ReceiveMessagesRequest, RetireAgentRequest, SendCommandRequest, SendMessageRequest, TurnKind,
    TurnOutcome, WakeRequest, command, effect,
};

use super::{fresh_id, process_token, to};

/// Texts as a field takes them: options, choices, names.
pub fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// A message to a recipient, written as for [`to`].
pub fn send(recipient: &str, body: impl Into<String>) -> SendMessageRequest {
    SendMessageRequest {
        request_id: fresh_id(),
        to: to(recipient),
        body: body.into(),
        ..SendMessageRequest::default()
    }
}

/// A question to a target, written as for [`to`].
pub fn ask(target: &str, text: &str) -> AskQuestionRequest {
    AskQuestionRequest {
        request_id: fresh_id(),
        to: to(target),
        text: text.to_owned(),
        ..AskQuestionRequest::default()
    }
}

/// A request for a schedule that sends this text to one agent in a day, and then each day.
pub fn schedule(target: &str, body: &str) -> AskQuestionRequest {
    let day = 24 * 3600;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    let create = CreateScheduleEffect {
        body: body.to_owned(),
        targets: vec![target.to_owned()],
        first_time: Some(prost_types::Timestamp {
            seconds: i64::try_from(now).expect("a time") + day,
            nanos: 0,
        }),
        interval: Some(prost_types::Duration { seconds: day, nanos: 0 }),
        ..CreateScheduleEffect::default()
    };
    effect(effect::Effect::CreateSchedule(create))
}

/// A request to the operator for an effect.
pub fn effect(effect: effect::Effect) -> AskQuestionRequest {
    let effect = Some(Effect { effect: Some(effect) });
    AskQuestionRequest { effect, ..ask("operator", "it is asked for") }
}

pub fn answer(question_id: u64, text: &str) -> AnswerQuestionRequest {
    AnswerQuestionRequest {
        request_id: fresh_id(),
        question_id,
        text: text.to_owned(),
        ..AnswerQuestionRequest::default()
    }
}

pub fn withdraw(question_id: u64) -> CancelQuestionRequest {
    CancelQuestionRequest { request_id: fresh_id(), question_id }
}

pub fn remind(body: &str, due: Due) -> CreateReminderRequest {
    CreateReminderRequest { request_id: fresh_id(), body: body.to_owned(), due: Some(due) }
}

/// The begin of a turn for mail, by a process with a fresh token.
pub fn begin() -> BeginTurnRequest {
    BeginTurnRequest {
        request_id: fresh_id(),
        process_token: process_token(),
        kind: TurnKind::Mail.into(),
        ..BeginTurnRequest::default()
    }
}

/// The end of a turn.
pub fn end_turn(turn_id: u64, outcome: TurnOutcome) -> EndTurnRequest {
    EndTurnRequest {
        request_id: fresh_id(),
        turn_id,
        outcome: outcome.into(),
        ..EndTurnRequest::default()
    }
}

/// A lease of the next message, without waiting.
pub fn receive() -> ReceiveMessagesRequest {
    ReceiveMessagesRequest { request_id: fresh_id(), ..ReceiveMessagesRequest::default() }
}

/// A request to receive that waits up to a minute.
pub fn receive_waiting() -> ReceiveMessagesRequest {
    let wait = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    ReceiveMessagesRequest { wait, ..receive() }
}

/// A message of a program beside an agent.
pub fn wake(label: &str, body: impl Into<String>) -> WakeRequest {
    let (label, body) = (label.to_owned(), body.into());
    WakeRequest { request_id: fresh_id(), label, body, ..WakeRequest::default() }
}

/// A new root agent.
pub fn create_agent(name: &str) -> CreateAgentRequest {
    let name = name.to_owned();
    CreateAgentRequest { request_id: fresh_id(), name, ..CreateAgentRequest::default() }
}

/// The removal of an agent that keeps its mail.
pub fn retire_agent(name: &str) -> RetireAgentRequest {
    RetireAgentRequest {
        request_id: fresh_id(),
        name: name.to_owned(),
        ..RetireAgentRequest::default()
    }
}

/// An order to an agent's harness.
pub fn order(agent: &str, order: command::Command) -> SendCommandRequest {
    let command = Some(Command { command: Some(order), ..Command::default() });
    SendCommandRequest { request_id: fresh_id(), agent: agent.to_owned(), command }
}

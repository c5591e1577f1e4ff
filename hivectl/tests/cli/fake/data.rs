//! The hive of the script: ada, her child bob, one question that was answered, one that died.

use hive_proto::v1::{
    Agent, AgentSource, Delivery, DeliveryState, Event, EventKind, HarnessState, Isolation,
    KickOnStart, Lane, Message, Origin, OriginKind, Park, Policy, RedeliveryCause, SystemKind,
    Turn, TurnKind, TurnOutcome, TurnUsage,
};
use prost_types::Timestamp;

/// Noon of 2020-03-01 UTC, and so many milliseconds.
pub(crate) fn at(millis: i64) -> Option<Timestamp> {
    let nanos = i32::try_from(millis.rem_euclid(1000)).expect("below 1000") * 1_000_000;
    Some(Timestamp { seconds: 1_583_064_000 + millis.div_euclid(1000), nanos })
}

fn text(text: &str) -> String {
    text.to_owned()
}

pub(crate) fn agents() -> Vec<Agent> {
    vec![
        Agent {
            name: text("ada"),
            role: text("leads"),
            source: AgentSource::File.into(),
            state: HarnessState::Thinking.into(),
            state_time: at(1000),
            running: true,
            status_text: text("sorting\u{1b}[31m the mail"),
            status_time: at(1500),
            model: text("opus"),
            model_in_use: text("claude-opus-5"),
            context_tokens: 12_000,
            context_window_tokens: 200_000,
            hive_name: text("duo"),
            revision: text("0.1.0"),
            policy: Some(Policy {
                tool_groups: vec![text("messaging"), text("inbox")],
                ..Policy::default()
            }),
            ready_count: 2,
            isolation: Isolation::None.into(),
            open_turn_id: 21,
            context_time: at(900),
            available_models: vec![text("opus"), text("haiku"), text("claude opus")],
            kick_on_start: KickOnStart::Interrupted.into(),
            ..Agent::default()
        },
        Agent {
            name: text("bob"),
            parent: text("ada"),
            source: AgentSource::Runtime.into(),
            state: HarnessState::RateLimited.into(),
            state_time: at(2000),
            running: true,
            policy: Some(Policy {
                tool_groups: vec![text("messaging")],
                allowed_recipients: vec![text("ada")],
                questions_open_max: Some(5),
                sender_stored_bytes_max: Some(1_000_000),
                ..Policy::default()
            }),
            park: Some(Park {
                cause: TurnOutcome::RateLimited.into(),
                until_time: at(3_600_000),
                error: text("429"),
                remaining: None,
            }),
            dead_count: 1,
            isolation: Isolation::Partly.into(),
            isolation_notes: vec![text("the socket @/tmp/.X11-unix/X0 can be reached\u{1b}[31m")],
            ..Agent::default()
        },
    ]
}

pub(crate) fn question() -> Message {
    Message {
        id: 10,
        origin: Some(Origin { kind: OriginKind::Operator.into(), name: text("uid 1000 (eve)") }),
        recipients: vec![text("ada")],
        body: text("What is six times seven?"),
        accept_time: at(0),
        ..Message::default()
    }
}

pub(crate) fn answer() -> Message {
    Message {
        id: 14,
        origin: Some(Origin { kind: OriginKind::Agent.into(), name: text("ada") }),
        recipients: vec![text("operator")],
        body: text("It is 42.\nI asked bob.\u{1b}]0;owned\u{7}"),
        in_reply_to: 10,
        accept_time: at(2500),
        turn_id: 11,
        ..Message::default()
    }
}

pub(crate) fn notice() -> Message {
    Message {
        id: 16,
        origin: Some(Origin { kind: OriginKind::System.into(), name: String::new() }),
        recipients: vec![text("operator")],
        body: text("ada cannot run turns"),
        accept_time: at(4000),
        system_kind: SystemKind::Unavailable.into(),
        ..Message::default()
    }
}

fn poison() -> Message {
    Message {
        id: 12,
        origin: Some(Origin { kind: OriginKind::External.into(), name: text("matrix.room") }),
        recipients: vec![text("bob")],
        body: text("poison"),
        accept_time: at(1000),
        coalescing_key: text("k"),
        ..Message::default()
    }
}

pub(crate) fn message(id: u64) -> Option<Message> {
    [question(), answer(), notice(), poison(), asked()].into_iter().find(|message| message.id == id)
}

/// What brought question 30 to the operator.
fn asked() -> Message {
    Message {
        id: 31,
        origin: Some(Origin { kind: OriginKind::System.into(), name: String::new() }),
        recipients: vec![text("operator")],
        body: text("ada asks you (question 30):\n\nDeploy now?"),
        accept_time: at(10_000),
        system_kind: SystemKind::QuestionAsked.into(),
        question_id: 30,
        ..Message::default()
    }
}

/// The operator's mail.
pub(crate) fn mail() -> Vec<Delivery> {
    [answer(), notice(), asked()]
        .into_iter()
        .map(|message| Delivery {
            state_time: message.accept_time,
            message: Some(message),
            agent: text("operator"),
            state: DeliveryState::Ready.into(),
            lane: Lane::Normal.into(),
            attempt: 1,
            ..Delivery::default()
        })
        .collect()
}

/// What ada's cancelled turn held.
pub(crate) fn held() -> Vec<Delivery> {
    vec![Delivery {
        message: Some(question()),
        agent: text("ada"),
        state: DeliveryState::Held.into(),
        lane: Lane::Normal.into(),
        attempt: 1,
        turn_id: 21,
        state_time: at(5000),
        ..Delivery::default()
    }]
}

pub(crate) fn dead_letters() -> Vec<Delivery> {
    vec![Delivery {
        message: Some(poison()),
        agent: text("bob"),
        state: DeliveryState::Dead.into(),
        lane: Lane::Normal.into(),
        attempt: 5,
        redelivery_cause: RedeliveryCause::TurnFailed.into(),
        last_error: text("claude exited with 1"),
        output_tail: text("first line\nlast \u{1b}[31mline"),
        turn_id: 13,
        state_time: at(9000),
        ..Delivery::default()
    }]
}

pub(crate) fn turns() -> Vec<Turn> {
    vec![
        Turn {
            id: 21,
            agent: text("ada"),
            kind: TurnKind::Continue.into(),
            conversation: text("main"),
            session_epoch: 3,
            start_time: at(6000),
            ..Turn::default()
        },
        Turn {
            id: 11,
            agent: text("ada"),
            kind: TurnKind::Mail.into(),
            conversation: text("main"),
            session_epoch: 3,
            message_id: 10,
            attempt: 1,
            outcome: TurnOutcome::Ok.into(),
            start_time: at(100),
            end_time: at(3100),
            usage: Some(TurnUsage {
                input_tokens: 10,
                cache_read_tokens: 2000,
                cache_creation_tokens: 300,
                output_tokens: 55,
                cost_micro_usd: 1234,
                inference_count: 2,
                tool_call_count: 1,
            }),
            model: text("opus"),
            context_tokens: 12_000,
            context_window_tokens: 200_000,
            sent_message_ids: vec![14],
            ..Turn::default()
        },
        Turn {
            id: 13,
            agent: text("bob"),
            kind: TurnKind::Mail.into(),
            conversation: text("main"),
            session_epoch: 1,
            message_id: 12,
            attempt: 5,
            outcome: TurnOutcome::Failed.into(),
            start_time: at(8000),
            end_time: at(8400),
            error: text("claude exited with 1"),
            output_tail: text("last line"),
            ..Turn::default()
        },
    ]
}

pub(crate) fn events() -> Vec<Event> {
    let event =
        |sequence, kind: EventKind, millis, agent: &str, message_id, turn_id, detail: &str| Event {
            sequence,
            kind: kind.into(),
            time: at(millis),
            agent: text(agent),
            message_id,
            turn_id,
            detail: text(detail),
            ..Event::default()
        };
    vec![
        event(1, EventKind::HarnessAttached, -500, "ada", 0, 0, "epoch 3"),
        event(2, EventKind::MessageAccepted, 0, "ada", 10, 0, ""),
        event(3, EventKind::TurnBegun, 100, "ada", 10, 11, ""),
        event(4, EventKind::DeliveryLeased, 100, "ada", 10, 11, ""),
        event(5, EventKind::MessageAccepted, 1000, "bob", 12, 0, ""),
        event(6, EventKind::MessageAccepted, 2500, "operator", 14, 11, ""),
        event(7, EventKind::DeliveryAcked, 3100, "ada", 10, 11, ""),
        event(8, EventKind::TurnEnded, 3100, "ada", 0, 11, "ok"),
        event(9, EventKind::DeliveryAcked, 7000, "operator", 14, 0, "by uid 1000 (eve)"),
        Event {
            question_id: 30,
            ..event(10, EventKind::MessageAccepted, 10_000, "operator", 31, 21, "from system")
        },
        Event {
            question_id: 30,
            ..event(11, EventKind::QuestionAsked, 10_000, "ada", 31, 21, "to operator")
        },
        Event {
            reminder_id: 51,
            ..event(12, EventKind::ReminderSet, 11_000, "ada", 0, 22, "due 2100-01-01T00:00:00Z")
        },
        Event {
            question_id: 33,
            ..event(
                13,
                EventKind::QuestionAnswered,
                12_000,
                "ada",
                0,
                0,
                "answered by uid 1000 (eve)",
            )
        },
    ]
}

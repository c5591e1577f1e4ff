//! Translations from the wire into the types of the history.
//!
//! Invariant: nothing that a rule reads is left out. A value that the contract does not have is a
//! violation, and so a panic.

use hive_history::{
    self as history, ApprovalSeen, Cause, Handed, Kind, Lane, Origin, Outcome, QuestionSeen,
    QuestionState, ReminderState, Reply, State,
};
use hive_proto::v1;

/// Converts a time to ms.
pub(crate) fn ms(time: Option<&prost_types::Timestamp>) -> i64 {
    time.map_or(0, |time| time.seconds * 1000 + i64::from(time.nanos) / 1_000_000)
}

pub(crate) fn timestamp(ms: i64) -> prost_types::Timestamp {
    let nanos = i32::try_from(ms.rem_euclid(1000) * 1_000_000).expect("below a second");
    prost_types::Timestamp { seconds: ms.div_euclid(1000), nanos }
}

pub(crate) fn state(state: v1::DeliveryState) -> State {
    match state {
        v1::DeliveryState::Unspecified => panic!("a delivery has a state"),
        v1::DeliveryState::Ready => State::Ready,
        v1::DeliveryState::Leased => State::Leased,
        v1::DeliveryState::Held => State::Held,
        v1::DeliveryState::Dead => State::Dead,
        v1::DeliveryState::Acked => State::Acked,
        v1::DeliveryState::Dropped => State::Dropped,
        v1::DeliveryState::Superseded => State::Superseded,
    }
}

fn cause(cause: v1::RedeliveryCause) -> Option<Cause> {
    match cause {
        v1::RedeliveryCause::Unspecified => None,
        v1::RedeliveryCause::TurnFailed => Some(Cause::TurnFailed),
        v1::RedeliveryCause::HarnessVanished => Some(Cause::HarnessVanished),
        v1::RedeliveryCause::RateLimited => Some(Cause::RateLimited),
        v1::RedeliveryCause::AuthFailed => Some(Cause::AuthFailed),
        v1::RedeliveryCause::Unavailable => Some(Cause::Unavailable),
        v1::RedeliveryCause::Drained => Some(Cause::Drained),
        v1::RedeliveryCause::Released => Some(Cause::Released),
        v1::RedeliveryCause::Redriven => Some(Cause::Redriven),
        v1::RedeliveryCause::NotReceived => Some(Cause::NotReceived),
        v1::RedeliveryCause::Nacked => Some(Cause::Nacked),
        v1::RedeliveryCause::LeaseExpired => Some(Cause::LeaseExpired),
        v1::RedeliveryCause::Restored => Some(Cause::Restored),
    }
}

fn lane(lane: v1::Lane) -> Lane {
    match lane {
        v1::Lane::Unspecified => panic!("a delivery has a lane"),
        v1::Lane::System => Lane::System,
        v1::Lane::Normal => Lane::Normal,
    }
}

fn origin(message: &v1::Message) -> Origin {
    let origin = message.origin.clone().unwrap_or_default();
    match origin.kind() {
        v1::OriginKind::Unspecified => panic!("a message has an origin"),
        v1::OriginKind::Agent => Origin::Agent(origin.name),
        v1::OriginKind::Operator => Origin::Operator,
        v1::OriginKind::External => Origin::External(origin.name),
        v1::OriginKind::System => Origin::System(kind(message.system_kind())),
    }
}

fn kind(kind: v1::SystemKind) -> Kind {
    match kind {
        v1::SystemKind::Unspecified => panic!("a message of the broker has a kind"),
        v1::SystemKind::TurnFailed => Kind::TurnFailed,
        v1::SystemKind::DeadLetter => Kind::DeadLetter,
        v1::SystemKind::Restarted => Kind::Restarted,
        v1::SystemKind::Unavailable => Kind::Unavailable,
        v1::SystemKind::QuestionAsked => Kind::QuestionAsked,
        v1::SystemKind::QuestionAnswered => Kind::QuestionAnswered,
        v1::SystemKind::QuestionExpired => Kind::QuestionExpired,
        v1::SystemKind::QuestionCancelled => Kind::QuestionCancelled,
        v1::SystemKind::Reminder => Kind::Reminder,
        v1::SystemKind::Problem => Kind::Problem,
        v1::SystemKind::Started => Kind::Started,
        v1::SystemKind::Stopped => Kind::Stopped,
        v1::SystemKind::Crashed => Kind::Crashed,
        v1::SystemKind::LoggedIn => Kind::LoggedIn,
        v1::SystemKind::Recovered => Kind::Recovered,
        v1::SystemKind::ActionEnded => Kind::ActionEnded,
        v1::SystemKind::ScheduleEnded => Kind::ScheduleEnded,
        v1::SystemKind::Heartbeat => Kind::Heartbeat,
    }
}

fn handed(delivery: &v1::Delivery, token: &str) -> Handed {
    let message = delivery.message.clone().unwrap_or_default();
    Handed {
        agent: delivery.agent.clone(),
        message: message.id,
        origin: origin(&message),
        reply_to: message.in_reply_to,
        lane: lane(delivery.lane()),
        attempt: delivery.attempt,
        cause: cause(delivery.redelivery_cause()),
        token: token.to_owned(),
        question: message.question_id,
        reminder: message.reminder_id,
        body: message.body,
    }
}

pub(crate) fn leased(leased: &v1::LeasedDelivery) -> Handed {
    handed(leased.delivery.as_ref().expect("a lease is of a delivery"), &leased.lease_token)
}

pub(crate) fn turn(turn: Option<&v1::Turn>, delivery: Option<&v1::Delivery>) -> Reply {
    let turn = turn.expect("a turn has begun");
    Reply::Turn {
        turn: turn.id,
        epoch: turn.session_epoch,
        delivery: delivery.map(|delivery| handed(delivery, "")),
    }
}

pub(crate) fn wire_outcome(outcome: Outcome) -> v1::TurnOutcome {
    match outcome {
        Outcome::Ok => v1::TurnOutcome::Ok,
        Outcome::Failed => v1::TurnOutcome::Failed,
        Outcome::RateLimited => v1::TurnOutcome::RateLimited,
        Outcome::AuthFailed => v1::TurnOutcome::AuthFailed,
        Outcome::Unavailable => v1::TurnOutcome::Unavailable,
        Outcome::Cancelled => v1::TurnOutcome::Cancelled,
        Outcome::Drained => v1::TurnOutcome::Drained,
        Outcome::Vanished => v1::TurnOutcome::Vanished,
        Outcome::Fenced => v1::TurnOutcome::Fenced,
    }
}

fn outcome(outcome: v1::TurnOutcome) -> Option<Outcome> {
    match outcome {
        v1::TurnOutcome::Unspecified => None,
        v1::TurnOutcome::Ok => Some(Outcome::Ok),
        v1::TurnOutcome::Failed => Some(Outcome::Failed),
        v1::TurnOutcome::RateLimited => Some(Outcome::RateLimited),
        v1::TurnOutcome::AuthFailed => Some(Outcome::AuthFailed),
        v1::TurnOutcome::Unavailable => Some(Outcome::Unavailable),
        v1::TurnOutcome::Cancelled => Some(Outcome::Cancelled),
        v1::TurnOutcome::Drained => Some(Outcome::Drained),
        v1::TurnOutcome::Vanished => Some(Outcome::Vanished),
        v1::TurnOutcome::Fenced => Some(Outcome::Fenced),
    }
}

pub(crate) fn question(question: &v1::Question) -> QuestionSeen {
    let state = match question.state() {
        v1::QuestionState::Unspecified => panic!("a question has a state"),
        v1::QuestionState::Open => QuestionState::Open,
        v1::QuestionState::Answered => QuestionState::Answered,
        v1::QuestionState::Expired => QuestionState::Expired,
        v1::QuestionState::Cancelled => QuestionState::Cancelled,
    };
    let answer = question.answer.clone().unwrap_or_default();
    let approval = question.approval.as_ref().map(|approval| {
        let changes = approval.changes.iter().map(change).collect();
        Box::new(ApprovalSeen { changes, digest: approval.diff_digest.clone() })
    });
    // The operator is named by uid and name here.
    let by_operator = question.closed_by.starts_with("uid ");
    QuestionSeen {
        id: question.id,
        asker: question.asker.clone(),
        target: question.target.clone(),
        text: question.text.clone(),
        state,
        choices: answer.choices,
        answer: answer.text,
        closed_by: if by_operator { "operator".to_owned() } else { question.closed_by.clone() },
        operator_override: question.operator_override,
        deadline: question.deadline_time.as_ref().map(|time| ms(Some(time))),
        message: question.message_id,
        approval,
    }
}

fn change(change: &v1::EffectChange) -> String {
    let v1::EffectChange { field, before, after, exceeds } = change;
    format!("{field}: {before:?}, then {after:?} {exceeds}")
}

pub(crate) fn message(message: &v1::Message) -> history::Message {
    history::Message {
        id: message.id,
        origin: origin(message),
        recipients: message.recipients.clone(),
        recipient_count: message.recipient_count,
        body: message.body.clone(),
        reply_to: message.in_reply_to,
        turn: message.turn_id,
        key: message.coalescing_key.clone(),
        question: message.question_id,
        reminder: message.reminder_id,
    }
}

pub(crate) fn delivery(delivery: &v1::Delivery) -> history::Delivery {
    history::Delivery {
        agent: delivery.agent.clone(),
        message: delivery.message.as_ref().map_or(0, |message| message.id),
        state: state(delivery.state()),
        lane: lane(delivery.lane()),
        attempt: delivery.attempt,
        cause: cause(delivery.redelivery_cause()),
    }
}

pub(crate) fn reminder(reminder: &v1::Reminder) -> history::Reminder {
    let state = match reminder.state() {
        v1::ReminderState::Unspecified => panic!("a reminder has a state"),
        v1::ReminderState::Pending => ReminderState::Pending,
        v1::ReminderState::Fired => ReminderState::Fired,
        v1::ReminderState::Cancelled => ReminderState::Cancelled,
    };
    history::Reminder {
        id: reminder.id,
        agent: reminder.agent.clone(),
        body: reminder.body.clone(),
        state,
        due: ms(reminder.due_time.as_ref()),
        closed: ms(reminder.close_time.as_ref()),
        message: reminder.message_id,
    }
}

pub(crate) fn ended_turn(turn: &v1::Turn) -> history::Turn {
    history::Turn {
        id: turn.id,
        agent: turn.agent.clone(),
        epoch: turn.session_epoch,
        message: turn.message_id,
        attempt: turn.attempt,
        outcome: outcome(turn.outcome()),
        received: turn.received_message_ids.clone(),
        sent: turn.sent_message_ids.clone(),
    }
}

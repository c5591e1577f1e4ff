//! Translations of the engine's answers into the types of the history.

use hive_core::delivery::{Delivery, Lane, RedeliveryCause, State};
use hive_core::effect::Change;
use hive_core::id::{MessageId, QuestionId, ReminderId};
use hive_core::message::{Origin, SystemKind};
use hive_core::question::{self, Question};
use hive_core::turn::Outcome;
use hive_history as history;

pub(crate) fn outcome(outcome: Outcome) -> history::Outcome {
    match outcome {
        Outcome::Ok => history::Outcome::Ok,
        Outcome::Failed => history::Outcome::Failed,
        Outcome::RateLimited => history::Outcome::RateLimited,
        Outcome::AuthFailed => history::Outcome::AuthFailed,
        Outcome::Unavailable => history::Outcome::Unavailable,
        Outcome::Cancelled => history::Outcome::Cancelled,
        Outcome::Drained => history::Outcome::Drained,
        Outcome::Vanished => history::Outcome::Vanished,
        Outcome::Fenced => history::Outcome::Fenced,
    }
}

pub(crate) fn state(state: State) -> history::State {
    match state {
        State::Ready => history::State::Ready,
        State::Leased => history::State::Leased,
        State::Held => history::State::Held,
        State::Dead => history::State::Dead,
        State::Acked => history::State::Acked,
        State::Dropped => history::State::Dropped,
        State::Superseded => history::State::Superseded,
    }
}

pub(crate) fn lane(lane: Lane) -> history::Lane {
    match lane {
        Lane::System => history::Lane::System,
        Lane::Normal => history::Lane::Normal,
    }
}

pub(crate) fn cause(cause: RedeliveryCause) -> history::Cause {
    use history::Cause;
    match cause {
        RedeliveryCause::TurnFailed => Cause::TurnFailed,
        RedeliveryCause::HarnessVanished => Cause::HarnessVanished,
        RedeliveryCause::RateLimited => Cause::RateLimited,
        RedeliveryCause::AuthFailed => Cause::AuthFailed,
        RedeliveryCause::Unavailable => Cause::Unavailable,
        RedeliveryCause::Drained => Cause::Drained,
        RedeliveryCause::Released => Cause::Released,
        RedeliveryCause::Redriven => Cause::Redriven,
        RedeliveryCause::NotReceived => Cause::NotReceived,
        RedeliveryCause::Nacked => Cause::Nacked,
        RedeliveryCause::LeaseExpired => Cause::LeaseExpired,
        RedeliveryCause::Restored => Cause::Restored,
    }
}

fn kind(kind: SystemKind) -> history::Kind {
    use history::Kind;
    match kind {
        SystemKind::TurnFailed => Kind::TurnFailed,
        SystemKind::DeadLetter => Kind::DeadLetter,
        SystemKind::Restarted => Kind::Restarted,
        SystemKind::Unavailable => Kind::Unavailable,
        SystemKind::QuestionAsked => Kind::QuestionAsked,
        SystemKind::QuestionAnswered => Kind::QuestionAnswered,
        SystemKind::QuestionExpired => Kind::QuestionExpired,
        SystemKind::QuestionCancelled => Kind::QuestionCancelled,
        SystemKind::Reminder => Kind::Reminder,
        SystemKind::Problem => Kind::Problem,
        SystemKind::Started => Kind::Started,
        SystemKind::Stopped => Kind::Stopped,
        SystemKind::Crashed => Kind::Crashed,
        SystemKind::LoggedIn => Kind::LoggedIn,
        SystemKind::Recovered => Kind::Recovered,
        SystemKind::ActionEnded => Kind::ActionEnded,
        SystemKind::ScheduleEnded => Kind::ScheduleEnded,
        SystemKind::Heartbeat => Kind::Heartbeat,
    }
}

pub(crate) fn origin(origin: &Origin, system: Option<SystemKind>) -> history::Origin {
    match origin {
        Origin::Agent(name) => history::Origin::Agent(name.to_string()),
        Origin::Operator(_) => history::Origin::Operator,
        Origin::System => history::Origin::System(system.map_or(history::Kind::Problem, kind)),
        Origin::External(label) => history::Origin::External(label.to_string()),
    }
}

pub(crate) fn handed(delivery: &Delivery, token: Option<&str>) -> history::Handed {
    let message = &delivery.message;
    history::Handed {
        agent: delivery.agent.clone(),
        message: message.id.get(),
        origin: origin(&message.origin, message.system_kind),
        body: message.body.clone(),
        reply_to: message.in_reply_to.map_or(0, MessageId::get),
        lane: lane(delivery.lane),
        attempt: delivery.attempt,
        cause: delivery.cause.map(cause),
        token: token.unwrap_or_default().to_owned(),
        question: message.question_id.map_or(0, QuestionId::get),
        reminder: message.reminder_id.map_or(0, ReminderId::get),
    }
}

/// All operators are one to other callers.
fn closer(who: &str) -> String {
    if who.starts_with("uid ") { "operator".to_owned() } else { who.to_owned() }
}

pub(crate) fn question(question: &Question) -> history::QuestionSeen {
    let approval = question.approval.as_ref().map(|approval| {
        let (changes, digest) = (changes(&approval.changes), approval.diff_digest.clone());
        Box::new(history::ApprovalSeen { changes, digest })
    });
    history::QuestionSeen {
        id: question.id.get(),
        asker: question.asker.clone(),
        target: question.target.clone(),
        text: question.wording.text.clone(),
        state: match question.state {
            question::State::Open => history::QuestionState::Open,
            question::State::Answered => history::QuestionState::Answered,
            question::State::Expired => history::QuestionState::Expired,
            question::State::Cancelled => history::QuestionState::Cancelled,
        },
        choices: question.answer.as_ref().map(|answer| answer.choices.clone()).unwrap_or_default(),
        answer: question.answer.as_ref().map(|answer| answer.text.clone()).unwrap_or_default(),
        closed_by: closer(&question.closed_by),
        operator_override: question.operator_override,
        deadline: question.deadline_time.map(|time| time.0),
        message: question.message_id.map_or(0, MessageId::get),
        approval,
    }
}

/// Returns the changed values of a diff, a line each. The number of a new schedule is left out: it
/// exists only once the effect is applied.
pub(crate) fn changes(changes: &[Change]) -> Vec<String> {
    let shown = changes.iter().filter(|change| change.field != "schedule.id");
    let line = |change: &Change| {
        let Change { field, before, after, exceeds } = change;
        format!("{field}: {before:?}, then {after:?} {exceeds}")
    };
    shown.map(line).collect()
}

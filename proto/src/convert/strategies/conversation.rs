//! Questions, reminders and loose ends.

use hive_core::loose_end::{self, LooseEnd};
use hive_core::message::SystemKind;
use hive_core::question::{self, Answer, Question, Wording};
use hive_core::reminder::{self, Reminder};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::effect::approval;
use super::{agent_name, message_id, question_id, reminder_id, text, turn_id, wall_time};

pub(in crate::convert) fn question() -> impl Strategy<Value = Question> {
    use question::State::{Answered, Cancelled, Expired, Open};
    let wording = (text(), vec(text(), 0..4), any::<bool>())
        .prop_map(|(text, options, multi)| Wording { text, options, multi });
    (
        (
            question_id(),
            text(),
            text(),
            wording,
            select(vec![Open, Answered, Expired, Cancelled]),
            wall_time(),
        ),
        (
            option::of(wall_time()),
            option::of(answer()),
            text(),
            any::<bool>(),
            option::of(wall_time()),
        ),
        (
            option::of(turn_id()),
            option::of(message_id()),
            option::of(approval().prop_map(Box::new)),
        ),
    )
        .prop_map(
            |(
                (id, asker, target, wording, state, create_time),
                (deadline_time, answer, closed_by, operator_override, close_time),
                (turn_id, message_id, approval),
            )| Question {
                id,
                asker,
                target,
                wording,
                state,
                create_time,
                deadline_time,
                answer,
                closed_by,
                operator_override,
                close_time,
                turn_id,
                message_id,
                approval,
            },
        )
}

fn answer() -> impl Strategy<Value = Answer> {
    (vec(text(), 0..4), text()).prop_map(|(choices, text)| Answer { choices, text })
}

pub(in crate::convert) fn reminder() -> impl Strategy<Value = Reminder> {
    use reminder::State::{Cancelled, Fired, Pending};
    (
        (
            reminder_id(),
            agent_name(),
            text(),
            select(vec![Pending, Fired, Cancelled]),
            wall_time(),
            wall_time(),
        ),
        (option::of(wall_time()), option::of(message_id()), option::of(turn_id())),
    )
        .prop_map(
            |(
                (id, agent, body, state, create_time, due_time),
                (close_time, message_id, turn_id),
            )| Reminder {
                id,
                agent,
                body,
                state,
                create_time,
                due_time,
                close_time,
                message_id,
                turn_id,
            },
        )
}

pub(in crate::convert) fn loose_end() -> impl Strategy<Value = LooseEnd> {
    use loose_end::Kind::{Approval, DeadLetter, External, QuestionAsked, QuestionOwed, Reminder};
    (
        (
            select(vec![QuestionAsked, QuestionOwed, Reminder, DeadLetter, External, Approval]),
            1..=u64::MAX,
            text(),
            text(),
        ),
        (text(), wall_time(), option::of(wall_time()), text()),
    )
        .prop_map(|((kind, id, agent, peer), (text, create_time, due_time, key))| LooseEnd {
            kind,
            id,
            agent,
            peer,
            text,
            create_time,
            due_time,
            key,
        })
}

/// Generates the kind of a notice.
pub(super) fn system_kind() -> impl Strategy<Value = SystemKind> {
    select(vec![
        SystemKind::TurnFailed,
        SystemKind::DeadLetter,
        SystemKind::Restarted,
        SystemKind::Unavailable,
        SystemKind::QuestionAsked,
        SystemKind::QuestionAnswered,
        SystemKind::QuestionExpired,
        SystemKind::QuestionCancelled,
        SystemKind::Reminder,
        SystemKind::Problem,
        SystemKind::Started,
        SystemKind::Stopped,
        SystemKind::Crashed,
        SystemKind::LoggedIn,
        SystemKind::Recovered,
        SystemKind::ActionEnded,
        SystemKind::ScheduleEnded,
        SystemKind::Heartbeat,
    ])
}

//! What is open in the hive of the script: questions, reminders, loose ends.

use hive_proto::v1::{
    Answer, LooseEnd, LooseEndKind, Question, QuestionState, Reminder, ReminderState,
};
use prost_types::Timestamp;

use super::data::at;

/// A deadline that no run of the tests comes near.
fn far() -> Option<Timestamp> {
    Some(Timestamp { seconds: 4_102_444_800, nanos: 0 })
}

fn question(id: u64, asker: &str, target: &str, text: &str) -> Question {
    Question {
        id,
        asker: asker.to_owned(),
        target: target.to_owned(),
        text: text.to_owned(),
        state: QuestionState::Open.into(),
        create_time: at(10_000),
        message_id: id + 1,
        ..Question::default()
    }
}

fn options(options: &[&str]) -> Vec<String> {
    options.iter().map(|option| (*option).to_owned()).collect()
}

/// Waits for the operator.
pub(crate) fn deploy() -> Question {
    let text = "Deploy now?\nThe build is \u{1b}[31mgreen.";
    Question {
        options: options(&["yes", "no"]),
        deadline_time: far(),
        turn_id: 21,
        ..question(30, "ada", "operator", text)
    }
}

/// The same with an outcome.
pub(crate) fn closed(question: Question, state: QuestionState, answer: Option<Answer>) -> Question {
    Question {
        state: state.into(),
        answer,
        closed_by: "uid 1000 (eve)".to_owned(),
        close_time: at(12_000),
        ..question
    }
}

pub(crate) fn answered(question: Question, choices: &[&str], text: &str) -> Question {
    let operator_override = question.target != "operator";
    let answer = Answer { choices: options(choices), text: text.to_owned() };
    Question { operator_override, ..closed(question, QuestionState::Answered, Some(answer)) }
}

/// Newest first.
pub(crate) fn questions() -> Vec<Question> {
    vec![
        Question {
            closed_by: "ada".to_owned(),
            ..closed(question(37, "ada", "bob", "Still there?"), QuestionState::Cancelled, None)
        },
        Question {
            closed_by: String::new(),
            ..closed(question(35, "operator", "bob", "Ready?"), QuestionState::Expired, None)
        },
        Question {
            options: options(&["tests", "docs", "lint"]),
            multi: true,
            ..question(34, "bob", "operator", "What is left?")
        },
        answered(
            Question {
                options: options(&["a", "b"]),
                multi: true,
                ..question(33, "ada", "bob", "Which?")
            },
            &["a", "b"],
            "both\nthen",
        ),
        question(32, "operator", "ada", "How long will it take?"),
        deploy(),
    ]
}

/// A question to the operator with 12 minutes left.
pub(crate) fn pressing() -> Question {
    let due = jiff::Timestamp::now().as_second() + 12 * 60 + 30;
    Question {
        deadline_time: Some(Timestamp { seconds: due, nanos: 0 }),
        ..question(39, "clock", "operator", "Quick?")
    }
}

/// By id.
pub(crate) fn reminders() -> Vec<Reminder> {
    let reminder = |id, agent: &str, state: ReminderState, body: &str| Reminder {
        id,
        agent: agent.to_owned(),
        body: body.to_owned(),
        state: state.into(),
        create_time: at(11_000),
        due_time: at(20_000),
        ..Reminder::default()
    };
    vec![
        Reminder {
            due_time: far(),
            turn_id: 22,
            ..reminder(51, "ada", ReminderState::Pending, "look at the build\nagain")
        },
        Reminder {
            message_id: 53,
            close_time: at(20_000),
            ..reminder(52, "bob", ReminderState::Fired, "stretch")
        },
        Reminder {
            close_time: at(15_000),
            ..reminder(54, "ada", ReminderState::Cancelled, "never mind")
        },
    ]
}

/// By id.
pub(crate) fn loose_ends() -> Vec<LooseEnd> {
    let loose_end = |kind: LooseEndKind, id, agent: &str, peer: &str, text: &str| LooseEnd {
        kind: kind.into(),
        id,
        agent: agent.to_owned(),
        peer: peer.to_owned(),
        text: text.to_owned(),
        create_time: at(10_000),
        ..LooseEnd::default()
    };
    vec![
        loose_end(LooseEndKind::DeadLetter, 12, "ada", "bob", "poison"),
        LooseEnd {
            due_time: far(),
            ..loose_end(LooseEndKind::QuestionAsked, 30, "ada", "operator", "Deploy now?")
        },
        LooseEnd {
            due_time: far(),
            ..loose_end(LooseEndKind::QuestionOwed, 30, "operator", "ada", "Deploy now?")
        },
        LooseEnd {
            due_time: far(),
            ..loose_end(LooseEndKind::Reminder, 51, "ada", "", "look at the build\nagain")
        },
        LooseEnd {
            key: "issue-7".to_owned(),
            ..loose_end(LooseEndKind::External, 60, "bob", "tracker", "issue 7 is yours")
        },
    ]
}

//! Completions of each kind of argument: names, ids, options, models and fixed words.

use std::ffi::OsStr;

use clap_complete::engine::ArgValueCompleter;
use hive_core::agent::{CAPABILITIES, GRANTS, TOOL_GROUPS};
use hive_core::message::OPERATOR;
use hive_proto::v1::{
    Agent, Delivery, DeliveryState, Question, QuestionState, Reminder, ReminderState, Schedule,
    ScheduleState,
};

use super::candidate::{Candidate, fitting, is_plain};
use super::line::Line;
use super::live::{ROWS_MAX, live};
use crate::connect::Broker;
use crate::error::Failure;
use crate::fetch::{self, Whose};
use crate::view::message::Message;
use crate::view::turn::Turn;

pub(crate) fn agents() -> ArgValueCompleter {
    live(|broker, _| async move { names(&broker).await })
}

pub(crate) fn agents_and_operator() -> ArgValueCompleter {
    live(|broker, _| async move {
        let mut names = names(&broker).await?;
        names.push(Candidate::word(OPERATOR));
        Ok(names)
    })
}

pub(super) async fn names(broker: &Broker) -> Result<Vec<Candidate>, Failure> {
    let agents: Vec<Agent> = fetch::agents(broker, false, fetch::ALL).await?;
    Ok(agents.into_iter().map(|agent| Candidate::word(agent.name)).collect())
}

/// Messages that are offered where any would do, the newest first.
const MESSAGES_MAX: usize = 50;

/// Mail that is not settled: of the inbox that the line names, else of the operator.
pub(crate) fn mail() -> ArgValueCompleter {
    live(|broker, line| async move {
        let inbox = line.value::<String>("agent").unwrap_or_else(|| OPERATOR.to_owned());
        let mail = fetch::deliveries(&broker, &inbox, &[], ROWS_MAX).await?;
        Ok(candidates(&line, mail, sender_and_body))
    })
}

/// Offers the mail that is held for the agent of the line.
pub(crate) fn held() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let held = [DeliveryState::Held];
        Ok(candidates(
            &line,
            fetch::deliveries(&broker, &agent, &held, ROWS_MAX).await?,
            sender_and_body,
        ))
    })
}

/// Dead letters, of the inbox that the line names, else of all.
pub(crate) fn dead_letters() -> ArgValueCompleter {
    live(|broker, line| async move {
        let agent = line.value::<String>("agent").unwrap_or_default();
        let letters = fetch::dead_letters(&broker, &agent, ROWS_MAX).await?;
        Ok(candidates(&line, letters, |agent, message| {
            format!("of {agent}, {}", sender_and_body(agent, message))
        }))
    })
}

pub(crate) fn messages() -> ArgValueCompleter {
    live(|broker, _| async move {
        let messages: Vec<Message> = fetch::messages(&broker, 0, MESSAGES_MAX).await?;
        let candidate = |message: Message| {
            let about = format!("{} to {}: {}", message.from, message.to(), message.body);
            Candidate::described(message.id, &about)
        };
        Ok(messages.into_iter().map(candidate).collect())
    })
}

/// Returns the messages that the line does not contain yet.
fn candidates(
    line: &Line,
    deliveries: Vec<Delivery>,
    about: impl Fn(&str, &Message) -> String,
) -> Vec<Candidate> {
    let candidate = |delivery: Delivery| {
        let message = Message::from(delivery.message.unwrap_or_default());
        (!line.has(message.id))
            .then(|| Candidate::described(message.id, &about(&delivery.agent, &message)))
    };
    deliveries.into_iter().filter_map(candidate).collect()
}

fn sender_and_body(_: &str, message: &Message) -> String {
    format!("from {}: {}", message.from, message.body)
}

/// Open questions, those to the operator first.
pub(crate) fn questions() -> ArgValueCompleter {
    live(|broker, line| async move {
        // Everyone's have those to the operator among them; each is offered once.
        let open = [QuestionState::Open];
        let mut questions: Vec<Question> = Vec::new();
        for whose in [Whose::target(OPERATOR), Whose::default()] {
            questions.extend(fetch::questions(&broker, &whose, &open, ROWS_MAX).await?);
        }
        let candidate = |Question { id, asker, target, text, .. }| {
            let whom = if target == OPERATOR { String::new() } else { format!(" {target}") };
            Candidate::described(id, &format!("{asker} asks{whom}: {text}"))
        };
        Ok(questions.into_iter().filter(|question| !line.has(question.id)).map(candidate).collect())
    })
}

/// Offers the options of the question of the line: plain words by their text, others by number.
pub(crate) fn options() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(question_id) = line.value::<u64>("id") else { return Ok(Vec::new()) };
        let options = fetch::question::<Question>(&broker, question_id).await?.options;
        let offered = |(number, option): (usize, &String)| {
            if is_plain(option) {
                return Some(Candidate::word(option));
            }
            // If the number is itself an option, it cannot stand for another one.
            (!options.contains(&number.to_string())).then(|| Candidate::described(number, option))
        };
        Ok((1..).zip(&options).filter_map(offered).collect())
    })
}

pub(crate) fn reminders() -> ArgValueCompleter {
    live(|broker, line| async move {
        let pending = [ReminderState::Pending];
        let reminders: Vec<Reminder> = fetch::reminders(&broker, "", &pending, ROWS_MAX).await?;
        let candidate = |Reminder { id, agent, body, .. }| {
            Candidate::described(id, &format!("of {agent}: {body}"))
        };
        Ok(reminders.into_iter().filter(|reminder| !line.has(reminder.id)).map(candidate).collect())
    })
}

/// Schedules that have not ended.
pub(crate) fn schedules() -> ArgValueCompleter {
    schedules_in(&[])
}

/// Schedules in these states; without states all that have not ended.
pub(crate) fn schedules_in(states: &'static [ScheduleState]) -> ArgValueCompleter {
    live(move |broker, line| async move {
        let schedules: Vec<Schedule> = fetch::schedules(&broker, "", states, ROWS_MAX).await?;
        let candidate = |Schedule { id, owner, body, .. }| {
            Candidate::described(id, &format!("of {owner}: {body}"))
        };
        Ok(schedules.into_iter().filter(|schedule| !line.has(schedule.id)).map(candidate).collect())
    })
}

/// Turns that are offered, the newest first.
const TURNS_MAX: usize = 50;

pub(crate) fn turns_and_agents() -> ArgValueCompleter {
    live(|broker, _| async move {
        let mut offered = names(&broker).await?;
        offered.extend(fetch::turns(&broker, "", TURNS_MAX).await?.iter().map(of_turn));
        Ok(offered)
    })
}

/// Returns the models that the agent of the line may run on, where its configuration names them.
pub(crate) fn models() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(name) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let agent: Agent = fetch::agent(&broker, name).await?;
        Ok(agent
            .available_models
            .into_iter()
            .filter(|model| is_plain(model))
            .map(Candidate::word)
            .collect())
    })
}

/// Returns the open turn of the agent that the line names.
pub(crate) fn open_turns() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let turns: Vec<Turn> = fetch::turns(&broker, &agent, TURNS_MAX).await?;
        Ok(turns.iter().filter(|turn| turn.outcome.is_none()).map(of_turn).collect())
    })
}

fn of_turn(turn: &Turn) -> Candidate {
    Candidate::described(turn.id, &format!("of {}: {}", turn.agent, turn.ending()))
}

pub(crate) fn tool_groups() -> ArgValueCompleter {
    fixed(&TOOL_GROUPS, None)
}

/// Tool groups, and the word that takes them back to the default ones.
pub(crate) fn tool_groups_or_default() -> ArgValueCompleter {
    fixed(&TOOL_GROUPS, Some("default"))
}

pub(crate) fn grants() -> ArgValueCompleter {
    fixed(&GRANTS, None)
}

pub(crate) fn capabilities() -> ArgValueCompleter {
    fixed(&CAPABILITIES, None)
}

fn fixed(words: &'static [&'static str], further: Option<&'static str>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        fitting(current, words.iter().copied().chain(further).map(Candidate::word).collect())
    })
}

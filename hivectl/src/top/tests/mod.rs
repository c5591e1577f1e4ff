//! The screen without a terminal and without a broker: events go in, screens and actions are
//! compared.

mod keys;
mod screens;
mod updates;

use hive_core::time::{BootTime, Now, WallTime};
use hive_proto::v1::{
    Agent, Delivery, DeliveryState, GetBrokerStatusResponse, HarnessState, LooseEnd, LooseEndKind,
    Message, Origin, OriginKind, Park, Question, SystemKind, TurnOutcome,
};
use jiff::tz::TimeZone;
use prost_types::Timestamp;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::hive::Reading;
use super::key::{Key, Move};
use super::state::State;
use super::update::{Action, Event, update};
use super::view::view;

/// Noon of 2020-03-01 UTC.
const NOON: i64 = 1_583_064_000_000;

/// Milliseconds after noon.
fn at(millis: i64) -> Now {
    Now { wall: WallTime(NOON + millis), boot: BootTime(millis) }
}

/// Seconds after noon, as a time of the wire.
fn wire(seconds: i64) -> Option<Timestamp> {
    Some(Timestamp { seconds: NOON / 1000 + seconds, nanos: 0 })
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn message(id: u64, from: &str, body: &str) -> Option<Message> {
    Some(Message {
        id,
        origin: Some(Origin { kind: OriginKind::Agent.into(), name: text(from) }),
        recipients: vec![text("operator")],
        body: text(body),
        accept_time: wire(-120),
        ..Message::default()
    })
}

fn mail(id: u64, from: &str, body: &str) -> Delivery {
    let state = DeliveryState::Ready.into();
    Delivery {
        message: message(id, from, body),
        agent: text("operator"),
        state,
        attempt: 1,
        ..Delivery::default()
    }
}

fn question(
    id: u64,
    asker: &str,
    words: &str,
    options: &[&str],
    deadline: Option<i64>,
) -> Question {
    Question {
        id,
        asker: text(asker),
        target: text("operator"),
        text: text(words),
        options: options.iter().map(|option| text(option)).collect(),
        create_time: wire(-60),
        deadline_time: deadline.and_then(wire),
        turn_id: 20,
        ..Question::default()
    }
}

fn agent(name: &str, parent: &str, state: HarnessState) -> Agent {
    Agent {
        name: text(name),
        parent: text(parent),
        state: state.into(),
        state_time: wire(-30),
        running: true,
        hive_name: text("duo"),
        ..Agent::default()
    }
}

fn agents() -> Vec<Agent> {
    vec![
        Agent {
            status_text: text("sorting\u{1b}[31m the mail"),
            model: text("claude-opus-5"),
            role: text("leads"),
            context_tokens: 12_000,
            context_window_tokens: 200_000,
            ready_count: 2,
            open_turn_ids: vec![21],
            ..agent("ada", "", HarnessState::Thinking)
        },
        Agent {
            park: Some(Park {
                cause: TurnOutcome::RateLimited.into(),
                until_time: wire(3599),
                error: text("API Error: 429"),
                remaining: None,
            }),
            dead_count: 1,
            ..agent("bob", "ada", HarnessState::RateLimited)
        },
        Agent {
            park: Some(Park {
                cause: TurnOutcome::AuthFailed.into(),
                error: text("API Error: 401"),
                ..Park::default()
            }),
            ..agent("cid", "ada", HarnessState::NeedsLogin)
        },
    ]
}

fn dead_letter() -> Delivery {
    Delivery {
        agent: text("bob"),
        state: DeliveryState::Dead.into(),
        attempt: 5,
        last_error: text("claude ended without a result (exit code 3)\nat once"),
        output_tail: text("first line\nlast \u{1b}[31mline"),
        turn_id: 13,
        state_time: wire(-600),
        ..mail(12, "ada", "poison")
    }
}

fn held() -> Delivery {
    Delivery {
        agent: text("ada"),
        state: DeliveryState::Held.into(),
        state_time: wire(-5),
        ..mail(10, "bob", "Count to ten.")
    }
}

/// Returns the mail that asks a question.
fn ask(id: u64, question_id: u64) -> Delivery {
    let mut ask = mail(id, "", "ada asks you: Which colour?");
    if let Some(message) = &mut ask.message {
        message.origin = Some(Origin { kind: OriginKind::System.into(), name: String::new() });
        message.set_system_kind(SystemKind::QuestionAsked);
        message.question_id = question_id;
    }
    ask
}

/// Returns a hive in which there is one of everything.
fn reading() -> Reading {
    let loose_end = |id, agent: &str, kind: LooseEndKind, peer: &str, about: &str| LooseEnd {
        id,
        agent: text(agent),
        kind: kind.into(),
        peer: text(peer),
        text: text(about),
        ..LooseEnd::default()
    };
    Reading {
        status: GetBrokerStatusResponse {
            storage_ok: true,
            agent_count: 3,
            attached_count: 3,
            ready_count: 4,
            dead_count: 1,
            held_count: 1,
            operator_unread_count: 3,
            operator_question_count: 2,
            ..GetBrokerStatusResponse::default()
        },
        agents: Some(agents()),
        mail: Some(vec![
            mail(14, "ada", "It is 42.\nI asked bob."),
            ask(16, 22),
            mail(18, "日本", "終わりました\u{7}"),
        ]),
        dead_letters: Some(vec![dead_letter()]),
        held: Some(vec![held()]),
        questions: Some(vec![
            question(25, "bob", "May I?", &[], None),
            question(22, "ada", "Which colour?", &["red", "green"], Some(299)),
        ]),
        loose_ends: Some(vec![
            loose_end(22, "ada", LooseEndKind::QuestionAsked, "operator", "Which colour?"),
            loose_end(30, "ada", LooseEndKind::Reminder, "", "look again"),
            loose_end(12, "ada", LooseEndKind::DeadLetter, "bob", "poison"),
        ]),
    }
}

/// Returns a screen of this size with nothing on it yet.
fn empty(size: (u16, u16)) -> State {
    State::new(size, true, TimeZone::UTC, text("test"))
}

/// Returns a screen on which everything is shown.
fn full(size: (u16, u16)) -> State {
    let mut state = empty(size);
    update(&mut state, Event::Linked, at(0));
    update(&mut state, Event::Read(Box::new(reading())), at(0));
    state
}

fn drawn(state: &State, now: Now) -> Terminal<TestBackend> {
    let mut terminal =
        Terminal::new(TestBackend::new(state.size.0, state.size.1)).expect("a terminal");
    terminal.draw(|frame| view(state, now, frame)).expect("it draws");
    terminal
}

fn shown(state: &State) -> String {
    drawn(state, at(0)).backend().to_string()
}

fn press(state: &mut State, keys: &[Key]) -> Vec<Action> {
    keys.iter().flat_map(|key| update(state, Event::Key(key.clone()), at(0))).collect()
}

fn chars(state: &mut State, keys: &str) -> Vec<Action> {
    press(state, &keys.chars().map(Key::Char).collect::<Vec<_>>())
}

#[track_caller]
fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?}: {text}");
}

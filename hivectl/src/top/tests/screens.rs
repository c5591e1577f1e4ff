//! Screens, compared whole.

use ratatui::style::Color;

use super::super::hive::Reading;
use super::*;

#[test]
fn attention_items_are_listed_above_the_agents() {
    insta::assert_snapshot!(shown(&full((80, 24))));
}

#[test]
fn a_wide_screen_has_room_for_more_columns() {
    insta::assert_snapshot!(shown(&full((132, 24))));
}

#[test]
fn the_smallest_screen_still_shows_something_of_each() {
    insta::assert_snapshot!(shown(&full((40, 10))));
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    insta::assert_snapshot!(shown(&full((39, 10))));
    insta::assert_snapshot!(shown(&full((40, 9))));
    for size in [(1, 1), (3, 2), (39, 1), (200, 1), (1, 200)] {
        shown(&full(size));
    }
}

#[test]
fn a_quiet_hive_has_empty_lists() {
    let mut state = empty((60, 12));
    insta::assert_snapshot!("before_it_was_read", shown(&state));
    let status = GetBrokerStatusResponse {
        storage_ok: true,
        agent_count: 1,
        ..GetBrokerStatusResponse::default()
    };
    let agents = Some(vec![agent("ada", "", HarnessState::Idle)]);
    update(
        &mut state,
        Event::Read(Box::new(Reading { status, agents, ..Reading::default() })),
        at(0),
    );
    insta::assert_snapshot!("quiet", shown(&state));
}

#[test]
fn clocks_move_without_anything_being_read() {
    let state = full((80, 24));
    let later = drawn(&state, at(290_000)).backend().to_string();
    let changed: Vec<&str> = later.lines().filter(|line| !shown(&state).contains(line)).collect();
    insta::assert_snapshot!(changed.join("\n"));
}

#[test]
fn a_broker_that_is_away_is_said_and_the_rest_stays() {
    let mut state = full((80, 12));
    update(&mut state, Event::Lost(text("it shut down")), at(0));
    update(&mut state, Event::Lost(text("no broker answers on /run/hived.sock")), at(2000));
    let gone = drawn(&state, at(12_000)).backend().to_string();
    assert!(
        gone.starts_with(
            "\"hivectl top  broker not reachable, reconnecting (12s): no broker answe… 12:00:12\""
        ),
        "{gone}"
    );
    assert_contains(&gone, "question 22");
    update(&mut state, Event::Linked, at(13_000));
    assert!(
        shown(&state).contains("duo: 3 agents") && shown(&state).contains("the broker is back"),
        "{}",
        shown(&state)
    );
}

#[test]
fn a_broker_that_cannot_write_or_is_ending_is_said() {
    for (status, words) in [
        (
            GetBrokerStatusResponse {
                storage_error: text("disk full"),
                ..GetBrokerStatusResponse::default()
            },
            "the database cannot be written: disk full",
        ),
        (
            GetBrokerStatusResponse {
                storage_ok: true,
                draining: true,
                ..GetBrokerStatusResponse::default()
            },
            "the broker is shutting down",
        ),
    ] {
        let mut state = full((80, 24));
        update(&mut state, Event::Read(Box::new(Reading { status, ..Reading::default() })), at(0));
        assert_contains(&shown(&state), words);
    }
}

#[test]
fn more_than_was_read_is_said() {
    let mut state = full((80, 24));
    let mut more = reading();
    more.status.dead_count = 700;
    more.status.operator_unread_count = 9001;
    more.status.agent_count = 20_000;
    update(&mut state, Event::Read(Box::new(more)), at(0));
    let shown = shown(&state);
    assert_contains(&shown, "2 questions, 1 login, 2 of 9000 unread");
    assert_contains(&shown, "1 of 700 dead letters, 1 held, 1 parked");
    assert_contains(&shown, "Agents: 3 of 20000");
}

#[test]
fn details_show_all_of_it() {
    for (name, keys) in [
        ("question", vec![Key::Enter]),
        ("mail", vec![Key::Move(Move::End), Key::Move(Move::Up), Key::Enter]),
        ("dead_letter", vec![Key::Tab, Key::Enter]),
        ("login", vec![Key::Move(Move::Down), Key::Move(Move::Down), Key::Enter]),
        ("agent", vec![Key::BackTab, Key::Enter]),
    ] {
        let mut state = full((80, 24));
        press(&mut state, &keys);
        insta::assert_snapshot!(format!("details_of_{name}"), shown(&state));
    }
}

#[test]
fn details_are_scrolled_and_stay_when_the_row_goes() {
    let mut state = full((60, 12));
    press(&mut state, &[Key::Tab, Key::Enter, Key::Move(Move::End)]);
    insta::assert_snapshot!("the_end_of_details", shown(&state));
    let none = Reading { dead_letters: Some(Vec::new()), ..reading() };
    update(&mut state, Event::Read(Box::new(none)), at(0));
    assert_contains(&shown(&state), "dead letter 12 (it is settled: this is how it was), lines");
    assert_contains(&shown(&state), "last \\u{1b}[31mline");
    assert_eq!(chars(&mut state, "d"), []);
    press(&mut state, &[Key::Escape]);
    assert_contains(&shown(&state), "▸ Stuck: 0 of 1 dead letter, 1 held, 1 parked");
}

#[test]
fn an_answer_has_options_and_a_text() {
    let mut state = full((80, 24));
    chars(&mut state, "a2");
    press(&mut state, &[Key::Tab, Key::Paste(text("but 日本 dark\nplease"))]);
    insta::assert_snapshot!("answer", shown(&state));
    drawn(&state, at(0)).backend().assert_cursor_at("> or in words: but 日本 dark⏎please");
    let mut small = full((40, 10));
    chars(&mut small, "a3");
    insta::assert_snapshot!("answer_on_a_small_screen", shown(&small));
}

#[test]
fn the_form_shows_that_its_question_was_closed() {
    let mut state = full((80, 24));
    chars(&mut state, "ayes");
    update(
        &mut state,
        Event::Read(Box::new(Reading { questions: Some(Vec::new()), ..reading() })),
        at(0),
    );
    assert_contains(&shown(&state), "! it is not open any more; Esc leaves");
    assert_contains(&shown(&state), "> or in words: yes");
}

/// Checks the cursor by the text before it.
trait Cursor {
    fn assert_cursor_at(&self, before: &str);
}

impl Cursor for TestBackend {
    fn assert_cursor_at(&self, before: &str) {
        let position = self.clone().cursor_position();
        assert_eq!(usize::from(position.x), crate::output::wrap::width(before));
    }
}

#[test]
fn irreversible_changes_are_confirmed_first() {
    let mut state = full((80, 24));
    press(&mut state, &[Key::Tab]);
    chars(&mut state, "x");
    let lines: Vec<String> = shown(&state).lines().skip(22).map(str::to_owned).collect();
    assert!(
        lines[0].starts_with("\"drop message 12 of bob? it is never delivered (y/n)"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("\"y yes  n no "), "{lines:?}");
}

#[test]
fn help_lists_the_keys() {
    let mut state = full((80, 24));
    chars(&mut state, "?");
    insta::assert_snapshot!(shown(&state));
    chars(&mut state, "q");
    assert!(shown(&state).contains("Waits on you"), "any key goes back, and does nothing else");
}

#[test]
fn nothing_of_a_peer_reaches_the_terminal_as_a_control_character() {
    for size in [(40, 10), (80, 24), (200, 50)] {
        for keys in [
            vec![],
            vec![Key::Enter],
            vec![Key::Tab, Key::Enter],
            vec![Key::BackTab, Key::Enter],
            vec![Key::Char('a')],
        ] {
            let mut state = full(size);
            press(&mut state, &keys);
            let terminal = drawn(&state, at(0));
            for cell in terminal.backend().buffer().content() {
                assert!(!cell.symbol().contains(char::is_control), "{:?}", cell.symbol());
            }
        }
    }
}

#[test]
fn without_colours_there_is_none() {
    let colors = |color| {
        let mut state = full((80, 24));
        state.color = color;
        let terminal = drawn(&state, at(0));
        let cells = terminal.backend().buffer().content();
        cells.iter().filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset).count()
    };
    assert!(colors(true) > 0);
    assert_eq!(colors(false), 0);
}

#[test]
fn a_thousand_agents_fit_through_a_small_window() {
    let mut state = empty((80, 24));
    let agents =
        (0..1000).map(|number| agent(&format!("a{number:04}"), "", HarnessState::Idle)).collect();
    let status = GetBrokerStatusResponse {
        storage_ok: true,
        agent_count: 1000,
        ..GetBrokerStatusResponse::default()
    };
    update(
        &mut state,
        Event::Read(Box::new(Reading { status, agents: Some(agents), ..Reading::default() })),
        at(0),
    );
    press(&mut state, &[Key::Move(Move::End)]);
    assert_contains(&shown(&state), "> a0999");
    press(&mut state, &[Key::Move(Move::PageUp)]);
    assert_contains(&shown(&state), "> a0981");
}

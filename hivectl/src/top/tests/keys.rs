//! The effect of keys on the hive.

use hive_proto::v1::{Approval, EffectChange};

use super::super::change::{Asked, Change, Outcome};
use super::*;
use crate::connect::Settlement;

fn change(change: Change, number: u64) -> Action {
    Action::Change(Asked { change, request_id: format!("test-{number}") })
}

fn settle(how: Settlement, agent: &str, message: u64) -> Change {
    Change::Settle { how, agent: text(agent), message }
}

fn note(state: &State) -> &str {
    state.note.as_ref().map_or("", |note| note.text.as_str())
}

/// Moves to a row: by this many tabs, and this many rows down.
fn go(state: &mut State, tabs: usize, down: usize) {
    press(state, &vec![Key::Tab; tabs]);
    press(state, &vec![Key::Move(Move::Down); down]);
}

#[test]
fn each_letter_does_its_work_on_its_row() {
    for (tabs, down, keys, wanted) in [
        (0, 0, "cy", Change::CancelQuestion { question: 22 }),
        (0, 3, "m", Change::Ack { message: 14 }),
        (1, 0, "d", settle(Settlement::Redrive, "bob", 12)),
        (1, 0, "xy", settle(Settlement::Drop, "bob", 12)),
        (1, 1, "r", settle(Settlement::Release, "ada", 10)),
        (1, 1, "xy", settle(Settlement::Drop, "ada", 10)),
        (2, 0, "cy", Change::CancelTurn { agent: text("ada"), turn: 21 }),
        (2, 0, "Cy", Change::Compact { agent: text("ada") }),
    ] {
        let mut state = full((80, 24));
        go(&mut state, tabs, down);
        assert_eq!(chars(&mut state, keys), [change(wanted.clone(), 1)], "{keys}");
        assert_eq!(note(&state), wanted.describe().doing);
        // The same keys act on a row in full.
        let mut state = full((80, 24));
        go(&mut state, tabs, down);
        press(&mut state, &[Key::Enter]);
        assert_eq!(chars(&mut state, keys), [change(wanted, 1)], "{keys}");
    }
}

#[test]
fn a_letter_that_means_nothing_on_a_row_says_where_it_does() {
    let mut state = full((80, 24));
    assert_eq!(chars(&mut state, "dz"), []);
    assert_eq!(note(&state), "`d` redrives a dead letter; choose one first");
    go(&mut state, 2, 1);
    assert_eq!(chars(&mut state, "c"), []);
    assert_eq!(note(&state), "bob has no open turn");
    let mut empty = empty((80, 24));
    assert_eq!(chars(&mut empty, "m"), []);
    assert_eq!(note(&empty), "there is nothing here");
}

#[test]
fn only_y_confirms_and_only_n_declines() {
    let mut state = full((80, 24));
    go(&mut state, 1, 0);
    assert_eq!(chars(&mut state, "xdj "), [], "only y and n are an answer");
    assert_eq!(chars(&mut state, "n"), []);
    assert_eq!(note(&state), "left as it is");
    // Rows that move during the dialog do not change which message is dropped.
    chars(&mut state, "x");
    let mut other = dead_letter();
    other.agent = text("ada");
    let changed = Reading { dead_letters: Some(vec![other, dead_letter()]), ..reading() };
    update(&mut state, Event::Read(Box::new(changed)), at(0));
    assert_eq!(chars(&mut state, "y"), [change(settle(Settlement::Drop, "bob", 12), 1)]);
}

#[test]
fn a_question_is_answered_and_the_outcome_is_said() {
    let mut state = full((80, 24));
    chars(&mut state, "a2");
    let answer = Change::Answer {
        question: 22,
        choices: vec![text("green")],
        text: String::new(),
        diff_digest: String::new(),
    };
    let actions = press(&mut state, &[Key::Enter]);
    assert_eq!(actions, [change(answer.clone(), 1)]);
    assert_eq!(note(&state), "answering question 22 ...");
    let asked = Asked { change: answer, request_id: text("test-1") };
    update(&mut state, Event::Changed(asked, Outcome::Done), at(0));
    assert_eq!(note(&state), "question 22 answered");
}

/// Returns a question that asks to approve a change of so many values.
fn approval(values: usize, digest: &str) -> Question {
    let change = |number: usize| EffectChange {
        field: format!("value {number}"),
        after: text("new"),
        ..EffectChange::default()
    };
    let changes = (0..values).map(change).collect();
    let approval = Approval { changes, diff_digest: text(digest), ..Approval::default() };
    Question {
        approval: Some(approval),
        ..question(22, "bob", "I need it", &["approve", "deny"], None)
    }
}

fn now_asked(state: &mut State, question: Question) {
    let reading = Reading { questions: Some(vec![question]), ..reading() };
    update(state, Event::Read(Box::new(reading)), at(0));
}

#[test]
fn an_approval_is_sent_with_the_digest_of_what_is_on_the_screen() {
    let mut state = full((80, 24));
    now_asked(&mut state, approval(3, "one"));
    chars(&mut state, "a");
    assert_eq!(press(&mut state, &[Key::Enter]), [], "without a choice nothing is sent");
    chars(&mut state, "1");
    // Something else would be changed now: what was chosen is chosen no more.
    now_asked(&mut state, approval(4, "two"));
    assert_eq!(press(&mut state, &[Key::Enter]), []);
    chars(&mut state, "1");
    let answer = Change::Answer {
        question: 22,
        choices: vec![text("approve")],
        text: String::new(),
        diff_digest: text("two"),
    };
    assert_eq!(press(&mut state, &[Key::Enter]), [change(answer, 1)]);
}

#[test]
fn nothing_is_approved_with_its_changes_off_the_screen() {
    let mut state = full((80, 24));
    now_asked(&mut state, approval(30, "long"));
    chars(&mut state, "a1");
    assert_eq!(press(&mut state, &[Key::Enter]), [], "30 lines do not fit on 24");
    // It can still be denied, and approved on a larger screen.
    update(&mut state, Event::Resized(80, 60), at(0));
    let sent = press(&mut state, &[Key::Enter]);
    assert_eq!(sent.len(), 1, "{sent:?}");
    let mut small = full((80, 24));
    now_asked(&mut small, approval(30, "long"));
    chars(&mut small, "a2");
    assert_eq!(press(&mut small, &[Key::Enter]).len(), 1, "denying needs no view of the changes");
}

#[test]
fn what_was_written_is_kept_where_it_was_not_sent_or_refused() {
    let mut state = full((80, 24));
    chars(&mut state, "a");
    chars(&mut state, "red, I think");
    press(&mut state, &[Key::Escape]);
    assert_eq!(note(&state), "question 22 not answered; what you wrote is kept");
    chars(&mut state, "a");
    let actions = press(&mut state, &[Key::Enter]);
    let answer = Change::Answer {
        question: 22,
        choices: Vec::new(),
        text: text("red, I think"),
        diff_digest: String::new(),
    };
    assert_eq!(actions, [change(answer.clone(), 1)]);
    let asked = Asked { change: answer, request_id: text("test-1") };
    let refused = Outcome::Refused(text("question 22 expired already"));
    update(&mut state, Event::Changed(asked, refused), at(0));
    assert_eq!(note(&state), "question 22 not answered: question 22 expired already");
    chars(&mut state, "a");
    assert_contains(&shown(&state), "red, I think");
    // Another question has a new form.
    press(&mut state, &[Key::Escape, Key::Move(Move::Down)]);
    chars(&mut state, "a");
    assert!(
        shown(&state).contains("Question 25 from bob") && !shown(&state).contains("I think"),
        "{}",
        shown(&state)
    );
}

#[test]
fn a_change_of_unknown_outcome_is_repeated_under_its_request_id() {
    let mut state = full((80, 24));
    go(&mut state, 1, 0);
    let redrive = settle(Settlement::Redrive, "bob", 12);
    assert_eq!(
        chars(&mut state, "dd"),
        [change(redrive.clone(), 1)],
        "a second press while it runs does nothing"
    );
    assert_eq!(note(&state), "already redriving message 12 of bob ...");
    let asked = Asked { change: redrive.clone(), request_id: text("test-1") };
    update(
        &mut state,
        Event::Changed(asked, Outcome::Unknown(text("the connection to the broker was lost"))),
        at(0),
    );
    assert!(
        note(&state).ends_with("press the key again, it is not done twice"),
        "{}",
        note(&state)
    );
    assert_eq!(chars(&mut state, "d"), [change(redrive, 1)]);
}

#[test]
fn nothing_is_tried_while_the_broker_is_away() {
    let mut state = full((80, 24));
    go(&mut state, 1, 0);
    update(&mut state, Event::Lost(text("it shut down")), at(0));
    assert_eq!(chars(&mut state, "d"), []);
    assert_eq!(note(&state), "message 12 of bob not redriven: the broker is not reachable");
}

#[test]
fn a_key_is_not_taken_for_the_row_that_slipped_under_it() {
    let mut state = full((80, 24));
    go(&mut state, 1, 0);
    // Another operator settled the dead letter; the held message took its place.
    let settled = || Reading { dead_letters: Some(Vec::new()), ..reading() };
    update(&mut state, Event::Read(Box::new(settled())), at(0));
    assert_eq!(chars(&mut state, "r"), []);
    assert_eq!(
        note(&state),
        "the row that you had chosen is gone; press again if you mean this one"
    );
    assert_eq!(chars(&mut state, "r"), [change(settle(Settlement::Release, "ada", 10), 1)]);

    // An item that disappears by the user's own change makes room for the next.
    let mut state = full((80, 24));
    go(&mut state, 1, 0);
    chars(&mut state, "d");
    update(&mut state, Event::Read(Box::new(settled())), at(0));
    assert_eq!(chars(&mut state, "r").len(), 1);
}

#[test]
fn the_chosen_row_stays_chosen_when_others_come() {
    let mut state = full((80, 24));
    press(&mut state, &[Key::Move(Move::Down)]);
    let mut more = reading();
    more.questions.as_mut().expect("questions").push(question(31, "cid", "Now?", &[], Some(5)));
    update(&mut state, Event::Read(Box::new(more)), at(0));
    press(&mut state, &[Key::Enter]);
    assert_contains(&shown(&state), "▸ question 25");
}

#[test]
fn q_and_ctrl_c_quit_from_where_they_should() {
    let mut state = full((80, 24));
    assert_eq!(chars(&mut state, "q"), [Action::Quit]);
    chars(&mut state, "a");
    press(&mut state, &[Key::Tab]);
    assert_eq!(chars(&mut state, "q"), [], "it is a letter of the answer");
    assert_eq!(press(&mut state, &[Key::Ctrl('c')]), [Action::Quit]);
    assert_eq!(press(&mut state, &[Key::Ctrl('l')]), [Action::Redraw]);
}

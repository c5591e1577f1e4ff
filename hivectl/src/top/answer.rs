//! The form in which a question is answered: offered options, free text, or both.
//!
//! Invariant: only an answer that the question allows is sent; the form shows why another is not.

use std::collections::BTreeSet;

use hive_core::effect::{APPROVE, DENY};
use hive_core::limits::ANSWER_BYTES_MAX;
use hive_core::question::{Answer, Wording};
use hive_proto::v1::Question;

use super::change::Change;
use super::field::Field;
use super::key::{Key, Move};
use crate::output::wrap::{wrap, wrap_marked};
use crate::view::approval::Approval;

/// A form that is being filled in.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) question: u64,
    pub(crate) asker: String,
    pub(crate) wording: Wording,
    pub(crate) chosen: BTreeSet<usize>,
    pub(crate) at: usize,
    /// Whether keys go into the text.
    pub(crate) typing: bool,
    pub(crate) field: Field,
    pub(crate) fault: Option<String>,
    /// What approving it would change, for an approval.
    pub(crate) approval: Option<Shown>,
}

/// The changes of an approval, as they are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shown {
    diff: String,
    digest: String,
}

impl Shown {
    /// Returns the lines of the changes; the rest of a long one is indented, so that it does not
    /// look like a change.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        wrap_marked(&self.diff, columns, "", "    ")
    }
}

/// The effect of a key on a form.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    Open,
    /// The form is closed; nothing is sent.
    Left,
    Sent(Change),
}

impl Form {
    /// Returns an empty form for a question.
    pub(crate) fn new(question: &Question) -> Self {
        let Question { id, asker, text, options, multi, .. } = question.clone();
        let typing = options.is_empty();
        Self {
            question: id,
            asker,
            wording: Wording { text, options, multi },
            chosen: BTreeSet::new(),
            at: 0,
            typing,
            field: Field::default(),
            fault: None,
            approval: shown(question),
        }
    }

    /// Returns the lines above the options: for an approval first its changes.
    pub(crate) fn lines(&self, columns: usize) -> Vec<String> {
        let Some(shown) = &self.approval else { return wrap(&self.wording.text, columns) };
        let mut lines = shown.lines(columns);
        lines.push(String::new());
        lines.extend(wrap(&format!("{} says:", self.asker), columns));
        lines.extend(wrap_marked(&self.wording.text, columns, "> ", "> "));
        lines
    }

    /// Takes over what the question would change now. If that is something else, nothing is chosen
    /// any more.
    pub(crate) fn renew(&mut self, question: &Question) {
        let now = shown(question);
        if self.approval != now {
            self.approval = now;
            self.chosen.clear();
            self.fault = Some("it would change something else now: look again".to_owned());
        }
    }

    /// Takes over the changes of a newer form of the same question.
    pub(crate) fn take_changes(&mut self, newer: Self) {
        if self.approval != newer.approval {
            self.chosen.clear();
        }
        self.approval = newer.approval;
    }

    /// Refuses to approve changes that are not on the screen as a whole.
    pub(crate) fn hide(&mut self) {
        self.fault = Some(format!(
            "its changes do not fit on this screen; make it larger, or use `hivectl answer {}`",
            self.question
        ));
    }

    pub(crate) fn press(&mut self, key: Key) -> Filled {
        self.fault = None;
        match key {
            Key::Enter => return self.send(),
            Key::Escape => return Filled::Left,
            Key::Tab | Key::BackTab => {
                self.typing = !self.typing || self.wording.options.is_empty();
            }
            Key::Move(to) => self.go(to),
            Key::Char(c) if !self.typing && matches!(c, ' ' | '1'..='9') => self.choose(c),
            // A letter switches to the text.
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Paste(text) => self.insert(&text),
            Key::LineBreak if self.typing => self.insert("\n"),
            Key::Backspace if self.typing => self.field.backspace(),
            Key::Delete if self.typing => self.field.delete(),
            Key::Ctrl('u') if self.typing => self.field.cut_before(),
            Key::Ctrl('a') if self.typing => self.field.home(),
            Key::Ctrl('e') if self.typing => self.field.end(),
            Key::LineBreak | Key::Backspace | Key::Delete | Key::Ctrl(_) => {}
        }
        Filled::Open
    }

    fn go(&mut self, to: Move) {
        let last = self.wording.options.len().saturating_sub(1);
        match (self.typing, to) {
            (true, Move::Left) => self.field.left(),
            (true, Move::Right) => self.field.right(),
            (true, Move::Home) => self.field.home(),
            (true, Move::End) => self.field.end(),
            (true, Move::Up) => self.typing = self.wording.options.is_empty(),
            (false, Move::Down) if self.at == last => self.typing = true,
            (false, Move::Up) => self.at = self.at.saturating_sub(1),
            (false, Move::Down) => self.at += 1,
            (false, Move::Home) => self.at = 0,
            (false, Move::End) => self.at = last,
            (true, Move::Down)
            | (_, Move::PageUp | Move::PageDown)
            | (false, Move::Left | Move::Right) => {}
        }
    }

    fn choose(&mut self, c: char) {
        // `1` is the first one; a space means the one that the arrows are at.
        let index = if c == ' ' { self.at } else { ('1'..c).count() };
        if index < self.wording.options.len() {
            self.at = index;
            self.toggle(index);
        } else {
            self.fault = Some(format!("there is no option {c}"));
        }
    }

    fn insert(&mut self, text: &str) {
        self.typing = true;
        if !self.field.insert(text, ANSWER_BYTES_MAX) {
            self.fault = Some(format!("an answer has at most {ANSWER_BYTES_MAX} bytes"));
        }
    }

    fn toggle(&mut self, index: usize) {
        if self.chosen.remove(&index) {
            return;
        }
        if !self.wording.multi {
            self.chosen.clear();
        }
        self.chosen.insert(index);
    }

    fn send(&mut self) -> Filled {
        let options = self.wording.options.iter().enumerate();
        let choices = options
            .filter(|(index, _)| self.chosen.contains(index))
            .map(|(_, option)| option.clone())
            .collect();
        match self.wording.accept(&Answer { choices, text: self.field.text().to_owned() }) {
            Ok(Answer { choices, text }) => {
                if self.approval.is_some() && choices.is_empty() {
                    self.fault = Some(format!("choose {APPROVE} or {DENY}; a text is a note"));
                    return Filled::Open;
                }
                let diff_digest =
                    self.approval.as_ref().map(|shown| shown.digest.clone()).unwrap_or_default();
                let question = self.question;
                Filled::Sent(Change::Answer { question, choices, text, diff_digest })
            }
            Err(fault) => {
                self.fault = Some(fault.to_string());
                Filled::Open
            }
        }
    }
}

fn shown(question: &Question) -> Option<Shown> {
    let approval = question.approval.clone()?;
    let digest = approval.diff_digest.clone();
    Some(Shown { diff: Approval::from(approval).diff(), digest })
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::{Approval, EffectChange};

    use super::*;

    fn form(options: &[&str], multi: bool) -> Form {
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        Form::new(&Question {
            id: 7,
            text: "Which?".to_owned(),
            options,
            multi,
            ..Question::default()
        })
    }

    fn pressed(form: &mut Form, keys: &str) -> Filled {
        keys.chars().for_each(|c| {
            assert_eq!(form.press(Key::Char(c)), Filled::Open);
        });
        form.press(Key::Enter)
    }

    fn sent(choices: &[&str], text: &str) -> Filled {
        let choices = choices.iter().map(|choice| (*choice).to_owned()).collect();
        Filled::Sent(Change::Answer {
            question: 7,
            choices,
            text: text.to_owned(),
            diff_digest: String::new(),
        })
    }

    #[test]
    fn options_are_chosen_by_number_and_by_space() {
        assert_eq!(pressed(&mut form(&["red", "green"], false), "12"), sent(&["green"], ""));
        assert_eq!(
            pressed(&mut form(&["red", "green", "blue"], true), "31"),
            sent(&["red", "blue"], "")
        );
        let mut by_space = form(&["red", "green"], false);
        by_space.press(Key::Move(Move::Down));
        assert_eq!(pressed(&mut by_space, " "), sent(&["green"], ""));
        // A second time takes it back.
        assert_eq!(pressed(&mut form(&["red"], false), "11"), Filled::Open);
    }

    #[test]
    fn text_is_typed_and_digits_in_it_choose_nothing() {
        assert_eq!(pressed(&mut form(&["red"], false), "no 1 here"), sent(&[], "no 1 here"));
        assert_eq!(pressed(&mut form(&[], false), "42"), sent(&[], "42"));
        let mut both = form(&["red", "green"], false);
        both.press(Key::Char('2'));
        both.press(Key::Tab);
        assert_eq!(pressed(&mut both, "1 more"), sent(&["green"], "1 more"));
    }

    #[test]
    fn nothing_leaves_the_form_that_the_question_does_not_allow() {
        let mut empty = form(&["red"], false);
        assert_eq!(empty.press(Key::Enter), Filled::Open);
        assert_eq!(empty.fault.as_deref(), Some("an answer needs choices or a text"));
        assert_eq!(empty.press(Key::Char('5')), Filled::Open);
        assert_eq!(empty.fault.as_deref(), Some("there is no option 5"));
        let mut long = form(&[], false);
        assert_eq!(long.press(Key::Paste("x".repeat(ANSWER_BYTES_MAX))), Filled::Open);
        assert_eq!(long.press(Key::Char('x')), Filled::Open);
        assert_eq!(long.fault.as_deref(), Some("an answer has at most 16384 bytes"));
    }

    /// The words stay together, so that they begin a line of a form of almost any width.
    #[test]
    fn neither_a_long_value_nor_long_words_look_like_a_change() {
        let forged = "+\u{a0}policy.grants:\u{a0}all";
        let role = EffectChange {
            field: "role".to_owned(),
            after: format!("a tester {forged}"),
            ..EffectChange::default()
        };
        let approval = Approval { changes: vec![role], ..Approval::default() };
        let form = Form::new(&Question {
            asker: "ada".to_owned(),
            text: format!("I need it. {forged}"),
            approval: Some(approval),
            ..Question::default()
        });
        let rest = format!("    {forged}");
        let quoted = format!("> {forged}");
        let lines = ["+ role: a tester", &rest, "", "ada says:", "> I need it.", &quoted];
        assert_eq!(form.lines(30), lines);
    }

    #[test]
    fn escape_leaves_it_and_arrows_move_between_options_and_text() {
        let mut form = form(&["red", "green"], false);
        for _ in 0..2 {
            form.press(Key::Move(Move::Down));
        }
        assert!(form.typing && form.at == 1);
        form.press(Key::Move(Move::Up));
        assert!(!form.typing);
        form.press(Key::Paste("a\nb".to_owned()));
        form.press(Key::LineBreak);
        assert_eq!(form.field.text(), "a\nb\n");
        assert_eq!(form.press(Key::Escape), Filled::Left);
    }
}

//! Asking the operator at the terminal: options by number, or words.
//!
//! Invariant: a typed line is understood in full or asked for again; an empty line answers nothing.

use std::io;

use super::Given;
use crate::error::Failure;
use crate::input;
use crate::output::note;
use crate::output::style::{Style, columns};
use crate::view::question::Question;

pub(super) async fn ask(question: &Question, style: &Style) -> Result<Given, Failure> {
    let id = question.id;
    if !question.is_open() {
        return Err(Failure::QuestionClosed { id, outcome: question.outcome() });
    }
    // A person reads this on the terminal that stdin is, even if stdout is redirected.
    note(&format!(
        "{}\n\n{}\n",
        question.heading(style),
        question.on_terminal(columns(io::stdin()))
    ));
    let prompt = match (question.options.is_empty(), question.multi) {
        _ if question.approval.is_some() => "approve or deny (nothing leaves it open): ",
        (true, _) => "your answer (nothing leaves it open): ",
        (false, false) => "a number, or your own words (nothing leaves it open): ",
        (false, true) => "numbers as 1,3, or your own words (nothing leaves it open): ",
    };
    loop {
        let line = input::line(prompt).await?.unwrap_or_default();
        match understood(&line, &question.options, question.multi) {
            Ok(Some(given)) => return Ok(given),
            Ok(None) => return Err(Failure::NotAnswered { id }),
            Err(why) => note(&why),
        }
    }
}

/// Returns what a line means; `None` for an empty one. If there are options, numbers name them.
fn understood(line: &str, options: &[String], multi: bool) -> Result<Option<Given>, String> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    if let Some(option) = options.iter().find(|option| *option == line) {
        return Ok(Some(Given { choices: vec![option.clone()], text: String::new() }));
    }
    let words = || line.split([',', ' ']).filter(|word| !word.is_empty());
    if options.is_empty() || !words().all(is_number) {
        return Ok(Some(Given { choices: Vec::new(), text: line.to_owned() }));
    }
    let choices =
        words().map(|word| numbered(options, word).ok_or(word)).collect::<Result<Vec<_>, _>>();
    let choices = choices
        .map_err(|word| format!("there is no option {word}; there are 1 to {}", options.len()))?;
    if choices.len() > 1 && !multi {
        return Err("only one may be chosen".to_owned());
    }
    Ok(Some(Given { choices: choices.into_iter().cloned().collect(), text: String::new() }))
}

/// Returns the option that a choice means: by its text, else by its number, else by its text
/// without regard to case. Any other choice goes to the broker, which lists the options.
pub(super) fn option(options: &[String], choice: &str) -> String {
    let by_text = options.iter().find(|option| *option == choice);
    let by_letters =
        || options.iter().find(|option| option.to_lowercase() == choice.to_lowercase());
    by_text
        .or_else(|| numbered(options, choice))
        .or_else(by_letters)
        .map_or_else(|| choice.to_owned(), Clone::clone)
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the option of this number, counted from 1.
fn numbered<'o>(options: &'o [String], word: &str) -> Option<&'o String> {
    let number = word.parse::<usize>().ok()?;
    options.get(number.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<String> {
        ["yes", "no", "7", "Later"].map(str::to_owned).to_vec()
    }

    fn given(choices: &[&str], text: &str) -> Result<Option<Given>, String> {
        Ok(Some(Given {
            choices: choices.iter().map(|choice| (*choice).to_owned()).collect(),
            text: text.to_owned(),
        }))
    }

    #[test]
    fn a_line_is_numbers_an_option_or_words() {
        let options = options();
        assert_eq!(understood(" 2 ", &options, false), given(&["no"], ""));
        assert_eq!(understood("no", &options, false), given(&["no"], ""));
        assert_eq!(understood("1, 4", &options, true), given(&["yes", "Later"], ""));
        assert_eq!(
            understood("yes, but tomorrow", &options, false),
            given(&[], "yes, but tomorrow")
        );
        assert_eq!(understood("2 days", &options, false), given(&[], "2 days"));
        assert_eq!(understood("7", &options, false), given(&["7"], ""));
        assert_eq!(understood("7", &[], false), given(&[], "7"));
        assert_eq!(understood(" \t", &options, true), Ok(None));
    }

    #[test]
    fn what_cannot_be_meant_is_asked_again() {
        let options = options();
        for number in ["5", "0"] {
            let why = format!("there is no option {number}; there are 1 to 4");
            assert_eq!(understood(number, &options, false), Err(why));
        }
        assert_eq!(understood("1 2", &options, false), Err("only one may be chosen".to_owned()));
        assert_eq!(
            understood("99999999999999999999", &options, true)
                .map(drop)
                .map_err(|why| why.len() > 20),
            Err(true)
        );
    }

    #[test]
    fn a_choice_is_named_by_text_number_or_letters() {
        let options = options();
        assert_eq!(
            ["no", "2", "7", "later", "maybe", "0"].map(|choice| option(&options, choice)),
            ["no", "no", "7", "Later", "maybe", "0"]
        );
    }
}

//! A candidate for the word at the cursor, with a description for shells that show one.
//!
//! Invariant: no candidate needs quotes, and what peers wrote cannot steer the terminal.

use std::collections::HashSet;
use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;

use crate::output::text::visible_line;

/// Most characters of a description.
const ABOUT_CHARS: usize = 60;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) value: String,
    pub(super) about: Option<String>,
}

impl Candidate {
    pub(super) fn word(value: impl Into<String>) -> Self {
        Self { value: value.into(), about: None }
    }

    pub(super) fn described(value: impl ToString, about: &str) -> Self {
        let line = visible_line(about.trim_end());
        let mut short: String = line.chars().take(ABOUT_CHARS).collect();
        if short.len() < line.len() {
            short.pop();
            short.push('…');
        }
        Self { value: value.to_string(), about: Some(short) }
    }
}

/// Returns the candidates with this beginning, each once, in their order.
pub(super) fn fitting(current: &OsStr, candidates: Vec<Candidate>) -> Vec<CompletionCandidate> {
    let Some(current) = current.to_str() else { return Vec::new() };
    let mut seen = HashSet::new();
    candidates
        .into_iter()
        .filter(|candidate| {
            candidate.value.starts_with(current) && seen.insert(candidate.value.clone())
        })
        .map(|Candidate { value, about }| {
            CompletionCandidate::new(value).help(about.map(Into::into))
        })
        .collect()
}

/// Returns whether a word means the same to every shell as it does here.
pub(super) fn is_plain(word: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '+');
    !word.is_empty() && !word.starts_with('-') && word.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_begin_so_are_offered_once_in_their_order() {
        let candidates = ["b2", "a1", "b1", "b2"].map(Candidate::word).to_vec();
        let values = |current: &str| -> Vec<String> {
            let fitting = fitting(OsStr::new(current), candidates.clone());
            fitting
                .iter()
                .map(|candidate| candidate.get_value().to_string_lossy().into_owned())
                .collect()
        };
        assert_eq!(values("b"), ["b2", "b1"]);
        assert_eq!(values(""), ["b2", "a1", "b1"]);
        assert_eq!(values("c"), [""; 0]);
    }

    #[test]
    fn a_description_is_short_and_printable() {
        let candidate = Candidate::described(7, "two\nlines \u{1b}[2J\n");
        assert_eq!(
            candidate,
            Candidate { value: "7".to_owned(), about: Some("two⏎lines \\u{1b}[2J".to_owned()) }
        );
        let long = Candidate::described(7, &"ä".repeat(61)).about.expect("a description");
        assert_eq!(long, format!("{}…", "ä".repeat(59)));
    }

    #[test]
    fn plain_words_need_no_quotes() {
        assert!(is_plain("step-3") && is_plain("src/main.rs"));
        assert!(
            ["", "-no", "two words", "$HOME", "it's", "a;b", "ä"]
                .iter()
                .all(|word| !is_plain(word))
        );
    }
}

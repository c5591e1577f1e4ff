//! The query of a search: words, phrases and beginnings of words, all of which must occur.
//!
//! Invariant: whatever the text of a caller, SQLite gets a list of quoted texts that it
//! understands; no part of the text is an operator, a column or a quote.

use hive_core::limits::{SEARCH_BEGINNING_CHARS_MIN, SEARCH_CHARS_MAX, SEARCH_WORDS_MAX};

use super::mail::word;
use super::script::cut;
use crate::store::AgentKey;

/// Why a query is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is too long.
    #[error("it has {0} characters; a search has at most {SEARCH_CHARS_MAX}")]
    TooLong(usize),
    /// The text has no word.
    #[error(
        "there is no word in it; search for words, a \"phrase\" or the beginning of a word: release \"build failed\" deplo*"
    )]
    NoWord,
    /// The text has too many words.
    #[error("it has {0} words; a search has at most {SEARCH_WORDS_MAX}")]
    TooManyWords(usize),
    /// The beginning of a word is too short.
    #[error(
        "`{0}*` stands for too many words; write at least {SEARCH_BEGINNING_CHARS_MIN} characters before the `*`"
    )]
    ShortBeginning(String),
}

/// A query that the index can run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query(Vec<Term>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    /// Words that follow each other; without a quote or a control character.
    text: String,
    /// Whether the last word is only a beginning.
    beginning: bool,
}

impl Query {
    /// Parses the text of a caller.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let chars = text.chars().count();
        if chars > SEARCH_CHARS_MAX {
            return Err(Fault::TooLong(chars));
        }
        let plain = text.replace(char::is_control, " ");
        let terms: Vec<Term> =
            terms(&plain).into_iter().filter(|term| words(&term.text).next().is_some()).collect();
        let count = terms.iter().flat_map(|term| words(&term.text)).count();
        if count == 0 {
            return Err(Fault::NoWord);
        }
        if count > SEARCH_WORDS_MAX {
            return Err(Fault::TooManyWords(count));
        }
        for term in terms.iter().filter(|term| term.beginning) {
            if let Some(last) = words(&cut(&term.text)).last()
                && last.len() < SEARCH_BEGINNING_CHARS_MIN
            {
                return Err(Fault::ShortBeginning(last.to_owned()));
            }
        }
        Ok(Self(terms))
    }

    /// Returns the expression for the index; if an agent is named, only for items that concern it.
    #[must_use]
    pub fn expression(&self, concerning: Option<AgentKey>) -> String {
        let terms: Vec<String> = self
            .0
            .iter()
            .map(|Term { text, beginning }| {
                format!("\"{}\"{}", cut(text), if *beginning { " *" } else { "" })
            })
            .collect();
        let words = format!("{{body}} : ({})", terms.join(" AND "));
        match concerning {
            Some(AgentKey(key)) => format!("{words} AND {{who}} : \"{}\"", word(key)),
            None => words,
        }
    }
}

/// Cuts a text into phrases and words. A quote that is opened and not closed is left out.
fn terms(text: &str) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(quoted) = rest.strip_prefix('"') {
            match quoted.split_once('"') {
                Some((phrase, behind)) => {
                    let stripped = behind.strip_prefix('*');
                    terms.push(Term { text: phrase.to_owned(), beginning: stripped.is_some() });
                    rest = stripped.unwrap_or(behind);
                }
                None => rest = quoted,
            }
        } else if first.is_whitespace() {
            rest = rest.trim_start();
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || c == '"').unwrap_or(rest.len());
            let (word, behind) = rest.split_at(end);
            let stripped = word.trim_end_matches('*');
            terms.push(Term { text: stripped.to_owned(), beginning: stripped.len() < word.len() });
            rest = behind;
        }
    }
    terms
}

/// Returns the words of a text, as the index cuts it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expression(text: &str) -> String {
        Query::parse(text).expect("it can be searched for").expression(None)
    }

    #[test]
    fn words_phrases_and_beginnings_must_all_occur() {
        assert_eq!(expression("  release\tnotes "), r#"{body} : ("release" AND "notes")"#);
        assert_eq!(
            expression(r#""build failed" again"#),
            r#"{body} : ("build failed" AND "again")"#
        );
        assert_eq!(expression("deplo* now"), r#"{body} : ("deplo" * AND "now")"#);
        assert_eq!(
            expression(r#"say"build fai"*now"#),
            r#"{body} : ("say" AND "build fai" * AND "now")"#
        );
        let own = Query::parse("x").expect("a word").expression(Some(AgentKey(12)));
        assert_eq!(own, r#"{body} : ("x") AND {who} : "k12""#);
    }

    #[test]
    fn a_run_of_a_script_without_spaces_is_a_phrase() {
        assert_eq!(expression("東京 x"), r#"{body} : (" 東  京 " AND "x")"#);
        assert_eq!(expression("Rust言*"), r#"{body} : ("Rust 言 " *)"#);
    }

    #[test]
    fn nothing_in_it_is_syntax() {
        assert_eq!(
            expression("body:x OR (NEAR) ^y -z"),
            r#"{body} : ("body:x" AND "OR" AND "(NEAR)" AND "^y" AND "-z")"#
        );
        assert_eq!(expression("a\0b {who}:k1"), r#"{body} : ("a" AND "b" AND "{who}:k1")"#);
        assert_eq!(expression(r#"5" pipe"#), r#"{body} : ("5" AND "pipe")"#);
        assert_eq!(expression("-> * done !"), r#"{body} : ("done")"#);
    }

    #[test]
    fn an_invalid_search_is_refused() {
        for empty in ["", " ", "->", "*", "\"\"", "\" . \"*", "\0", "\u{1F600}"] {
            assert_eq!(Query::parse(empty), Err(Fault::NoWord), "{empty:?}");
        }
        assert!(Query::parse(&"x".repeat(SEARCH_CHARS_MAX)).is_ok());
        assert_eq!(
            Query::parse(&"x".repeat(SEARCH_CHARS_MAX + 1)),
            Err(Fault::TooLong(SEARCH_CHARS_MAX + 1))
        );
        assert_eq!(
            Query::parse(&"ä".repeat(SEARCH_CHARS_MAX)).map(|_| ()),
            Ok(()),
            "characters are counted, not bytes"
        );
        assert_eq!(Query::parse("a*"), Err(Fault::ShortBeginning("a".to_owned())));
        assert_eq!(Query::parse("re-a*"), Err(Fault::ShortBeginning("a".to_owned())));
        assert!(Query::parse("日*").is_ok(), "a character of a script without spaces is a word");
        assert_eq!(Query::parse("日a*"), Err(Fault::ShortBeginning("a".to_owned())));
        assert!(
            Query::parse(&"日".repeat(SEARCH_CHARS_MAX)).is_ok(),
            "a sentence without spaces is one word of a search"
        );
        assert!(Query::parse(&"a ".repeat(SEARCH_WORDS_MAX)).is_ok());
        assert_eq!(Query::parse(&"a-b ".repeat(9)), Err(Fault::TooManyWords(18)));
    }
}

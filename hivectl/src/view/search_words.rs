//! The words of a search, highlighted in its hits.
//!
//! What it is not: the search. It compares letters only, so a word that matches without its accents
//! is not highlighted.

use std::ops::Range;

use crate::output::style::Style;

/// Characters that are shown before the first word that was found.
const BEFORE: usize = 30;

#[derive(Clone, Debug, Default)]
pub(crate) struct SearchWords {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Word {
    lower: String,
    /// Whether it is the beginning of the words that are meant.
    begins: bool,
}

impl SearchWords {
    /// Returns the words in a search as the broker reads it: `"a phrase"`, `wor*`, and words.
    pub(crate) fn parse(query: &str) -> Self {
        let words = query
            .split(|c: char| !c.is_alphanumeric() && c != '*')
            .filter(|word| word.chars().any(char::is_alphanumeric));
        let word = |word: &str| Word {
            lower: word.trim_matches('*').to_lowercase(),
            begins: word.ends_with('*'),
        };
        Self { words: words.map(word).collect() }
    }

    fn found(&self, text: &str) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut begin = None;
        let ends = text.char_indices().chain([(text.len(), ' ')]);
        for (at, c) in ends {
            match (begin, c.is_alphanumeric()) {
                (None, true) => begin = Some(at),
                (Some(from), false) => {
                    let lower = text[from..at].to_lowercase();
                    if self.words.iter().any(|word| {
                        lower == word.lower || word.begins && lower.starts_with(&word.lower)
                    }) {
                        found.push(from..at);
                    }
                    begin = None;
                }
                (None, false) | (Some(_), true) => {}
            }
        }
        found
    }

    /// Cuts a line to the available width, around the first match.
    pub(crate) fn excerpt(&self, line: &str, room: usize) -> String {
        let chars = line.chars().count();
        if chars <= room {
            return line.to_owned();
        }
        let first = self.found(line).first().map_or(0, |found| line[..found.start].chars().count());
        let skipped = if first + BEFORE < room { 0 } else { first.saturating_sub(BEFORE) };
        let front = if skipped > 0 { "…" } else { "" };
        let room = room.saturating_sub(front.chars().count());
        let left = chars - skipped;
        let (shown, back) = if left > room { (room.saturating_sub(1), "…") } else { (left, "") };
        let middle: String = line.chars().skip(skipped).take(shown).collect();
        format!("{front}{middle}{back}")
    }

    /// Returns the line with the words that were found made visible.
    pub(crate) fn highlighted(&self, line: &str, style: &Style) -> String {
        let mut shown = String::with_capacity(line.len());
        let mut at = 0;
        for found in self.found(line) {
            shown.push_str(&line[at..found.start]);
            shown.push_str(&style.found(&line[found.clone()]));
            at = found.end;
        }
        shown.push_str(&line[at..]);
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(query: &str, text: &str) -> Vec<String> {
        SearchWords::parse(query)
            .found(text)
            .into_iter()
            .map(|range| text[range].to_owned())
            .collect()
    }

    #[test]
    fn words_are_found_whole_whatever_their_case() {
        assert_eq!(
            found("build Green", "The BUILD is green, rebuild it: greens"),
            ["BUILD", "green"]
        );
        assert_eq!(found("\"the build\"", "the other build"), ["the", "build"]);
        assert_eq!(found("gr*", "green grass, angry"), ["green", "grass"]);
        assert_eq!(found("über", "Über-Mut"), ["Über"]);
        assert_eq!(found("\" * -", "nothing"), [""; 0]);
    }

    #[test]
    fn an_excerpt_shows_the_first_word_that_was_found() {
        let words = SearchWords::parse("needle");
        assert_eq!(words.excerpt("a needle", 8), "a needle");
        let hay = format!("{} needle {}", "h".repeat(100), "y".repeat(100));
        let excerpt = words.excerpt(&hay, 60);
        assert_eq!(excerpt, format!("…{} needle {}…", "h".repeat(29), "y".repeat(21)));
        assert_eq!(excerpt.chars().count(), 60);
        assert_eq!(words.excerpt(&"x".repeat(100), 10), format!("{}…", "x".repeat(9)));
        let end = format!("{} needle", "h".repeat(100));
        assert_eq!(words.excerpt(&end, 40), format!("…{} needle", "h".repeat(29)));
    }
}

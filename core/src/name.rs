//! Names: of agents, and of the labels under which co-processes send `Wake`.
//!
//! Invariant: no label can be mistaken for an agent, the operator or the broker.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest name or label, in characters.
pub const NAME_CHARS_MAX: usize = 63;

/// Words that are invalid as names and labels, because they have another meaning.
pub const RESERVED: [&str; 8] =
    ["operator", "system", "reminder", "self", "external", "parent", "everyone", "hive"];

/// Further words that are invalid as labels: in mail they would pass for the operator, Hive, or the
/// model's maker. Agents may have them.
pub const RESERVED_LABELS: [&str; 9] =
    ["broker", "hived", "hivectl", "user", "admin", "root", "human", "claude", "anthropic"];

/// Why a text is not a name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// The text is empty.
    #[error("a name is empty")]
    Empty,
    /// The text is too long.
    #[error("`{0}` is longer than {NAME_CHARS_MAX} characters")]
    TooLong(String),
    /// A character is not allowed in names.
    #[error(
        "`{0}` is no name: use lower-case letters, digits, `-` and `_`, and begin with a letter"
    )]
    BadCharacter(String),
    /// The text has an `@`, which names of other hives will have.
    #[error("`{0}` is no name of this hive: no name here has an `@`")]
    OfAnotherHive(String),
    /// The word is reserved.
    #[error("`{0}` is a reserved word")]
    Reserved(String),
}

fn check(text: &str, extra: &[char]) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > NAME_CHARS_MAX {
        return Err(InvalidName::TooLong(text.chars().take(NAME_CHARS_MAX).collect()));
    }
    if text.contains('@') {
        return Err(InvalidName::OfAnotherHive(text.to_owned()));
    }
    let begins_well = text.starts_with(|c: char| c.is_ascii_lowercase());
    let goes_on_well = text.chars().all(|c| {
        c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_' || extra.contains(&c)
    });
    if !begins_well || !goes_on_well {
        return Err(InvalidName::BadCharacter(text.to_owned()));
    }
    if RESERVED.contains(&text) {
        return Err(InvalidName::Reserved(text.to_owned()));
    }
    Ok(())
}

/// The name of an agent: lower-case letters, digits, `-` and `_`, beginning with a letter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// Parses a name.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        check(text, &[])?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AgentName {
    type Error = InvalidName;
    fn try_from(text: String) -> Result<Self, InvalidName> {
        Self::parse(&text)
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The label of a `Wake`: like an agent's name, but dots are allowed. The code that knows the
/// agents checks that it resembles no agent's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Label(String);

impl Label {
    /// Parses a label.
    pub fn parse(text: &str) -> Result<Self, InvalidName> {
        check(text, &['.'])?;
        Ok(Self(text.to_owned()))
    }

    /// Returns the names of agents that it could pass for: itself, and itself without trailing
    /// punctuation.
    #[must_use]
    pub fn looks_like(&self) -> [&str; 2] {
        [&self.0, self.0.trim_end_matches(['.', '-', '_'])]
    }

    /// Returns the reserved word that the label resembles. A label that contains one among other
    /// letters, such as `claude-review`, resembles none.
    #[must_use]
    pub fn looks_reserved(&self) -> Option<&'static str> {
        let shape = shape(&self.0);
        RESERVED.into_iter().chain(RESERVED_LABELS).find(|word| shape == self::shape(word))
    }

    /// Returns the label as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the shape of a text at a glance: without punctuation, and with one letter for all
/// similar characters. Names and labels are ASCII, so other alphabets are not folded.
fn shape(text: &str) -> String {
    let letters =
        text.chars().filter(char::is_ascii_alphanumeric).map(|c| match c.to_ascii_lowercase() {
            '0' => 'o',
            '1' | 'i' | 'j' => 'l',
            '2' => 'z',
            '3' => 'e',
            '4' => 'a',
            '5' => 's',
            '6' | '8' => 'b',
            '7' => 't',
            '9' => 'g',
            letter => letter,
        });
    letters.collect::<String>().replace("rn", "m").replace("vv", "w")
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the candidates nearest to `wanted`, best first, at most three; dissimilar ones are left
/// out.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    // A mistyped name differs in a few letters; a name half remembered has the same beginning.
    let alike = |name: &str| {
        strsim::jaro_winkler(wanted, name) > 0.7
            || strsim::normalized_damerau_levenshtein(wanted, name) > 0.6
    };
    let mut scored: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter(|name| alike(name))
        .map(|name| (strsim::damerau_levenshtein(wanted, name), name))
        .collect();
    scored.sort_unstable();
    scored.into_iter().take(3).map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_this_hive_has_an_at_sign() {
        for text in ["ada@hive", "@ada", "ada@", "@"] {
            let fault = AgentName::parse(text).expect_err(text);
            assert_eq!(fault, InvalidName::OfAnotherHive(text.to_owned()));
            assert!(fault.to_string().contains("no name here has an `@`"), "{fault}");
            assert!(Label::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_plain_words() {
        for good in ["bob", "b", "agent-1", "a_b"] {
            assert!(AgentName::parse(good).is_ok(), "{good}");
        }
        for bad in
            ["", "Bob", "1a", "-a", "a b", "a/b", "..", "a.b", "operator", "self", "ä", "a\n"]
        {
            assert!(AgentName::parse(bad).is_err(), "{bad:?}");
        }
        assert!(AgentName::parse(&"a".repeat(63)).is_ok());
        assert!(AgentName::parse(&"a".repeat(64)).is_err());
    }

    #[test]
    fn labels_may_have_dots_but_no_reserved_word() {
        assert!(Label::parse("matrix.room").is_ok());
        for bad in
            ["operator", "system", "reminder", "self", "external", "external:x", "Operator", "a b"]
        {
            assert!(Label::parse(bad).is_err(), "{bad:?}");
        }
        let reserved = |text: &str| Label::parse(text).expect("a label").looks_reserved();
        assert_eq!(
            (reserved("operator."), reserved("s.e-l_f"), reserved("self-test")),
            (Some("operator"), Some("self"), None)
        );
    }

    #[test]
    fn a_label_similar_to_a_reserved_word_is_recognised() {
        let reserved = |text: &str| Label::parse(text).expect("a label").looks_reserved();
        for word in RESERVED_LABELS {
            assert_eq!(reserved(word), Some(word));
            assert_eq!(reserved(&format!("{word}-")), Some(word));
            assert!(AgentName::parse(word).is_ok(), "{word}: agents may have it");
        }
        for (label, word) in [
            ("cl4ude", "claude"),
            ("c1aude", "claude"),
            ("ciaude", "claude"),
            ("r00t", "root"),
            ("u5er", "user"),
            ("us3r", "user"),
            ("h.u-m_a.n", "human"),
            ("hurnan", "human"),
            ("adm1n", "admin"),
            ("admln", "admin"),
            ("hlved", "hived"),
            ("hivect1", "hivectl"),
            ("operat0r", "operator"),
            ("anthr0p1c", "anthropic"),
            ("h1ve", "hive"),
        ] {
            assert_eq!(reserved(label), Some(word), "{label}");
        }
        for ordinary in [
            "claude-review",
            "bash",
            "user-feedback",
            "rooting",
            "matrix.room",
            "ci",
            "cron",
            "admin-panel",
            "users",
        ] {
            assert_eq!(reserved(ordinary), None, "{ordinary}");
        }
    }

    #[test]
    fn nearest_names_are_offered_best_first() {
        assert_eq!(nearest("bbo", ["alice", "bob", "bobby"]), ["bob", "bobby"]);
        assert!(nearest("zzz", ["alice", "bob"]).is_empty());
    }
}

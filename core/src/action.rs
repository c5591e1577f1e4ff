//! Actions: commands of the operator that agents may ask to run.
//!
//! An agent chooses an action and its arguments, and nothing else of the command. Invariant: an
//! argument is what the operator's pattern allows as a whole, cannot be taken for an option, and is
//! one argument or a part of one; no shell sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use regex_lite::Regex;

use crate::name::AgentName;

/// What precedes the name of an action in a grant.
pub const GRANT_PREFIX: &str = "action:";
/// Time limit of an action that states none.
pub const ACTION_TIMEOUT: Duration = Duration::from_secs(600);
/// Longest name of an action or of an argument, in characters.
const NAME_CHARS_MAX: usize = 40;
/// Longest argument, in bytes.
const ARGUMENT_BYTES_MAX: usize = 1024;

/// A command that agents may ask to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action {
    /// The program, and its arguments, in which `{NAME}` stands for an argument of the agent.
    pub command: Vec<String>,
    /// A command like it that shows what it would do, run before the operator is asked.
    pub preview: Option<Vec<String>>,
    /// The purpose, for agents.
    pub description: String,
    /// The agents that may ask for it.
    pub agents: Vec<AgentName>,
    /// The arguments by name, each with what it may be.
    pub args: BTreeMap<String, Pattern>,
    /// Its time limit.
    pub timeout: Duration,
}

/// What an argument may be, as a whole.
#[derive(Clone, Debug)]
pub struct Pattern {
    text: String,
    whole: Regex,
}

impl Pattern {
    /// Reads a regular expression.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        // By itself first: parts of two groups could be one valid expression together.
        Regex::new(text).map_err(|error| error.to_string())?;
        let whole = Regex::new(&format!(r"\A(?:{text})\z")).map_err(|error| error.to_string())?;
        Ok(Self { text: text.to_owned(), whole })
    }

    /// Returns it as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn matches(&self, value: &str) -> bool {
        self.whole.is_match(value)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Pattern {}

/// The actions of a configuration, by name.
pub type Actions = BTreeMap<String, Action>;

/// Returns whether a text can be the name of an action or of an argument.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(plain)
}

/// Returns what stands for an argument in a command.
#[must_use]
pub fn placeholder(name: &str) -> String {
    format!("{{{name}}}")
}

/// Why an agent cannot have an action run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// An argument is missing.
    #[error("the argument `{0}` is missing")]
    Missing(String),
    /// There is no such argument.
    #[error("there is no argument `{0}`")]
    Unknown(String),
    /// The operator's pattern does not allow it.
    #[error("`{name}` must match {pattern} as a whole, and not begin with `-`")]
    NotAllowed {
        /// The argument.
        name: String,
        /// The pattern.
        pattern: String,
    },
}

impl Action {
    /// Returns the command with these arguments.
    pub fn argv(&self, args: &BTreeMap<String, String>) -> Result<Vec<String>, Fault> {
        if let Some(name) = args.keys().find(|name| !self.args.contains_key(*name)) {
            return Err(Fault::Unknown(name.clone()));
        }
        for (name, pattern) in &self.args {
            let value = args.get(name).ok_or_else(|| Fault::Missing(name.clone()))?;
            // Whatever the pattern: a line end would forge a line of a diff or of a log.
            let is_plain = value.len() <= ARGUMENT_BYTES_MAX
                && !value.starts_with('-')
                && !value.chars().any(|c| c.is_control() || crate::hidden::hides(c));
            if !is_plain || !pattern.matches(value) {
                let (name, pattern) = (name.clone(), pattern.as_str().to_owned());
                return Err(Fault::NotAllowed { name, pattern });
            }
        }
        Ok(self.command.iter().map(|word| filled(word, args)).collect())
    }

    /// Returns the command of the preview with these arguments, if the action has one.
    pub fn preview_argv(
        &self,
        args: &BTreeMap<String, String>,
    ) -> Result<Option<Vec<String>>, Fault> {
        self.argv(args)?;
        let words = self.preview.as_ref();
        Ok(words.map(|words| words.iter().map(|word| filled(word, args)).collect()))
    }
}

/// Returns a word with the arguments in their places. What an argument brings is not read again.
fn filled(word: &str, args: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = word;
    while let Some(start) = rest.find('{') {
        let known = args.iter().find(|(name, _)| rest[start..].starts_with(&placeholder(name)));
        let (before, after) = rest.split_at(start);
        filled.push_str(before);
        match known {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &after[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &after[1..];
            }
        }
    }
    filled + rest
}

/// Returns a command on one line, as a shell would take it.
#[must_use]
pub fn shown(argv: &[String]) -> String {
    let is_plain = |word: &String| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_=/.,:@%+".contains(c))
    };
    let words = argv.iter().map(|word| {
        if is_plain(word) {
            word.clone()
        } else {
            let visible: String = word
                .chars()
                .map(|c| if c.is_control() { c.escape_unicode().to_string() } else { c.into() })
                .collect();
            format!("'{}'", visible.replace('\'', r"'\''"))
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(command: &[&str], args: &[(&str, &str)]) -> Action {
        Action {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            preview: None,
            description: String::new(),
            agents: Vec::new(),
            args: args
                .iter()
                .map(|(name, text)| ((*name).to_owned(), Pattern::parse(text).expect("one")))
                .collect(),
            timeout: ACTION_TIMEOUT,
        }
    }

    fn given(args: &[(&str, &str)]) -> BTreeMap<String, String> {
        args.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn an_argument_goes_to_its_place_and_nothing_of_it_is_read_again() {
        let action = action(
            &["git", "show", "--rev={commit}", "{a}{commit}{b}"],
            &[("commit", "[0-9a-f]{40}"), ("a", ".*")],
        );
        let argv = action.argv(&given(&[("commit", COMMIT), ("a", "{commit}; reboot")]));
        let rev = format!("--rev={COMMIT}");
        let last = format!("{{commit}}; reboot{COMMIT}{{b}}");
        assert_eq!(argv, Ok(vec!["git".to_owned(), "show".to_owned(), rev, last]));
    }

    #[test]
    fn what_the_pattern_does_not_allow_as_a_whole_is_refused() {
        let action = action(&["apply", "{commit}"], &[("commit", "[0-9a-f]{40}|x.*|-.*")]);
        let with = |value: &str| action.argv(&given(&[("commit", value)]));
        assert!(with(COMMIT).is_ok() && with("x y").is_ok());
        let tail = format!("{COMMIT}; reboot");
        let line = format!("{COMMIT}\n");
        let head = format!("-{COMMIT}");
        let long = format!("x{}", "y".repeat(ARGUMENT_BYTES_MAX));
        for wrong in ["", "0123", &tail, &line, &head, "-x", "x\ny", "x\u{202e}y", "x\0", &long] {
            assert!(matches!(with(wrong), Err(Fault::NotAllowed { .. })), "{wrong:?}");
        }
        assert_eq!(action.argv(&given(&[])), Err(Fault::Missing("commit".to_owned())));
        let more = given(&[("commit", COMMIT), ("force", "yes")]);
        assert_eq!(action.argv(&more), Err(Fault::Unknown("force".to_owned())));
    }

    #[test]
    fn a_preview_takes_the_same_arguments_and_needs_none() {
        let mut action = action(&["apply", "{commit}"], &[("commit", "[0-9a-f]{40}")]);
        let commit = given(&[("commit", COMMIT)]);
        assert_eq!(action.preview_argv(&commit), Ok(None));
        action.preview = Some(vec!["git".to_owned(), "..{commit}".to_owned()]);
        let argv = vec!["git".to_owned(), format!("..{COMMIT}")];
        assert_eq!(action.preview_argv(&commit), Ok(Some(argv)));
        action.preview = Some(vec!["date".to_owned()]);
        assert_eq!(action.preview_argv(&commit), Ok(Some(vec!["date".to_owned()])));
        let wrong = given(&[("commit", "--output=x")]);
        assert!(matches!(action.preview_argv(&wrong), Err(Fault::NotAllowed { .. })));
    }

    #[test]
    fn a_pattern_is_one_expression() {
        assert!(Pattern::parse("a)|(?:b").is_err(), "it would end the group around it");
        assert!(Pattern::parse("[").is_err());
    }

    #[test]
    fn a_command_is_shown_on_one_line() {
        let argv = ["git", "-C", "/etc/nixos", "a b", "it's", "", "x\ny"].map(str::to_owned);
        assert_eq!(shown(&argv), r"git -C /etc/nixos 'a b' 'it'\''s' '' 'x\u{a}y'");
    }

    #[test]
    fn names_fit_the_names_of_tools() {
        assert!(is_name("apply_commit") && is_name("a1"));
        for wrong in ["", "Apply", "1a", "_a", "a-b", "a b", &"a".repeat(41)] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }
}

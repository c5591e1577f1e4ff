//! The line that is being completed: its broker, and the arguments that it already has.
//!
//! Invariant: a line that makes no sense yet is no error; what cannot be read of it is not there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::parser::ArgMatches;
use clap::{Command, FromArgMatches as _};

use crate::context::{Global, SOCKET_ENV};

/// The index of the word at the cursor; without it that is the last one.
const INDEX_ENV: &str = "_CLAP_COMPLETE_INDEX";

/// Separates an option from its value.
const EQUALS: &str = "=";

/// Precedes the words of the line.
const BEGIN: &str = "--";

/// The command line that words are read by. Completers are made before it is known.
static GRAMMAR: OnceLock<fn() -> Command> = OnceLock::new();

pub(super) fn set_grammar(command: fn() -> Command) {
    GRAMMAR.get_or_init(|| command);
}

#[derive(Clone, Debug)]
pub(super) struct Line {
    /// The arguments without the word at the cursor.
    matches: ArgMatches,
}

pub(super) fn is_given() -> bool {
    std::env::args_os().any(|arg| arg == BEGIN)
}

impl Line {
    pub(super) fn given() -> Self {
        let words = std::env::args_os().skip_while(|arg| arg != BEGIN).skip(1).collect();
        let index = std::env::var(INDEX_ENV).ok().and_then(|index| index.parse().ok());
        Self::parse(words, index)
    }

    fn parse(mut words: Vec<OsString>, index: Option<usize>) -> Self {
        let cursor = index.unwrap_or_else(|| words.len().saturating_sub(1));
        if cursor < words.len() {
            words.remove(cursor);
        }
        let matches = matches(&joined(words))
            .or_else(|| matches(&[OsString::from("hivectl")]))
            .unwrap_or_default();
        Self { matches }
    }

    pub(super) fn socket(&self) -> PathBuf {
        let mut global = Global::from_arg_matches(&self.matches).unwrap_or_default();
        let of_environment =
            || std::env::var_os(SOCKET_ENV).filter(|socket| !socket.is_empty()).map(PathBuf::from);
        // The shell has not expanded it yet.
        global.socket = global.socket.map(|socket| at_home(&socket)).or_else(of_environment);
        global.socket()
    }

    pub(super) fn value<T: Clone + Send + Sync + 'static>(&self, argument: &str) -> Option<T> {
        self.command().try_get_one::<T>(argument).ok().flatten().cloned()
    }

    /// Returns whether the line's command already has this id.
    pub(super) fn has(&self, id: u64) -> bool {
        let ids = self.command().try_get_many::<u64>("ids").ok().flatten();
        ids.is_some_and(|mut ids| ids.any(|other| *other == id))
    }

    fn command(&self) -> &ArgMatches {
        let mut command = &self.matches;
        while let Some((_, below)) = command.subcommand() {
            command = below;
        }
        command
    }
}

fn matches(words: &[OsString]) -> Option<ArgMatches> {
    let grammar = GRAMMAR.get()?;
    grammar().ignore_errors(true).try_get_matches_from(words).ok()
}

/// Bash takes `--socket=PATH` for three words; here they are one.
fn joined(words: Vec<OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::with_capacity(words.len());
    for word in words {
        match joined.last_mut().filter(|last| is_option(last)) {
            Some(option)
                if word == EQUALS
                    || option.to_str().is_some_and(|option| option.ends_with(EQUALS)) =>
            {
                option.push(word);
            }
            Some(_) | None => joined.push(word),
        }
    }
    joined
}

/// Rewrites `--option = value` for clap, which counts words: an option and its value after a flag
/// without effect.
pub(super) fn apart(mut words: Vec<OsString>) -> Vec<OsString> {
    for at in 2..words.len() {
        if words[at - 1] == EQUALS && is_option(&words[at - 2]) {
            words[at - 1] = std::mem::replace(&mut words[at - 2], OsString::from("--json"));
        }
    }
    words
}

fn is_option(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.len() > 2 && word.starts_with("--"))
}

/// Expands `~/` to the home directory.
fn at_home(path: &Path) -> PathBuf {
    let home = std::env::home_dir();
    match (path.strip_prefix("~"), home) {
        (Ok(below), Some(home)) => home.join(below),
        (Ok(_) | Err(_), _) => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    fn line(words: &[&str]) -> Line {
        set_grammar(Cli::command);
        Line::parse(words.iter().map(OsString::from).collect(), None)
    }

    #[test]
    fn the_socket_is_that_of_the_line_wherever_it_stands() {
        for words in [
            &["hivectl", "--socket", "/s", "send", "a"][..],
            &["hivectl", "send", "--socket", "/s", "a"],
            &["hivectl", "send", "--socket=/s", "a"],
            &["hivectl", "send", "--socket", "=", "/s", "a"],
            &["hivectl", "inbox", "read", "--socket", "/s", "a"],
            &["hivectl", "turn", "release", "--socket", "/s", "--nonsense", "a"],
        ] {
            assert_eq!(line(words).socket(), Path::new("/s"), "{words:?}");
        }
    }

    #[test]
    fn what_stands_in_the_line_is_known_but_for_the_word_at_the_cursor() {
        let held = line(&["hivectl", "turn", "release", "bob", "12", "1"]);
        assert_eq!(held.value::<String>("agent").as_deref(), Some("bob"));
        assert!(held.has(12) && !held.has(1));
        let answer = Line::parse(
            ["hivectl", "answer", "30", "--choice", "y", "text"].map(OsString::from).to_vec(),
            Some(4),
        );
        assert_eq!(answer.value::<u64>("id"), Some(30));
        assert_eq!(answer.value::<String>("nonsense"), None);
    }

    #[test]
    fn what_bash_took_apart_is_an_option_and_its_value() {
        let apart = |words: &[&str]| apart(words.iter().map(OsString::from).collect());
        assert_eq!(
            apart(&["hivectl", "--socket", "=", "/s", "send", "a"]),
            ["hivectl", "--json", "--socket", "/s", "send", "a"]
        );
        for as_it_was in [
            &["hivectl", "inbox", "--agent", "="][..],
            &["hivectl", "send", "a", "=", "b"],
            &["--", "=", "x"],
            &[],
        ] {
            assert_eq!(apart(as_it_was), as_it_was);
        }
    }

    #[test]
    fn no_line_is_an_error() {
        for words in [
            &[][..],
            &["hivectl"],
            &["hivectl", "--help", ""],
            &["hivectl", "sned", "--", "x"],
            &["hivectl", "--timeout", "x", ""],
        ] {
            assert_eq!(line(words).value::<String>("agent"), None, "{words:?}");
        }
    }
}

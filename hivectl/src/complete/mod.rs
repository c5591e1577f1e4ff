//! What a shell offers at its cursor: commands and options by clap, and here the names and ids that
//! exist just now.
//!
//! The script that `hivectl completions SHELL` prints makes the shell call this program with
//! `COMPLETE=SHELL` and the words of the line. Then it prints what can stand at the cursor, and
//! does nothing else.
//!
//! Invariant: a shell that asks gets an answer soon, and never an error. Where the broker is away,
//! slow, or another program, nothing is offered.

mod agents;
mod candidate;
mod line;
mod live;
mod mail;
mod open;
mod turns;
mod words;

use std::process::ExitCode;

use clap::CommandFactory as _;
use clap_complete::env::CompleteEnv;

pub(crate) use self::agents::{agents, agents_and_operator};
pub(crate) use self::mail::{dead_letters, held, mail, messages};
pub(crate) use self::open::{options, questions, reminders};
pub(crate) use self::turns::{models, open_turns, turns_and_agents};
pub(crate) use self::words::{capabilities, tool_groups, tool_groups_or_default};
use crate::cli::Cli;

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// Answers a shell that asks what can stand at its cursor; `None` where none asks.
pub(crate) fn answer() -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    let asked = CompleteEnv::with_factory(Cli::command).var(VARIABLE);
    match asked.try_complete(line::apart(std::env::args_os().collect()), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        // What is printed here stands in the middle of the line that somebody types.
        Err(_) if line::is_given() => Some(ExitCode::SUCCESS),
        Err(error) => error.exit(),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};
    use clap_complete::engine::ArgValueCompleter;

    use super::*;

    /// Arguments for which there is nothing to offer: new names, texts and numbers of somebody's
    /// own.
    const FREE: [&str; 20] = [
        "agent create model",
        "agent create name",
        "agent create role",
        "agent set-policy questions_open",
        "agent set-policy reminders_pending",
        "agent set-policy sends_per_minute",
        "agent set-policy stored_bytes",
        "answer text",
        "ask options",
        "ask question",
        "ask ttl",
        "events after",
        "events last",
        "questions last",
        "questions list last",
        "search limit",
        "search words",
        "send body",
        "stats window",
        "turn list last",
    ];

    fn look(command: &Command, path: &str, free: &mut Vec<String>) {
        let is_free = |argument: &&Arg| {
            let takes = argument.get_num_args().is_some_and(|count| count.takes_values());
            let offers = argument.get::<ArgValueCompleter>().is_some()
                || !argument.get_possible_values().is_empty();
            let is_path = argument.get_value_hint() != clap::ValueHint::Unknown;
            takes && !offers && !is_path && !argument.is_global_set()
        };
        free.extend(
            command
                .get_arguments()
                .filter(is_free)
                .map(|argument| format!("{path}{}", argument.get_id())),
        );
        for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
            look(below, &format!("{path}{} ", below.get_name()), free);
        }
    }

    #[test]
    fn every_argument_is_completed_or_free() {
        let mut command = Cli::command();
        command.build();
        let mut free = Vec::new();
        look(&command, "", &mut free);
        free.sort();
        assert_eq!(free, FREE.map(str::to_owned), "give it a completer, or list it");
    }
}

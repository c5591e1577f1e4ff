//! Shell completion: clap offers commands and options, this module the names and ids of the hive.
//!
//! The script that `hivectl completions SHELL` prints makes the shell call this program with
//! `COMPLETE=SHELL` and the words of the line. The program then prints the candidates and ends.
//!
//! Invariant: a shell that asks gets an answer soon, and never an error. Where the broker is away,
//! slow, or another program, nothing is offered.

mod candidate;
mod line;
mod live;
mod offer;

use std::process::ExitCode;

use clap_complete::env::CompleteEnv;

pub(crate) use self::offer::{
    agents, agents_and_operator, capabilities, dead_letters, grants, held, mail, messages, models,
    open_turns, options, questions, reminders, schedules, schedules_in, tool_groups,
    tool_groups_or_default, turns_and_agents,
};

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "COMPLETE";

/// Answers the request of a shell for candidates; `None` if this is no such request.
pub(crate) fn answer(command: fn() -> clap::Command) -> Option<ExitCode> {
    let here = std::env::current_dir().ok();
    line::set_grammar(command);
    let ask = CompleteEnv::with_factory(command).var(VARIABLE);
    match ask.try_complete(line::apart(std::env::args_os().collect()), here.as_deref()) {
        Ok(false) => None,
        Ok(true) => Some(ExitCode::SUCCESS),
        // The output goes into the line that is being typed, so it has no error.
        Err(_) if line::is_given() => Some(ExitCode::SUCCESS),
        Err(error) => error.exit(),
    }
}

//! The command line: what there is, and which code runs it.
//!
//! Invariant: every command's arguments are beside its code; here is only the table of contents.

use clap::{Parser, Subcommand};

use crate::command::{
    agent, agents, answer, ask, backup, completions, config, dead_letters, debug, doctor, drain,
    events, inbox, login, loose_ends, questions, reminders, restore, schedules, search, send,
    stats, status, supervise, topology, trace, turn, up,
};
use crate::context::{Context, Global};
use crate::error::Failure;
use crate::exit::Exit;
use crate::top;

const AFTER_HELP: &str = "\
Data goes to stdout, everything else to stderr. Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 denied, 5 conflict, \
6 timed out, 7 broker not reachable, 8 finished with findings.";

/// The operator's hands: mail, agents, turns and the broker of a hive.
#[derive(Debug, Parser)]
#[command(name = "hivectl", version, long_version = hive_core::version::long(), after_help = AFTER_HELP, max_term_width = 120)]
pub struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// The nouns. A variant without documentation takes that of its arguments.
#[derive(Debug, Subcommand)]
enum Command {
    /// Run a hive in the foreground: the broker and one harness per agent
    Up(up::Up),
    Supervise(supervise::Supervise),
    Inbox(inbox::Inbox),
    Send(send::Send),
    Ask(ask::Ask),
    Questions(questions::Questions),
    Answer(answer::Answer),
    Search(search::Search),
    /// List the agents
    Agents(agents::Agents),
    /// Show, create, remove or move an agent, or change what it may do
    #[command(subcommand)]
    Agent(agent::Agent),
    /// The tree of agents, with what they do
    Topology,
    /// Turns: what ran, what runs, and commands to a harness
    #[command(subcommand)]
    Turn(turn::Turn),
    Stats(stats::Stats),
    Login(login::Login),
    Reminders(reminders::Reminders),
    Schedules(schedules::Schedules),
    LooseEnds(loose_ends::LooseEnds),
    /// Events of the event log
    Events(events::Events),
    /// Mail that used up its attempts
    DeadLetters(dead_letters::DeadLetters),
    Trace(trace::Trace),
    /// The state of the broker, and problems that need attention.
    ///
    /// Ends with exit code 8 if there is one: the database cannot be written, the broker is
    /// draining, an agent starts no turns or has mail but no harness, mail is held or dead, or
    /// agents are not isolated, or partly, and the configuration does not accept that.
    Status,
    Doctor(doctor::Doctor),
    /// Collect what a report of a fault needs
    #[command(subcommand)]
    Debug(debug::Debug),
    /// The hive on a screen, live: what waits on you, what is stuck, and what everyone does
    Top,
    /// Check a configuration file
    #[command(subcommand)]
    Config(config::Config),
    Backup(backup::Backup),
    Restore(restore::Restore),
    /// Shut the broker down cleanly
    Drain,
    Completions(completions::Completions),
}

impl Cli {
    pub(crate) async fn run(self) -> Result<Exit, Failure> {
        let mut context = Context::new(&self.global);
        match self.command {
            Command::Up(up) => up.run(context).await?,
            Command::Supervise(supervise) => supervise.run(context).await?,
            Command::Inbox(inbox) => return inbox.run(&mut context).await,
            Command::Send(send) => send.run(&mut context).await?,
            Command::Ask(ask) => ask.run(&mut context).await?,
            Command::Questions(questions) => questions.run(&mut context).await?,
            Command::Answer(answer) => answer.run(&mut context).await?,
            Command::Search(search) => search.run(&mut context).await?,
            Command::Agents(agents) => agents.run(&mut context).await?,
            Command::Agent(agent) => return agent.run(&mut context).await,
            Command::Topology => topology::run(&mut context).await?,
            Command::Turn(turn) => turn.run(&mut context).await?,
            Command::Stats(stats) => stats.run(&mut context).await?,
            Command::Login(login) => login.run(&mut context).await?,
            Command::Reminders(reminders) => reminders.run(&mut context).await?,
            Command::Schedules(schedules) => schedules.run(&mut context).await?,
            Command::LooseEnds(loose_ends) => loose_ends.run(&mut context).await?,
            Command::Events(events) => events.run(&mut context).await?,
            Command::DeadLetters(dead_letters) => dead_letters.run(&mut context).await?,
            Command::Trace(trace) => trace.run(&mut context).await?,
            Command::Status => return status::run(&mut context).await,
            Command::Doctor(doctor) => return doctor.run(&mut context).await,
            Command::Debug(debug) => debug.run(&mut context).await?,
            Command::Top => top::run(&context).await?,
            Command::Config(config) => return config.run(&mut context),
            Command::Backup(backup) => backup.run(&mut context).await?,
            Command::Restore(restore) => restore.run(&mut context).await?,
            Command::Drain => drain::run(&mut context).await?,
            Command::Completions(completions) => completions.run(&mut context)?,
        }
        Ok(Exit::Ok)
    }
}

#[cfg(test)]
mod tests {
    use clap::{Arg, CommandFactory as _};
    use clap_complete::engine::ArgValueCompleter;

    use super::*;

    /// Arguments that have no candidates: new names, texts and numbers.
    const FREE: [&str; 26] = [
        "agent create model",
        "agent create name",
        "agent create role",
        "agent retire etag",
        "agent set-parent etag",
        "agent set-policy children",
        "agent set-policy etag",
        "agent set-policy questions_open",
        "agent set-policy reminders_pending",
        "agent set-policy schedules",
        "agent set-policy sends_per_minute",
        "agent set-policy stored_bytes",
        "answer diff",
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

    fn collect_free(command: &clap::Command, path: &str, free: &mut Vec<String>) {
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
            collect_free(below, &format!("{path}{} ", below.get_name()), free);
        }
    }

    #[test]
    fn every_argument_is_completed_or_free() {
        let mut command = Cli::command();
        command.build();
        let mut free = Vec::new();
        collect_free(&command, "", &mut free);
        free.sort();
        assert_eq!(free, FREE.map(str::to_owned), "give it a completer, or list it");
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

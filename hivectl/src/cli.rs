//! The command line: what there is, and where to reach the broker.
//!
//! Invariant: every command's arguments live beside its code; here is only the table of contents.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::command::{
    agent, agents, answer, ask, backup, completions, config, dead_letters, doctor, drain, events,
    inbox, login, loose_ends, questions, reminders, search, send, stats, status, top, topology,
    trace, turn, up,
};
use crate::connect;

/// How long to wait for one answer of the broker, where nothing else was said.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Names the operator socket.
pub(crate) const SOCKET_ENV: &str = "HIVE_SOCKET";

/// Under which these options stand in every command's help.
const GLOBAL: &str = "Global options";

const AFTER_HELP: &str = "\
Data goes to stdout, everything else to stderr. Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 denied, 5 conflict, \
6 timed out, 7 broker not reachable, 8 finished with findings.";

/// The operator's hands: mail, agents, turns and the broker of a hive.
#[derive(Debug, Parser)]
#[command(name = "hivectl", version, after_help = AFTER_HELP, max_term_width = 120)]
pub struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Args, Debug, Default)]
pub(crate) struct Global {
    /// The broker's operator socket [default: hived.sock of $HIVE_RUNTIME_DIR, else
    /// .hive/run/hived.sock, else /run/hive/hived.sock]
    #[arg(long, global = true, help_heading = GLOBAL, env = SOCKET_ENV, hide_env_values = true, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Print JSON: an object names its schema, a list is an array of such objects, a stream is one
    /// object per line
    #[arg(long, global = true, help_heading = GLOBAL)]
    pub(crate) json: bool,
    /// How long to wait for one answer of the broker [default: 30]
    #[arg(long, global = true, help_heading = GLOBAL, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<f64>,
}

impl Global {
    /// How long to wait for one answer of the broker.
    pub(crate) fn answer_timeout(&self) -> Duration {
        self.timeout.map_or(ANSWER_TIMEOUT, Duration::from_secs_f64)
    }

    /// The operator socket.
    pub(crate) fn socket(&self) -> PathBuf {
        let runtime_dir =
            std::env::var_os("HIVE_RUNTIME_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
        connect::socket(self.socket.as_deref(), runtime_dir, Path::new("."))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        Ok(_) | Err(_) => Err("give seconds, more than 0 and at most 86400".to_owned()),
    }
}

/// The nouns. Where one says nothing here, its own file says it, also at length.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a hive in the foreground: the broker and one harness per agent
    Up(up::Up),
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
    Topology(topology::Topology),
    /// Turns: what ran, what runs, and commands to a harness
    #[command(subcommand)]
    Turn(turn::Turn),
    Stats(stats::Stats),
    Login(login::Login),
    Reminders(reminders::Reminders),
    LooseEnds(loose_ends::LooseEnds),
    /// What happened, by the event log
    Events(events::Events),
    /// Mail that used up its attempts
    DeadLetters(dead_letters::DeadLetters),
    Trace(trace::Trace),
    Status(status::StatusCommand),
    Doctor(doctor::Doctor),
    /// The hive on a screen, live: what waits on you, what is stuck, and what everyone does
    Top(top::Top),
    /// Check a configuration file
    #[command(subcommand)]
    Config(config::Config),
    Backup(backup::Backup),
    /// Shut the broker down in good order
    Drain(drain::Drain),
    Completions(completions::Completions),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        <Cli as clap::CommandFactory>::command().debug_assert();
    }
}

//! The commands, one file per noun and verb: arguments and what they do.
//!
//! Invariant: a command reads or changes the hive by calls to the broker alone, and prints by
//! `Output` alone.

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod answer;
pub(crate) mod ask;
pub(crate) mod backup;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod dead_letters;
pub(crate) mod doctor;
pub(crate) mod drain;
pub(crate) mod events;
pub(crate) mod inbox;
pub(crate) mod login;
pub(crate) mod loose_ends;
pub(crate) mod questions;
pub(crate) mod reminders;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod stats;
pub(crate) mod status;
pub(crate) mod top;
pub(crate) mod topology;
pub(crate) mod trace;
pub(crate) mod turn;
pub(crate) mod up;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// Runs what the command line says.
pub(crate) async fn run(cli: Cli) -> Result<Exit, Failure> {
    let mut context = Context::new(&cli.global);
    match cli.command {
        Command::Up(up) => up.run(&cli.global).await,
        Command::Inbox(inbox) => inbox.run(&mut context).await,
        Command::Send(send) => send.run(&mut context).await,
        Command::Ask(ask) => ask.run(&mut context).await,
        Command::Questions(questions) => questions.run(&mut context).await,
        Command::Answer(answer) => answer.run(&mut context).await,
        Command::Search(search) => search.run(&mut context).await,
        Command::Agents(agents) => agents.run(&mut context).await,
        Command::Agent(agent) => agent.run(&mut context).await,
        Command::Topology(topology) => topology.run(&mut context).await,
        Command::Turn(turn) => turn.run(&mut context).await,
        Command::Stats(stats) => stats.run(&mut context).await,
        Command::Login(login) => login.run(&mut context).await,
        Command::Reminders(reminders) => reminders.run(&mut context).await,
        Command::LooseEnds(loose_ends) => loose_ends.run(&mut context).await,
        Command::Events(events) => events.run(&mut context).await,
        Command::DeadLetters(dead_letters) => dead_letters.run(&mut context).await,
        Command::Trace(trace) => trace.run(&mut context).await,
        Command::Status(status) => status.run(&mut context).await,
        Command::Doctor(doctor) => doctor.run(&mut context).await,
        Command::Top(top) => top.run(&mut context).await,
        Command::Config(config) => config.run(&mut context),
        Command::Backup(backup) => backup.run(&mut context).await,
        Command::Drain(drain) => drain.run(&mut context).await,
        Command::Completions(completions) => completions.run(&mut context),
    }
}

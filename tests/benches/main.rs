//! `make bench`: what Hive costs, as ratios to what this machine can do at all, measured in one
//! run.
//!
//! Rounds of the floor and of Hive take turns, so a machine that grows slower slows both. Each
//! figure is a median over the rounds with its smallest and largest. The load generator shares the
//! cores with the server. Everything runs on default settings, and "accepted" means synced.
//! Invariant: nothing here decides whether a test passes; it prints, and a person compares with
//! `docs/performance.md`.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod cli;
mod floors;
mod isolation;
mod resident;
mod sample;
mod search;
mod servers;
mod talk;
mod w1;
mod w2;
mod w5;
mod w6;

use std::io::Write as _;

use sample::Report;

/// Rounds of every workload.
const ROUNDS: usize = 5;

fn main() -> anyhow::Result<()> {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .map(|arg| arg.to_lowercase())
        .collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if wanted.as_slice() == ["echo-server"] {
        return floors::echo_server();
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::new();
    runtime.block_on(async {
        if wants("w1") {
            w1::run(&mut report).await?;
        }
        if wants("w2") {
            w2::run(&mut report).await?;
        }
        if wants("w5") {
            w5::run(&mut report).await?;
        }
        if wants("w6") {
            w6::run(&mut report).await?;
            resident::run(&mut report).await?;
        }
        if wants("isolation") {
            isolation::run(&mut report).await?;
        }
        if wants("talk") {
            talk::run(&mut report).await?;
        }
        if wants("cli") {
            cli::run(&mut report).await?;
        }
        if wants("search") {
            search::run(&mut report).await?;
        }
        anyhow::Ok(())
    })?;
    Ok(writeln!(std::io::stdout(), "{report}")?)
}

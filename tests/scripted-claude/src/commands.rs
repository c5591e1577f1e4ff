//! Commands of claude other than turns: the login and plugins. A script's steps for the command
//! line run first, and a step may end it.

use std::io;
use std::path::Path;

use super::args::{Auth, Command};
use super::script::{self, Rule, Step};
use super::{auth, deeds, plugins};

/// Runs a command; returns the exit code.
pub(super) async fn run(command: &Command, home: &Path, rules: &[Rule]) -> io::Result<u8> {
    if let Some(code) = steps(script::steps(rules, &command.line()).unwrap_or_default()).await? {
        return Ok(code);
    }
    match command {
        Command::Auth { command: Auth::Status } => auth::status(home),
        Command::Auth { command: Auth::Login } => auth::login(home).await,
        Command::Plugin { command } => plugins::run(command, home),
    }
}

async fn steps(steps: &[Step]) -> io::Result<Option<u8>> {
    for step in steps {
        let done = if let Step::First { first, steps } = step {
            if first.exists() {
                continue;
            }
            std::fs::write(first, b"")?;
            Box::pin(self::steps(steps)).await?
        } else {
            deeds::step(step).await?
        };
        if done.is_some() {
            return Ok(done);
        }
    }
    Ok(None)
}

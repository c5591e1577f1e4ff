//! The notifier: tells the operator that something waits on them, by running a command or by
//! calling a webhook.
//!
//! What it is not: it knows no database and decides nothing; which things are told, and again after
//! a failure, is the task's affair. Invariant: a telling ends within its limit, and whatever it
//! started ends with it; one that is dropped ends at once.

mod command;
mod item;
mod webhook;

#[cfg(test)]
mod tests;

use hive_core::config::Notify;

use crate::engine::attention::Item;
use command::Command;
use webhook::Webhook;

/// Why the notifier cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The URL cannot be called.
    #[error("the URL of `operator.notify.webhook` cannot be called")]
    Url(#[source] http::uri::InvalidUri),
    /// There is nobody to vouch for a server.
    #[error(
        "`operator.notify.webhook` is an https URL, and this host has no certificates to know its server by; install them (often a package \
         `ca-certificates`), or name them in SSL_CERT_FILE"
    )]
    NoCertificates(#[source] std::io::Error),
}

/// Why the operator could not be told.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// The program did not start.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// What the host said.
        source: std::io::Error,
    },
    /// It could not be waited for.
    #[error("`{program}` was lost: {source}")]
    Lost {
        /// The program.
        program: String,
        /// What the host said.
        source: std::io::Error,
    },
    /// The program ended badly.
    #[error("`{program}` ended with {status}; the end of its output: {tail:?}")]
    Ended {
        /// The program.
        program: String,
        /// How.
        status: std::process::ExitStatus,
        /// The last that it printed.
        tail: String,
    },
    /// The program did not end.
    #[error("`{program}` did not end within {} s and was killed; the end of its output: {tail:?}", .limit.as_secs())]
    TooLong {
        /// The program.
        program: String,
        /// How long it had.
        limit: std::time::Duration,
        /// The last that it printed.
        tail: String,
    },
    /// The server did not take it.
    #[error("{host} answered {status}")]
    Refused {
        /// The server.
        host: String,
        /// Its answer.
        status: http::StatusCode,
    },
    /// The server was not reached.
    #[error("{host} could not be reached: {reason}")]
    NotReached {
        /// The server.
        host: String,
        /// Why, with all that caused it.
        reason: String,
    },
    /// The server did not answer.
    #[error("{host} did not answer within {} s", .limit.as_secs())]
    NoAnswer {
        /// The server.
        host: String,
        /// How long it had.
        limit: std::time::Duration,
    },
}

/// How the operator is told.
#[derive(Debug)]
pub struct Notifier(How);

#[derive(Debug)]
enum How {
    Command(Command),
    Webhook(Box<Webhook>),
}

impl Notifier {
    /// Sets up what the configuration says.
    pub fn new(notify: &Notify) -> Result<Self, SetUpError> {
        Ok(Self(match notify {
            Notify::Command(words) => {
                How::Command(Command::new(words.clone(), std::env::vars_os()))
            }
            Notify::Webhook(url) => How::Webhook(Box::new(Webhook::new(url)?)),
        }))
    }

    /// Tells the operator of one thing.
    pub async fn tell(&self, item: &Item) -> Result<(), NotifyError> {
        match &self.0 {
            How::Command(command) => command.run(item).await,
            How::Webhook(webhook) => webhook.post(item).await,
        }
    }
}

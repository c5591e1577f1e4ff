//! The notifier: notifies the operator of an item, by running a command or by calling a webhook.
//!
//! It knows no database; the task decides which items to report, and when to retry. Invariant: a
//! notification ends within its time limit, and every process that it started ends with it. A
//! dropped notification ends at once.

mod command;
mod item;
mod webhook;

#[cfg(test)]
mod tests;

use std::fs::File;

use hive_core::config::{Notify, check_webhook};
use hive_core::secret::{CREDENTIALS_ENV, Secret, SecretError};

use crate::engine::mail::outbox::Item;
use command::Command;
use webhook::Webhook;

/// Why the notifier cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetUpError {
    /// The URL cannot be called.
    #[error("the URL of `operator.notify.webhook` cannot be called")]
    Url(#[source] http::uri::InvalidUri),
    /// The URL that is kept elsewhere cannot be read.
    #[error("the URL of `operator.notify.webhook` is not known")]
    Secret(#[source] SecretError),
    /// The URL that is kept elsewhere is none that can be called; it is not shown.
    #[error("the secret that `operator.notify.webhook` names {0}")]
    NoUrl(&'static str),
    /// The host has no certificates by which to trust a server.
    #[error(
        "`operator.notify.webhook` is an https URL, and this host has no certificates to know its server by; install them (often a package \
         `ca-certificates`), or name them in SSL_CERT_FILE"
    )]
    NoCertificates(#[source] std::io::Error),
}

/// Why a notification of the operator failed.
#[derive(Debug, thiserror::Error)]
pub enum NotifyError {
    /// The program did not start.
    #[error("`{program}` cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// The error of the host.
        source: std::io::Error,
    },
    /// The exit of the program could not be read.
    #[error("`{program}` was lost: {source}")]
    Lost {
        /// The program.
        program: String,
        /// The error of the host.
        source: std::io::Error,
    },
    /// The program failed.
    #[error("`{program}` ended with {status}; the end of its output: {tail:?}")]
    Ended {
        /// The program.
        program: String,
        /// The exit status of the program.
        status: std::process::ExitStatus,
        /// The end of its output.
        tail: String,
    },
    /// The program did not end within its time limit.
    #[error("`{program}` did not end within {} s and was killed; the end of its output: {tail:?}", .limit.as_secs())]
    TooLong {
        /// The program.
        program: String,
        /// The time limit.
        limit: std::time::Duration,
        /// The end of its output.
        tail: String,
    },
    /// The server refused the item.
    #[error("{host} answered {status}")]
    Refused {
        /// The host of the URL.
        host: String,
        /// The status of the response.
        status: http::StatusCode,
    },
    /// The server could not be reached.
    #[error("{host} could not be reached: {reason}")]
    NotReached {
        /// The host of the URL.
        host: String,
        /// The error with all its causes.
        reason: String,
    },
    /// The server did not answer within its time limit.
    #[error("{host} did not answer within {} s", .limit.as_secs())]
    NoAnswer {
        /// The host of the URL.
        host: String,
        /// The time limit.
        limit: std::time::Duration,
    },
}

/// The way to notify the operator.
#[derive(Debug)]
pub struct Notifier(How);

#[derive(Debug)]
enum How {
    Command(Command),
    Webhook(Box<Webhook>),
}

/// Returns the URL of the webhook. Its file is read once, so a changed one applies after a restart.
fn url(secret: &Secret) -> Result<String, SetUpError> {
    let credentials = std::env::var_os(CREDENTIALS_ENV);
    let url = secret.value(credentials.as_deref(), |path| File::open(path));
    let url = url.map_err(SetUpError::Secret)?;
    check_webhook(&url).map_err(SetUpError::NoUrl)?;
    Ok(url)
}

impl Notifier {
    /// Returns the notifier of the configuration.
    pub fn new(notify: &Notify) -> Result<Self, SetUpError> {
        Ok(Self(match notify {
            Notify::Command(words) => {
                How::Command(Command::new(words.clone(), std::env::vars_os()))
            }
            Notify::Webhook(url) => How::Webhook(Box::new(Webhook::new(&self::url(url)?)?)),
        }))
    }

    /// Notifies the operator of one item.
    pub async fn notify(&self, item: &Item) -> Result<(), NotifyError> {
        match &self.0 {
            How::Command(command) => command.run(item).await,
            How::Webhook(webhook) => webhook.post(item).await,
        }
    }
}

//! A command that notifies the operator: one process per item.
//!
//! It gets the item as JSON on stdin, and in variables. Invariant: its output is used only in the
//! log of a failure.

use std::ffi::OsString;
use std::time::Duration;

use super::{NotifyError, item};
use crate::engine::mail::outbox::Item;
use crate::program::{self, Program, RunError};

/// Time limit of a command.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of its output that are kept.
const TAIL_BYTES_MAX: usize = 2 * 1024;

/// The variables of the broker's environment that a command gets: those that programs need to run,
/// and those that a desktop notification needs.
const PASSED: [&str; 7] = [
    "PATH",
    "HOME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// The command of the configuration.
#[derive(Debug)]
pub(super) struct Command {
    words: Vec<String>,
    env: Vec<(OsString, OsString)>,
}

impl Command {
    /// Returns a command with the variables of this environment that it needs.
    pub(super) fn new(
        words: Vec<String>,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        Self { words, env: program::passed(env, &PASSED) }
    }

    /// Runs it for an item, until it ends.
    pub(super) async fn run(&self, item: &Item) -> Result<(), NotifyError> {
        let program = || self.words.first().cloned().unwrap_or_default();
        let own = variables(item).map(|(name, value)| (name.into(), value.into()));
        let run = Program {
            words: &self.words,
            env: self.env.iter().cloned().chain(own).collect(),
            input: item::json(item),
            limit: LIMIT,
            output_bytes_max: TAIL_BYTES_MAX,
        };
        let ended = run.run().await.map_err(|error| match error {
            RunError::Start(source) => NotifyError::Start { program: program(), source },
            RunError::Lost(source) => NotifyError::Lost { program: program(), source },
        })?;
        let status = ended.status;
        match (ended.in_time, status.success()) {
            (true, true) => Ok(()),
            (true, false) => {
                Err(NotifyError::Ended { program: program(), status, tail: ended.output().await })
            }
            (false, _) => Err(NotifyError::TooLong {
                program: program(),
                limit: LIMIT,
                tail: ended.output().await,
            }),
        }
    }
}

/// Returns the item as environment variables, for scripts that read no JSON.
fn variables(item: &Item) -> [(&'static str, String); 4] {
    let fit = |text: &str| text.replace('\0', "\u{fffd}");
    [
        ("HIVE_ATTENTION_KIND", item::word(item.kind).to_owned()),
        ("HIVE_ATTENTION_AGENT", fit(&item.agent)),
        ("HIVE_ATTENTION_ID", item.id.to_string()),
        ("HIVE_ATTENTION_TEXT", fit(&item.text)),
    ]
}

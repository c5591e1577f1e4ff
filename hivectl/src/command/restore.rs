//! `hivectl restore`: puts a backup in place of the database of a stopped hive.
//!
//! `hived` does it, because it alone knows the database. Invariant: `hived` refuses while the hive
//! runs or could be started by a call, so this command needs no broker and asks none.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use clap::Args;
use tokio::process::Command;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::note;
use crate::supervise;
use crate::view::restored::Restored;

/// The exit code of `hived restore` while the hive is in use.
const IN_USE: i32 = 5;

/// Put a backup in place of the database of a stopped hive.
///
/// Refuses while hived runs, or while systemd would start it (`systemctl stop hived.socket hived`).
/// The replaced database is kept beside the new one, as hive.replaced-N.db. The copy is compared
/// with the backup before it gets its name. When hived is started again, a new log begins, and ids
/// go on above those of the replaced database.
#[derive(Args, Debug)]
pub(crate) struct Restore {
    /// The backup: a file that `hivectl backup` or the broker's schedule made, or a copy of a
    /// database
    backup: PathBuf,
    /// The configuration of the hive, which names its directories
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// The directory of the database [default: that of the configuration, or /var/lib/hive]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    state_dir: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum RestoreError {
    #[error("`hived` is not beside `hivectl` and not on PATH")]
    NoHived,
    #[error("{} cannot be started", .path.display())]
    NotStarted { path: PathBuf, source: io::Error },
    #[error("{said}")]
    Refused { said: String, in_use: bool },
    #[error("`hived restore` ended without an answer: {status}")]
    Ended { status: ExitStatus },
    #[error("hived restored the backup, and what it printed cannot be read")]
    Unread(#[source] serde_json::Error),
}

impl From<RestoreError> for Failure {
    fn from(error: RestoreError) -> Self {
        let (exit, hint) = match &error {
            RestoreError::NoHived | RestoreError::NotStarted { .. } => {
                (Exit::Failure, Some("install all programs from one build"))
            }
            RestoreError::Refused { in_use: true, .. } => (Exit::Conflict, None),
            RestoreError::Refused { .. } => (Exit::Failure, Some("nothing was changed")),
            RestoreError::Ended { .. } => (
                Exit::Failure,
                Some(
                    "look whether there is a new hive.replaced-N.db beside the database before you start hived",
                ),
            ),
            RestoreError::Unread(_) => {
                (Exit::Failure, Some("install all programs from one build; then start hived"))
            }
        };
        Self::Explained { exit, hint: hint.map(str::to_owned), error: error.into() }
    }
}

impl Restore {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let hived = supervise::find("hived").ok_or(RestoreError::NoHived)?;
        let mut command = Command::new(&hived);
        command.args(["--log", "warn", "restore", "--json"]).arg(&self.backup);
        for (option, value) in [("--config", self.config), ("--state-dir", self.state_dir)] {
            if let Some(value) = value {
                command.arg(option).arg(value);
            }
        }
        // In a group of its own it runs to its end even if this program is interrupted.
        let ran = command.process_group(0).output().await;
        let ran = ran.map_err(|source| RestoreError::NotStarted { path: hived, source })?;
        if !ran.status.success() {
            let said = String::from_utf8_lossy(&ran.stderr);
            let said = said.trim_end().strip_prefix("hived: ").unwrap_or(said.trim_end());
            let in_use = ran.status.code() == Some(IN_USE);
            if said.is_empty() || ran.status.code().is_none() {
                return Err(RestoreError::Ended { status: ran.status }.into());
            }
            return Err(RestoreError::Refused { said: said.to_owned(), in_use }.into());
        }
        let restored: Restored =
            serde_json::from_slice(&ran.stdout).map_err(RestoreError::Unread)?;
        context.out.one(&restored)?;
        if !context.out.json {
            note("now start hived; `hivectl doctor --deep` checks the restored database");
        }
        Ok(())
    }
}

//! `hivectl debug bundle`: one archive with what a report of a fault needs.
//!
//! Each part has its own record or its own list of what may be in it; nothing is copied whole and
//! then cleaned. Invariants: without `--bodies` nothing that an agent, an operator or a model wrote
//! is in it, and never a secret; it is a whole file of its owner alone, or none; what could not be
//! collected is named in its manifest, and is no failure.

mod archive;
mod collect;
mod configuration;
mod files;
mod hive;
mod host;
mod manifest;
mod metrics;

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use self::collect::Collector;
use crate::command::doctor;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::{self, Exit};
use crate::interrupt::until_interrupted;
use crate::new_file::{FileError, Unfinished};
use crate::output::note;
use crate::view::bundle::Bundle as Made;

/// The configuration of the services of a host.
const HOST_CONFIG: &str = "/etc/hive/hive.toml";

/// Collect what a report of a fault needs into one archive.
///
/// It has versions, the status, the findings of `hivectl doctor`, names, states and numbers of
/// agents, turns, events and dead letters, the harmless keys of the configuration, and the metrics
/// if they are offered. It has no message, question, reminder, status, label, error or output of a
/// turn unless --bodies is given, and never a secret, an environment, a prompt or a role. What
/// cannot be collected, as while the broker is down, is named in its manifest.json.
#[derive(Args, Debug)]
pub(crate) struct Bundle {
    /// The archive to write; a file that is there is not overwritten [default:
    /// hive-bundle-TIME.tar.gz]
    #[arg(long, value_name = "FILE.tar.gz", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// The configuration of the hive [default: /etc/hive/hive.toml, if it is there]
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Add what agents and operators wrote: mail, questions, reminders, schedules, statuses, errors
    #[arg(long)]
    bodies: bool,
}

#[derive(Debug, thiserror::Error)]
enum BundleError {
    #[error("{} is there already", .0.display())]
    Exists(PathBuf),
    #[error("{} names no file", .0.display())]
    NoFile(PathBuf),
    #[error("{} cannot be written", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    #[error("interrupted; no bundle was made")]
    Interrupted,
}

impl From<FileError> for BundleError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Exists(path) => Self::Exists(path),
            FileError::NoFile(path) => Self::NoFile(path),
            FileError::Unwritable { path, source } => Self::Unwritable { path, source },
        }
    }
}

impl From<BundleError> for Failure {
    fn from(error: BundleError) -> Self {
        let (exit, hint) = match &error {
            BundleError::Exists(_) => (Exit::Conflict, Some("choose another name with --output")),
            BundleError::NoFile(_) => {
                (Exit::Usage, Some("name a file; its directory has to be there"))
            }
            BundleError::Unwritable { source, .. } => {
                (exit::of_io(source), Some("name a file that you may write with --output"))
            }
            BundleError::Interrupted => (Exit::Failure, None),
        };
        Self::Explained { exit, hint: hint.map(str::to_owned), error: error.into() }
    }
}

const LOOK_FIRST: &str = "look through it before you attach it to a report: `tar -xOzf FILE`";
const HAS_BODIES: &str = "with --bodies the bundle has mail, questions, reminders, schedules, statuses, errors and ends of outputs: give it only to people who may read them";

impl Bundle {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let now = Timestamp::now();
        let path = self.output.clone().unwrap_or_else(|| {
            PathBuf::from(now.strftime("hive-bundle-%Y%m%dT%H%M%SZ.tar.gz").to_string())
        });
        let work = async {
            let mut file = Unfinished::begin(&path, false)?;
            if self.bodies {
                note(HAS_BODIES);
            }
            let collected = self.collect(context, now, &mut file).await?;
            let bytes = file.bytes()?;
            file.finish()?;
            Ok((collected, bytes))
        };
        let made = until_interrupted(work).await.unwrap_or(Err(BundleError::Interrupted));
        let ((files, missing), bytes) = made?;
        context.out.one(&Made::new(&path, bytes, self.bodies, files, missing))?;
        if !context.out.json {
            note(LOOK_FIRST);
        }
        Ok(())
    }

    async fn collect(
        &self,
        context: &Context,
        now: Timestamp,
        file: &mut Unfinished,
    ) -> Result<(Vec<String>, Vec<crate::view::bundle::Missing>), BundleError> {
        let path = file.path().to_path_buf();
        let unwritable = |source| BundleError::Unwritable { path: path.clone(), source };
        let mut collector = Collector::new(file.writer(), now);
        let host_config = Path::new(HOST_CONFIG);
        let config = self.config.as_deref().or(host_config.exists().then_some(host_config));
        collector.progress("looks at the hive ...");
        let found = doctor::examine(context, config, false).await;
        host::versions(&mut collector, found.config.as_ref(), found.reached.as_ref()).await;
        host::facts(&mut collector).await;
        hive::checks(&mut collector, &found.list.checks);
        configuration::keys(&mut collector, config);
        files::all(&mut collector, &found.places);
        metrics::page(&mut collector, found.config.as_ref()).await;
        hive::all(&mut collector, found.reached.as_ref(), self.bodies).await;
        collector.finish(self.bodies).map_err(unwritable)
    }
}

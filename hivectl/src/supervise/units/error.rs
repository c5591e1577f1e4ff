//! Errors of `hivectl supervise`.

use std::io;
use std::path::PathBuf;

use crate::error::Failure;
use crate::exit::{self, Exit};

#[derive(Debug, thiserror::Error)]
pub(crate) enum UnitsError {
    #[error("there is no `systemctl` on PATH")]
    NoSystemctl,
    #[error("the records of agents in {} cannot be used: {source}", .path.display())]
    Records { path: PathBuf, source: io::Error },
    #[error("another launcher runs: it has the records of agents in {}", .0.display())]
    Running(PathBuf),
    #[error("signals cannot be handled")]
    Signals(#[source] io::Error),
}

impl UnitsError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoSystemctl => Exit::NotFound,
            Self::Records { source, .. } => exit::of_io(source),
            Self::Running(_) => Exit::Conflict,
            Self::Signals(_) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::NoSystemctl => {
                Some("on a host without systemd, `hivectl up` is the launcher".to_owned())
            }
            Self::Records { .. } => Some(
                "start it as hive-launcher.service, or name a directory of your own with --state"
                    .to_owned(),
            ),
            Self::Running(_) => {
                Some("a host has one; `systemctl stop hive-launcher` ends its service".to_owned())
            }
            Self::Signals(_) => None,
        }
    }
}

impl From<UnitsError> for Failure {
    fn from(error: UnitsError) -> Self {
        Self::Explained { exit: error.exit(), hint: error.hint(), error: error.into() }
    }
}

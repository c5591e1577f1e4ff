//! Errors of `hivectl up`.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use hive_core::config::ConfigError;
use hive_core::isolation::Level;
use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hive_core::secret::SecretError;
use rustix::io::Errno;

use crate::error::Failure;
use crate::exit::{self, Exit};
use crate::supervise::files::host_path::WalkError;

#[derive(Debug, thiserror::Error)]
pub(crate) enum UpError {
    #[error("{} cannot be read", .path.display())]
    ConfigUnreadable { path: PathBuf, source: io::Error },
    #[error("{} is not valid:\n{source}", .path.display())]
    ConfigInvalid { path: PathBuf, source: ConfigError },
    #[error("{} cannot be used", .path.display())]
    Directory { path: PathBuf, source: WalkError },
    #[error("{}, a settings file of the agent, cannot be written", .path.display())]
    Settings { path: PathBuf, source: io::Error },
    #[error("the socket path {} has {} bytes, more than the {SOCKET_PATH_BYTES_MAX} that Linux allows", .path.display(), .path.as_os_str().len())]
    SocketTooLong { path: PathBuf },
    #[error("{first} and {second} share {}; each needs directories of its own", .path.display())]
    Shared { first: String, second: String, path: PathBuf },
    #[error("{} is not below the hive's own directory, and the agents that run now could see it; it is started by the next `hivectl up`", .path.display())]
    NotHidden { path: PathBuf },
    #[error("`{name}` is neither beside hivectl nor on PATH")]
    NoProgram { name: &'static str },
    #[error("claude is not there: `{command}` was not found")]
    NoClaude { command: String },
    #[error("a hive runs here already: its broker answers on {}", .socket.display())]
    AlreadyUp { socket: PathBuf },
    #[error("a hive runs here already: another `hivectl up` has {}", .dir.display())]
    OtherUp { dir: PathBuf },
    #[error("{}, the directory of the hive's sockets, cannot be locked", .dir.display())]
    Lock { dir: PathBuf, source: io::Error },
    #[error("the broker ended at once: {ending}{last_words}")]
    BrokerEnded { ending: String, last_words: String },
    #[error(
        "the broker does not answer, and has written nothing to its log for {seconds} s{last_words}"
    )]
    BrokerSilent { seconds: u64, last_words: String },
    #[error("system_prompt = \"{}\" cannot be used", .path.display())]
    Prompt { path: PathBuf, source: WalkError },
    #[error("the secret {} cannot be used", .path.display())]
    Secret { path: PathBuf, source: WalkError },
    #[error(transparent)]
    Credential(#[from] SecretError),
    #[error("isolation = \"{}\" of {agent} is not reached: {why}", .level.word())]
    Isolation { agent: String, level: Level, why: String },
    #[error("whether a sandbox works for {agent} cannot be tried: {why}")]
    Trial { agent: String, why: String },
    #[error("the sandbox of {agent} cannot be made: {why}")]
    Grant { agent: String, why: String, may_be_an_agents: bool },
    #[error("interrupted")]
    Interrupted,
    #[error("signals cannot be handled")]
    Signals(#[source] io::Error),
}

const PATHS_PAUSE: Duration = Duration::from_secs(10);
/// Pause before another trial, which starts claude and may take half a minute.
const TRIAL_PAUSE: Duration = Duration::from_secs(60);

impl UpError {
    /// Returns whether it concerns the paths of one agent and may pass: the others are started, and
    /// this one is tried again.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Grant { may_be_an_agents, .. } => *may_be_an_agents,
            Self::Directory { .. }
            | Self::Prompt { .. }
            | Self::Secret { .. }
            | Self::Settings { .. } => true,
            Self::ConfigUnreadable { .. }
            | Self::ConfigInvalid { .. }
            | Self::SocketTooLong { .. }
            | Self::Shared { .. }
            | Self::NotHidden { .. }
            | Self::NoProgram { .. }
            | Self::NoClaude { .. }
            | Self::AlreadyUp { .. }
            | Self::OtherUp { .. }
            | Self::Lock { .. }
            | Self::BrokerEnded { .. }
            | Self::BrokerSilent { .. }
            | Self::Credential(_)
            | Self::Isolation { .. }
            | Self::Trial { .. }
            | Self::Interrupted
            | Self::Signals(_) => false,
        }
    }

    /// Returns the pause after which an agent of a hive that runs is tried again; `None` if only a
    /// changed configuration helps.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        if matches!(self, Self::Trial { .. } | Self::Isolation { .. }) {
            Some(TRIAL_PAUSE)
        } else {
            self.may_pass().then_some(PATHS_PAUSE)
        }
    }

    fn exit(&self) -> Exit {
        match self {
            Self::ConfigUnreadable { source, .. } | Self::Lock { source, .. } => {
                exit::of_io(source)
            }
            Self::Settings { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Exit::Denied
            }
            Self::Directory { source: WalkError::Absent { source: Errno::ACCESS, .. }, .. } => {
                Exit::Denied
            }
            Self::Directory { source: WalkError::Link(_), .. } => Exit::Usage,
            Self::ConfigInvalid { .. } => Exit::Findings,
            Self::SocketTooLong { .. }
            | Self::Shared { .. }
            | Self::NotHidden { .. }
            | Self::Grant { .. }
            | Self::Credential(_)
            | Self::Secret { .. }
            | Self::Prompt { .. } => Exit::Usage,
            Self::NoProgram { .. } | Self::NoClaude { .. } => Exit::NotFound,
            Self::AlreadyUp { .. } | Self::OtherUp { .. } => Exit::Conflict,
            Self::BrokerSilent { .. } => Exit::TimedOut,
            Self::Interrupted => Exit::Ok,
            Self::Directory { .. }
            | Self::Settings { .. }
            | Self::BrokerEnded { .. }
            | Self::Isolation { .. }
            | Self::Trial { .. }
            | Self::Signals(_) => Exit::Failure,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::ConfigUnreadable { .. } => Some("name the configuration with --config FILE".to_owned()),
            Self::ConfigInvalid { path, .. } => Some(format!("`hivectl config check {}` checks it again", path.display())),
            Self::SocketTooLong { .. } => Some(
                "choose a shorter directory with --state DIR, or `runtime_dir` or the agent's `home_dir` in the configuration"
                    .to_owned(),
            ),
            Self::Shared { .. } => Some("change `state_dir` and `home_dir` in the configuration".to_owned()),
            Self::NoProgram { .. } => Some("build or install all of hived, hive, hive-mcp and hivectl".to_owned()),
            Self::NoClaude { .. } => Some("install Claude Code, or name it with --claude PATH".to_owned()),
            Self::AlreadyUp { .. } | Self::OtherUp { .. } => Some("look at it with `hivectl status`, or end it with Ctrl-C in its terminal".to_owned()),
            Self::Isolation { .. } => {
                Some("remove the cause, or state a weaker level; without `isolation` the best that works here is used".to_owned())
            }
            Self::Trial { .. } => {
                Some("remove the cause and start again, or state a level in hive.toml that needs no sandbox".to_owned())
            }
            Self::Grant { .. } | Self::Prompt { .. } | Self::Secret { .. } => Some("correct the paths in hive.toml".to_owned()),
            Self::Directory { source: WalkError::Link(_), .. } => Some("correct the paths in hive.toml".to_owned()),
            Self::Directory { .. }
            | Self::Credential(_)
            | Self::NotHidden { .. }
            | Self::Settings { .. }
            | Self::Lock { .. }
            | Self::BrokerEnded { .. }
            | Self::BrokerSilent { .. }
            | Self::Interrupted
            | Self::Signals(_) => None,
        }
    }
}

impl From<UpError> for Failure {
    fn from(error: UpError) -> Self {
        Self::Explained { exit: error.exit(), hint: error.hint(), error: error.into() }
    }
}

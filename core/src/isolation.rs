//! Isolation: how an agent's programs are separated from the operator, the broker and the other
//! agents.
//!
//! `hivectl up` starts each harness at a [`Level`] and writes an [`Expected`] for it. The harness
//! probes from inside what it can reach, before it starts claude, and reports [`Found`]. The
//! isolation that Hive shows is computed from that report.
//!
//! Invariant: isolation is a result. A requested level is never shown as reached without a report.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The environment variable of a harness that names the file with [`Expected`]; without it the
/// harness runs at [`Level::None`].
pub const EXPECTED_ENV: &str = "HIVE_ISOLATION";
/// The environment variable of a harness that holds the number of an inherited stream socket: it
/// writes its report there, one line of JSON ([`Found`]), and waits for one byte. The end of the
/// stream instead is the refusal.
pub const REPORT_FD_ENV: &str = "HIVE_ISOLATION_FD";
/// The exit code by which a harness asks `hivectl up` for a new sandbox: its own has the programs
/// and the grants of its start.
pub const RESTART_CODE: u8 = 9;
/// The file with [`Expected`], in the directory of the harness's settings.
pub const EXPECTED_FILE: &str = "isolation.json";

/// The way an agent is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Like any program of the operator.
    None,
    /// In namespaces of its own. It sees the host's files as its user does, except the rest of the
    /// hive.
    SharedFiles,
    /// In namespaces of its own, with the files of an allow-list.
    Sandbox,
}

impl Level {
    /// All levels, strongest first.
    pub const ALL: [Self; 3] = [Self::Sandbox, Self::SharedFiles, Self::None];

    /// Returns the value in the configuration file.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::SharedFiles => "shared_files",
            Self::Sandbox => "sandbox",
        }
    }
}

/// The start of a harness, with the paths that it must not reach. `hivectl up` writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The level at which it was started; never [`Level::None`].
    pub level: Level,
    /// The bubblewrap that starts its shell tasks.
    pub bwrap: PathBuf,
    /// Whether its programs may create user namespaces (`user_namespaces = true`).
    pub user_namespaces: bool,
    /// Paths of the hive and of the operator that must not exist inside.
    pub hidden: Vec<PathBuf>,
    /// Paths that must not be writable, such as programs and the configuration file.
    pub read_only: Vec<PathBuf>,
    /// Directories that it may write to, besides its own; claude gets them as additional
    /// directories.
    pub writable: Vec<PathBuf>,
    /// Device files that it may use, besides those of every sandbox.
    pub devices: Vec<PathBuf>,
    /// Directory of the settings of its harness, which contain keys: claude and its shell tasks do
    /// not need it.
    pub private: PathBuf,
    /// Granted paths as they were when checked. A harness that finds another file there ends before
    /// it starts claude: a link has replaced the mount's path.
    pub mounted: Vec<Mounted>,
}

/// A mount point and the file that it must show.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mounted {
    /// Path on the host and inside.
    pub path: PathBuf,
    /// Device number of the file system.
    pub device: u64,
    /// Inode number of the file.
    pub inode: u64,
}

/// Severity of a failed probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The agent is only partly isolated.
    Partly,
    /// The agent can act as another agent or as the operator: it is not isolated.
    Broken,
}

/// A failed probe.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Effect on the agent's isolation.
    pub severity: Severity,
    /// The reached object, by name; a sentence without a full stop.
    pub sentence: String,
}

/// The result of a harness's probes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Failed probes; empty: none.
    pub findings: Vec<Finding>,
}

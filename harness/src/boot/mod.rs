//! The three files that claude is started with, and the look at the CLI before the first turn.
//!
//! Invariant: a file is whole or not there, readable by its owner alone, and the settings were read back before claude sees them.

pub mod file;
pub mod mcp;
pub mod probe;
pub mod settings;

use std::io;
use std::path::{Path, PathBuf};

use crate::boot::mcp::Bridge;

/// Where the files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The settings.
    pub settings: PathBuf,
    /// The system prompt.
    pub system_prompt: PathBuf,
    /// The MCP configuration.
    pub mcp_config: PathBuf,
}

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The disk, or its rights.
    #[error("cannot write {}: {source}; check HIVE_RUN_DIR and the room on its disk", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the host said.
        source: io::Error,
    },
    /// The settings are not what was meant.
    #[error("{} does not hold what was written to it", .0.display())]
    Settings(PathBuf),
}

/// Writes the files for one claude process.
pub fn write(run_dir: &Path, system_prompt: &str, bridge: &Bridge<'_>) -> Result<Files, WriteError> {
    let files = Files {
        settings: run_dir.join("claude-settings.json"),
        system_prompt: run_dir.join("claude-system-prompt.md"),
        mcp_config: run_dir.join("claude-mcp-config.json"),
    };
    let put =
        |path: &PathBuf, text: &str| file::write(path, text).map_err(|source| WriteError::Io { path: path.clone(), source });
    file::private_dir(run_dir).map_err(|source| WriteError::Io { path: run_dir.to_path_buf(), source })?;
    put(&files.settings, &settings::text())?;
    let written = std::fs::read_to_string(&files.settings);
    let written = written.map_err(|source| WriteError::Io { path: files.settings.clone(), source })?;
    if !settings::is_sound(&written) {
        return Err(WriteError::Settings(files.settings));
    }
    put(&files.system_prompt, system_prompt)?;
    put(&files.mcp_config, &mcp::text(bridge))?;
    Ok(files)
}

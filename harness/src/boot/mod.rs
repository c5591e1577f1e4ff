//! What is done before claude starts: the three files that it is started with, the look at the CLI,
//! and at what lies in its way.
//!
//! Invariant: a file is whole or not there, readable by its owner alone, and what claude would drop
//! silently was read back before it sees it.

pub mod aside;
pub mod extra_servers;
pub mod file;
pub mod home;
pub mod mcp;
pub mod probe;
pub mod settings;

use std::io;
use std::path::{Path, PathBuf};

use crate::boot::mcp::Server;

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
    /// A file is not what was meant.
    #[error("{} does not hold what was written to it", .0.display())]
    Changed(PathBuf),
    /// MCP servers are started through this program, and nobody knows where it lies.
    #[error("cannot tell where the program hive lies: {0}; check that /proc is mounted")]
    OwnProgram(io::Error),
}

/// Writes the files for one claude process; `hive` is the program that scrubs the environment of
/// MCP servers, and `guard` the command that is run before claude reads files.
pub fn write(
    run_dir: &Path,
    system_prompt: &str,
    servers: &[Server],
    hive: &Path,
    guard: Option<&str>,
) -> Result<Files, WriteError> {
    let files = Files {
        settings: run_dir.join("claude-settings.json"),
        system_prompt: run_dir.join("claude-system-prompt.md"),
        mcp_config: run_dir.join("claude-mcp-config.json"),
    };
    let put = |path: &PathBuf, text: &str| {
        file::write(path, text).map_err(|source| WriteError::Io { path: path.clone(), source })
    };
    file::private_dir(run_dir)
        .map_err(|source| WriteError::Io { path: run_dir.to_path_buf(), source })?;
    put(&files.settings, &settings::text(guard))?;
    check(&files.settings, |text| settings::is_sound(text, guard))?;
    put(&files.system_prompt, system_prompt)?;
    put(&files.mcp_config, &mcp::text(servers, hive))?;
    check(&files.mcp_config, |text| mcp::is_sound(text, servers, hive))?;
    Ok(files)
}

/// Reads a file back.
fn check(path: &Path, is_sound: impl Fn(&str) -> bool) -> Result<(), WriteError> {
    let written = std::fs::read_to_string(path)
        .map_err(|source| WriteError::Io { path: path.to_path_buf(), source })?;
    if is_sound(&written) { Ok(()) } else { Err(WriteError::Changed(path.to_path_buf())) }
}

/// The program that is installed where this one was started from. After an upgrade the kernel calls
/// the old file by another name.
pub fn own_program() -> Result<PathBuf, WriteError> {
    let program = std::env::current_exe().map_err(WriteError::OwnProgram)?;
    let name = program.to_string_lossy();
    Ok(name.strip_suffix(" (deleted)").map_or_else(|| program.clone(), PathBuf::from))
}

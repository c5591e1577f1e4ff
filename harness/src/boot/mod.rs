//! Preparation for a claude process: its three files, the check of the CLI, and the renaming of
//! settings that it must not obey.
//!
//! Invariant: a file is complete or absent, readable by its owner alone, and read back if claude
//! would drop an invalid one silently.

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

/// The paths of the three files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    pub settings: PathBuf,
    pub system_prompt: PathBuf,
    pub mcp_config: PathBuf,
}

/// Why the files could not be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error("cannot write {}: {source}; check HIVE_RUN_DIR and the room on its disk", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} differs from the text that was written to it; check its disk", .0.display())]
    Changed(PathBuf),
    #[error("the path of the program hive is unknown: {0}; check that /proc is mounted")]
    OwnProgram(io::Error),
}

/// Writes the files for one claude process; `hive` is the program that scrubs the environment of
/// MCP servers, and `guard` the command that runs before claude reads files.
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
    let put = |path: &PathBuf, text: &str| file::write(path, text).map_err(failed(path));
    file::private_dir(run_dir).map_err(failed(run_dir))?;
    put(&files.settings, &settings::text(guard))?;
    check(&files.settings, |text| settings::is_sound(text, guard))?;
    put(&files.system_prompt, system_prompt)?;
    put(&files.mcp_config, &mcp::text(servers, hive))?;
    check(&files.mcp_config, |text| mcp::is_sound(text, servers, hive))?;
    Ok(files)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_path_buf();
    |source| WriteError::Io { path, source }
}

/// Reads a file back and checks it.
fn check(path: &Path, is_sound: impl Fn(&str) -> bool) -> Result<(), WriteError> {
    let written = std::fs::read_to_string(path).map_err(failed(path))?;
    if is_sound(&written) { Ok(()) } else { Err(WriteError::Changed(path.to_path_buf())) }
}

/// Returns the program that is installed at the path of this one. After an upgrade the kernel
/// reports the old file under another name.
pub fn own_program() -> Result<PathBuf, WriteError> {
    let program = std::env::current_exe().map_err(WriteError::OwnProgram)?;
    let name = program.to_string_lossy();
    Ok(name.strip_suffix(" (deleted)").map_or_else(|| program.clone(), PathBuf::from))
}

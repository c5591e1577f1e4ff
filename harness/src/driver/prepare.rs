//! The inputs of one claude process: files, arguments, environment; and the prompt of a turn.
//!
//! Invariant: the same process can run two turns with the same fingerprint.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::boot::mcp::{self, Bridge};
use crate::boot::{self, aside, file, home};
use crate::claude::command_line::{self, EXECUTION_GROUP, Invocation};
use crate::claude::environment::{self, Home};
use crate::claude::program::Program;
use crate::cli::process::ProcessMode;
use crate::config::Config;
use crate::confine;
use crate::driver::call_log;
use crate::driver::launch::LaunchError;
use crate::driver::shell;
use crate::guard;
use crate::isolation;
use crate::process::child::Spec;
use crate::prompt::system;
use crate::prompt::trigger::{self, ConversationOutcome, Presentation};
use crate::session;
use crate::turn::job::{Step, Trigger};
use crate::turn::output::Launch;

/// The inputs of a process, before any file is written.
#[derive(Debug)]
pub struct Prepared<'a> {
    launch: &'a Launch,
    system_prompt: String,
    /// The files that claude reads by itself when it starts.
    memory: String,
}

impl<'a> Prepared<'a> {
    /// Collects the inputs of a turn.
    pub fn new(config: &Config, launch: &'a Launch) -> Result<Self, LaunchError> {
        let system_prompt = match &config.system_prompt {
            None => system::render(&launch.identity),
            Some(path) => {
                let template = std::fs::read_to_string(path).map_err(|source| {
                    LaunchError::SystemPrompt { path: path.display().to_string(), source }
                })?;
                system::render_from(&template, &launch.identity)
            }
        };
        Ok(Self { launch, system_prompt, memory: memory(config) })
    }

    /// Returns the fingerprint of the processes that can run this turn.
    pub fn fingerprint(&self, config: &Config) -> String {
        let Launch { model, tool_groups, identity, .. } = self.launch;
        let settings = (
            (&config.claude, &config.claude_env, config.claude_max_retries),
            (&config.mcp_server_name, config.process, &config.extra_servers, &config.plugins),
        );
        format!(
            "{model:?} {tool_groups:?} {:?} {:?} {:?} {settings:?}",
            identity.label, self.memory, self.system_prompt
        )
    }

    /// Writes the files and returns the process to start.
    pub fn spec(&self, config: &Config, process_token: &str) -> Result<Spec, LaunchError> {
        let launch = self.launch;
        let temporary = temporary(config);
        // claude leaves files there at every turn.
        let _ = std::fs::remove_dir_all(&temporary);
        private(&temporary)?;
        let mut environment = environment(config, &temporary);
        // The environment of a process that serves many turns cannot name one of them.
        if let (ProcessMode::PerTurn, Some(trace)) = (config.process.mode, launch.trace) {
            environment.insert(hive_proto::TRACEPARENT_ENV.into(), trace.to_string().into());
        }
        let own = boot::own_program()?;
        let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
        let bridge_program =
            mcp::find(config.mcp.as_deref(), Some(&own), &path).ok_or(LaunchError::NoBridge)?;
        let socket = std::path::absolute(&config.socket).unwrap_or_else(|_| config.socket.clone());
        let bridge = Bridge {
            server_name: &config.mcp_server_name,
            program: &bridge_program,
            socket: &socket,
            process_token,
            tool_groups: &launch.tool_groups,
            label: &launch.identity.label,
            log: &std::env::var("HIVE_LOG").unwrap_or_default(),
            call_log: &config.run_dir.join(call_log::SOCKET),
        };
        let confine = config.isolation.as_ref().map(|_| config.run_dir.join(confine::SOCKET));
        let servers = mcp::servers(
            &bridge,
            &config.run_dir.join(shell::SOCKET),
            &config.extra_servers,
            confine.as_deref(),
        );
        let guard = config.isolation.as_ref().map(|isolation| {
            let dirs = guard::Dirs {
                run: config.run_dir.clone(),
                private: Some(isolation.expected.private.clone()),
            };
            guard::command(&own, &dirs)
        });
        let files =
            boot::write(&config.run_dir, &self.system_prompt, &servers, &own, guard.as_deref())?;
        let arguments = command_line::arguments(&Invocation {
            model: &launch.model,
            continues: launch.continues,
            resident: config.process.mode == ProcessMode::Resident,
            settings: &files.settings,
            system_prompt: &files.system_prompt,
            mcp_config: &files.mcp_config,
            mcp_tools: &mcp::allowed_tools(&servers),
            further_dirs: config
                .isolation
                .as_ref()
                .map_or(&[], |isolation| &isolation.expected.writable),
            tool_groups: &launch.tool_groups,
        });
        let Program { name: _, path: program, first } = program(config)?;
        Ok(Spec {
            program,
            arguments: [first, arguments].concat(),
            environment,
            dir: config.state_dir.clone(),
        })
    }
}

/// Renames files that the agent's shell may have written to take over claude; returns a remark for
/// each.
pub fn guard(config: &Config, launch: &Launch) -> Result<Vec<String>, LaunchError> {
    // The agent's own MCP servers run code that its shell tasks may have left, even after the agent
    // has lost the group.
    if config.extra_servers.is_empty()
        && !launch.tool_groups.iter().any(|group| group == EXECUTION_GROUP)
    {
        return Ok(Vec::new());
    }
    let mut found = aside::settings(&config.state_dir)
        .map_err(|source| not_guarded(&config.state_dir, source))?;
    found.extend(settings_of_home(config)?);
    Ok(remarks(found))
}

/// Renames files that claude would obey in the home of an isolated agent, where logins and plugins
/// run; returns a remark for each.
pub fn guard_home(config: &Config) -> Result<Vec<String>, LaunchError> {
    if config.isolation.is_none() {
        return Ok(Vec::new());
    }
    settings_of_home(config).map(remarks)
}

fn settings_of_home(config: &Config) -> Result<Vec<aside::Aside>, LaunchError> {
    home::settings(&config.home_dir, &config.plugins.plugins)
        .map_err(|source| not_guarded(&config.home_dir, source))
}

fn not_guarded(dir: &Path, source: std::io::Error) -> LaunchError {
    LaunchError::Directory { path: dir.join(".claude").display().to_string(), source }
}

fn remarks(found: Vec<aside::Aside>) -> Vec<String> {
    let remark = |aside: aside::Aside| {
        let (from, to) = (aside.from.display().to_string(), aside.to.display().to_string());
        format!(
            "{from} was put aside as {to}: claude would obey it, and this agent's shell could have written it"
        )
    };
    found.into_iter().map(remark).collect()
}

/// Describes the files named CLAUDE.md that claude reads at its start, by their times and sizes.
fn memory(config: &Config) -> String {
    let own = config.home_dir.join(".claude/CLAUDE.md");
    let above = config.state_dir.ancestors().map(|dir| dir.join("CLAUDE.md"));
    let mut stamps = String::new();
    for (number, path) in above.chain([own]).enumerate() {
        if let Ok(metadata) = std::fs::metadata(path) {
            let _ = write!(
                stamps,
                "{number}:{}.{}:{} ",
                metadata.mtime(),
                metadata.mtime_nsec(),
                metadata.len()
            );
        }
    }
    stamps
}

/// Returns the prompt of a step.
pub fn prompt(config: &Config, launch: &Launch) -> String {
    match launch.step {
        Step::Compact => return trigger::COMPACT.to_owned(),
        Step::Checkpoint => {
            let outcome = if launch.trigger == Trigger::Checkpoint {
                ConversationOutcome::Compacted
            } else {
                ConversationOutcome::Replaced
            };
            return trigger::checkpoint(outcome);
        }
        Step::Work => {}
    }
    let Trigger::Mail(begun) = &launch.trigger else { return trigger::self_continue() };
    let message_id = begun.delivery.message.id.get();
    let came_back = begun.delivery.cause.is_some();
    let may_be_held = launch.continues && (launch.retry || launch.made_room || came_back);
    let is_held = may_be_held && session::contains(&config.home_dir, &config.state_dir, message_id);
    let presentation = match (is_held, launch.retry) {
        (true, true) => Presentation::Retry,
        (true, false) => Presentation::HeldAlready,
        (false, _) => Presentation::Whole,
    };
    let reset = if launch.resets {
        trigger::reset(session::newest(&config.home_dir, &config.state_dir).as_deref())
    } else {
        String::new()
    };
    trigger::mail(begun, presentation, &reset, &config.mcp_server_name)
}

/// Returns claude's directory for temporary files. It is below HOME, because no other user may own
/// it.
pub fn temporary(config: &Config) -> PathBuf {
    config.home_dir.join(".hive/tmp")
}

/// Creates a directory for our own user alone.
pub fn private(path: &Path) -> Result<(), LaunchError> {
    file::private_dir(path)
        .map_err(|source| LaunchError::Directory { path: path.display().to_string(), source })
}

/// Returns claude's environment.
pub fn environment(config: &Config, temporary: &Path) -> BTreeMap<OsString, OsString> {
    let home = Home { dir: &config.home_dir, temporary, is_isolated: config.isolation.is_some() };
    environment::build(std::env::vars_os(), &config.claude_env, home, config.claude_max_retries)
}

/// Returns the command that starts claude.
pub fn program(config: &Config) -> Result<Program, boot::WriteError> {
    isolation::program(config.isolation.as_deref(), program_path(&config.claude))
}

/// Resolves a program with a path against our directory, not the state directory.
pub fn program_path(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_path_buf());
    }
    program.to_path_buf()
}

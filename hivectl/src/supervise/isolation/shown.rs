//! Files that a sandbox shows besides the system: programs, files that variables name, and grants
//! of `hive.toml`.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use hive_core::config::{Notify, SandboxConfig};
use rustix::fs::FileType;

use super::confined::Confined;
use super::grants::{Checks, Forbidden, Grants, Refused};
use super::programs::{Lookup, Shown};
use super::sandbox;
use crate::supervise::files::host_path::{AgentsWrite, HostPath};
use crate::supervise::setup::binaries::resolve_in;
use crate::supervise::setup::environment::Env;
use crate::supervise::setup::plan::{AgentPlan, Plan};

/// Variables that name a file or a directory that programs read.
const FILE_VARIABLES: [&str; 5] =
    ["SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "NIX_SSL_CERT_FILE", "LOCALE_ARCHIVE"];

/// Returns the programs and files of an agent.
pub(super) fn files(confined: &Confined) -> Result<Vec<Shown>, Refused> {
    let Confined { plan, agent, binaries, claude, env, .. } = confined;
    let path = search_path(env);
    let apart = apart(plan);
    let lookup = Lookup { path: &path, apart: &apart, agents_write: &plan.agents_write };
    let programs = [&binaries.hive, &binaries.hive_mcp, claude];
    let mut shown: Vec<Shown> =
        programs.into_iter().flat_map(|program| lookup.needs(program)).collect();
    // claude starts servers as they are written in hive.toml.
    shown.extend(servers(agent, &path).iter().flat_map(|program| lookup.needs_as_called(program)));
    let forbidden = Forbidden { hive: of_hive(plan), ..Forbidden::default() };
    let checks = Checks { forbidden: &forbidden, agents_write: &plan.agents_write };
    for (key, dest) in named_files(plan, agent, env) {
        // A missing file is not needed, or the program that needs it reports it.
        if dest.symlink_metadata().is_ok() {
            shown.push(Shown::File { source: checks.granted(key, &dest)?, dest });
        }
    }
    Ok(shown)
}

/// Returns the files of an agent's programs besides its grants: its servers with their needs, and
/// files that its settings name.
pub(super) fn of_settings(plan: &Plan, agent: &AgentPlan) -> Vec<PathBuf> {
    let env: Env = std::env::vars_os().collect();
    let (path, apart) = (search_path(&env), apart(plan));
    let lookup = Lookup { path: &path, apart: &apart, agents_write: &plan.agents_write };
    let programs =
        servers(agent, &path).into_iter().flat_map(|program| lookup.needs_as_called(&program));
    let programs = programs.map(|shown| match shown {
        Shown::File { source, .. } => source.path,
        Shown::Link { dest, .. } => dest,
    });
    let files = named_files(plan, agent, &env)
        .into_iter()
        .map(|(_, path)| path)
        .chain(plan.system_prompt(agent));
    programs.chain(files.flat_map(|path| HostPath::follow(&path)).map(|found| found.path)).collect()
}

/// Returns the commands of an agent's own MCP servers.
fn servers(agent: &AgentPlan, path: &OsStr) -> Vec<PathBuf> {
    agent
        .config
        .extra_mcp_servers
        .values()
        .filter_map(|server| resolve_in(&server.command, path))
        .collect()
}

/// Returns the files and directories that an agent's settings name, with the key.
fn named_files(plan: &Plan, agent: &AgentPlan, env: &Env) -> Vec<(&'static str, PathBuf)> {
    let of_claude = plan.config.claude.env.iter().chain(&agent.config.env);
    let of_claude = of_claude
        .filter(|(name, _)| FILE_VARIABLES.contains(&name.as_str()))
        .filter_map(|(_, value)| Some(PathBuf::from(value.text()?)));
    let inherited =
        FILE_VARIABLES.iter().filter_map(|name| env.get(OsStr::new(name))).map(PathBuf::from);
    // Marketplaces that are directories; others are names or URLs.
    let markets = agent.config.marketplaces.iter().flatten().map(PathBuf::from);
    let variables = of_claude.chain(inherited).map(|path| ("env", path));
    variables
        .chain(markets.map(|path| ("marketplaces", path)))
        .filter(|(_, path)| path.is_absolute())
        .collect()
}

/// Checks what `hive.toml` grants an agent, and its own directories.
pub(super) fn grants(confined: &Confined) -> Result<Grants, Refused> {
    let Confined { plan, agent, .. } = confined;
    let forbidden = forbidden(confined);
    let checks = Checks { forbidden: &forbidden, agents_write: &plan.agents_write };
    let grants = checks.grants(&agent.config.sandbox, plan.home.as_deref())?;
    for (key, dir) in [("state_dir", &agent.state_dir), ("home_dir", &agent.home_dir)] {
        if !dir.starts_with(&plan.agents_dir) {
            checks.own(key, dir, agent)?;
        }
    }
    // These no grant names.
    match forbidden.written.into_iter().find(|(_, path)| path.starts_with(&plan.agents_dir)) {
        Some((what, path)) => Err(Refused::Program { what, path }),
        None => Ok(grants),
    }
}

/// Returns the directories that claude may work in besides the agent's own, if no sandbox limits
/// them.
pub(super) fn writable_only(confined: &Confined) -> Grants {
    let Confined { plan, agent, .. } = confined;
    let config = SandboxConfig {
        writable: agent.config.sandbox.writable.clone(),
        ..SandboxConfig::default()
    };
    let checks = Checks { forbidden: &Forbidden::default(), agents_write: &plan.agents_write };
    checks.grants(&config, plan.home.as_deref()).unwrap_or_default()
}

/// Returns the directories of PATH that a sandbox does not show.
pub(crate) fn hidden_on_path(confined: &Confined) -> Vec<PathBuf> {
    let Confined { env, .. } = confined;
    let granted = grants(confined).unwrap_or_default();
    let is_shown = |dir: &Path| {
        let real = dir.canonicalize().unwrap_or_else(|_| dir.to_path_buf());
        sandbox::covers_system(&real)
            || granted.all().any(|granted| real.starts_with(&granted.path))
    };
    let has_entries =
        |dir: &Path| std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_some());
    let mut hidden = search_dirs(&search_path(env));
    hidden.retain(|dir| has_entries(dir) && !is_shown(dir));
    hidden.dedup();
    hidden
}

fn search_path(env: &Env) -> OsString {
    env.get(OsStr::new("PATH")).cloned().unwrap_or_default()
}

fn search_dirs(path: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(path).filter(|dir| dir.is_absolute()).collect()
}

/// Returns homes and the hive's directories; no package contains them.
fn apart(plan: &Plan) -> Vec<PathBuf> {
    of_hive(plan).into_iter().map(|(_, path)| path).chain(plan.home.clone()).collect()
}

fn of_hive(plan: &Plan) -> Vec<(&'static str, PathBuf)> {
    let mut hive = vec![
        ("the hive", plan.base.clone()),
        ("the configuration", plan.config_file.clone()),
        ("the broker's database", plan.state_dir.clone()),
        ("the sockets", plan.runtime_dir.clone()),
        ("the logs", plan.log_dir.clone()),
        ("the directories of agents", plan.agents_dir.clone()),
    ];
    hive.extend(plan.agents.iter().map(|agent| ("the home of an agent", agent.home_dir.clone())));
    hive.extend(
        plan.links.iter().map(|link| ("a link to the hive or its configuration", link.clone())),
    );
    hive
}

fn forbidden(confined: &Confined) -> Forbidden {
    const PROGRAM: &str = "a program of the hive";
    const NOTIFY: &str = "the command of operator.notify";
    let Confined { plan, binaries, claude, bwrap, env, .. } = confined;
    let path = search_path(env);
    let own = std::env::current_exe().ok();
    let programs = [&binaries.hived, &binaries.hive, &binaries.hive_mcp, claude, &bwrap.program]
        .into_iter()
        .chain(own.as_ref());
    let mut all: Vec<(&'static str, PathBuf)> =
        programs.map(|program| (PROGRAM, program.clone())).collect();
    if let Some(Notify::Command(words)) = &plan.config.operator.notify {
        // The broker runs it on the host, with these arguments.
        let program = words.first().and_then(|command| resolve_in(command, &path));
        let files =
            words.iter().skip(1).map(|word| plan.base.join(word)).filter(|file| *file != plan.base);
        all.extend(program.into_iter().chain(files).map(|file| (NOTIFY, file)));
    }
    let no_agents = AgentsWrite::default();
    let apart = apart(plan);
    let lookup = Lookup { path: &path, apart: &apart, agents_write: &no_agents };
    let mut packages = Vec::new();
    for (what, program) in all.clone() {
        for shown in lookup.needs_as_called(&program) {
            match shown {
                Shown::File { source, .. } => {
                    if source.kind == FileType::Directory {
                        packages.push(source.path.clone());
                    }
                    all.push((what, source.path));
                }
                Shown::Link { dest, .. } => all.push((what, dest)),
            }
        }
    }
    all.extend(search_dirs(&path).into_iter().map(|dir| ("a directory of PATH", dir)));
    all.extend(plan.home.clone().map(|home| ("your home", home)));
    // The links to them decide, too. One that is not there is as good as there: an agent could make
    // it.
    let real = |path: PathBuf| match HostPath::follow(&path) {
        Ok(found) => found.all_paths().collect(),
        Err(_) => vec![HostPath::would_be(&path, &no_agents)],
    };
    let written = all
        .into_iter()
        .flat_map(|(what, path)| real(path).into_iter().map(move |path| (what, path)))
        .collect();
    Forbidden { hive: of_hive(plan), written, packages }
}

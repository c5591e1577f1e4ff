//! The programs and the host: versions and a few numbers.
//!
//! Invariant: of what another program prints only a version is kept; of the environment only the
//! names of Hive's variables.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use hive_core::config::Config;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::collect::Collector;
use crate::command::doctor::Reached;
use crate::supervise::{find, resolve};

/// Longest wait for a version. claude starts slowly.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Most that is read of what a program prints, or of a file of the host.
const READ_BYTES_MAX: u64 = 4096;
const VERSION_CHARS_MAX: usize = 100;

/// Adds the versions of all programs, and of the broker that runs.
pub(super) async fn versions(
    collector: &mut Collector<'_>,
    config: Option<&Config>,
    reached: Option<&Reached>,
) {
    let mut versions = BTreeMap::new();
    versions.insert("hivectl", json!(hive_core::version::long()));
    for name in ["hive", "hive-mcp", "hived"] {
        versions.insert(name, of_program(find(name)).await);
    }
    let claude = config.map_or("claude", |config| config.claude.command.as_str());
    versions.insert("claude", of_program(resolve(claude)).await);
    versions.insert("systemd", of_program(resolve("systemctl")).await);
    let running = reached.map(|reached| reached.status.version.as_str());
    versions.insert("broker", running.and_then(plain).into());
    collector.json("versions.json", &versions);
}

async fn of_program(program: Option<PathBuf>) -> Value {
    let Some(program) = program else { return Value::Null };
    tokio::time::timeout(ANSWER_MAX, first_line(&program)).await.ok().flatten().into()
}

/// Returns the first line of what `--version` prints, if it looks like a version.
async fn first_line(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.kill_on_drop(true).spawn().ok()?;
    let mut printed = Vec::new();
    child.stdout.take()?.take(READ_BYTES_MAX).read_to_end(&mut printed).await.ok()?;
    // A program that prints more than that is not waited for.
    let printed = String::from_utf8(printed).ok()?;
    plain(printed.lines().next()?)
}

/// Returns a text that can only be a name or a version.
fn plain(text: &str) -> Option<String> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || " ._:+~()/-".contains(char);
    let has_number = text.bytes().any(|byte| byte.is_ascii_digit());
    let fits = text.len() <= VERSION_CHARS_MAX && text.chars().all(is_plain);
    (fits && has_number).then(|| text.to_owned())
}

/// Adds the system, and the names of Hive's variables that are set.
pub(super) async fn facts(collector: &mut Collector<'_>) {
    let release = read("/etc/os-release").unwrap_or_default();
    let of_release = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        plain(line.trim_matches('"')).or_else(|| word(line.trim_matches('"')))
    };
    let memory = read("/proc/meminfo").and_then(|text| {
        let line =
            text.lines().find_map(|line| line.strip_prefix("MemTotal:").map(str::to_owned))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    });
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let mut variables: Vec<String> = variables.filter(|name| is_own_variable(name)).collect();
    variables.sort();
    let facts = json!({
        "architecture": std::env::consts::ARCH,
        "processors": std::thread::available_parallelism().map(usize::from).ok(),
        "memory_kib": memory,
        "kernel": read("/proc/sys/kernel/osrelease").and_then(|text| plain(text.trim())),
        "os": of_release("ID"),
        "os_version": of_release("VERSION_ID"),
        "os_name": of_release("PRETTY_NAME"),
        "is_root": rustix::process::geteuid().is_root(),
        "runs_systemd": Path::new("/run/systemd/system").exists(),
        "variables": variables,
    });
    collector.json("host.json", &facts);
}

fn word(text: &str) -> Option<String> {
    let is_word = text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_lowercase());
    (is_word && !text.is_empty()).then(|| text.to_owned())
}

fn is_own_variable(name: &str) -> bool {
    name.strip_prefix("HIVE_").is_some_and(|rest| {
        name.len() <= 64 && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    })
}

fn read(path: &str) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(READ_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

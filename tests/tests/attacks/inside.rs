//! The attacker's program: this very test binary, run again in the attacker's position. It calls
//! every existing RPC on its socket, and searches for other sockets.
//!
//! What it is not: a test of its own; without the environment of an attack it does nothing.
//! Invariant: it asserts nothing, but reports what it could do, a line each; the test outside
//! judges.

use std::io::Write as _;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use hive_proto::connect::connect;
use hive_proto::status;
use hive_proto::v1::GetSelfResponse;
use hive_tests::rig::{Process, raw};
use tokio::process::Command;
use tonic::metadata::MetadataMap;

use crate::authority_table::TABLE;

/// The variable with the socket's path.
pub(crate) const SOCKET_ENV: &str = "HIVE_ATTACK_SOCKET";
/// The variable with paths that should be absent, separated by `:`.
pub(crate) const PATHS_ENV: &str = "HIVE_ATTACK_PATHS";
/// The prefix of every line of its report.
const MARK: &str = "ATTACK ";

/// Returns the command of this program for an attacker.
pub(crate) fn command(program: &Path, socket: &Path) -> Command {
    let mut command = Process::command(program);
    command.args(arguments()).env(SOCKET_ENV, socket);
    command
}

/// Returns the arguments with which the test binary becomes this program.
pub(crate) fn arguments() -> [&'static str; 4] {
    ["--ignored", "--exact", "--nocapture", "inside::everything_is_tried"]
}

/// Returns the lines of a report.
pub(crate) fn report(stdout: &str) -> Vec<String> {
    stdout
        .lines()
        .filter_map(|line| line.split_once(MARK))
        .map(|(_, line)| line.to_owned())
        .collect()
}

#[tokio::test]
#[ignore = "other attacks run it where an attacker sits"]
async fn everything_is_tried() {
    let Some(socket) = std::env::var_os(SOCKET_ENV).map(PathBuf::from) else { return };
    let mut lines = vec![format!("uid {}", rustix::process::geteuid().as_raw())];
    for path in
        std::env::var(PATHS_ENV).unwrap_or_default().split(':').filter(|path| !path.is_empty())
    {
        lines.push(format!(
            "path {path} {}",
            if Path::new(path).symlink_metadata().is_ok() { "there" } else { "absent" }
        ));
    }
    let mut found = Vec::new();
    sockets(Path::new("/"), &mut found);
    lines.extend(found.into_iter().map(|path| format!("socket {}", path.display())));
    match connect(&socket).await {
        Err(error) => lines.push(format!("unreachable {error}")),
        Ok(channel) => {
            for row in TABLE.iter() {
                let path = format!("/hive.v1.{}/{}", row.service, row.method);
                // No field is set: this only checks whether the service exists, and for which
                // caller.
                let answer = raw::call(&channel, &path, MetadataMap::new(), Vec::new()).await;
                let said = match &answer {
                    Ok(answer) if row.method == "GetSelf" => {
                        format!(
                            "is {}",
                            answer
                                .decode::<GetSelfResponse>()
                                .agent
                                .map(|agent| agent.name)
                                .unwrap_or_default()
                        )
                    }
                    Ok(_) => "answered".to_owned(),
                    Err(refusal) => {
                        let reason = status::reason(refusal)
                            .map(hive_core::reason::Reason::as_str)
                            .unwrap_or_default();
                        format!("{:?} {reason}", refusal.code()).trim_end().to_owned()
                    }
                };
                lines.push(format!("rpc {}/{} {said}", row.service, row.method));
            }
        }
    }
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "\n{MARK}{line}").expect("the test reads");
    }
}

/// Finds every visible socket below a folder, except in the kernel's own file systems.
fn sockets(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        // Not the directory entry's type: that is the one below a mount.
        let Ok(kind) = path.symlink_metadata().map(|found| found.file_type()) else { continue };
        if kind.is_socket() {
            found.push(path);
        } else if kind.is_dir()
            && !["/proc", "/sys", "/dev", "/usr", "/nix"].iter().any(|made| path.starts_with(made))
        {
            sockets(&path, found);
        }
    }
}

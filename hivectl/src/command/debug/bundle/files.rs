//! The files of a hive: names that Hive chose, sizes, modes and owners; no content.
//!
//! Invariant: a file with any other name is only counted.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt};
use std::path::Path;

use hive_core::name::AgentName;
use serde::Serialize;

use super::collect::Collector;
use crate::command::doctor::{Places, is_backup, is_of_state};

const NAME: &str = "files.json";
/// Most files of one directory.
const FILES_MAX: usize = 10_000;

#[derive(Debug, Serialize)]
struct Directory {
    directory: &'static str,
    path: String,
    mode: Option<String>,
    uid: Option<u32>,
    error: Option<String>,
    files: Vec<FileFacts>,
    other_count: usize,
}

#[derive(Debug, Serialize)]
struct FileFacts {
    name: String,
    kind: &'static str,
    bytes: u64,
    mode: String,
    uid: u32,
}

pub(super) fn all(collector: &mut Collector<'_>, places: &Places) {
    let Places { state_dir, runtime_dir, backup_dir, base } = places;
    let mut found = vec![
        directory("state_dir", state_dir, &is_state),
        directory("backup_dir", backup_dir, &is_backup),
    ];
    if let Some(runtime_dir) = runtime_dir {
        found.push(directory("runtime_dir", runtime_dir, &|name| name == "hived.sock"));
        let agents = runtime_dir.join("agents");
        found.push(directory("sockets", &agents, &|name| AgentName::parse(name).is_ok()));
    }
    if let Some(base) = base {
        let is_log = |name: &str| {
            let log = name.strip_suffix(".log");
            log.is_some_and(|name| name == "hived" || AgentName::parse(name).is_ok())
        };
        found.push(directory("log_dir", &base.join("log"), &is_log));
    }
    collector.json(NAME, &found);
}

fn is_state(name: &str) -> bool {
    is_of_state(name)
        || ["backup.tmp", "create.tmp", "migration.tmp", "restore.tmp"].contains(&name)
}

fn directory(directory: &'static str, path: &Path, is_known: &dyn Fn(&str) -> bool) -> Directory {
    let itself = path.symlink_metadata().ok();
    let mut found = Directory {
        directory,
        path: path.display().to_string(),
        mode: itself.as_ref().map(|found| mode(found.mode())),
        uid: itself.as_ref().map(MetadataExt::uid),
        error: None,
        files: Vec::new(),
        other_count: 0,
    };
    let entries = match path.read_dir() {
        Ok(entries) => entries.filter_map(Result::ok),
        Err(error) => {
            found.error = Some(error.kind().to_string());
            return found;
        }
    };
    for entry in entries {
        let name = entry.file_name().into_string().ok().filter(|name| is_known(name));
        let facts = name.zip(entry.path().symlink_metadata().ok());
        let Some((name, facts)) = facts.filter(|_| found.files.len() < FILES_MAX) else {
            found.other_count += 1;
            continue;
        };
        let kind = match facts.file_type() {
            kind if kind.is_symlink() => "link",
            kind if kind.is_dir() => "directory",
            kind if kind.is_socket() => "socket",
            kind if kind.is_file() => "file",
            _ => "other",
        };
        let (bytes, mode, uid) = (facts.len(), mode(facts.mode()), facts.uid());
        found.files.push(FileFacts { name, kind, bytes, mode, uid });
    }
    found.files.sort_by(|left, right| left.name.cmp(&right.name));
    found
}

fn mode(mode: u32) -> String {
    format!("{:04o}", mode & 0o7777)
}

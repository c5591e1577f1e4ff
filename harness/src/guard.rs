//! `hive guard`: refuses reads of the harness's files by an isolated agent's file tools.
//!
//! claude runs it as a hook before each use of these tools. A deny rule in its settings would do
//! the same, but one such rule costs every start of claude about 20 ms of processor time. A hook
//! costs a few milliseconds at each use.
//!
//! It is no security boundary: claude has its key in memory, and code that replaces claude can read
//! the same files.

use std::io::Read as _;
use std::path::{Component, Path, PathBuf};

use clap::Args;
use serde_json::Value;

/// Guarded tools, as a pattern of claude's.
pub const TOOLS: &str = "Read|Grep|Edit";
/// The exit code with which claude refuses the use, and shows stderr to the model.
pub const REFUSED: u8 = 2;
/// Prefix of the harness's files for claude.
const OWN_FILES: &str = "claude-";
/// Longest description of a use, in bytes.
const INPUT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Arguments of `hive guard`.
#[derive(Debug, Args)]
pub struct GuardArgs {
    /// Directories of the harness
    #[command(flatten)]
    pub dirs: Dirs,
}

/// The guarded directories.
#[derive(Clone, Debug, Args)]
pub struct Dirs {
    /// Directory of the harness's files for claude
    #[arg(value_name = "DIR")]
    pub run: PathBuf,
    /// Directory of the harness's settings
    #[arg(long, value_name = "DIR")]
    pub private: Option<PathBuf>,
}

/// Returns the hook as a command of claude's shell.
pub fn command(hive: &Path, dirs: &Dirs) -> String {
    let Dirs { run, private } = dirs;
    let quoted = |path: &Path| format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"));
    let private = private.iter().map(|private| format!(" --private={}", quoted(private)));
    format!("{} guard{} {}", quoted(hive), private.collect::<String>(), quoted(run))
}

/// Reads a description of a use from stdin; returns why it is refused.
#[must_use]
pub fn run(args: &GuardArgs) -> Option<String> {
    let mut text = String::new();
    let read = std::io::stdin().take(INPUT_BYTES_MAX).read_to_string(&mut text);
    // A description that cannot be parsed is not known to be harmless.
    let Some(used) = read.ok().and_then(|_| serde_json::from_str::<Value>(&text).ok()) else {
        return Some("hive guard cannot read the description of this use".to_owned());
    };
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    refused(&used, &args.dirs, &home)
}

fn refused(used: &Value, dirs: &Dirs, home: &Path) -> Option<String> {
    let text = |value: &Value| value.as_str().map(PathBuf::from);
    let dir = text(&used["cwd"]).unwrap_or_else(|| PathBuf::from("/"));
    let input = &used["tool_input"];
    let named = text(&input["file_path"]).or_else(|| text(&input["path"])).unwrap_or_default();
    // claude's tools read `~` as the home, and the model's path is not expanded yet.
    let named = named.strip_prefix("~").map_or(named.clone(), |below| home.join(below));
    let lexical = without_dots(&dir.join(named));
    // Links are resolved as they are at this moment.
    let real = lexical.canonicalize().unwrap_or_else(|_| lexical.clone());
    let real_dirs = dirs.resolved();
    let searches = used["tool_name"] == "Grep";
    for (path, dirs) in [(&lexical, dirs), (&real, &real_dirs)] {
        if dirs.is_own_file(path) {
            return Some(format!(
                "{} belongs to the harness of this agent and is not read",
                path.display()
            ));
        }
        if path.starts_with("/proc")
            && (searches || path.file_name().is_some_and(|name| name == "environ"))
        {
            return Some(format!("{} may hold keys and is not read", path.display()));
        }
        if searches
            && let Some(dir) = [Some(&dirs.run), dirs.private.as_ref()]
                .into_iter()
                .flatten()
                .find(|dir| dir.starts_with(path))
        {
            return Some(format!(
                "{} contains {}, which is not searched: search in directories below it",
                path.display(),
                dir.display()
            ));
        }
    }
    None
}

impl Dirs {
    /// Returns the directories without links.
    fn resolved(&self) -> Self {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        Self { run: real(&self.run), private: self.private.as_ref().map(real) }
    }

    fn is_own_file(&self, path: &Path) -> bool {
        let first = path.strip_prefix(&self.run).ok().and_then(|below| below.components().next());
        let is_for_claude = first.is_some_and(|name| {
            name.as_os_str().as_encoded_bytes().starts_with(OWN_FILES.as_bytes())
        });
        is_for_claude || self.private.as_ref().is_some_and(|private| path.starts_with(private))
    }
}

/// Returns the path without `.` and `..`, without resolving links.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn environments_and_the_harnesss_files_are_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let run_dir = root.join("home/.hive");
        std::fs::create_dir_all(run_dir.join("tasks")).expect("directories");
        std::fs::write(run_dir.join("claude-mcp-config.json"), "{}").expect("a file");
        std::fs::create_dir(root.join("state")).expect("a directory");
        symlink(run_dir.join("claude-mcp-config.json"), root.join("state/link")).expect("a link");
        symlink("/proc/self", root.join("state/self")).expect("a link");
        let is_refused = |tool: &str, input: Value| {
            let used = json!({ "tool_name": tool, "cwd": root.join("state"), "tool_input": input });
            let dirs = Dirs { run: run_dir.clone(), private: Some(root.join("private")) };
            refused(&used, &dirs, &root.join("home")).is_some()
        };
        let read = |path: &str| is_refused("Read", json!({ "file_path": path }));
        let below = |path: &str| root.join(path).display().to_string();
        for path in [
            "/proc/self/environ",
            "/proc/1/task/1/environ",
            "/proc/../proc/2/environ",
            "self/environ",
            "link",
        ] {
            assert!(read(path), "{path}");
        }
        assert!(
            read(&below("home/.hive/claude-mcp-config.json")) && read("../home/.hive/claude-none")
        );
        assert!(
            read("~/.hive/claude-mcp-config.json")
                && !read("~/notes")
                && !read("~ada/.hive/claude-none")
        );
        for path in
            ["/etc/hostname", "/proc/cpuinfo", "notes", "environ", &below("home/.hive/tasks/1.out")]
        {
            assert!(!read(path), "{path}");
        }
        assert!(read(&below("private/settings.json")) && !read(&below("private.md")));
        assert!(is_refused("Edit", json!({ "file_path": "link" })));
        let grep = |path: &str| is_refused("Grep", json!({ "pattern": "x", "path": path }));
        for path in ["/", "/proc", "..", "~", &below("home"), &below("home/.hive"), "link"] {
            assert!(grep(path), "{path}");
        }
        assert!(
            !grep(".")
                && !is_refused("Grep", json!({ "pattern": "x" }))
                && !grep(&below("home/.hive/tasks"))
        );
    }

    #[test]
    fn the_command_survives_any_directory() {
        let dirs = Dirs { run: "/a b/$(c)".into(), private: Some("/-p".into()) };
        let words = command(Path::new("/opt/hive's/hive"), &dirs);
        assert_eq!(words, r"'/opt/hive'\''s/hive' guard --private='/-p' '/a b/$(c)'");
    }
}

//! The real Claude Code CLI in tests: where it is, and the environment in which it may run.
//!
//! Invariant: it never sees this process's environment, an account, or any address but loopback.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The version that the tests are written for.
pub use hive_scripted::VERSION;
/// Names another place for the binary.
pub const PATH_ENV: &str = "HIVE_TEST_CLAUDE";

/// The reason why there is no real CLI to test with.
#[derive(Debug, thiserror::Error)]
#[error("the Claude Code CLI {VERSION} is not at {}: `make test` installs it there, or {PATH_ENV} names it", .0.display())]
pub struct NotInstalled(PathBuf);

/// The binary.
pub fn find() -> Result<PathBuf, NotInstalled> {
    let path = std::env::var_os(PATH_ENV).map_or_else(default_path, PathBuf::from);
    if path.is_file() { Ok(path) } else { Err(NotInstalled(path)) }
}

/// Returns the path at which `make test` installs claude, below the workspace: the binary of the
/// platform package, for the wrapper's is a stub without its install script.
pub fn default_path() -> PathBuf {
    crate::binary::workspace()
        .join(".cache/claude/node_modules/@anthropic-ai/claude-code-linux-x64/claude")
}

/// The whole environment of a CLI that talks to a stand-in at `api_url` and keeps its files below
/// `home`.
///
/// `home` has to exist; it is the CLI's HOME and, below `tmp`, its temporary directory.
pub fn environment(home: &Path, api_url: &str) -> Vec<(OsString, OsString)> {
    let fixed = [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("ANTHROPIC_BASE_URL", api_url),
        ("ANTHROPIC_API_KEY", "dummy-key"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
        ("DISABLE_AUTOUPDATER", "1"),
    ];
    let mut environment: Vec<(OsString, OsString)> =
        fixed.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    environment.push(("HOME".into(), home.into()));
    environment.push(("CLAUDE_CODE_TMPDIR".into(), home.join("tmp").into()));
    environment
}

/// Returns the variables for a harness to add to the environment that it makes itself.
pub fn further_environment(home: &Path, api_url: &str) -> BTreeMap<String, String> {
    let all = environment(home, api_url).into_iter();
    all.filter(|(name, _)| name != "HOME" && name != "PATH")
        .map(|(name, value)| {
            (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_cli_is_reported_with_the_remedy() {
        let sentence = NotInstalled(default_path()).to_string();
        assert!(
            sentence.contains("2.1.330")
                && sentence.contains("`make test` installs it")
                && sentence.contains(PATH_ENV),
            "{sentence}"
        );
    }

    #[test]
    fn its_environment_names_nothing_but_loopback_and_its_home() {
        let environment = environment(Path::new("/h"), "http://127.0.0.1:1");
        let value = |name: &str| {
            environment.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
        };
        assert_eq!(value("HOME"), Some("/h".into()));
        assert_eq!(value("ANTHROPIC_API_KEY"), Some("dummy-key".into()));
        assert_eq!(value("ANTHROPIC_BASE_URL"), Some("http://127.0.0.1:1".into()));
        assert_eq!(environment.len(), 7);
    }
}

//! The version of the programs, with the commit that they were built from.
//!
//! Invariant: the commit is named by the script that builds shipped files, not looked up by every
//! build. Otherwise each commit would compile all crates again.

use std::sync::LazyLock;

/// The version of all programs.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit and its date, `1f2e3d4c5b6a 2026-11-27`, if this is a shipped build.
pub const COMMIT: Option<&str> = option_env!("HIVE_COMMIT");

static LONG: LazyLock<String> = LazyLock::new(|| with_commit(COMMIT));

fn with_commit(commit: Option<&str>) -> String {
    let commit = commit.filter(|commit| !commit.is_empty()).unwrap_or("development build");
    format!("{VERSION} ({commit})")
}

/// Returns the version with its commit, as `--version` prints it.
#[must_use]
pub fn long() -> &'static str {
    &LONG
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_that_knows_no_commit_says_so() {
        assert_eq!(with_commit(None), format!("{VERSION} (development build)"));
        assert_eq!(with_commit(Some("")), with_commit(None));
        assert_eq!(
            with_commit(Some("1f2e3d4c5b6a 2026-11-27")),
            format!("{VERSION} (1f2e3d4c5b6a 2026-11-27)")
        );
    }
}

//! The version of the claude CLI, and whether Hive supports it.
//!
//! Invariant: a version that is known to lack a required flag is refused before it gets mail. An
//! output without a version passes: the check of the init event still comes before any harm.

use std::fmt;

/// Oldest version with all flags that a turn needs.
pub const OLDEST: Version = Version { major: 2, minor: 1, patch: 0 };

/// A version of the CLI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Why the CLI cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "claude {found} is too old: Hive needs {OLDEST} or later; update Claude Code (npm install -g @anthropic-ai/claude-code)"
)]
pub struct Unsupported {
    pub found: Version,
}

/// Judges the output of `claude --version`, such as `2.1.330 (Claude Code)`.
pub fn judge(output: &str) -> Result<Option<Version>, Unsupported> {
    match output.split_whitespace().find_map(parse) {
        Some(found) if found < OLDEST && output.contains("Claude Code") => {
            Err(Unsupported { found })
        }
        found => Ok(found),
    }
}

fn parse(word: &str) -> Option<Version> {
    let mut numbers = word.trim_start_matches('v').splitn(3, '.');
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    let patch = numbers.next()?.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    Some(Version { major, minor, patch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(
            judge("2.1.330 (Claude Code)\n"),
            Ok(Some(Version { major: 2, minor: 1, patch: 330 }))
        );
        assert_eq!(
            judge("2.10.0-beta.1 (Claude Code)"),
            Ok(Some(Version { major: 2, minor: 10, patch: 0 }))
        );
        let old = judge("1.0.128 (Claude Code)").expect_err("too old");
        assert!(old.to_string().contains("1.0.128") && old.to_string().contains("update"), "{old}");
        assert_eq!(judge("scripted 0.1.0"), Ok(Some(Version { major: 0, minor: 1, patch: 0 })));
        assert_eq!(judge("no version here"), Ok(None));
    }
}

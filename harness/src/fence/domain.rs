//! The Landlock domain: a fenced program can neither trace the processes outside nor read their
//! environments.
//!
//! Since ABI 6 (Linux 6.12) the domain has two scopes: no signals to processes outside, no
//! connections to their abstract sockets. It then handles no file access, so mounts and renames
//! work as before. Older kernels require at least one handled file access. The domain then handles
//! renames between directories and allows them everywhere; such a domain forbids mounts. ABI 1
//! refuses such renames in each domain, so no domain is applied. Invariant: the domain changes
//! nothing about files except mounts.

use landlock::{
    ABI, Access as _, AccessFs, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};

use super::FenceError;

/// The domain that was applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Domain {
    /// No tracing, no signals, no abstract sockets.
    Scoped,
    /// No tracing.
    Untraced,
    /// No domain: the kernel has no Landlock, or one that is too old for the program's permissions.
    None,
}

/// Applies the strongest domain that the kernel supports. With user namespaces a domain must not
/// forbid mounts.
pub fn apply(user_namespaces: bool) -> Result<Domain, FenceError> {
    if let Ok(rules) = ruleset().scope(Scope::from_all(ABI::V6)) {
        rules.create()?.restrict_self()?;
        return Ok(Domain::Scoped);
    }
    if user_namespaces {
        return Ok(Domain::None);
    }
    apply_untraced()
}

/// Applies the domain of kernels without scopes.
fn apply_untraced() -> Result<Domain, FenceError> {
    let Ok(rules) = ruleset().handle_access(AccessFs::Refer) else { return Ok(Domain::None) };
    let everywhere = PathBeneath::new(PathFd::new("/")?, AccessFs::Refer);
    rules.create()?.add_rule(everywhere)?.restrict_self()?;
    Ok(Domain::Untraced)
}

/// Returns a ruleset that fails for what the kernel does not support.
fn ruleset() -> Ruleset {
    Ruleset::default().set_compatibility(CompatLevel::HardRequirement)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_without_scopes_lets_files_move_between_directories() {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["a", "b"] {
            std::fs::create_dir(dir.path().join(name)).expect("created");
        }
        let (from, to) = (dir.path().join("a/file"), dir.path().join("b/file"));
        std::fs::write(&from, "x").expect("written");
        // The domain ends with the thread.
        let moved = std::thread::scope(|scope| {
            let work = || {
                apply_untraced().expect("applied");
                std::fs::rename(&from, &to).and_then(|()| std::fs::hard_link(&to, &from))
            };
            scope.spawn(work).join().expect("ended")
        });
        moved.expect("moved and linked");
    }
}

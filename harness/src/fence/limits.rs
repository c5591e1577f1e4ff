//! Limits of processes and of open files.
//!
//! Invariant: a limit is only lowered.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::FenceError;

/// Maximum processes and threads of the user; since Linux 5.14 they are counted per user namespace.
pub const PROCESSES_MAX: u64 = 4096;
/// Maximum open files of a process: enough for watchers of large trees.
pub const FILES_MAX: u64 = 65_536;

const LIMITS: [(&str, Resource, u64); 2] =
    [("processes", Resource::Nproc, PROCESSES_MAX), ("open files", Resource::Nofile, FILES_MAX)];

/// Applies both limits to this process.
pub fn apply() -> Result<(), FenceError> {
    for (what, resource, max) in LIMITS {
        let present = getrlimit(resource);
        let lowered = lowered(&present, max);
        if lowered != present {
            setrlimit(resource, lowered)
                .map_err(|errno| FenceError::Limit { what, source: errno.into() })?;
        }
    }
    Ok(())
}

/// Returns the lower limits; `None` is no limit.
fn lowered(present: &Rlimit, max: u64) -> Rlimit {
    let lower = |present: Option<u64>| Some(present.map_or(max, |present| present.min(max)));
    Rlimit { current: lower(present.current), maximum: lower(present.maximum) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_only_lowered() {
        let limit = |current, maximum| Rlimit { current, maximum };
        for (present, left) in [
            (limit(None, None), limit(Some(4096), Some(4096))),
            (limit(Some(100), None), limit(Some(100), Some(4096))),
            (limit(Some(100), Some(200)), limit(Some(100), Some(200))),
            (limit(Some(9000), Some(10_000)), limit(Some(4096), Some(4096))),
        ] {
            assert_eq!(lowered(&present, PROCESSES_MAX), left);
        }
    }
}

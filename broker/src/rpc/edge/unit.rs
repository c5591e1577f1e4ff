//! Units: the unit of systemd in which a process runs.
//!
//! systemd puts the processes of a unit into a cgroup, and only root can move a process to another
//! unit's. Invariant: the unit is the first part of the cgroup's path below the slices. What
//! follows is named by the unit itself, such as a container or a user's own manager.

use std::io;

/// The line of the second version of cgroups, in `/proc/PID/cgroup`.
const UNIFIED: &str = "0::";
/// The line of systemd's own hierarchy, on hosts with the first version.
const NAMED: &str = ":name=systemd:";

/// Returns the unit of a process; `None` if it runs in none.
pub(super) fn of_process(pid: i32) -> io::Result<Option<String>> {
    let lines = std::fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    Ok(in_lines(&lines).map(str::to_owned))
}

/// Finds the unit in the lines of `/proc/PID/cgroup`.
fn in_lines(lines: &str) -> Option<&str> {
    let unified = lines.lines().find_map(|line| line.strip_prefix(UNIFIED));
    let named = || lines.lines().find_map(|line| Some(line.split_once(NAMED)?.1));
    // Where systemd uses the first version alone, all processes are in the root of the second.
    in_path(unified.filter(|path| *path != "/").or_else(named)?)
}

/// Finds the unit in the path of a cgroup.
fn in_path(path: &str) -> Option<&str> {
    let mut parts = path.strip_prefix('/')?.split('/');
    let unit = parts.find(|part| !part.ends_with(".slice"))?;
    // systemd writes `_` before a name that would be a file of the kernel's.
    let unit = unit.strip_prefix('_').unwrap_or(unit);
    let is_unit = [".service", ".scope"].iter().any(|kind| unit.ends_with(kind));
    is_unit.then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_first_part_below_the_slices() {
        for (path, wanted) in [
            ("/system.slice/hive@ada.service", Some("hive@ada.service")),
            ("/hive.slice/hive-agents.slice/hive@ada.service/sub", Some("hive@ada.service")),
            ("/system.slice/_cpu.service", Some("cpu.service")),
            // Names that a user's manager, a container or a service has chosen.
            (
                "/user.slice/user-1000.slice/user@1000.service/app.slice/hive@ada.service",
                Some("user@1000.service"),
            ),
            (
                "/machine.slice/machine-x.scope/payload/system.slice/hive@ada.service",
                Some("machine-x.scope"),
            ),
            ("/other/hive@ada.service", None),
            ("/init.scope", Some("init.scope")),
            ("/../hive@ada.service", None),
            ("/system.slice", None),
            ("/", None),
            ("", None),
            ("hive@ada.service", None),
        ] {
            assert_eq!(in_path(path), wanted, "{path}");
        }
    }

    #[test]
    fn the_hierarchy_of_systemd_is_read() {
        let unified = "0::/system.slice/a.service\n";
        assert_eq!(in_lines(unified), Some("a.service"));
        let legacy = "3:cpu:/b.service\n1:name=systemd:/system.slice/a.service\n0::/\n";
        assert_eq!(in_lines(legacy), Some("a.service"));
        let hybrid = "1:name=systemd:/system.slice/b.service\n0::/system.slice/a.service\n";
        assert_eq!(in_lines(hybrid), Some("a.service"));
        for none in ["", "0::/\n", "3:cpu:/system.slice/b.service\n0::/\n"] {
            assert_eq!(in_lines(none), None, "{none}");
        }
        assert!(of_process(rustix::process::getpid().as_raw_nonzero().get()).is_ok());
    }
}

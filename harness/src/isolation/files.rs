//! Files that must not exist, and files that must not be writable.
//!
//! Invariant: nothing is written or opened; the probes read permissions and mounts only.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use hive_core::isolation::{Finding, Mounted};
use rustix::fs::{
    Access, AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, accessat, lstat, statvfs,
    statx,
};
use rustix::io::Errno;

use super::broken;

/// Returns the first mount that shows another file than the checked one.
pub(super) fn replaced(mounted: &[Mounted]) -> Option<&Path> {
    let is_same = |mounted: &&Mounted| {
        let Mounted { path, device, inode } = mounted;
        std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (*device, *inode))
    };
    mounted.iter().find(|mounted| !is_same(mounted)).map(|mounted| mounted.path.as_path())
}

/// Finds paths that exist.
pub(super) fn hidden(paths: &[PathBuf]) -> Vec<Finding> {
    // A path that may not be looked up cannot be reached either.
    let exist = paths.iter().filter(|path| lstat(*path).is_ok());
    exist.map(|path| broken(format!("can see {}, which must be hidden", path.display()))).collect()
}

/// Finds paths that can be written or replaced.
pub(super) fn read_only(paths: &[PathBuf]) -> Vec<Finding> {
    let judge = |path: &PathBuf| {
        // A file that does not exist is not run either.
        let real = path.canonicalize().ok()?;
        let sentence = |how: &str| broken(format!("can {how} {}", path.display()));
        if can_write(&real) {
            return Some(sentence("write"));
        }
        let replaced = real
            .ancestors()
            .find(|below| below.parent().is_some_and(can_write) && !is_mount(below))?;
        Some(if replaced == real {
            sentence("replace")
        } else {
            broken(format!("can replace {} above {}", replaced.display(), path.display()))
        })
    };
    paths.iter().filter_map(judge).collect()
}

/// Returns whether it is writable, or can be made so: its owner can change its permissions.
fn can_write(path: &Path) -> bool {
    if statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY)) {
        return false;
    }
    let owned = lstat(path).is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    owned
        || !matches!(
            accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS),
            Err(Errno::ACCESS | Errno::ROFS | Errno::PERM)
        )
}

/// Returns whether it is the root of a mount, which cannot be renamed.
fn is_mount(path: &Path) -> bool {
    let attributes = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
    attributes.is_ok_and(|stat| stat.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn existing_files_are_found_and_others_are_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("hive.db");
        assert_eq!(hidden(std::slice::from_ref(&path)), []);
        // A link that leads nowhere is there too.
        std::os::unix::fs::symlink("/no/such", &path).expect("linked");
        let found = hidden(std::slice::from_ref(&path));
        assert!(found[0].sentence.contains(&path.display().to_string()), "{found:?}");
    }

    #[test]
    fn a_mount_of_another_file_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("work");
        fs::create_dir(&path).expect("created");
        let found = fs::metadata(&path).expect("there");
        let mounted = [Mounted { path: path.clone(), device: found.dev(), inode: found.ino() }];
        assert_eq!(replaced(&mounted), None);
        fs::rename(&path, dir.path().join("moved")).expect("moved");
        assert_eq!(replaced(&mounted), Some(path.as_path()));
        std::os::unix::fs::symlink(dir.path(), &path).expect("linked");
        assert_eq!(replaced(&mounted), Some(path.as_path()));
    }

    #[test]
    fn a_file_that_its_owner_could_write_or_replace_counts_as_writable() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("program");
        fs::write(&path, "").expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o555)).expect("set");
        assert_eq!(read_only(std::slice::from_ref(&path)).len(), 1);
        assert_eq!(read_only(&[dir.path().join("none")]), []);
        assert!(is_mount(Path::new("/proc")) && !is_mount(dir.path()));
        assert_eq!(
            fs::metadata(&path).expect("there").permissions().mode() & 0o777,
            0o555,
            "nothing was changed"
        );
    }
}

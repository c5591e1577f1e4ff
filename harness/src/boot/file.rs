//! Atomic writes of private files: no reader sees a partial file.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Writes a file that only its owner can read: beside the old one first, then in its place.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("new");
    // A file that a crash left behind would keep its permissions.
    remove(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

/// Removes a file, if it exists.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a directory that only its owner can enter, or restricts an existing one.
pub fn private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_private_whole_and_leave_nothing_beside_them() {
        let dir = tempfile::tempdir().expect("a directory");
        let inner = dir.path().join("a/b");
        private_dir(&inner).expect("created");
        let path = inner.join("x.json");
        fs::write(inner.join("x.new"), "of a crash").expect("written");
        for text in ["one", "another"] {
            write(&path, text).expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), text);
        }
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&inner)), (0o600, 0o700));
        assert_eq!(fs::read_dir(&inner).expect("there").count(), 1);
    }
}

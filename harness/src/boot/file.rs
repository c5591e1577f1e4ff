//! Atomic writes of private files: no reader sees a partial file.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

/// Writes a file that only its owner can read: beside the old one first, then in its place. A file
/// that has the text already stays: most files of a turn are those of the turn before.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    if has(path, text).is_ok_and(|has| has) {
        return Ok(());
    }
    let beside = path.with_extension("new");
    // A file that a crash left behind would keep its permissions.
    remove(&beside)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

/// Returns whether the path is a private file of ours, under no other name, with exactly this text.
fn has(path: &Path, text: &str) -> io::Result<bool> {
    let no_follow = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(no_follow).open(path)?;
    let found = file.metadata()?;
    let is_ours = found.is_file()
        && found.nlink() == 1
        && found.mode() & 0o7777 == 0o600
        && found.uid() == geteuid().as_raw();
    if !is_ours || usize::try_from(found.len()) != Ok(text.len()) {
        return Ok(false);
    }
    let mut content = Vec::with_capacity(text.len() + 1);
    file.read_to_end(&mut content)?;
    Ok(content == text.as_bytes())
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

    #[test]
    fn a_file_with_the_text_stays_and_whatever_else_is_there_is_replaced() {
        let dir = tempfile::tempdir().expect("a directory");
        let (path, other) = (dir.path().join("x"), dir.path().join("other"));
        let inode = |path: &Path| fs::symlink_metadata(path).expect("there").ino();
        let written = || {
            write(&path, "text").expect("written");
            assert_eq!(fs::read_to_string(&path).expect("there"), "text");
            let found = fs::symlink_metadata(&path).expect("there");
            assert!(found.is_file() && found.nlink() == 1 && found.mode() & 0o7777 == 0o600);
            found.ino()
        };
        let first = written();
        assert_eq!(written(), first);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("set");
        let second = written();
        fs::hard_link(&path, &other).expect("a second name");
        written();
        assert_eq!(inode(&other), second, "the other name has the old file");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink(&other, &path).expect("a link");
        written();
        for text in ["texT", "text\n", ""] {
            fs::write(&path, text).expect("written");
            written();
        }
    }
}

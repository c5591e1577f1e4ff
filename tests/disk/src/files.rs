//! The host's files below a disk's directory: copying them, and detecting writes by other programs.
//!
//! Invariant: the disk's own changes leave a marked file marked.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::UNIX_EPOCH;
use std::{fs, io};

use crate::model::Model;

/// Marks a file with forgotten data, so that a later write by other means than SQLite is detected:
/// what such a program writes and syncs is on disk.
pub(crate) fn stamp(dir: &Path, file: &str, model: &Model) {
    if model.forgotten {
        let marked = fs::File::options()
            .write(true)
            .open(dir.join(file))
            .and_then(|it| it.set_modified(UNIX_EPOCH));
        marked.expect("the file is there, and it is ours");
    }
}

pub(crate) fn is_stamped(path: &Path) -> bool {
    fs::metadata(path).and_then(|data| data.modified()).is_ok_and(|time| time == UNIX_EPOCH)
}

/// Copies the files below a directory, without the memory that processes share, and without some
/// files.
pub(crate) fn copy(
    root: &Path,
    from: &Path,
    into: &Path,
    without: &BTreeMap<String, Model>,
) -> io::Result<()> {
    fs::create_dir_all(into)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, to) = (entry.path(), into.join(entry.file_name()));
        let name = path
            .strip_prefix(root)
            .map_or_else(|_| String::new(), |name| name.to_string_lossy().into_owned());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            copy(root, &path, &to, without)?;
        } else if kind.is_file() && !name.ends_with("-shm") && !without.contains_key(&name) {
            fs::copy(&path, &to)?;
        }
    }
    Ok(())
}

pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, content)
}

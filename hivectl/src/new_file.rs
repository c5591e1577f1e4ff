//! A file that a command makes: written under another name beside it, and given its own when it is
//! whole and on disk.
//!
//! Invariant: the path names the earlier file or the whole new one, only its owner can read it, and
//! no other file is left.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;

use crate::connect::request_id;

/// Why there is no new file.
#[derive(Debug)]
pub(crate) enum FileError {
    /// A file of this name is there.
    Exists(PathBuf),
    /// The path names no file.
    NoFile(PathBuf),
    /// The file cannot be written.
    Unwritable { path: PathBuf, source: io::Error },
}

/// A file until it is finished.
#[derive(Debug)]
pub(crate) struct Unfinished {
    file: File,
    /// Under this name, until it is finished.
    temporary: Option<PathBuf>,
    path: PathBuf,
    force: bool,
}

impl Unfinished {
    /// Begins, if the name is free or may be taken.
    pub(crate) fn begin(path: &Path, force: bool) -> Result<Self, FileError> {
        let unwritable = |source| FileError::Unwritable { path: path.to_path_buf(), source };
        match path.symlink_metadata() {
            Ok(there) if !there.is_file() => {
                return Err(FileError::NoFile(path.to_path_buf()));
            }
            Ok(_) if !force => return Err(FileError::Exists(path.to_path_buf())),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(unwritable(error)),
        }
        let Some(name) = path.file_name() else {
            return Err(FileError::NoFile(path.to_path_buf()));
        };
        // The name is unique, and in the same directory, so that the rename is atomic.
        let temporary =
            path.with_file_name(format!(".{}.{}", name.to_string_lossy(), request_id()));
        // It may contain mail, so only its owner may read it.
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .map_err(unwritable)?;
        Ok(Self { file, temporary: Some(temporary), path: path.to_path_buf(), force })
    }

    pub(crate) fn write(&mut self, chunk: &[u8]) -> Result<(), FileError> {
        self.file.write_all(chunk).map_err(|source| self.unwritable(source))
    }

    /// Returns the file, for a library that writes it.
    pub(crate) fn writer(&mut self) -> &mut File {
        &mut self.file
    }

    /// Returns the name that it gets.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its present length.
    pub(crate) fn bytes(&self) -> Result<u64, FileError> {
        self.file.metadata().map(|found| found.len()).map_err(|source| self.unwritable(source))
    }

    /// Puts it on disk and gives it its name.
    pub(crate) fn finish(mut self) -> Result<(), FileError> {
        self.file.sync_all().map_err(|source| self.unwritable(source))?;
        let Some(temporary) = &self.temporary else { return Ok(()) };
        let flags = if self.force { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match renameat_with(CWD, temporary, CWD, &self.path, flags) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(FileError::Exists(self.path.clone())),
            // Not every file system can do it without replacing; that the name was free was seen
            // above.
            Err(Errno::INVAL | Errno::NOSYS) => {
                std::fs::rename(temporary, &self.path).map_err(|source| self.unwritable(source))?;
            }
            Err(errno) => return Err(self.unwritable(errno.into())),
        }
        self.temporary = None;
        let dir =
            self.path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        // Syncs the directory, so that the name is durable too.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(|source| self.unwritable(source))
    }

    fn unwritable(&self, source: io::Error) -> FileError {
        FileError::Unwritable { path: self.path.clone(), source }
    }
}

/// Returns whether a name is that of an unfinished file, as this program makes them.
pub(crate) fn is_unfinished(name: &str) -> bool {
    let Some((before, random)) = name.rsplit_once(".hivectl-") else { return false };
    before.len() > 1
        && before.starts_with('.')
        && random.len() == 32
        && random.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            // Nothing better can be done where even this fails.
            let _ = std::fs::remove_file(temporary);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_is_known_by_its_name() {
        let dir = tempfile::tempdir().expect("a directory");
        let made = Unfinished::begin(&dir.path().join("hive.db"), false).expect("it begins");
        let path = made.temporary.clone().expect("a name");
        assert!(is_unfinished(path.file_name().and_then(|name| name.to_str()).expect("text")));
        let hex = "0".repeat(32);
        for other in [
            "hive.db".to_owned(),
            format!("hive.db.hivectl-{hex}"),
            format!(".hivectl-{hex}"),
            format!(".hive.db.hivectl-{}", &hex[1..]),
            format!(".hive.db.hivectl-{}g", &hex[1..]),
        ] {
            assert!(!is_unfinished(&other), "{other}");
        }
    }
}

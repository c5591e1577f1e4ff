//! The end of a file.
//!
//! Invariant: however long the file is, no more than [`BYTES_MAX`] bytes of it are read.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::{BYTES_MAX, End, last_lines};

/// Returns the last lines of a file; nothing of one that is missing.
pub(super) fn read(path: &Path, lines: u32) -> io::Result<End> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(End::default()),
        Err(error) => return Err(error),
    };
    let start = file.metadata()?.len().saturating_sub(BYTES_MAX as u64);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX as u64).read_to_end(&mut bytes)?;
    Ok(last_lines(&bytes, start == 0, lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_file_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("log");
        assert_eq!(read(&path, 5).expect("nothing"), End::default());
        let line = format!("{}\n", "x".repeat(1023));
        std::fs::write(&path, line.repeat(100)).expect("written");
        let end = read(&path, 500).expect("read");
        // One more line begins exactly where the limit does, so nothing shows that it is whole.
        assert_eq!((end.text.lines().count(), end.truncated), (63, true));
        assert!(!read(&path, 5).expect("read").truncated);
        assert!(read(dir.path(), 5).is_err(), "a directory");
    }
}

//! The agenda of an agent: the file HEARTBEAT.md in its working directory, which the agent itself
//! keeps, and which each heartbeat brings before it.
//!
//! The agent's shell can write there, so the file is judged on its descriptor. Invariant: only a
//! plain file with one name is read, so that no link shows the agent what is hidden from its shell.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use hive_core::message::{Message, SystemKind};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;

/// The name of the file.
pub const FILE: &str = "HEARTBEAT.md";
/// Maximum size of a file that is read.
const BYTES_MAX: u64 = 32 * 1024;

/// What a heartbeat finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Agenda {
    /// There is no file, or nothing but white space and headings in it.
    Nothing,
    /// The text of the file.
    Text(String),
    /// There is a file that was not read, for this reason.
    Unread(String),
}

/// Returns the agenda that a message asks for, if it is a heartbeat.
pub fn agenda(message: &Message, state_dir: &Path) -> Option<Agenda> {
    (message.system_kind == Some(SystemKind::Heartbeat)).then(|| read(state_dir))
}

fn read(state_dir: &Path) -> Agenda {
    match text(state_dir) {
        Ok(text) if says_nothing(&text) => Agenda::Nothing,
        Ok(text) => Agenda::Text(text),
        Err(Unread::Absent) => Agenda::Nothing,
        Err(unread) => Agenda::Unread(unread.to_string()),
    }
}

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
enum Unread {
    #[error("there is no file")]
    Absent,
    #[error("it is a link; put a plain file in its place")]
    Link,
    #[error("it is no plain file; put one in its place")]
    Kind,
    #[error("it is also a file of another name; write a copy in its place")]
    OtherNames,
    #[error("it is larger than {} KiB; shorten it", BYTES_MAX / 1024)]
    Large,
    #[error("it is not UTF-8; write it again as text")]
    Encoding,
    #[error("it cannot be read: {0}; check its permissions")]
    Io(#[from] io::Error),
}

impl From<Errno> for Unread {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT => Self::Absent,
            Errno::LOOP => Self::Link,
            // A socket.
            Errno::NXIO => Self::Kind,
            other => Self::Io(other.into()),
        }
    }
}

fn text(state_dir: &Path) -> Result<String, Unread> {
    let dir = openat(
        CWD,
        state_dir,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    // NONBLOCK: a pipe would wait for a writer.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&dir, FILE, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(Unread::Kind);
    }
    if found.nlink() != 1 {
        return Err(Unread::OtherNames);
    }
    // Not by its size alone: it may grow.
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > BYTES_MAX) {
        return Err(Unread::Large);
    }
    String::from_utf8(bytes).map_err(|_| Unread::Encoding)
}

/// Returns whether a text has nothing but white space and Markdown headings.
fn says_nothing(text: &str) -> bool {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.lines().all(|line| line.trim().is_empty() || is_heading(line))
}

/// Returns whether a line is a heading: up to three blanks, one to six `#`, and a blank or the end.
fn is_heading(line: &str) -> bool {
    let inner = line.trim_start_matches(' ');
    let title = inner.trim_start_matches('#');
    let (indent, level) = (line.len() - inner.len(), inner.len() - title.len());
    indent <= 3
        && (1..=6).contains(&level)
        && (title.is_empty() || title.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use hive_core::message::Origin;

    use super::*;
    use crate::samples;

    fn found(make: impl FnOnce(&Path)) -> Agenda {
        let dir = tempfile::tempdir().expect("a directory");
        make(&dir.path().join(FILE));
        read(dir.path())
    }

    fn with(text: impl AsRef<[u8]>) -> Agenda {
        found(|path| fs::write(path, text).expect("written"))
    }

    fn unread(agenda: Agenda) -> String {
        match agenda {
            Agenda::Unread(why) => why,
            Agenda::Nothing | Agenda::Text(_) => panic!("{agenda:?} was read"),
        }
    }

    #[test]
    fn only_a_heartbeat_has_an_agenda() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut message = samples::message(1, Origin::System, "Your heartbeat.");
        assert_eq!(agenda(&message, dir.path()), None);
        message.system_kind = Some(SystemKind::Reminder);
        assert_eq!(agenda(&message, dir.path()), None);
        message.system_kind = Some(SystemKind::Heartbeat);
        assert_eq!(agenda(&message, dir.path()), Some(Agenda::Nothing));
        assert_eq!(agenda(&message, &dir.path().join("absent")), Some(Agenda::Nothing));
    }

    #[test]
    fn blank_lines_and_headings_say_nothing() {
        for text in ["", " \n\t\n", "# Heartbeat\n\n## Daily  \n   ###### x\n#", "\u{feff}# A\r\n"]
        {
            assert_eq!(with(text), Agenda::Nothing, "{text:?}");
        }
        for text in ["x", "# A\n- look at the mail", "#no heading", "####### seven", "    # code"] {
            assert_eq!(with(text), Agenda::Text(text.to_owned()), "{text:?}");
        }
    }

    #[test]
    fn the_largest_file_is_read_and_a_larger_one_is_not() {
        let largest = "x".repeat(32 * 1024);
        assert_eq!(with(&largest), Agenda::Text(largest.clone()));
        assert_eq!(unread(with(largest + "x")), "it is larger than 32 KiB; shorten it");
        assert!(unread(with(b"caf\xe9")).contains("UTF-8"));
    }

    #[test]
    fn what_is_no_plain_file_of_one_name_is_not_read() {
        let elsewhere = tempfile::tempdir().expect("a directory");
        let secret = elsewhere.path().join("secret");
        fs::write(&secret, "s3cret").expect("written");
        assert!(unread(found(|path| symlink(&secret, path).expect("linked"))).contains("a link"));
        let dangling = found(|path| symlink("absent", path).expect("linked"));
        assert!(unread(dangling).contains("a link"));
        let hard = found(|path| fs::hard_link(&secret, path).expect("linked"));
        assert!(unread(hard).contains("another name"));
        let directory = found(|path| fs::create_dir(path).expect("made"));
        assert!(unread(directory).contains("no plain file"));
        let pipe = found(|path| {
            let mode = Mode::RUSR | Mode::WUSR;
            rustix::fs::mknodat(CWD, path, rustix::fs::FileType::Fifo, mode, 0).expect("made");
        });
        assert!(unread(pipe).contains("no plain file"));
        let socket = found(|path| drop(std::os::unix::net::UnixListener::bind(path)));
        assert!(unread(socket).contains("no plain file"));
    }

    #[test]
    fn an_error_of_the_host_is_named() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let why = unread(read(file.path()));
        assert!(why.starts_with("it cannot be read: ") && why.contains("permissions"), "{why}");
    }
}

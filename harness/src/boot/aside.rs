//! Renaming of settings in the agent's working directory with which its shell could control claude.
//!
//! claude obeys `.claude/settings.json` and `.claude/settings.local.json` of its working directory
//! without asking: hooks, environment and permissions. The agent's shell could have written them,
//! so they are renamed before claude starts. Invariant: no link is followed, nothing outside the
//! working directory is touched, and nothing is lost.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, statat,
};
use rustix::io::Errno;

/// claude's directory of a project.
pub(super) const CLAUDE_DIR: &CStr = c".claude";
/// Files in it that claude obeys.
const SETTINGS: [&CStr; 2] = [c"settings.json", c"settings.local.json"];
/// Maximum passes until one finds nothing. A writer that is faster than this is an attacker.
const PASSES_MAX: usize = 5;
/// Maximum renamed files of one name. A larger number is not accidental.
const KEPT_MAX: usize = 1000;

/// A renamed entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aside {
    /// Its old path, below the working directory or the home.
    pub from: PathBuf,
    /// Its new path, below the same directory.
    pub to: PathBuf,
}

/// Renames settings in the working directory; returns the renamed entries.
pub fn settings(dir: &Path) -> io::Result<Vec<Aside>> {
    let dir = openat(CWD, dir, DIRECTORY, Mode::empty())?;
    repeat("claude's settings", |found| set_aside_once(dir.as_fd(), found))
}

/// Repeats a pass until it finds nothing; returns what all passes renamed.
pub(super) fn repeat(
    what: &str,
    mut pass: impl FnMut(&mut Vec<Aside>) -> io::Result<()>,
) -> io::Result<Vec<Aside>> {
    let mut found = Vec::new();
    for _ in 0..PASSES_MAX {
        let earlier = found.len();
        pass(&mut found)?;
        if found.len() == earlier {
            return Ok(found);
        }
    }
    Err(io::Error::other(format!("a process writes {what} as fast as Hive renames them; end it")))
}

pub(super) const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn set_aside_once(dir: BorrowedFd<'_>, found: &mut Vec<Aside>) -> io::Result<()> {
    let inside: OwnedFd = match openat(dir, CLAUDE_DIR, DIRECTORY, Mode::empty()) {
        Ok(inside) => inside,
        Err(Errno::NOENT) => return Ok(()),
        // A file with this name has no effect on claude, but a link may lead to settings in any
        // directory.
        Err(Errno::NOTDIR | Errno::LOOP) => return link(dir, found),
        Err(error) => return Err(error.into()),
    };
    for name in SETTINGS {
        if let Some(kept) = put_aside(inside.as_fd(), name)? {
            found.push(Aside { from: below(&[CLAUDE_DIR, name]), to: below(&[CLAUDE_DIR, &kept]) });
        }
    }
    Ok(())
}

pub(super) fn link(dir: BorrowedFd<'_>, found: &mut Vec<Aside>) -> io::Result<()> {
    let is_link = match statat(dir, CLAUDE_DIR, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => FileType::from_raw_mode(stat.st_mode) == FileType::Symlink,
        Err(Errno::NOENT) => false,
        Err(error) => return Err(error.into()),
    };
    if is_link && let Some(kept) = put_aside(dir, CLAUDE_DIR)? {
        found.push(Aside { from: below(&[CLAUDE_DIR]), to: below(&[&kept]) });
    }
    Ok(())
}

/// Renames an entry of any kind to the first free name; `None`: it does not exist.
pub(super) fn put_aside(dir: BorrowedFd<'_>, name: &CStr) -> io::Result<Option<CString>> {
    for number in 0..KEPT_MAX {
        let kept = kept_name(name, number)?;
        match renameat_with(dir, name, dir, &kept, RenameFlags::NOREPLACE) {
            Ok(()) => return Ok(Some(kept)),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::EXIST) => {}
            // The file system does not support renaming without replacing.
            Err(Errno::INVAL | Errno::NOSYS) => match statat(dir, &kept, AtFlags::SYMLINK_NOFOLLOW)
            {
                Ok(_) => {}
                Err(Errno::NOENT) => match renameat(dir, name, dir, &kept) {
                    Ok(()) => return Ok(Some(kept)),
                    Err(Errno::NOENT) => return Ok(None),
                    Err(error) => return Err(error.into()),
                },
                Err(error) => return Err(error.into()),
            },
            Err(error) => return Err(error.into()),
        }
    }
    let name = name.to_string_lossy();
    Err(io::Error::other(format!(
        "{KEPT_MAX} files like {name}.ignored are in the agent's directories; remove them"
    )))
}

fn kept_name(name: &CStr, number: usize) -> io::Result<CString> {
    let mut kept = name.to_bytes().to_vec();
    kept.extend_from_slice(b".ignored");
    if number > 0 {
        kept.extend_from_slice(format!("-{}", number + 1).as_bytes());
    }
    CString::new(kept).map_err(io::Error::other)
}

pub(super) fn below(names: &[&CStr]) -> PathBuf {
    names.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn moved(dir: &Path) -> Vec<(String, String)> {
        let found = settings(dir).expect("filtered");
        found
            .into_iter()
            .map(|aside| (aside.from.display().to_string(), aside.to.display().to_string()))
            .collect()
    }

    fn assert_untouched(other: &Path) {
        let text = fs::read_to_string(other.join("settings.json")).expect("untouched");
        assert_eq!(text, "another's");
    }

    fn pair(from: &str, to: &str) -> (String, String) {
        (from.to_owned(), to.to_owned())
    }

    #[test]
    fn a_directory_without_settings_is_left_as_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(moved(dir.path()), []);
        fs::create_dir(dir.path().join(".claude")).expect("created");
        fs::write(dir.path().join(".claude/CLAUDE.md"), "x").expect("written");
        assert_eq!(moved(dir.path()), []);
        assert!(dir.path().join(".claude/CLAUDE.md").exists());
    }

    #[test]
    fn settings_are_renamed_and_nothing_is_lost() {
        let dir = tempfile::tempdir().expect("a directory");
        let claude = dir.path().join(".claude");
        fs::create_dir(&claude).expect("created");
        for round in ["", "-2", "-3"] {
            fs::write(claude.join("settings.json"), round).expect("written");
            let to = format!(".claude/settings.json.ignored{round}");
            assert_eq!(moved(dir.path()), [pair(".claude/settings.json", &to)]);
            assert_eq!(fs::read_to_string(dir.path().join(to)).expect("kept"), round);
        }
        fs::write(claude.join("settings.local.json"), "").expect("written");
        // Another kind of entry in the way.
        fs::create_dir_all(claude.join("settings.local.json.ignored/full")).expect("created");
        assert_eq!(
            moved(dir.path()),
            [pair(".claude/settings.local.json", ".claude/settings.local.json.ignored-2")]
        );
        assert_eq!(moved(dir.path()), []);
    }

    #[test]
    fn links_are_renamed_and_never_followed() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join("state");
        let other = dir.path().join("other");
        fs::create_dir_all(state.join(".claude")).expect("created");
        fs::create_dir(&other).expect("created");
        fs::write(other.join("settings.json"), "another's").expect("written");
        symlink(other.join("settings.json"), state.join(".claude/settings.json")).expect("linked");
        symlink("/no/such", state.join(".claude/settings.local.json")).expect("linked");
        assert_eq!(moved(&state).len(), 2);
        assert_untouched(&other);

        fs::remove_dir_all(state.join(".claude")).expect("removed");
        symlink(&other, state.join(".claude")).expect("linked");
        assert_eq!(moved(&state), [pair(".claude", ".claude.ignored")]);
        assert!(!state.join(".claude").exists());
        assert_untouched(&other);
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_stays() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join(".claude"), "mine").expect("written");
        assert_eq!(moved(dir.path()), []);
        assert_eq!(fs::read_to_string(dir.path().join(".claude")).expect("there"), "mine");
    }

    #[test]
    fn a_process_that_swaps_the_directory_for_a_link_reaches_nothing_outside() {
        let dir = tempfile::tempdir().expect("a directory");
        let (state, other) = (dir.path().join("state"), dir.path().join("other"));
        fs::create_dir(&state).expect("created");
        fs::create_dir(&other).expect("created");
        fs::write(other.join("settings.json"), "another's").expect("written");
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (claude, beside) = (state.join(".claude"), state.join("beside"));
                // Each of these may fail, because the other side renames too.
                while !ended.load(Ordering::Relaxed) {
                    let _ = fs::create_dir(&claude);
                    let _ = fs::write(claude.join("settings.json"), "mine");
                    let _ = fs::rename(&claude, &beside);
                    let _ = symlink(&other, &claude);
                    let _ = fs::remove_file(&claude);
                    let _ = fs::remove_dir_all(&beside);
                }
            });
            for _ in 0..300 {
                // The sweep may stop with an error, but it never follows a link.
                if let Ok(found) = settings(&state) {
                    assert!(found.iter().all(|aside| aside.from.starts_with(".claude")));
                }
            }
            ended.store(true, Ordering::Relaxed);
        });
        let entries: Vec<_> =
            fs::read_dir(&other).expect("there").flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(entries, ["settings.json"]);
        assert_untouched(&other);
    }

    #[test]
    fn a_working_directory_that_is_none_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        assert!(settings(&dir.path().join("no")).is_err());
    }
}

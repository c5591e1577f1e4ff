//! Spilling: a reminder that is too long for a prompt becomes a file in its agent's state
//! directory.
//!
//! The agent may write in that directory, so everything in it is hostile: a link in place of the
//! folder or of the file must not make the broker write elsewhere. Invariant: nothing is opened
//! through a link or outside the directory, and a file that a message names is on disk.

use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use hive_core::id::ReminderId;
use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, fchmod, fsync, mkdirat, open, openat, openat2,
    renameat, unlinkat,
};
use rustix::io::Errno;

/// The folder in the state directory.
const FOLDER: &str = "reminders";

/// Writes the body of a reminder; returns the path relative to the state directory.
pub fn write(state_dir: &Path, id: ReminderId, body: &str) -> io::Result<PathBuf> {
    let folder = open_folder(state_dir)?;
    let (name, fresh) = (format!("{id}.md"), format!(".{id}.new"));
    // Left by a broker that died here, or created by the agent. In both cases the broker must not
    // write into it.
    match unlinkat(&folder, fresh.as_str(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    let mut file = std::fs::File::from(openat(&folder, fresh.as_str(), flags, mode)?);
    // The agent may be another user, and the umask of a service may hide it from others.
    fchmod(&file, mode)?;
    file.write_all(body.as_bytes())?;
    file.sync_all()?;
    // Renaming replaces a link itself, never its target.
    renameat(&folder, fresh.as_str(), &folder, name.as_str())?;
    fsync(&folder)?;
    hive_fault::point("broker.spill.written");
    Ok(Path::new(FOLDER).join(name))
}

/// Creates the folder below a directory of the broker's own, which others may read.
pub fn prepare(dir: &Path) -> io::Result<()> {
    if dir.join(FOLDER).is_dir() {
        return Ok(());
    }
    let mode = Permissions::from_mode(0o755);
    std::fs::create_dir_all(dir.join(FOLDER))?;
    std::fs::set_permissions(dir, mode.clone())?;
    std::fs::set_permissions(dir.join(FOLDER), mode)
}

fn open_folder(state_dir: &Path) -> io::Result<OwnedFd> {
    let dir_flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    // The owner of a directory above may have replaced it by a link, so that the broker would write
    // into a directory of another user.
    let unlinked = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let dir = match openat2(CWD, state_dir, dir_flags, Mode::empty(), unlinked) {
        Ok(dir) => dir,
        Err(Errno::NOSYS | Errno::PERM) => {
            open(state_dir, dir_flags | OFlags::NOFOLLOW, Mode::empty())?
        }
        Err(error) => return Err(error.into()),
    };
    let mode = Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH;
    match mkdirat(&dir, FOLDER, mode) {
        Ok(()) => fsync(dir.as_fd())?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match openat2(&dir, FOLDER, dir_flags | OFlags::NOFOLLOW, Mode::empty(), within) {
        Ok(folder) => Ok(folder),
        // For kernels before 5.6, and sandboxes that do not know the call. The name has one part,
        // so NOFOLLOW alone confines it.
        Err(Errno::NOSYS | Errno::PERM) => {
            Ok(openat(&dir, FOLDER, dir_flags | OFlags::NOFOLLOW, Mode::empty())?)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: u64) -> ReminderId {
        ReminderId::new(number).expect("not 0")
    }

    #[test]
    fn a_body_becomes_a_file() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = write(dir.path(), id(12), "a long body").expect("written");
        assert_eq!(path, Path::new("reminders/12.md"));
        assert_eq!(std::fs::read_to_string(dir.path().join(&path)).expect("a file"), "a long body");
        write(dir.path(), id(12), "again, after a crash").expect("written again");
        assert_eq!(
            std::fs::read_to_string(dir.path().join(&path)).expect("a file"),
            "again, after a crash"
        );
        assert_eq!(std::fs::read_dir(dir.path().join("reminders")).expect("a folder").count(), 1);
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let (dir, elsewhere) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        for target in [elsewhere.path().to_path_buf(), PathBuf::from(".."), PathBuf::from(".")] {
            let link = dir.path().join("reminders");
            std::os::unix::fs::symlink(&target, &link).expect("a link");
            assert!(write(dir.path(), id(1), "x").is_err(), "{}", target.display());
            std::fs::remove_file(&link).expect("the link is still one");
        }
        assert_eq!(std::fs::read_dir(elsewhere.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn a_link_in_place_of_the_state_directory_is_not_followed() {
        let (dir, elsewhere) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("state")).expect("a link");
        std::fs::create_dir(elsewhere.path().join("below")).expect("a folder");
        for state in ["state", "state/below"] {
            assert!(write(&dir.path().join(state), id(1), "x").is_err(), "{state}");
        }
        let left: Vec<_> = std::fs::read_dir(elsewhere.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        assert_eq!(left, ["below"]);
        assert_eq!(std::fs::read_dir(elsewhere.path().join("below")).expect("a folder").count(), 0);
    }

    #[test]
    fn a_link_in_place_of_the_file_is_replaced_and_its_target_untouched() {
        let (dir, elsewhere) =
            (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        let victim = elsewhere.path().join("victim");
        std::fs::write(&victim, "precious").expect("a file");
        std::fs::create_dir(dir.path().join("reminders")).expect("a folder");
        for name in ["7.md", ".7.new"] {
            std::os::unix::fs::symlink(&victim, dir.path().join("reminders").join(name))
                .expect("a link");
        }
        std::fs::hard_link(&victim, dir.path().join("reminders/8.md")).expect("a second name");
        write(dir.path(), id(7), "body").expect("written");
        write(dir.path(), id(8), "body").expect("written");
        assert_eq!(std::fs::read_to_string(&victim).expect("a file"), "precious");
        assert_eq!(
            std::fs::read_to_string(dir.path().join("reminders/7.md")).expect("a file"),
            "body"
        );
    }

    #[test]
    fn an_existing_file_is_an_error_and_not_a_hang() {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("reminders"), "a file").expect("a file");
        assert!(write(dir.path(), id(1), "x").is_err());
        std::fs::remove_file(dir.path().join("reminders")).expect("removed");
        std::fs::create_dir_all(dir.path().join("reminders/1.md"))
            .expect("a folder in place of the file");
        assert!(write(dir.path(), id(1), "x").is_err());
        rustix::fs::mknodat(
            CWD,
            dir.path().join("reminders/.2.new"),
            rustix::fs::FileType::Fifo,
            Mode::RWXU,
            0,
        )
        .expect("a pipe");
        write(dir.path(), id(2), "x").expect("the pipe is replaced, not written into");
        assert!(write(&dir.path().join("missing"), id(1), "x").is_err());
    }
}

//! Repairs of real files: what is changed, what is refused, and that a second one changes nothing.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::UnixListener;
use std::time::SystemTime;

use super::*;

const PRIVATE: u32 = 0o077;

fn set_mode(path: &Path) -> Repair {
    Repair::SetMode { path: path.to_path_buf(), forbidden: PRIVATE, required: 0 }
}

fn file(dir: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("a mode");
    path
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().expect("there").mode() & 0o7777
}

/// A state directory with a database and an unfinished copy of it.
fn with_unfinished() -> (tempfile::TempDir, PathBuf, Repair) {
    let dir = tempfile::tempdir().expect("a directory");
    file(dir.path(), "hive.db", [SQLITE_MAGIC, b"..."].concat());
    let copy = file(dir.path(), "restore.tmp", "half");
    let state_dir = dir.path().to_path_buf();
    let repair = Repair::RemoveUnfinished { path: copy.clone(), state_dir, is_locked: true };
    (dir, copy, repair)
}

#[test]
fn a_mode_is_set_once_and_a_dry_run_sets_none() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = file(dir.path(), "hive.db", "");
    set_mode(&path).apply(true).expect("it could be set");
    assert_eq!(mode(&path), 0o644);
    for _ in 0..2 {
        set_mode(&path).apply(false).expect("it is set");
        assert_eq!(mode(&path), 0o600);
    }
    set_mode(&dir.path().join("gone")).apply(false).expect("what is gone needs none");
    let socket = dir.path().join("hived.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    set_mode(&socket).apply(false).expect("a socket has a mode, too");
    assert_eq!(mode(&socket) & PRIVATE, 0);
}

#[test]
fn a_link_is_not_followed_and_a_file_of_another_user_not_changed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (target, link) = (file(dir.path(), "target", ""), dir.path().join("hive.db"));
    symlink(&target, &link).expect("a link");
    let error = set_mode(&link).apply(false).expect_err("a link");
    assert!(matches!(error, NotRepaired::OtherType(_)) && !error.lacks_rights(), "{error}");
    assert_eq!(mode(&target), 0o644);

    let others = if geteuid().is_root() {
        chown(&target, Some(12_345), None).expect("root may");
        target.clone()
    } else {
        PathBuf::from("/etc/passwd")
    };
    let before = mode(&others);
    for is_dry in [true, false] {
        let error = set_mode(&others).apply(is_dry).expect_err("another user's");
        assert!(matches!(error, NotRepaired::OtherUser { .. }) && error.lacks_rights(), "{error}");
    }
    assert_eq!(mode(&others), before);
}

#[test]
fn only_a_socket_without_a_process_is_removed() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("hive.sock");
    let repair = Repair::RemoveSocket { path: path.clone() };
    let listener = UnixListener::bind(&path).expect("a socket");
    assert!(matches!(repair.apply(false), Err(NotRepaired::Listened(_))));
    assert!(path.exists(), "a process listens on it");
    drop(listener);
    repair.apply(true).expect("it could be removed");
    assert!(path.exists(), "a dry run removes nothing");
    for _ in 0..2 {
        repair.apply(false).expect("removed");
        assert!(!path.exists());
    }
    file(dir.path(), "hive.sock", "notes");
    assert!(matches!(repair.apply(false), Err(NotRepaired::OtherType(_))));
    assert!(path.exists(), "a file is no socket");
}

#[test]
fn an_unfinished_copy_goes_only_beside_its_database_and_while_the_lock_is_free() {
    let (dir, copy, repair) = with_unfinished();
    let held = lock(dir.path()).expect("the lock is free");
    assert!(matches!(repair.apply(false), Err(NotRepaired::InUse(_))));
    drop(held);
    std::fs::rename(dir.path().join("hive.db"), dir.path().join("aside")).expect("moved");
    assert!(matches!(repair.apply(false), Err(NotRepaired::NoDatabase(_))));
    std::fs::rename(dir.path().join("aside"), dir.path().join("hive.db")).expect("moved");
    repair.apply(true).expect("it could be removed");
    assert!(copy.exists(), "refused, or a dry run");
    for _ in 0..2 {
        repair.apply(false).expect("removed");
        assert!(!copy.exists() && dir.path().join("hive.db").exists());
    }
}

#[test]
fn a_copy_that_may_still_be_written_stays() {
    let (dir, copy, _) = with_unfinished();
    let state_dir = dir.path().to_path_buf();
    let repair = Repair::RemoveUnfinished { path: copy.clone(), state_dir, is_locked: false };
    assert!(matches!(repair.apply(false), Err(NotRepaired::Changed(_))));
    let old = SystemTime::from(Timestamp::now()) - UNCHANGED_MIN - Duration::from_secs(1);
    File::options().write(true).open(&copy).and_then(|file| file.set_modified(old)).expect("set");
    // A running broker does not matter: it writes none of these.
    let _held = lock(dir.path()).expect("the lock is free");
    repair.apply(false).expect("removed");
    assert!(!copy.exists());
}

//! Trees as agents leave them, and deletions at the same moment.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

const ROUNDS: usize = 600;
/// Files of a directory that may not be in memory all at once.
const CROWD: usize = 40_000;
/// The directory to delete, for the process whose memory is measured.
const CROWDED_ENV: &str = "HIVE_TEST_CROWDED";

/// Returns the heap for `tmp` in a directory.
fn heap_in(dir: &Path) -> Heap {
    Heap {
        parent: openat(CWD, dir, DIRECTORY, Mode::empty()).expect("a directory"),
        name: c".tmp.deleted".to_owned(),
    }
}

#[test]
fn a_tree_is_deleted_with_read_only_directories_and_no_link_is_followed() {
    let dir = tempfile::tempdir().expect("a directory");
    let (agent, other) = (dir.path().join("agent"), dir.path().join("other"));
    fs::create_dir_all(agent.join("state/cache/deep")).expect("directories");
    fs::create_dir_all(other.join("kept")).expect("directories");
    fs::write(agent.join("state/cache/file"), "").expect("a file");
    symlink(&other, agent.join("state/link")).expect("a link");
    for name in ["state/cache/deep", "state/cache"] {
        fs::set_permissions(agent.join(name), Permissions::from_mode(0o500)).expect("a mode");
    }
    tree(&agent).expect("deleted");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1, "nothing is left beside it");
    assert!(other.join("kept").is_dir());
    tree(&agent).expect("nothing is there");
    symlink(&other, &agent).expect("a link");
    tree(&agent).expect("deleted");
    assert!(fs::symlink_metadata(&agent).is_err() && other.join("kept").exists());
}

#[test]
fn a_tree_that_no_path_reaches_the_end_of_is_deleted() {
    let dir = tempfile::tempdir().expect("a directory");
    let top = dir.path().join("tmp");
    fs::create_dir(&top).expect("a directory");
    // 3,000 names of 9 bytes: more than a path may have, so it is built from inside out.
    for _ in 0..3_000 {
        let outer = dir.path().join("outer");
        fs::create_dir(&outer).expect("a directory");
        fs::rename(&top, outer.join("directory")).expect("moved");
        fs::rename(&outer, &top).expect("moved");
    }
    tree(&top).expect("deleted");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn what_an_interrupted_deletion_left_is_deleted_by_the_next() {
    let dir = tempfile::tempdir().expect("a directory");
    let top = dir.path().join("tmp");
    for _ in 0..2 {
        fs::create_dir_all(top.join("a/b")).expect("directories");
        drop(Heap::collect(&top).expect("taken"));
        assert!(!top.exists());
    }
    tree(&top).expect("deleted");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn a_link_in_the_place_of_the_heap_or_in_it_leads_nowhere() {
    let dir = tempfile::tempdir().expect("a directory");
    let (top, other) = (dir.path().join("tmp"), dir.path().join("other"));
    fs::create_dir_all(other.join("kept/in")).expect("directories");
    let heap = dir.path().join(".tmp.deleted");
    symlink(&other, &heap).expect("a link");
    fs::create_dir_all(top.join("a")).expect("directories");
    tree(&top).expect("deleted");
    fs::create_dir(&heap).expect("a directory");
    symlink(&other, heap.join("0")).expect("a link");
    fs::write(heap.join("1"), "").expect("a file");
    fs::create_dir_all(top.join("a")).expect("directories");
    tree(&top).expect("deleted");
    assert!(other.join("kept/in").is_dir());
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 1);
}

#[test]
fn a_tree_that_became_the_heap_is_deleted_as_it_is() {
    let dir = tempfile::tempdir().expect("a directory");
    let top = dir.path().join("tmp");
    // Names as those in a heap, too.
    for name in ["0/1/2", "1/0/0", "2", "closed/in"] {
        fs::create_dir_all(top.join(name)).expect("directories");
        fs::write(top.join(name).join("file"), "").expect("a file");
    }
    fs::write(top.join("3"), "").expect("a file");
    symlink(dir.path(), top.join("4")).expect("a link");
    for name in ["closed", ""] {
        fs::set_permissions(top.join(name), Permissions::from_mode(0o000)).expect("a mode");
    }
    let heap = heap_in(dir.path());
    heap.become_heap(c"tmp").expect("moved");
    assert!(!top.exists());
    heap.empty().expect("deleted");
    assert_eq!(fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn what_is_taken_is_gone_while_an_earlier_deletion_removes_the_heap() {
    let dir = tempfile::tempdir().expect("a directory");
    let top = dir.path().join("tmp");
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let empties = || {
            while !is_done.load(Ordering::Relaxed) {
                // A heap that gets a new entry at the same moment is deleted by the next call.
                let _ = heap_in(dir.path()).empty();
            }
        };
        scope.spawn(empties);
        scope.spawn(empties);
        let kept = (0..ROUNDS).filter(|_| {
            fs::create_dir_all(top.join("a")).expect("directories");
            Heap::collect(&top).is_err() || top.exists()
        });
        let kept = kept.count();
        is_done.store(true, Ordering::Relaxed);
        assert_eq!(kept, 0, "of {ROUNDS}");
    });
}

#[test]
fn memory_does_not_grow_with_the_entries_of_a_directory() {
    let Some(path) = std::env::var_os(CROWDED_ENV) else {
        // A peak of memory belongs to a process, so this needs one of its own.
        let dir = tempfile::tempdir().expect("a directory");
        let crowded = dir.path().join("tmp");
        fs::create_dir(&crowded).expect("a directory");
        for number in 0..CROWD {
            fs::write(crowded.join(format!("{number:0>250}")), "").expect("a file");
        }
        let mut own = Command::new(std::env::current_exe().expect("a program"));
        let name = std::thread::current().name().expect("a test").to_owned();
        let ran =
            own.args(["--exact", &name]).env(CROWDED_ENV, &crowded).output().expect("it runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stdout));
        assert!(!crowded.exists());
        return;
    };
    let peak = || {
        let status = fs::read_to_string("/proc/self/status").expect("text");
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line").to_owned();
        line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * 1024
    };
    let few = Path::new(&path).with_file_name("few");
    fs::create_dir_all(few.join("a/b")).expect("directories");
    // The first deletion loads the program.
    tree(&few).expect("deleted");
    let before = peak();
    tree(Path::new(&path)).expect("deleted");
    let grown = peak() - before;
    assert!(grown < CROWD * 150, "{grown} bytes for {CROWD} files");
}

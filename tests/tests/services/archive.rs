//! The archives of static programs: the same files make the same archive, and an installation from
//! one is that of the sources.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use hive_tests::binary;

use crate::package::{strip, succeeds};

const TRIPLE: &str = "x86_64-unknown-linux-musl";
/// The archive without and with symbols.
const NAMES: [&str; 2] = ["x86_64-linux-musl.tar.gz", "x86_64-linux-musl-debug.tar.gz"];

/// Makes the archives of these programs.
fn archive(programs: &Path, to: &Path) {
    let mut script = Command::new(binary::workspace().join("packaging/archive.sh"));
    script.arg(programs).arg(TRIPLE).arg(to).env("SOURCE_DATE_EPOCH", "1700000000");
    succeeds(&mut script);
}

/// Returns the archive whose name ends like this.
fn file(dir: &Path, end: &str) -> PathBuf {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut paths = entries.map(|entry| entry.expect("an entry").path());
    paths.find(|path| path.to_string_lossy().ends_with(end)).expect("it was made")
}

/// Installs programs with a script below a directory; the files of the result.
fn install(sources: &Path, programs: &Path, to: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut script = Command::new(sources.join("packaging/install.sh"));
    script.arg(programs).env("PREFIX", "/usr/local").env("DESTDIR", to);
    succeeds(&mut script);
    let mut files = BTreeMap::new();
    let mut left = vec![to.to_path_buf()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                left.push(path);
            } else {
                let relative = path.strip_prefix(to).expect("below it").to_path_buf();
                files.insert(relative, std::fs::read(&path).expect("a file"));
            }
        }
    }
    files
}

#[test]
fn the_same_programs_make_the_same_archives_and_the_same_installation() {
    let dir = tempfile::tempdir().expect("a directory");
    let (one, two) = (dir.path().join("one"), dir.path().join("a-longer-name"));
    for dir in [&one, &two] {
        std::fs::create_dir(dir).expect("a directory");
    }
    // It prints the completions. The others are only copied, so short ones do.
    strip("hivectl", "hivectl", &one);
    for program in ["hived", "hive", "hive-mcp"] {
        std::fs::write(one.join(program), "#!/bin/sh\n").expect("a file");
    }
    let earlier = SystemTime::UNIX_EPOCH + Duration::from_secs(86_400);
    for program in ["hived", "hive", "hive-mcp", "hivectl"] {
        let symbols = format!("{program}.debug");
        std::fs::write(one.join(&symbols), program).expect("a file");
        for name in [program, &symbols] {
            std::fs::copy(one.join(name), two.join(name)).expect("a copy");
            let copy = File::options().append(true).open(two.join(name)).expect("a file");
            copy.set_modified(earlier).expect("its time is set");
        }
    }
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    archive(&one, &first);
    archive(&two, &second);
    for name in NAMES {
        let (first, second) = (file(&first, name), file(&second, name));
        assert_eq!(first.file_name(), second.file_name());
        let read = |path| std::fs::read(path).expect("an archive");
        assert!(read(first) == read(second), "{name} differs");
    }

    let unpacked = dir.path().join("unpacked");
    std::fs::create_dir(&unpacked).expect("a directory");
    let mut tar = Command::new("tar");
    succeeds(tar.arg("-xzf").arg(file(&first, NAMES[0])).arg("-C").arg(&unpacked));
    let tree = std::fs::read_dir(&unpacked).expect("a directory").next().expect("one directory");
    let tree = tree.expect("an entry").path();
    let from_archive = install(&tree, &tree.join("bin"), &dir.path().join("from-archive"));
    let from_sources = install(&binary::workspace(), &one, &dir.path().join("from-sources"));
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&from_archive), names(&from_sources));
    assert!(from_archive == from_sources, "a file differs");
    let mut installed = Command::new(dir.path().join("from-archive/usr/local/bin/hivectl"));
    succeeds(installed.arg("--version"));
}

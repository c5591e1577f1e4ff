//! The files of the project, read once per test, with paths as a reader would write them.
//!
//! Invariant: what no commit holds (build output, caches, the running hive's state) is not looked
//! at.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders at any depth that no commit holds.
const NOT_OURS: [&str; 5] = ["target", ".git", ".cache", ".hive", "node_modules"];

#[derive(Debug)]
pub(crate) struct File {
    /// The path from the root of the project, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    /// The lines with their numbers, from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Whether it is test code as a whole.
    pub(crate) fn is_test(&self) -> bool {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        self.path.starts_with("tests/")
            || self.path.contains("/tests/")
            || name == "tests.rs"
            || name.ends_with("_tests.rs")
    }

    /// Whether a program wrote it.
    pub(crate) fn is_generated(&self) -> bool {
        self.path.contains("/src/gen/")
    }

    /// The lines of code: comments are left out, and, with `without_tests`, what follows
    /// `#[cfg(test)] mod`.
    pub(crate) fn code(&self, without_tests: bool) -> Vec<(usize, &str)> {
        let mut code = Vec::new();
        let mut after_cfg_test = false;
        for (number, line) in self.lines() {
            let trimmed = line.trim_start();
            if without_tests
                && after_cfg_test
                && trimmed.starts_with("mod ")
                && trimmed.ends_with('{')
            {
                break;
            }
            after_cfg_test = trimmed.starts_with("#[cfg(test)]")
                || (after_cfg_test && trimmed.starts_with("#["));
            if !trimmed.starts_with("//") {
                code.push((number, line));
            }
        }
        code
    }
}

/// The root of the project. Asked at run time, where cargo sets it too, so that the same rules can
/// be tried on a changed copy of the tree.
pub(crate) fn root() -> PathBuf {
    let tests =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&tests).parent().expect("tests/ lies in the root").to_path_buf()
}

/// Every text file whose path passes.
pub(crate) fn files(wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project is readable") {
            let entry = entry.expect("a directory entry");
            let kind = entry.file_type().expect("the kind of an entry");
            let path = entry.path();
            if kind.is_dir() {
                if !NOT_OURS.iter().any(|name| entry.file_name() == *name) {
                    folders.push(path);
                }
            } else if kind.is_file() {
                let relative = path
                    .strip_prefix(&root)
                    .expect("below the root")
                    .to_string_lossy()
                    .into_owned();
                // A file without UTF-8 is no text; one that vanished was never ours.
                if wanted(&relative)
                    && let Ok(text) = fs::read_to_string(&path)
                {
                    found.push(File { path: relative, text });
                }
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Every Rust file that a person wrote.
pub(crate) fn rust() -> Vec<File> {
    let mut files = files(|path| path.ends_with(".rs"));
    files.retain(|file| !file.is_generated());
    assert!(files.len() > 10, "the tree is read from the wrong place: {}", root().display());
    files
}

/// Fails with all findings at once.
#[track_caller]
pub(crate) fn none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}:\n  {}", findings.join("\n  "));
}

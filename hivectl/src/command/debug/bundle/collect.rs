//! Collecting: parts become files of the archive, or entries of what is missing.
//!
//! Invariant: one part is in memory at a time, and each has a limit of rows or bytes.

use std::fs::File;
use std::io;

use jiff::Timestamp;
use serde::Serialize;

use super::archive::Archive;
use super::manifest::{Entry, Manifest};
use crate::error::Failure;
use crate::output::progress::Progress;
use crate::view::bundle::Missing;

/// Longest reason why something is missing, in characters.
const WHY_CHARS_MAX: usize = 300;

pub(super) struct Collector<'f> {
    archive: Archive<'f>,
    now: Timestamp,
    files: Vec<Entry>,
    missing: Vec<Missing>,
    /// The first error of writing; nothing is written after it.
    failed: Option<io::Error>,
    progress: Progress,
}

impl<'f> Collector<'f> {
    pub(super) fn new(file: &'f mut File, now: Timestamp) -> Self {
        Self {
            archive: Archive::new(file, now),
            now,
            files: Vec::new(),
            missing: Vec::new(),
            failed: None,
            progress: Progress::begin(""),
        }
    }

    pub(super) fn progress(&mut self, line: &str) {
        self.progress.show(line);
    }

    /// Adds a text.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.add(name, text.as_bytes(), None, None);
    }

    /// Adds one object or list.
    pub(super) fn json(&mut self, name: &str, value: &impl Serialize) {
        let mut text = pretty(value);
        text.push(b'\n');
        self.add(name, &text, None, None);
    }

    /// Adds rows, one JSON object a line, of a list of which at most so many were read; or that
    /// they could not be read.
    pub(super) fn rows<T: Serialize>(
        &mut self,
        name: &str,
        most: usize,
        rows: &Result<Vec<T>, Failure>,
    ) {
        match rows {
            Ok(rows) => {
                let mut text = Vec::new();
                for row in rows {
                    serde_json::to_writer(&mut text, row).expect("records are JSON");
                    text.push(b'\n');
                }
                self.add(name, &text, Some(rows.len()), Some(most));
            }
            Err(failure) => self.missing(name, &failure.in_one_line()),
        }
    }

    pub(super) fn missing(&mut self, name: &str, why: &str) {
        let why = why.chars().take(WHY_CHARS_MAX).collect();
        self.missing.push(Missing { name: name.to_owned(), why });
    }

    fn add(&mut self, name: &str, content: &[u8], rows: Option<usize>, rows_max: Option<usize>) {
        self.progress(&format!("{name} ..."));
        if self.failed.is_some() {
            return;
        }
        match self.archive.add(name, content) {
            Ok(()) => {
                let bytes = content.len();
                self.files.push(Entry { name: name.to_owned(), bytes, rows, rows_max });
            }
            Err(error) => self.failed = Some(error),
        }
    }

    /// Adds the manifest and completes the archive; returns the names of its files, and what is
    /// missing.
    pub(super) fn finish(mut self, bodies: bool) -> io::Result<(Vec<String>, Vec<Missing>)> {
        let manifest = Manifest::new(self.now, bodies, &self.files, &self.missing);
        self.json(Manifest::NAME, &manifest.to_json());
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.archive.finish()?;
        Ok((self.files.into_iter().map(|file| file.name).collect(), self.missing))
    }
}

fn pretty(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("records are JSON")
}

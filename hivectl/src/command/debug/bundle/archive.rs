//! The archive: a compressed tar file with one directory.
//!
//! Invariant: for the same files and the same time the archive is the same; it names no user of
//! this host.

use std::fs::File;
use std::io;

use flate2::Compression;
use flate2::write::GzEncoder;
use jiff::Timestamp;
use tar::{Builder, EntryType, Header};

/// The directory that the archive has its files in.
const DIRECTORY: &str = "hive-bundle";

pub(super) struct Archive<'f> {
    tar: Builder<GzEncoder<&'f mut File>>,
    seconds: u64,
}

impl<'f> Archive<'f> {
    pub(super) fn new(file: &'f mut File, now: Timestamp) -> Self {
        let tar = Builder::new(GzEncoder::new(file, Compression::default()));
        Self { tar, seconds: u64::try_from(now.as_second()).unwrap_or(0) }
    }

    pub(super) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_size(content.len() as u64);
        header.set_mode(0o600);
        header.set_mtime(self.seconds);
        self.tar.append_data(&mut header, format!("{DIRECTORY}/{name}"), content)
    }

    pub(super) fn finish(self) -> io::Result<()> {
        self.tar.into_inner()?.finish().map(drop)
    }
}

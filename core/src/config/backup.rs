//! `[broker.backup]`: copies of the database that the broker makes by itself.

use std::path::PathBuf;
use std::time::Duration;

use super::section::Section;
use super::sections::path;
use crate::span;

/// Shortest time between two backups.
const EVERY_MIN: Duration = Duration::from_secs(60);
/// Default of `every`: a day.
const EVERY_DEFAULT: Duration = Duration::from_secs(24 * 3600);
/// Default of `keep`.
const KEEP_DEFAULT: u32 = 7;

/// Backups that the broker makes by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Time from one to the next.
    pub every: Duration,
    /// How many are kept.
    pub keep: u32,
    /// The directory in which they are kept; `None`: `backups` in the state directory.
    pub dir: Option<PathBuf>,
}

/// Reads the table, if `[broker]` has one. An empty one has the defaults.
pub(super) fn read(broker: &mut Section<'_, '_, '_>) -> Option<Backup> {
    let table = broker.table("backup")?;
    let mut section = Section::new(broker.key("backup"), table, broker.findings());
    let backup = Backup {
        every: every(&mut section).unwrap_or(EVERY_DEFAULT),
        keep: section
            .number("keep", 1..=10_000)
            .and_then(|keep| u32::try_from(keep).ok())
            .unwrap_or(KEEP_DEFAULT),
        dir: path(&mut section, "dir"),
    };
    section.finish();
    Some(backup)
}

fn every(section: &mut Section<'_, '_, '_>) -> Option<Duration> {
    let (text, place) = section.text("every")?;
    let every = span::parse(&text).filter(|every| *every >= EVERY_MIN);
    if every.is_none() {
        let sentence = format!("`every` must be {}, and at least 1m", span::RULE);
        section.object(place, "every", sentence, None);
    }
    every
}

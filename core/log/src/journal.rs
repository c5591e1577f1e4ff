//! The journal of systemd, which keeps the fields of an event apart from its text.
//!
//! A field `turn_id` is `HIVE_TURN_ID` there, so that `journalctl HIVE_TURN_ID=7` finds all events
//! of a turn. Invariant: without an option a program writes to the journal only if its stderr goes
//! there as well: a program in a sandbox or a terminal is read where its stderr is.

use std::io;

use rustix::fs::fstat;
pub use tracing_journald::Layer;

/// What the name of each field begins with.
const PREFIX: &str = "HIVE";
/// The variable in which systemd names the device and the inode of the stderr that it gave.
const STREAM: &str = "JOURNAL_STREAM";

/// Returns what writes events to the journal, if stderr goes there. `fields` are those of every
/// event.
#[must_use]
pub fn of_stderr(fields: &[(&str, &str)]) -> Option<Layer> {
    let stream = std::env::var(STREAM).ok()?;
    let stderr = fstat(io::stderr()).ok()?;
    // If the journal cannot be reached, stderr still has the lines.
    is_named(&stream, stderr.st_dev, stderr.st_ino).then(|| open(fields).ok()).flatten()
}

/// Returns what writes events to the journal.
///
/// # Errors
///
/// No journal listens on this host, or in this sandbox.
pub fn open(fields: &[(&str, &str)]) -> io::Result<Layer> {
    let layer = Layer::new()?.with_field_prefix(Some(PREFIX.to_owned()));
    let fields = fields.iter().map(|(name, value)| (format!("{PREFIX}_{name}"), *value));
    Ok(layer.with_custom_fields(fields))
}

/// Returns whether `DEVICE:INODE` names this file.
fn is_named(stream: &str, device: u64, inode: u64) -> bool {
    stream.split_once(':').is_some_and(|(stream_device, stream_inode)| {
        stream_device.parse() == Ok(device) && stream_inode.parse() == Ok(inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_is_named_by_device_and_inode() {
        assert!(is_named("8:1234", 8, 1234));
        // A service may pass the variable on to a program whose stderr is another file.
        for other in ["8:1235", "9:1234", "81234", "8:1234:1", "8: 1234", ""] {
            assert!(!is_named(other, 8, 1234), "{other}");
        }
    }
}

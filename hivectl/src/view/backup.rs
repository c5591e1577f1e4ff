//! A backup that was made.

use std::path::Path;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// A backup.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Backup {
    /// The file, as it was named.
    path: String,
    /// The size of the file.
    bytes: u64,
    /// The duration of the backup, in milliseconds.
    duration_ms: u64,
}

impl Backup {
    pub(crate) fn new(path: &Path, bytes: u64, duration: Duration) -> Self {
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self { path: path.display().to_string(), bytes, duration_ms }
    }
}

impl Text for Backup {
    fn text(&self, _: &Style) -> String {
        format!(
            "{}: {} KiB, in {:.1} s",
            visible_line(&self.path),
            self.bytes.div_ceil(1024),
            self.duration_ms as f64 / 1000.0
        )
    }
}

//! A bundle for a report of a fault that was made.

use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Text;
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::view::counted;

/// A bundle.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Bundle {
    /// The archive, as it was named.
    path: String,
    /// The size of the archive.
    bytes: u64,
    /// Whether it has what agents and operators wrote.
    bodies: bool,
    /// The names of its files, in their order.
    files: Vec<String>,
    /// What could not be collected, in the order in which it was tried.
    missing: Vec<Missing>,
}

/// Something that a bundle does not have.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Missing {
    /// The name that the file would have.
    pub(crate) name: String,
    /// Why it is missing.
    pub(crate) why: String,
}

impl Bundle {
    pub(crate) fn new(
        path: &Path,
        bytes: u64,
        bodies: bool,
        files: Vec<String>,
        missing: Vec<Missing>,
    ) -> Self {
        Self { path: path.display().to_string(), bytes, bodies, files, missing }
    }
}

impl Text for Bundle {
    fn text(&self, _: &Style) -> String {
        let mut text = format!(
            "{}: {}, {} KiB",
            visible_line(&self.path),
            counted(self.files.len(), "file", "files"),
            self.bytes.div_ceil(1024)
        );
        for Missing { name, why } in &self.missing {
            text.push_str(&format!("\nmissing: {}: {}", visible_line(name), visible_line(why)));
        }
        text
    }
}

//! A finding about a configuration file.

use std::path::Path;

use hive_core::config;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::Text;
use crate::output::style::Style;

/// One finding.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Finding {
    /// The file, as it was named.
    file: String,
    /// The line, from 1.
    line: usize,
    /// The column, from 1.
    column: usize,
    /// The key.
    key: String,
    /// Whether the file is valid with it: a remark on something that may be unexpected.
    remark: bool,
    /// The error, or the remark.
    sentence: String,
    /// The known key that is nearest to an unknown one.
    nearest: Option<String>,
    #[serde(skip)]
    text_line: String,
}

impl Finding {
    pub(crate) fn new(file: &Path, finding: &config::Finding) -> Self {
        let text_line = format!("{}: {finding}", file.display());
        Self::with_text(file, finding, text_line, false)
    }

    pub(crate) fn remark(file: &Path, remark: &config::Finding) -> Self {
        let text_line = format!("{}: remark: {remark}", file.display());
        Self::with_text(file, remark, text_line, true)
    }

    fn with_text(file: &Path, finding: &config::Finding, text_line: String, remark: bool) -> Self {
        let config::Finding { line, column, key, sentence, nearest } = finding.clone();
        Self {
            file: file.display().to_string(),
            line,
            column,
            key,
            remark,
            sentence,
            nearest,
            text_line,
        }
    }
}

impl Text for Finding {
    fn text(&self, _: &Style) -> String {
        self.text_line.clone()
    }
}

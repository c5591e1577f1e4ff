//! What is wrong with a configuration file.

use std::path::Path;

use hive_core::config;
use serde::Serialize;

use crate::output::style::Style;
use crate::output::{Text, View};

/// One finding.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Finding {
    file: String,
    line: usize,
    column: usize,
    key: String,
    sentence: String,
    nearest: Option<String>,
    #[serde(skip)]
    told: String,
}

impl Finding {
    pub(crate) fn new(file: &Path, finding: &config::Finding) -> Self {
        let told = format!("{}: {finding}", file.display());
        let config::Finding { line, column, key, sentence, nearest } = finding.clone();
        Self { file: file.display().to_string(), line, column, key, sentence, nearest, told }
    }
}

impl View for Finding {
    const SCHEMA: &'static str = "hive.finding.v1";
}

impl Text for Finding {
    fn text(&self, _: &Style) -> String {
        self.told.clone()
    }
}

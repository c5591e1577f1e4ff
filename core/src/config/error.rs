//! Findings of a configuration, with their places.
//!
//! Invariant: a finding is one line of text with its place, so that an editor can jump to it.

use std::fmt;
use std::ops::Range;

use super::keys::KeyKind;

/// One error or remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its line, from 1.
    pub line: usize,
    /// Its column in characters, from 1.
    pub column: usize,
    /// The key it is about, as `agents.bob.parent`; empty if the text is not TOML.
    pub key: String,
    /// The error or the remark.
    pub sentence: String,
    /// The known word nearest to an unknown one, if there is one.
    pub nearest: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.sentence)?;
        if let Some(nearest) = &self.nearest {
            write!(f, "; did you mean `{nearest}`?")?;
        }
        Ok(())
    }
}

/// An invalid configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// All errors, in the order of the lines; never empty.
    pub findings: Vec<Finding>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, finding) in self.findings.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{finding}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

/// Collects findings while a text is read.
pub(super) struct Findings<'t> {
    text: &'t str,
    found: Vec<Finding>,
    remarks: Vec<Finding>,
    /// Each requested key, in order, with what it was requested as; `None`: not kept.
    requests: Option<Vec<(String, Option<KeyKind>)>>,
}

impl<'t> Findings<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, found: Vec::new(), remarks: Vec::new(), requests: None }
    }

    /// Creates a collector that also keeps which keys are requested.
    pub(super) fn with_requests(text: &'t str) -> Self {
        Self { requests: Some(Vec::new()), ..Self::new(text) }
    }

    pub(super) fn are_requests_kept(&self) -> bool {
        self.requests.is_some()
    }

    /// Records a request; the first kind that is stated for a key holds.
    pub(super) fn request(&mut self, path: String, kind: Option<KeyKind>) {
        let Some(requests) = &mut self.requests else { return };
        match requests.iter_mut().find(|(known, _)| *known == path) {
            Some((_, known)) => *known = known.or(kind),
            None => requests.push((path, kind)),
        }
    }

    /// Returns the recorded requests.
    pub(super) fn into_requests(self) -> Vec<(String, Option<KeyKind>)> {
        self.requests.unwrap_or_default()
    }

    pub(super) fn add(&mut self, span: Range<usize>, key: String, sentence: String) {
        self.add_near(span, key, sentence, None);
    }

    pub(super) fn add_near(
        &mut self,
        span: Range<usize>,
        key: String,
        sentence: String,
        nearest: Option<&str>,
    ) {
        let finding = self.at(span, key, sentence, nearest);
        self.found.push(finding);
    }

    /// Adds a remark on a valid value that may not mean what its author expects.
    pub(super) fn remark(&mut self, span: Range<usize>, key: String, sentence: String) {
        let remark = self.at(span, key, sentence, None);
        self.remarks.push(remark);
    }

    fn at(
        &self,
        span: Range<usize>,
        key: String,
        sentence: String,
        nearest: Option<&str>,
    ) -> Finding {
        let (line, column) = line_and_column(self.text, span.start);
        Finding { line, column, key, sentence, nearest: nearest.map(str::to_owned) }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    pub(super) fn into_remarks(mut self) -> Vec<Finding> {
        self.remarks.sort_by_key(|remark| (remark.line, remark.column));
        self.remarks
    }

    pub(super) fn into_error(mut self) -> ConfigError {
        self.found.sort_by_key(|finding| (finding.line, finding.column));
        ConfigError { findings: self.found }
    }
}

/// Returns line and column of a byte of the text.
fn line_and_column(text: &str, byte: usize) -> (usize, usize) {
    let before = text.get(..byte).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

//! A value that may be kept elsewhere: a string, `{ file = PATH }` or `{ credential = NAME }`.
//!
//! Invariant: the place is not looked at, so that a file can be checked where its secrets are not.

use std::ops::Range;

use toml::de::DeTable;

use super::error::Findings;
use super::section::Section;
use super::sections::path;
use crate::secret::{CredentialName, Place};

/// Reads the table of a value; `key` is the path of the value, and `span` its place.
pub(super) fn place(
    key: String,
    table: &DeTable<'_>,
    span: Range<usize>,
    findings: &mut Findings<'_>,
) -> Option<Place> {
    let mut section = Section::new(key, table, findings);
    let has_both = section.value("file").is_some() && section.value("credential").is_some();
    let file = path(&mut section, "file").map(Place::File);
    let credential = credential(&mut section);
    if has_both {
        let sentence = "there is a `file` and a `credential`; leave one of them out";
        section.object(span, "credential", sentence.to_owned(), None);
    } else if table.is_empty() {
        let sentence = "the table is empty; give it a `file` or a `credential`";
        section.object(span, "file", sentence.to_owned(), None);
    }
    section.finish();
    file.or(credential)
}

fn credential(section: &mut Section<'_, '_, '_>) -> Option<Place> {
    let (name, span) = section.text("credential")?;
    match CredentialName::parse(name) {
        Ok(name) => Some(Place::Credential(name)),
        Err(error) => {
            section.object(span, "credential", format!("`credential` {error}"), None);
            None
        }
    }
}

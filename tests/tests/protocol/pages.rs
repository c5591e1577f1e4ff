//! The code blocks of the pages: which there are, and that each has a case.
//!
//! Invariant: a block that is no example has a tag that says so, and is listed here.

use std::collections::BTreeSet;

use hive_core::reason::{Reason, Retry};
use hive_tests::binary::workspace;

use crate::EXAMPLES;

/// The pages.
const PAGES: [&str; 2] = ["docs/protocol.md", "docs/clients.md"];

/// Blocks that are no program, by page and heading: output, diagrams and parts of `.proto` files.
const NO_EXAMPLES: [(&str, &str, &str); 0] = [];

/// The tags of examples, each with the beginning of the line that names the file.
const LANGUAGES: [(&str, &str); 4] = [("python", "# "), ("sh", "# "), ("js", "// "), ("go", "// ")];

/// The number of lines that the first program may have.
const FIRST_PROGRAM_LINES_MAX: usize = 15;

/// A fenced block.
#[derive(Debug)]
struct Block {
    page: &'static str,
    heading: String,
    /// The number of its first line in the page.
    line: usize,
    tag: String,
    text: String,
}

impl Block {
    /// Returns the name in the first line.
    fn file(&self) -> Option<&str> {
        let (_, comment) = LANGUAGES.into_iter().find(|(tag, _)| *tag == self.tag)?;
        let name = self.text.lines().next()?.strip_prefix(comment)?;
        let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        (is_name && name.contains('.')).then_some(name)
    }
}

fn blocks() -> Vec<Block> {
    let mut blocks = Vec::new();
    for page in PAGES {
        let text = std::fs::read_to_string(workspace().join(page)).expect("the page is there");
        let (mut heading, mut open) = (String::new(), None);
        for (index, line) in text.lines().enumerate() {
            match (line.trim_start().strip_prefix("```"), &mut open) {
                (Some(tag), None) => {
                    let (heading, tag) = (heading.clone(), tag.to_owned());
                    open = Some(Block { page, heading, line: index + 2, tag, text: String::new() });
                }
                (Some(_), Some(_)) => blocks.extend(open.take()),
                (None, Some(block)) => {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
                (None, None) if line.starts_with('#') => {
                    line.trim_start_matches('#').trim().clone_into(&mut heading);
                }
                (None, None) => {}
            }
        }
        assert!(open.is_none(), "{page}: the last block has no end");
    }
    blocks
}

/// Returns the files of all examples: name and content.
pub(crate) fn files() -> Vec<(String, String)> {
    let named = blocks().into_iter();
    named.filter_map(|block| Some((block.file()?.to_owned(), block.text.clone()))).collect()
}

#[test]
fn every_block_has_a_case() {
    let mut findings = Vec::new();
    let (mut named, mut plain) = (BTreeSet::new(), BTreeSet::new());
    for block in &blocks() {
        let place = format!("{}:{}", block.page, block.line);
        match block.file() {
            Some(file) if !EXAMPLES.contains(&file) => {
                findings.push(format!("{place}: {file} has no case in tests/tests/protocol"));
            }
            Some(file) if !named.insert(file.to_owned()) => {
                findings.push(format!("{place}: there is another {file}"));
            }
            Some(_) => {}
            None if matches!(block.tag.as_str(), "text" | "proto") => {
                plain.insert((block.page, block.heading.clone(), block.tag.clone()));
            }
            None => findings.push(format!(
                "{place}: an example names its file in the first line; another block has the tag `text` or `proto`"
            )),
        }
    }
    for file in EXAMPLES.iter().filter(|file| !named.contains(**file)) {
        findings.push(format!("{file}: it has a case, and no page has it"));
    }
    let listed = NO_EXAMPLES.map(|(page, heading, tag)| (page, heading.to_owned(), tag.to_owned()));
    assert_eq!(findings, Vec::<String>::new());
    assert_eq!(plain, BTreeSet::from(listed), "blocks that are no examples are listed");
}

#[test]
fn the_first_program_is_short() {
    let files = files();
    let (_, text) = files.iter().find(|(name, _)| name == "mail.py").expect("it is in a page");
    let code = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let count = code.count();
    assert!(count <= FIRST_PROGRAM_LINES_MAX, "{count} lines");
}

/// What the pages and the examples say about repeats.
#[test]
fn reasons_that_are_repeated_soon_are_unavailable_or_the_call_limit() {
    for reason in Reason::ALL {
        let says = reason.code() == tonic::Code::Unavailable as i32 || *reason == Reason::CallLimit;
        assert_eq!(reason.retry() == Retry::Soon, says, "{}", reason.as_str());
    }
}

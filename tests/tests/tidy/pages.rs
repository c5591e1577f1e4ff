//! The pages: one per reason and no other, every link leads somewhere, every decision record has
//! its number once.

use std::collections::BTreeSet;
use std::path::Path;

use hive_core::reason::Reason;

use crate::tree::{self, File, none};

fn markdown() -> Vec<File> {
    tree::files(|path| path.ends_with(".md"))
}

#[test]
fn every_reason_has_its_page_and_every_page_its_reason() {
    let pages: BTreeSet<String> = markdown()
        .iter()
        .filter_map(|file| {
            file.path.strip_prefix("docs/errors/")?.strip_suffix(".md").map(str::to_owned)
        })
        .filter(|name| name != "README")
        .collect();
    let reasons: BTreeSet<String> =
        Reason::ALL.iter().map(|reason| reason.as_str().to_owned()).collect();
    let missing: Vec<String> =
        reasons.difference(&pages).map(|reason| format!("docs/errors/{reason}.md")).collect();
    none("reasons without a page", &missing);
    let stale: Vec<String> =
        pages.difference(&reasons).map(|page| format!("docs/errors/{page}.md")).collect();
    none("pages without a reason", &stale);
}

#[test]
fn every_reasons_page_explains_it_and_its_remedy() {
    let mut findings = Vec::new();
    for file in markdown()
        .iter()
        .filter(|file| file.path.starts_with("docs/errors/") && !file.path.ends_with("README.md"))
    {
        let reason = file.path.trim_start_matches("docs/errors/").trim_end_matches(".md");
        for needed in
            [format!("# {reason}\n"), "## What it means\n".to_owned(), "## What to do\n".to_owned()]
        {
            if !file.text.contains(&needed) {
                findings.push(format!("{}: no `{}`", file.path, needed.trim()));
            }
        }
        let code =
            Reason::parse(reason).map(|reason| format!("{:?}", hive_proto::status::code(reason)));
        if let Some(code) = code
            && !file.text.contains(&format!("`{}`", screaming(&code)))
        {
            findings.push(format!(
                "{}: does not name its gRPC code `{}`",
                file.path,
                screaming(&code)
            ));
        }
    }
    none("a reason's page says what it means, what to do, and its code", &findings);
}

fn screaming(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.push(c.to_ascii_uppercase());
    }
    text
}

#[test]
fn every_link_leads_somewhere() {
    let root = tree::root();
    let mut findings = Vec::new();
    for file in markdown() {
        for (number, target) in links(&file) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, anchor) = target
                .split_once('#')
                .map_or((target.as_str(), None), |(path, anchor)| (path, Some(anchor)));
            let here = root.join(&file.path);
            let there = if path.is_empty() {
                here
            } else {
                here.parent().unwrap_or(Path::new("")).join(path)
            };
            if !there.exists() {
                findings.push(format!("{}:{number}: {target}", file.path));
            } else if let Some(anchor) = anchor {
                let text = std::fs::read_to_string(&there).unwrap_or_default();
                if !text
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| slug(line) == anchor)
                {
                    findings.push(format!("{}:{number}: no heading for #{anchor}", file.path));
                }
            }
        }
    }
    none("every link leads somewhere", &findings);
}

/// The targets of `[text](target)` outside code blocks.
fn links(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (number, line) in file.lines() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            if let Some((target, _)) = line[at + 2..].split_once(')') {
                found.push((number, target.to_owned()));
            }
        }
    }
    found
}

/// The anchor that a heading gets.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[test]
fn decision_records_are_numbered_without_gaps() {
    let mut numbers: Vec<String> = markdown()
        .iter()
        .filter_map(|file| {
            file.path
                .strip_prefix("docs/adr/")?
                .split_once('-')
                .map(|(number, _)| number.to_owned())
        })
        .collect();
    numbers.sort();
    let wanted: Vec<String> = (1..=numbers.len()).map(|number| format!("{number:04}")).collect();
    assert_eq!(numbers, wanted);
}

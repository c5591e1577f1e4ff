//! The banned phrases: comments, pages and error sentences are plain technical English.
//!
//! What it is not: a grammar check. Code spans, quotations, fenced code, generated code and what
//! the model reads (`prompts/`) are exempt. Invariant: each pattern catches its own example.

use regex::{Regex, RegexBuilder};

use crate::tree::{self, File, none};

/// A pattern that matches without regard to case, what to write instead, and a text it catches.
const BANNED: [(&str, &str, &str); 17] = [
    (
        r"(^|[.;:(,] )who (is|has|does|comes|goes|waits|asks|sends|calls|knows)\b",
        "a noun: `a caller that`",
        "Who waits gets it.",
    ),
    (r"\b(some|every|any|no)body\b", "the noun", "It harms nobody."),
    (r"\b(whom|whoever)\b", "the noun", "Whoever asks waits."),
    (r"\b(is|are|was|be|were|been) told\b", "`is notified`", "The agent is told."),
    (r"\b(tells?|hears?) of\b", "`reports`", "It tells of the end."),
    (r"\banew\b", "`again`", "It starts anew."),
    (r"^(its|their) \w+\.$", "more than the name, or nothing", "Its name."),
    (r"\bmeanwhile\b", "`in the meantime`", "Meanwhile it waits."),
    (r"\bg(ives?|iven|ave|iving) (it |them )?back\b", "`requeue`, `release`", "It gives it back."),
    (r"\bin (good order|the midst)\b", "`cleanly`, `during`", "It ends in good order."),
    (r"\blies? (in|there|beside|behind)\b", "`is stored`", "The file lies in it."),
    (r"\bstands? in (a|the|its|rows?)\b", "`is in`", "It stands in the log."),
    (r"\ball the same\b", "`anyway`", "It runs all the same."),
    (r"\b(also|even) where\b", "`even if`", "It holds even where it fails."),
    (r"\bword of\b", "`a report of`", "The word of its end comes."),
    (r"\b(for|in) so (long|many|much)\b", "`for this long`", "It waits for so long."),
    (r"\b(is|are|was|were|be) void\b|\bvoid batch", "`aborted`", "The batch is void."),
];

#[test]
fn no_text_has_a_banned_phrase() {
    let english = English::new();
    let mut findings = Vec::new();
    for file in tree::files(|path| kind(path).is_some()) {
        for paragraph in paragraphs(&file) {
            for (line, phrase, instead) in english.hits(&paragraph) {
                findings.push(format!("{}:{line}: `{phrase}`; write {instead}", file.path));
            }
        }
    }
    none("comments, pages and errors are plain technical English", &findings);
}

/// The place of prose in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Comments that begin with `//`, and strings of `#[error(…)]`.
    Slashes,
    /// Comments that begin with `#`.
    Hashes,
    /// Everything but fenced code.
    Markdown,
}

fn kind(path: &str) -> Option<Kind> {
    let exempt = path.contains("/src/gen/")
        || path.starts_with("tests/fuzz/corpus/")
        || (path.starts_with("prompts/") && path != "prompts/README.md");
    let ends = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    match () {
        () if exempt => None,
        () if ends(&[".rs", ".proto"]) => Some(Kind::Slashes),
        () if ends(&[".toml", ".sh", ".nix", "Makefile", ".ci/run"]) => Some(Kind::Hashes),
        () if ends(&[".md"]) => Some(Kind::Markdown),
        () => None,
    }
}

/// Lines that are read as one text, the first with its number.
#[derive(Debug, PartialEq, Eq)]
struct Paragraph {
    line: usize,
    text: String,
}

fn paragraphs(file: &File) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let kind = kind(&file.path).expect("a file with prose");
    let (mut fenced, mut begins) = (false, true);
    for (line, text) in file.lines() {
        if kind == Kind::Markdown && file.path == "CHANGELOG.md" && is_release(text) {
            break;
        }
        let Some(prose) = prose(kind, text) else {
            begins = true;
            continue;
        };
        let is_fence = prose.starts_with("```");
        fenced ^= is_fence;
        if fenced || is_fence || prose.is_empty() {
            begins = true;
            continue;
        }
        match found.last_mut() {
            Some(last) if !begins && !is_item(prose) => {
                last.text.push('\n');
                last.text.push_str(prose);
            }
            _ => found.push(Paragraph { line, text: prose.to_owned() }),
        }
        begins = false;
    }
    if file.path.ends_with(".rs") {
        found.extend(error_sentences(&file.text));
    }
    found
}

/// Returns whether a heading of the change log begins what was released before.
fn is_release(line: &str) -> bool {
    line.starts_with("## ") && !line.contains("Unreleased")
}

/// Returns the prose of one line: a comment on a line of its own, or behind code.
fn prose(kind: Kind, line: &str) -> Option<&str> {
    let line = line.trim();
    match kind {
        Kind::Markdown => Some(line),
        Kind::Hashes => line.strip_prefix('#').map(str::trim_start),
        Kind::Slashes => {
            let comment = line.strip_prefix("//").or_else(|| {
                let (code, comment) = line.split_once(" // ")?;
                code.matches('"').count().is_multiple_of(2).then_some(comment)
            })?;
            Some(comment.trim_start_matches(['/', '!']).trim_start())
        }
    }
}

/// Returns whether a line begins a text of its own: an item, a row, a heading.
fn is_item(line: &str) -> bool {
    let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['|', '#'])
        || line.starts_with("- ")
        || line.starts_with("* ")
        || (numbered.len() < line.len() && numbered.starts_with(". "))
}

/// Returns the sentences of the errors that `thiserror` derives.
fn error_sentences(text: &str) -> impl Iterator<Item = Paragraph> {
    let sentence = Regex::new(r#"#\[error\(\s*"((?:[^"\\]|\\.)*)""#).expect("a pattern");
    let found: Vec<_> = sentence
        .captures_iter(text)
        .filter_map(|captures| captures.get(1))
        .map(|found| (found.start(), found.as_str().to_owned()))
        .collect();
    found.into_iter().map(|(at, sentence)| Paragraph {
        line: text[..at].matches('\n').count() + 1,
        text: sentence,
    })
}

/// The compiled rules.
struct English {
    /// Each pattern with what to write instead.
    rules: Vec<(Regex, &'static str)>,
    /// Code spans and quotations.
    spans: Regex,
}

impl English {
    fn new() -> Self {
        let compiled = |(pattern, instead, _): (&str, &'static str, &str)| {
            let regex = RegexBuilder::new(pattern).case_insensitive(true).unicode(false).build();
            (regex.expect("a pattern"), instead)
        };
        Self {
            rules: BANNED.into_iter().map(compiled).collect(),
            spans: Regex::new("`[^`]*`|\"[^\"]*\"").expect("a pattern"),
        }
    }

    /// Returns the line, the phrase, and what to write instead.
    fn hits(&self, paragraph: &Paragraph) -> Vec<(usize, String, &'static str)> {
        let masked = self.without_spans(&paragraph.text);
        let flat = masked.replace('\n', " ");
        let mut found = Vec::new();
        for (regex, instead) in &self.rules {
            for hit in regex.find_iter(&flat) {
                let line = paragraph.line + masked[..hit.start()].matches('\n').count();
                found.push((line, hit.as_str().trim().to_owned(), *instead));
            }
        }
        found
    }

    /// Puts `_` in the place of code spans and quotations, so that every offset stays.
    fn without_spans(&self, text: &str) -> String {
        let blank = |span: &regex::Captures<'_>| {
            span[0].bytes().map(|byte| if byte == b'\n' { '\n' } else { '_' }).collect::<String>()
        };
        self.spans.replace_all(text, blank).into_owned()
    }
}

fn phrases(path: &str, text: &str) -> Vec<(usize, String)> {
    let file = File { path: path.to_owned(), text: text.to_owned() };
    let (english, found) = (English::new(), paragraphs(&file));
    let hits = found.iter().flat_map(|paragraph| english.hits(paragraph));
    hits.map(|(line, phrase, _)| (line, phrase)).collect()
}

#[test]
fn each_pattern_catches_its_example() {
    for ((pattern, _, example), (regex, _)) in BANNED.into_iter().zip(English::new().rules) {
        assert!(regex.is_match(example), "{pattern} does not catch `{example}`");
        let other = ["code `", example, "` and \"", example, "\" only"].concat();
        assert_eq!(phrases("docs/page.md", &other), [], "{pattern}");
    }
}

#[test]
fn every_kind_of_text_is_read_and_code_is_not() {
    let is_told = |line: usize| [(line, "is told".to_owned())];
    for (path, text, line) in [
        ("core/src/a.rs", "fn a() {}\n    /// The agent is\n    /// told.\n", 2),
        ("core/src/a.rs", "let a = 1; // It is told.\n", 1),
        ("core/src/a.rs", "#[error(\n    \"`{name}` is told\"\n)]\n", 2),
        ("proto/hive/v1/a.proto", "// One.\n//\n// It is told.\n", 3),
        ("tests/a.sh", "#!/bin/sh\n# It is told.\n", 2),
        ("docs/a.md", "# Title\n\n- one\n- it is told\n", 4),
        ("docs/a.md", "| a |\n| it is told |\n", 2),
        ("CHANGELOG.md", "## Unreleased\n\nIt is told.\n", 3),
    ] {
        assert_eq!(phrases(path, text), is_told(line), "{path}: {text}");
    }
    for (path, text) in [
        ("core/src/a.rs", "let a = \"it is told\";\n"),
        ("core/src/a.rs", "/// ```\n/// it is told\n/// ```\n"),
        ("docs/a.md", "```\nit is told\n```\n"),
        ("docs/a.md", "It `is\ntold` so.\n"),
        ("CHANGELOG.md", "## 0.1.0\n\nIt is told.\n"),
    ] {
        assert_eq!(phrases(path, text), [], "{path}: {text}");
    }
}

//! The form of source files: a sentence at the top, a bounded length, and none of the things that
//! are easy to leave behind.

use crate::tree::{self, none};

/// Longest file of a product, in lines.
const LINES_MAX: usize = 400;

/// Tests that sleep, each with the reason why no signal can be waited for.
const SLEEPING_TESTS: [(&str, &str); 4] = [
    (
        "harness/tests/journeys/support/mod.rs",
        "one bounded wait for host state without a signal: a file exists, a foreign process is gone",
    ),
    ("harness/tests/tasks/stage.rs", "the same, for files and processes of shell tasks"),
    (
        "tests/campaigns/src/leaves/player.rs",
        "the time of a send is what a try varies; nothing is expected to have happened by then",
    ),
    ("tests/sim/src/world.rs", "simulated time, which the simulation moves itself"),
];

#[test]
fn every_module_has_a_sentence_at_its_top() {
    let files = tree::rust();
    let silent = files
        .iter()
        .filter(|file| !file.text.starts_with("//! ") || first_sentence(&file.text).len() < 10);
    let findings: Vec<String> =
        silent.map(|file| format!("{}: begin with `//!` and a sentence", file.path)).collect();
    none("each module says what it is", &findings);
}

fn first_sentence(text: &str) -> &str {
    text.lines().next().unwrap_or_default().trim_start_matches("//!").trim()
}

#[test]
fn files_are_short() {
    let files = tree::rust();
    let counted = files.iter().filter(|file| !file.is_test());
    let findings: Vec<String> = counted
        .map(|file| (&file.path, file.text.lines().count()))
        .filter(|(_, lines)| *lines > LINES_MAX)
        .map(|(path, lines)| format!("{path}: {lines} lines; cut it along its concepts"))
        .collect();
    none("no file is longer than 400 lines", &findings);
}

/// Longest comment line, in characters; rustfmt does not wrap comments.
const COMMENT_CHARS_MAX: usize = 100;

#[test]
fn comments_are_wrapped() {
    let mut findings = Vec::new();
    for file in tree::rust().iter().filter(|file| !file.is_generated()) {
        let mut is_picture = false;
        for (number, line) in file.lines() {
            let Some(comment) = line.trim_start().strip_prefix("//") else {
                is_picture = false;
                continue;
            };
            is_picture ^= comment.trim_start_matches(['/', '!', ' ']).starts_with("```");
            let can_wrap = comment.trim_start_matches(['/', '!', ' ']).contains(' ');
            if !is_picture && can_wrap && line.chars().count() > COMMENT_CHARS_MAX {
                findings.push(format!("{}:{number}: wrap it at {COMMENT_CHARS_MAX}", file.path));
            }
        }
    }
    none("comments have at most 100 columns, except for pictures and examples", &findings);
}

#[test]
fn nothing_unwraps_outside_tests() {
    let mut findings = Vec::new();
    for file in tree::rust().iter().filter(|file| !file.is_test()) {
        for (number, line) in file.code(true) {
            if line.contains(".unwrap()") || line.contains(".unwrap_err()") {
                findings.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    none("an `expect` states its invariant; an input is never unwrapped", &findings);
}

#[test]
fn tests_wait_on_signals_and_do_not_sleep() {
    let mut findings = Vec::new();
    for file in tree::rust() {
        let product = if file.is_test() { 0 } else { file.code(true).len() };
        let sleeps: Vec<usize> = file
            .code(false)
            .into_iter()
            .skip(product)
            .filter(|(_, line)| sleeps(line))
            .map(|(number, _)| number)
            .collect();
        // Under paused time a sleep takes none.
        let sleeps = if file.text.contains("start_paused = true") { Vec::new() } else { sleeps };
        let listed = SLEEPING_TESTS.iter().any(|(path, _)| *path == file.path);
        match (sleeps.first(), listed) {
            // A test that measures time may let it pass.
            (Some(number), false)
                if !file.path.starts_with("tests/tests/tidy/")
                    && !file.path.starts_with("tests/benches/") =>
            {
                findings.push(format!("{}:{number}: wait for a signal instead", file.path));
            }
            (None, true) => {
                findings.push(format!("{}: sleeps no more; take it off the list", file.path));
            }
            _ => {}
        }
    }
    none("no test sleeps", &findings);
}

/// Returns whether a function `sleep` is called. A method of that name is a type's own, and a
/// definition is no call.
fn sleeps(line: &str) -> bool {
    line.match_indices("sleep(").any(|(at, _)| {
        let before = &line[..at];
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.')
            && !before.ends_with("fn ")
    })
}

#[test]
fn nothing_is_left_behind() {
    // Put together here, so that this file does not find itself.
    let notes = [["TO", "DO"].concat(), ["FIX", "ME"].concat(), ["XX", "X:"].concat()];
    // Hidden directories of a user's home, and the home of a build service.
    let machines = [["/root", "/."].concat(), ["/home", "/runner"].concat()];
    let texts = [
        ".rs", ".proto", ".toml", ".md", ".sh", ".nix", ".sql", ".yaml", ".yml", ".json",
        "Makefile", "run",
    ];
    let mut findings = Vec::new();
    for file in tree::files(|path| texts.iter().any(|end| path.ends_with(end))) {
        for (number, line) in file.lines() {
            let note = notes.iter().any(|note| whole_word(line, note));
            let machine = machines.iter().any(|path| begins_path(line, path));
            if note || machine {
                findings.push(format!("{}:{number}: {}", file.path, line.trim()));
            }
        }
    }
    none("no note to oneself and no path of a build machine is committed", &findings);
}

fn whole_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let joins = |c: char| c.is_alphanumeric() || c == '_';
        !line[..at].ends_with(joins) && !line[at + word.len()..].starts_with(joins)
    })
}

/// Returns whether an absolute path with this beginning is in the line: not the middle of a longer
/// path.
fn begins_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-/}*)".contains(c))
    })
}

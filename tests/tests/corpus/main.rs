//! Properties of any bytes, in short: every input of the corpora, and some thousands of seeded
//! changes, on every border.
//!
//! The same checks run for longer and guided by coverage under libFuzzer (`make fuzz`). Invariant:
//! each input of a past finding is in the corpus, so that it is tried here for ever.

mod contract;
mod seeds;

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use hive_fuzz::mutate::{Chance, mutated};
use hive_fuzz::{TARGETS, Target};

/// Changed inputs that are tried on each border.
const CHANGED: u32 = 4_000;
/// Names another seed, and how many are tried.
const SEED_ENV: &str = "HIVE_CORPUS_SEED";
/// Most bytes of all corpora: they are committed.
const CORPUS_BYTES_MAX: usize = 200 * 1024;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The inputs of a border, by name.
fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = fuzz().join("corpus").join(target);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut inputs: Vec<(String, Vec<u8>)> = entries
        .map(|entry| entry.expect("a directory entry"))
        .map(|entry| {
            (
                entry.file_name().to_string_lossy().into_owned(),
                std::fs::read(entry.path()).expect("an input"),
            )
        })
        .collect();
    inputs.sort();
    inputs
}

/// Tries an input, and says which one it was where something does not hold.
fn tried(target: &Target, what: &str, bytes: &[u8]) {
    if let Err(failure) = catch_unwind(AssertUnwindSafe(|| (target.check)(bytes))) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        drop(writeln!(
            std::io::stderr(),
            "{}: {what} breaks it: {hex}\n{}",
            target.name,
            String::from_utf8_lossy(bytes)
        ));
        resume_unwind(failure);
    }
}

fn run(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).expect("a border of that name");
    let inputs = corpus(name);
    assert!(inputs.len() >= 10, "{name}: only {} inputs", inputs.len());
    for (input, bytes) in &inputs {
        tried(target, input, bytes);
    }
    let seed = std::env::var(SEED_ENV).ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut chance = Chance::new(seed);
    let inputs: Vec<Vec<u8>> = inputs.into_iter().map(|(_, bytes)| bytes).collect();
    for number in 0..CHANGED {
        let bytes = mutated(&mut chance, &inputs);
        tried(target, &format!("change {number} of seed {seed} ({SEED_ENV})"), &bytes);
    }
}

#[test]
fn requests_hold() {
    run("requests");
}

#[test]
fn lines_of_claude_hold() {
    run("lines");
}

#[test]
fn configurations_hold() {
    run("config");
}

#[test]
fn prompts_hold() {
    run("prompts");
}

#[test]
fn tool_calls_hold() {
    run("tools");
}

#[test]
fn every_border_has_a_binary_a_corpus_and_a_test() {
    let manifest = std::fs::read_to_string(fuzz().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Value = toml::from_str(&manifest).expect("a manifest is TOML");
    let binaries: Vec<&str> = manifest["bin"]
        .as_array()
        .expect("binaries")
        .iter()
        .filter_map(|bin| bin["name"].as_str())
        .collect();
    let borders: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(binaries, borders, "tests/fuzz/Cargo.toml and hive_fuzz::TARGETS name the same");
    let own = include_str!("main.rs");
    let mut bytes = 0;
    for border in borders {
        assert!(own.contains(&format!("run(\"{border}\")")), "{border} has no test");
        bytes += corpus(border).iter().map(|(_, input)| input.len()).sum::<usize>();
    }
    assert!(bytes <= CORPUS_BYTES_MAX, "the corpora have {bytes} bytes");
}

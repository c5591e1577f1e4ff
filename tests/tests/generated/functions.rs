//! The lists of functions of `hived` and `hive-mcp` are of these programs, and not of those of long
//! ago.

use std::collections::BTreeSet;
use std::process::Command;

use hive_tests::{binary, function_order};

/// A release inlines other functions than the program of the tests, and the C compiler makes parts
/// of functions; so some names are not in it.
const UNKNOWN_PERCENT_MAX: usize = 8;

/// Which lines of a script are looked at: every eighth, because each is compared with all symbols
/// that begin like it.
const SAMPLE: usize = 8;

#[test]
fn hived_has_the_functions_that_its_linker_script_names() {
    check("hive-broker", "hived", "broker/functions.ld", 200);
}

#[test]
fn hive_mcp_has_the_functions_that_its_linker_script_names() {
    check("hive-mcp-bridge", "hive-mcp", "mcp-bridge/functions.ld", 60);
}

fn check(package: &str, program: &str, script: &str, names_min: usize) {
    let symbols = Command::new("nm")
        .args(["--defined-only", "--format=just-symbols"])
        .arg(binary::find(package, program))
        .output()
        .expect("nm comes with the linker");
    assert!(symbols.status.success(), "nm cannot read {program}");
    let symbols = String::from_utf8(symbols.stdout).expect("symbols are text");
    let symbols: BTreeSet<_> = symbols.lines().collect();
    let text = std::fs::read_to_string(super::workspace().join(script)).expect("it is readable");
    let sample: Vec<_> = text.lines().step_by(SAMPLE).collect();
    let sample = sample.join("\n");
    let (unknown, all) = function_order::unknown(&sample, &symbols);
    assert!(all > names_min, "{all} names are too few for the functions that {program} runs");
    assert!(
        unknown.len() * 100 <= all * UNKNOWN_PERCENT_MAX,
        "{program} does not have {} of {all} functions of {script}, so they are not next to each other; \
         `make function-order` records them again. Among them: {:#?}",
        unknown.len(),
        unknown.iter().take(10).collect::<Vec<_>>()
    );
}

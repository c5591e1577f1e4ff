//! The list of functions of `hived` is of this program, and not of one of long ago.

use std::collections::BTreeSet;
use std::process::Command;

use hive_tests::{binary, function_order};

/// A release inlines other functions than the program of the tests, and the C compiler makes parts
/// of functions; so some names are not in it.
const UNKNOWN_PERCENT_MAX: usize = 8;

#[test]
fn hived_has_the_functions_that_its_linker_script_names() {
    let symbols = Command::new("nm")
        .args(["--defined-only", "--format=just-symbols"])
        .arg(binary::find("hive-broker", "hived"))
        .output()
        .expect("nm comes with the linker");
    assert!(symbols.status.success(), "nm cannot read hived");
    let symbols = String::from_utf8(symbols.stdout).expect("symbols are text");
    let symbols: BTreeSet<_> = symbols.lines().collect();
    let script = super::workspace().join("broker/functions.ld");
    let script = std::fs::read_to_string(script).expect("the script is readable");
    let (unknown, all) = function_order::unknown(&script, &symbols);
    assert!(all > 1_000, "{all} names are too few for the functions that hived runs");
    assert!(
        unknown.len() * 100 <= all * UNKNOWN_PERCENT_MAX,
        "hived does not have {} of the {all} functions in broker/functions.ld, so they are not next to each other; \
         `make function-order` records them again. Among them: {:#?}",
        unknown.len(),
        unknown.iter().take(10).collect::<Vec<_>>()
    );
}

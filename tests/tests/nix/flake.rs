//! The outputs of the flake, with a stand-in for nixpkgs.

use hive_tests::generated::{Files, fresh};

use crate::evaluation::attribute;

#[test]
fn the_outputs_of_the_flake_are_as_before() {
    let Some(flake) = attribute("flake") else { return };
    let text = serde_json::to_string_pretty(&flake).expect("JSON");
    let files = Files::from([("outputs.json".to_owned(), format!("{text}\n"))]);
    fresh("tests/tests/nix/flake", &files, "HIVE_REGENERATE=1 cargo test -p hive-tests --test nix");
}

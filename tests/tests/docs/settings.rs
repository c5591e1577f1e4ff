//! The table of a harness's settings in `docs/operations.md`, made from the list that the programs
//! use.

use std::fmt::Write as _;

use hive_core::config::{Kind, NEVER, SETTINGS};
use hive_tests::binary::workspace;
use hive_tests::generated;

const PAGE: &str = "docs/operations.md";
const BEGIN: &str = "<!-- settings: made by `make docs` -->\n";
const END: &str = "<!-- end of settings -->\n";

fn table() -> String {
    let mut table = String::from(
        "| key | values | default | variable | effect |\n| --- | --- | --- | --- | --- |\n",
    );
    for setting in SETTINGS {
        let values = match setting.kind {
            Kind::Number(least, most) => format!("{least} to {most}"),
            Kind::Flag => "`true`, `false`".to_owned(),
            Kind::Word(words) => {
                words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
            }
            Kind::File => "a file".to_owned(),
            Kind::Time => format!("`\"HH:MM\"`, `\"{NEVER}\"`"),
        };
        let (key, default, variable, meaning) =
            (setting.key, setting.default, setting.variable, setting.meaning);
        writeln!(table, "| `{key}` | {values} | {default} | `{variable}` | {meaning} |")
            .expect("writing to a string never fails");
    }
    table
}

#[test]
fn the_settings_are_fresh() {
    let path = workspace().join(PAGE);
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) =
        page.split_once(BEGIN).unwrap_or_else(|| panic!("{PAGE} has no line {BEGIN}"));
    let (_, after) = rest.split_once(END).unwrap_or_else(|| panic!("{PAGE} has no line {END}"));
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", table());
    if generated::is_regenerated() {
        generated::write(&path, &wanted);
    } else {
        assert!(
            page == wanted,
            "the settings in {PAGE} are stale; run `make docs` and commit the result"
        );
    }
}

//! `[broker.backup]`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::super::{Backup, parse};
use super::message;

fn backup(text: &str) -> Option<Backup> {
    let mut config = parse(text).expect("valid");
    config.resolve_paths(Path::new("/etc/hive"));
    config.broker.backup
}

#[test]
fn without_the_table_there_are_none_and_an_empty_one_has_defaults() {
    assert_eq!(backup("[broker]"), None);
    let day = Duration::from_secs(86_400);
    assert_eq!(backup("[broker.backup]"), Some(Backup { every: day, keep: 7, dir: None }));
    let text = "[broker]\nbackup = { every = \"90m\", keep = 2, dir = \"copies\" }";
    let (every, dir) = (Duration::from_secs(5400), Some(PathBuf::from("/etc/hive/copies")));
    assert_eq!(backup(text), Some(Backup { every, keep: 2, dir }));
}

#[test]
fn wrong_values_are_named_with_their_place() {
    let rule = "must be a span of time, as 90s, 30m, 2h or 1d, and at least 1m";
    for (value, said) in [
        ("every = \"soon\"", format!("line 2, column 9: `every` {rule}")),
        ("every = \"59s\"", format!("line 2, column 9: `every` {rule}")),
        ("every = 60", "line 2, column 9: `every` must be a string, not a number".to_owned()),
        ("keep = 0", "line 2, column 8: `keep` must be from 1 to 10000, not 0".to_owned()),
        ("often = \"1d\"", "line 2, column 1: unknown key `often` in [broker.backup]".to_owned()),
    ] {
        let found = message(&format!("[broker.backup]\n{value}"));
        assert!(found.contains(&said), "{value}: {found}");
    }
}

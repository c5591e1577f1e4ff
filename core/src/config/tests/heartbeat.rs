//! `heartbeat` of an agent.

use std::time::Duration;

use super::super::parse;
use super::{agent, message};
use crate::heartbeat::Heartbeat;

fn heartbeat(table: &str) -> Option<Heartbeat> {
    let config = parse(&format!("[agents.ada]\n{table}")).expect("valid");
    agent(&config, "ada").heartbeat.clone()
}

#[test]
fn without_the_table_there_is_none_and_an_interval_is_enough() {
    assert_eq!(heartbeat(""), None);
    let found = heartbeat("heartbeat = { every = \"30m\" }").expect("a heartbeat");
    assert_eq!((found.every, found.window), (Duration::from_secs(1800), None));
    assert_eq!(found.zone.as_str(), "UTC");
    for (every, seconds) in [("1m", 60), ("24h", 86_400), ("1d", 86_400), ("90s", 90)] {
        let found = heartbeat(&format!("heartbeat.every = \"{every}\"")).expect("a heartbeat");
        assert_eq!(found.every, Duration::from_secs(seconds));
    }
}

#[test]
fn wrong_values_are_named_with_their_place_and_a_next_step() {
    let every = "must be a span of time, as 90s, 30m, 2h or 1d, and from 1m to 24h";
    let between = "`between` must be two different times of day, as \"08:00-22:00\", or over midnight as \"22:00-06:00\"; leave it out for the whole day";
    let zone = "is no zone of the IANA database; write one, as \"Europe/Berlin\"";
    for (value, said) in [
        ("every = \"59s\"", format!("line 2, column 9: `every` {every}")),
        ("every = \"25h\"", format!("line 2, column 9: `every` {every}")),
        ("every = \"soon\"", format!("line 2, column 9: `every` {every}")),
        ("every = 60", "line 2, column 9: `every` must be a string, not a number".to_owned()),
        ("every = \"1h\"\nbetween = \"8-22\"", format!("line 3, column 11: {between}")),
        ("every = \"1h\"\nbetween = \"08:00-08:00\"", format!("line 3, column 11: {between}")),
        ("every = \"1h\"\nbetween = \"08:00-24:00\"", format!("line 3, column 11: {between}")),
        ("every = \"1h\"\nbetween = \"\"", "line 3, column 11: `between` is empty".to_owned()),
        ("every = \"1h\"\nzone = \"Mars/Base\"", format!("line 3, column 8: `Mars/Base` {zone}")),
        ("every = \"1h\"\nzone = 1", "line 3, column 8: `zone` must be a string".to_owned()),
        (
            "evry = \"1h\"",
            "line 2, column 1: unknown key `evry` in [agents.ada.heartbeat]; did you mean `every`?"
                .to_owned(),
        ),
        (
            "between = \"08:00-22:00\"",
            "`heartbeat` has no `every`; name the time from one to the next, as \"30m\"".to_owned(),
        ),
    ] {
        let found = message(&format!("[agents.ada.heartbeat]\n{value}"));
        assert!(found.contains(&said), "{value}: {found}");
    }
    let found = message("[agents.ada]\nheartbeat = \"30m\"");
    assert!(
        found.contains("line 2, column 13: `heartbeat` must be a table, not a string"),
        "{found}"
    );
}

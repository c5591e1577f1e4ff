//! Lines of live turns: kept in order, bounded, and never a reason not to start.

use hive_core::id::TurnId;
use hive_core::time::WallTime;
use rusqlite::Connection;

use super::super::turn_events::{Line, TurnEvents};
use super::directory;

fn turn(number: u64) -> TurnId {
    TurnId::new(number).expect("not 0")
}

fn line(sequence: u64, text: &str) -> Line {
    Line {
        sequence,
        stream: 1,
        text: text.to_owned(),
        time: WallTime(i64::try_from(sequence).expect("small")),
    }
}

#[test]
fn lines_are_kept_once_and_in_order() {
    let dir = directory();
    let lines = TurnEvents::open(dir.path()).expect("opened");
    assert_eq!(lines.append(turn(7), &[line(2, "two"), line(1, "one")]).expect("kept"), 2);
    assert_eq!(lines.append(turn(7), &[line(2, "two again"), line(3, "three")]).expect("kept"), 1);
    lines.append(turn(8), &[line(1, "another turn's")]).expect("kept");
    let texts = |after, rows, bytes| -> Vec<String> {
        lines
            .after(turn(7), after, rows, bytes)
            .expect("read")
            .into_iter()
            .map(|line| line.text)
            .collect()
    };
    assert_eq!(texts(0, 10, 1000), ["one", "two", "three"]);
    assert_eq!(texts(1, 1, 1000), ["two"]);
    assert_eq!(texts(0, 10, 6), ["one", "two"]);
    assert_eq!(texts(0, 10, 1), ["one"], "one always comes");
}

#[test]
fn old_lines_go_and_so_do_the_oldest_beyond_the_bound() {
    let dir = directory();
    let lines = TurnEvents::open(dir.path()).expect("opened");
    lines
        .append(turn(1), &(1..=10).map(|number| line(number, "x")).collect::<Vec<_>>())
        .expect("kept");
    assert_eq!(lines.prune(WallTime(5), u64::MAX, 3).expect("pruned"), 3, "a step is small");
    assert_eq!(lines.prune(WallTime(5), u64::MAX, 3).expect("pruned"), 1);
    assert_eq!(lines.prune(WallTime(5), u64::MAX, 3).expect("pruned"), 0);
    assert_eq!(lines.after(turn(1), 0, 100, 1000).expect("read").len(), 6);
    let long = "y".repeat(10_000);
    for number in 0..50 {
        lines.append(turn(2), &[line(100 + number, &long)]).expect("kept");
    }
    while lines.prune(WallTime(0), 200_000, 5).expect("pruned") > 0 {}
    let left = lines.after(turn(2), 0, 100, usize::MAX).expect("read");
    assert!((10..25).contains(&left.len()), "{} left", left.len());
    assert_eq!(left.last().expect("some").sequence, 149, "the newest stay");
}

#[test]
fn the_first_use_opens_the_file() {
    let dir = directory();
    let lines = TurnEvents::closed(dir.path());
    assert!(!dir.path().join("turn-events.db").exists());
    lines.append(turn(1), &[line(1, "hello")]).expect("kept");
    assert_eq!(lines.after(turn(1), 0, 10, 100).expect("read").len(), 1);
}

#[test]
fn old_lines_of_a_file_that_is_not_in_use_go_and_it_is_closed_again() {
    let dir = directory();
    let lines = TurnEvents::open(dir.path()).expect("opened");
    lines.append(turn(1), &[line(1, "old"), line(9, "new")]).expect("kept");
    drop(lines);
    let lines = TurnEvents::closed(dir.path());
    assert_eq!(lines.prune(WallTime(5), u64::MAX, 10).expect("pruned"), 1);
    let log = dir.path().join("turn-events.db-wal");
    assert!(!log.exists(), "a closed file has no log");
    assert_eq!(lines.after(turn(1), 0, 10, 100).expect("read").len(), 1);
    assert!(log.exists(), "and one that is in use has");
}

#[test]
fn a_file_that_another_program_reads_is_shared_with_it() {
    let dir = directory();
    let lines = TurnEvents::open(dir.path()).expect("opened");
    lines.append(turn(1), &[line(1, "hello")]).expect("kept");
    drop(lines);
    let other = Connection::open(dir.path().join("turn-events.db")).expect("opened");
    let count =
        |rows| other.query_row("SELECT count(*) FROM line", [], |row| row.get(0)) == Ok(rows);
    other.execute_batch("BEGIN").expect("it begins");
    assert!(count(1));
    let lines = TurnEvents::open(dir.path()).expect("opened all the same");
    lines.append(turn(1), &[line(2, "goodbye")]).expect("kept");
    assert!(count(1), "its snapshot is from before");
    other.execute_batch("COMMIT").expect("it ends");
    assert!(count(2));
}

#[test]
fn a_damaged_file_is_started_afresh() {
    let dir = directory();
    std::fs::write(dir.path().join("turn-events.db"), "this is no database at all".repeat(100))
        .expect("written");
    let lines = TurnEvents::open(dir.path()).expect("opened all the same");
    lines.append(turn(1), &[line(1, "hello")]).expect("kept");
    drop(lines);
    let lines = TurnEvents::open(dir.path()).expect("opened");
    assert_eq!(lines.after(turn(1), 0, 10, 100).expect("read").len(), 1);
}

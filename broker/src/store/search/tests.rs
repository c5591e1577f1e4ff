//! Tests of the index: no query makes SQLite fail, and an unusable file is rebuilt.

use std::os::unix::fs::PermissionsExt as _;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use rusqlite::Connection;

use super::mail::{Entry, word};
use super::{Batch, Index, Position, Query, SearchError};
use crate::store::AgentKey;

fn directory() -> tempfile::TempDir {
    let memory = std::path::Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a test")
}

fn index(dir: &tempfile::TempDir) -> Index {
    Index::beside(&dir.path().join("hive.db"))
}

/// Returns a batch of one text.
fn batch(id: u64, text: &str, key: i64) -> Batch {
    let entries = vec![Entry { id, text: text.to_owned(), who: word(key) }];
    Batch { entries, last: Some((id, format!("mark of {id}"))), more: false }
}

/// Adds a text that concerns this agent.
fn add(index: &Index, id: u64, text: &str, key: i64) {
    let position = index.position().expect("a position");
    index.put(&position, &batch(id, text, key)).expect("put");
}

fn find(index: &Index, query: &str) -> Vec<u64> {
    let query = Query::parse(query).expect("it can be searched for");
    index.find(&query.expression(None), None, 100).expect("found")
}

fn with_text(dir: &tempfile::TempDir) -> Index {
    let index = index(dir);
    add(&index, 5, "hello world", 7);
    index
}

/// Changes the file behind the index's back.
fn meddle(dir: &tempfile::TempDir, sql: &str) {
    let conn = Connection::open(dir.path().join("search.sqlite3")).expect("the index is opened");
    conn.execute_batch(sql).expect("meddled");
}

fn anything() -> impl Strategy<Value = String> {
    // Separated by `|`, which no piece has.
    let syntax = "\"|*|(|)|{body}|:|^|+|-| |AND|OR|NOT|NEAR|NEAR(a b, 2)|\0|'|a|ab|\\|,|k7|who:|\
        \u{E000}|é|e\u{301}|日本|\u{1F600}|\u{1E900}\u{1E901}|\n";
    let syntax = prop::sample::select(syntax.split('|').collect::<Vec<_>>());
    let pieces = prop::collection::vec(syntax, 0..20).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces, any::<String>(), "[ -~]{0,40}"]
}

#[test]
fn no_search_makes_sqlite_fail_or_leaves_its_scope() {
    let dir = directory();
    let index = with_text(&dir);
    add(&index, 6, "k7 {who} : k7 a ab AND OR NOT", 8);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let tried = runner.run(&anything(), |text| {
        if let Ok(query) = Query::parse(&text) {
            prop_assert!(index.find(&query.expression(None), None, 10).is_ok());
            let own = index.find(&query.expression(Some(AgentKey(7))), None, 10);
            prop_assert!(own.expect("found").iter().all(|id| *id == 5));
        }
        Ok(())
    });
    tried.expect("any text");
}

#[test]
fn every_text_is_found_by_its_words_by_itself_and_by_a_beginning() {
    let dir = directory();
    let index = index(&dir);
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let next = std::cell::Cell::new(0);
    let tried = runner.run(
        &prop::collection::vec("[a-zA-Z0-9äÖéñßжЖ]{2,8}|[日本語かなカナーー한국]{2,8}", 1..10),
        |words| {
            next.set(next.get() + 1);
            let (id, text) = (next.get(), words.join(", "));
            add(&index, id, &text, 1);
            let mut backwards = words.clone();
            backwards.reverse();
            prop_assert!(find(&index, &backwards.join(" ")).contains(&id), "{text}");
            prop_assert!(find(&index, &format!("\"{}\"", words.join(" "))).contains(&id), "{text}");
            let beginning: String = words[0].chars().take(2).collect();
            prop_assert!(find(&index, &format!("{beginning}*")).contains(&id), "{text}");
            Ok(())
        },
    );
    tried.expect("any words");
}

#[test]
fn words_are_found_within_text_that_has_no_spaces() {
    let dir = directory();
    let index = index(&dir);
    add(&index, 1, "明日の天気は晴れです。Rust言語の本を読む。", 7);
    add(&index, 2, "修复了数据库的错误", 7);
    add(&index, 3, "데이터베이스를 고쳤다", 7);
    for (query, ids) in [
        ("天気", vec![1]),
        ("\"天気は晴れ\"", vec![1]),
        ("晴れ 言語", vec![1]),
        ("rust", vec![1]),
        ("Rust言語", vec![1]),
        ("言*", vec![1]),
        ("気天", vec![]),
        ("数据库", vec![2]),
        ("错误 数据库", vec![2]),
        ("데이터", vec![3]),
        ("데이터베이스", vec![3]),
        ("고쳤*", vec![3]),
        ("の", vec![1]),
    ] {
        assert_eq!(find(&index, query), ids, "{query}");
    }
}

#[test]
fn the_files_are_private_and_keep_no_text() {
    let dir = directory();
    let index = with_text(&dir);
    for file in ["search.sqlite3", "search.sqlite3-wal", "search.sqlite3-shm"] {
        let mode =
            std::fs::metadata(dir.path().join(file)).expect("it is there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(index);
    let bytes = std::fs::read(dir.path().join("search.sqlite3")).expect("read");
    assert!(!bytes.windows(11).any(|part| part == b"hello world"));
}

#[test]
fn a_batch_is_added_once() {
    let dir = directory();
    let index = index(&dir);
    let position = index.position().expect("a position");
    let batch = batch(5, "hello", 7);
    index.put(&position, &batch).expect("put");
    index.put(&position, &batch).expect("nothing to do");
    assert_eq!(find(&index, "hello"), [5]);
    assert_eq!(
        index.position().expect("a position"),
        Position { id: 5, mark: "mark of 5".to_owned(), proven: true }
    );
    drop(index);
    let index = self::index(&dir);
    assert_eq!(
        index.position().expect("a position"),
        Position { id: 5, mark: "mark of 5".to_owned(), proven: false }
    );
}

#[test]
fn removed_mail_is_not_found() {
    let dir = directory();
    let index = with_text(&dir);
    add(&index, 6, "hello again", 7);
    assert_eq!(index.ids_after(0, 10).expect("listed"), [5, 6]);
    assert_eq!(index.ids_after(0, 1).expect("listed"), [5]);
    index.remove(&[5, 99]).expect("removed");
    assert_eq!(find(&index, "hello"), [6]);
    assert_eq!(index.ids_after(0, 10).expect("listed"), [6]);
}

#[test]
fn a_file_of_another_version_or_program_is_created_again() {
    for sql in [
        "PRAGMA user_version = 99",
        "DROP TABLE place",
        "DROP TABLE words",
        "DELETE FROM place",
        "DROP TABLE words; CREATE TABLE words (x)",
        "PRAGMA user_version = 0",
    ] {
        let dir = directory();
        drop(with_text(&dir));
        meddle(&dir, sql);
        let index = index(&dir);
        assert_eq!(index.position().expect(sql), Position::default(), "{sql}");
        add(&index, 1, "hello", 7);
        assert_eq!(find(&index, "hello"), [1], "{sql}");
    }
    let dir = directory();
    std::fs::write(dir.path().join("search.sqlite3"), "this is no database at all".repeat(100))
        .expect("written");
    assert_eq!(index(&dir).position().expect("made anew"), Position::default());
}

#[test]
fn damage_that_shows_in_a_search_is_mended_by_a_new_file() {
    let dir = directory();
    let index = with_text(&dir);
    meddle(&dir, "UPDATE words_data SET block = x'0102' WHERE id > 10");
    let words = Query::parse("hello").expect("a word").expression(None);
    assert!(matches!(index.find(&words, None, 10), Err(SearchError::Filling)));
    assert!(
        matches!(index.find(&words, None, 10), Err(SearchError::Filling)),
        "until it has been filled"
    );
    assert_eq!(index.position().expect("made anew"), Position::default());
    add(&index, 5, "hello world", 7);
    assert_eq!(find(&index, "hello"), [5]);
}

#[test]
fn damage_that_shows_in_writing_is_mended_by_a_new_file() {
    let dir = directory();
    let index = with_text(&dir);
    let position = index.position().expect("a position");
    meddle(&dir, "UPDATE words_data SET block = x'0102'");
    let put = index.put(&position, &batch(6, "hello", 7));
    assert!(matches!(put, Err(SearchError::Filling)), "{put:?}");
    assert_eq!(index.position().expect("made anew"), Position::default());
}

#[test]
fn a_file_that_cannot_be_written_is_named_and_used_once_it_can() {
    let dir = directory();
    let path = dir.path().join("search.sqlite3");
    std::fs::create_dir(&path).expect("something is in the way");
    let index = index(&dir);
    let error = index.position().expect_err("it cannot be opened");
    assert!(error.to_string().contains("search.sqlite3"), "{error}");
    assert!(matches!(index.find("x", None, 1), Err(SearchError::File { .. })));
    std::fs::remove_dir(&path).expect("out of the way");
    add(&index, 5, "hello world", 7);
    assert_eq!(find(&index, "hello"), [5]);
}

#[test]
fn a_long_way_is_not_searched_before_its_end() {
    let dir = directory();
    let index = index(&dir);
    let words = Query::parse("hello").expect("a word").expression(None);
    let step = |id: u64, more: bool| {
        let position = index.position().expect("a position");
        index.put(&position, &Batch { more, ..batch(id, "hello", 7) }).expect("put");
    };
    step(1, true);
    assert!(matches!(index.find(&words, None, 10), Err(SearchError::Filling)));
    step(2, false);
    assert_eq!(index.find(&words, None, 10).expect("found"), [2, 1]);
    // A busy hive is always a little ahead.
    step(3, true);
    assert_eq!(index.find(&words, None, 10).expect("found"), [3, 2, 1]);
    assert_eq!(index.find(&words, Some(3), 1).expect("found"), [2]);
}

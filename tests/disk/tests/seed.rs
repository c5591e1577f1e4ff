//! Randomness by a seed. It affects the whole process, so this test has a process of its own.

use hive_disk::Disk;
use rusqlite::Connection;

#[test]
fn the_seed_fixes_sqlites_random_numbers_and_each_byte_of_a_database() {
    let draw = |seed| {
        hive_disk::seed(seed);
        let conn = Connection::open_in_memory().expect("memory");
        conn.query_row("SELECT hex(randomblob(16))", [], |row| row.get::<_, String>(0))
            .expect("a number")
    };
    let (one, two, again) = (draw(Some(1)), draw(Some(2)), draw(Some(1)));
    let free = draw(None);
    assert_eq!(one, again);
    assert_ne!(one, two);
    assert_ne!(free, one);

    let files = |seed| {
        hive_disk::seed(Some(seed));
        let dir = tempfile::tempdir().expect("a directory");
        let _disk = Disk::over(dir.path());
        let conn = Connection::open(dir.path().join("test.db")).expect("it opens");
        conn.pragma_update(None, "journal_mode", "wal").expect("a log");
        conn.execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (random())").expect("written");
        ["test.db", "test.db-wal"].map(|name| std::fs::read(dir.path().join(name)).expect("a file"))
    };
    assert!(files(3) == files(3), "a replay is the same to the last byte");
    assert!(files(3) != files(4));
}

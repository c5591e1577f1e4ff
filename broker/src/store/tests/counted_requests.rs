//! Requests of clients that count: a repeat finds the first answer, in whatever place it is, and
//! nothing else does.

use hive_core::time::WallTime;

use super::super::request::{self, Answered, RequestKey};
use super::super::retention::{self, Cursor, Cutoffs};
use super::super::{AgentKey, Health, Tx, event, statement};
use super::{Failed, Rig, aborted, disk};

const CALLER: AgentKey = AgentKey::OPERATOR;

fn key(id: String) -> RequestKey {
    RequestKey { rpc: "Send", id, fingerprint: [7; 16] }
}

/// Answers a request once, as a command does; returns whether it was the first time.
fn once(tx: &Tx<'_>, id: &str) -> Result<bool, Failed> {
    let key = key(id.to_owned());
    let found = request::find(tx, CALLER, &key)?;
    let Some(answered) = found else {
        request::add(tx, CALLER, &key, answer(id))?;
        return Ok(true);
    };
    assert_eq!(answered, Answered { is_same: true, answer: answer(id) });
    Ok(false)
}

fn answer(id: &str) -> String {
    format!("\"the answer to {id}\"")
}

/// Answers requests in a commit each; returns those for which it was the first time.
async fn each_once(rig: &Rig, ids: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut new = Vec::new();
    for id in ids {
        let asked = id.clone();
        if rig.write(move |tx| once(tx, &asked)).await.expect("committed") {
            new.push(id);
        }
    }
    new
}

/// Answers requests in one commit; returns those for which it was the first time.
async fn all_once(rig: &Rig, ids: Vec<String>) -> Vec<String> {
    let new = rig.write(move |tx| {
        let answered = ids.into_iter().map(|id| Ok((once(tx, &id)?, id)));
        answered.collect::<Result<Vec<_>, Failed>>()
    });
    let answered = new.await.expect("committed").into_iter();
    answered.filter_map(|(is_new, id)| is_new.then_some(id)).collect()
}

/// Returns the numbers of rows of requests, pages and blocks.
async fn rows(rig: &Rig) -> [u32; 3] {
    let read = rig.read(|conn, _| {
        let count = |table: &str| {
            conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))
        };
        Ok::<_, Failed>([count("request")?, count("request_page")?, count("request_block")?])
    });
    read.await.expect("read")
}

fn ids(series: &str, numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(|number| format!("{series}-{number}")).collect()
}

#[tokio::test]
async fn a_repeat_finds_its_answer_in_its_batch_in_a_page_and_in_a_block() {
    let rig = Rig::new();
    let first = all_once(&rig, [ids("a", [1, 2, 1]), ids("b", [9])].concat()).await;
    assert_eq!(first, ["a-1", "a-2", "b-9"], "in its batch");
    assert_eq!(rows(&rig).await, [0, 1, 0]);
    assert_eq!(each_once(&rig, ids("a", [2, 3])).await, ["a-3"], "in a page");
    // Enough commits for blocks, with some numbers late.
    let many = ids("a", (4..100).filter(|number| number % 10 != 0));
    assert_eq!(each_once(&rig, many.clone()).await, many);
    let late = ids("a", (10..100).step_by(10));
    assert_eq!(each_once(&rig, late.clone()).await, late);
    let [requests, pages, blocks] = rows(&rig).await;
    assert!(requests == 0 && pages < 64 && blocks > 0, "{requests} {pages} {blocks}");
    let known = [ids("a", 1..100), ids("b", [9])].concat();
    let none: [&str; 0] = [];
    assert_eq!(each_once(&rig, known.clone()).await, none);
    let rig = rig.reopen();
    assert_eq!(each_once(&rig, known).await, none, "after a restart");
    assert_eq!(each_once(&rig, ids("a", [0, 100])).await, ["a-0", "a-100"]);
    assert_eq!(each_once(&rig, ids("b", [1, 9, 10])).await, ["b-1", "b-10"]);
}

#[tokio::test]
async fn many_pages_become_blocks_in_the_commit_that_makes_them_many() {
    let rig = Rig::new();
    let series: Vec<String> = (0..64).map(|number| format!("s{number}-{}", number + 1)).collect();
    each_once(&rig, series.iter().take(63).cloned()).await;
    assert_eq!(rows(&rig).await, [0, 63, 0]);
    each_once(&rig, series.iter().skip(63).cloned()).await;
    assert_eq!(rows(&rig).await, [0, 0, 64], "each series has a block of its own");
    // One commit with many bytes.
    all_once(&rig, ids("long", 1..2001)).await;
    assert_eq!(rows(&rig).await, [0, 0, 64 + 251]);
    assert_eq!(all_once(&rig, ids("long", 1..2001)).await.len(), 0);
}

#[tokio::test]
async fn other_ids_and_long_answers_have_rows_of_their_own() {
    let rig = Rig::new();
    let others = ["a", "a-", "a-07", "a-x"].map(str::to_owned);
    assert_eq!(each_once(&rig, others.clone()).await, others);
    let long = key("a-7".to_owned());
    let put = long.clone();
    let written = rig.write(move |tx| {
        Ok::<_, Failed>(request::add(tx, CALLER, &put, format!("\"{}\"", "x".repeat(63)))?)
    });
    written.await.expect("committed");
    assert_eq!(rows(&rig).await, [5, 0, 0]);
    let rig = rig.reopen();
    assert!(each_once(&rig, others).await.is_empty());
    let found = rig.write(move |tx| Ok::<_, Failed>(request::find(tx, CALLER, &long)?)).await;
    assert_eq!(found.expect("read").expect("it was answered").answer.len(), 65);
    assert_eq!(each_once(&rig, ids("a", [8])).await, ["a-8"], "a series with such a row goes on");
    assert!(each_once(&rig, ids("a", [8])).await.is_empty());
}

#[tokio::test]
async fn an_answer_that_may_be_replaced_has_a_row_of_its_own() {
    let rig = Rig::new();
    each_once(&rig, ids("a", [1])).await;
    let found = rig.write(|tx| {
        let key = key("a-2".to_owned());
        let mut found = vec![request::find(tx, CALLER, &key)?];
        for answer in ["1", "2"] {
            request::put(tx, CALLER, &key, answer)?;
            found.push(request::find(tx, CALLER, &key)?);
        }
        Ok::<_, Failed>(found)
    });
    let found: Vec<_> = found.await.expect("committed");
    let answers = found.into_iter().map(|found| found.map(|answered| answered.answer));
    assert_eq!(answers.collect::<Vec<_>>(), [None, Some("1".to_owned()), Some("2".to_owned())]);
    assert_eq!(rows(&rig).await, [1, 1, 0]);
}

#[tokio::test]
async fn another_content_and_another_rpc_are_not_the_same_request() {
    let rig = Rig::new();
    let id = || "a-1".to_owned();
    each_once(&rig, [id()]).await;
    let found = rig.write(move |tx| {
        let other = RequestKey { fingerprint: [8; 16], ..key(id()) };
        let of_another_rpc = RequestKey { rpc: "Ask", ..key(id()) };
        let found = request::find(tx, CALLER, &other)?;
        let by_another = request::find(tx, AgentKey(2), &key(id()))?;
        Ok::<_, Failed>((found, request::find(tx, CALLER, &of_another_rpc)?, by_another))
    });
    let expected = Answered { is_same: false, answer: answer("a-1") };
    assert_eq!(found.await.expect("read"), (Some(expected), None, None));
}

#[tokio::test]
async fn what_a_failed_command_or_batch_has_answered_is_not_answered() {
    let rig = Rig::new();
    each_once(&rig, ids("a", 1..64)).await;
    let failed = rig.write(|tx| {
        assert!(once(tx, "a-64")? && once(tx, "a-65")?);
        // Writes the page, and blocks of all pages.
        assert_eq!(event::after(tx, 0, None, 9)?.len(), 0);
        let blocks: u32 = statement::one(tx, "SELECT count(*) FROM request_block", [])?;
        assert_eq!(blocks, 9);
        Err::<(), _>(Failed::Refused)
    });
    failed.await.expect_err("refused");
    assert_eq!(rows(&rig).await, [0, 63, 0]);
    assert!(each_once(&rig, ids("a", 1..64)).await.is_empty());
    let lost = rig.write(|tx| {
        assert!(once(tx, "a-64")?);
        Err::<(), _>(disk(rusqlite::ffi::SQLITE_FULL))
    });
    aborted(lost.await);
    rig.recovered().await;
    assert_eq!(rows(&rig).await, [0, 63, 0]);
    assert_eq!(each_once(&rig, ids("a", 1..66)).await, ["a-64", "a-65"]);
    assert_eq!(rows(&rig).await, [0, 1, 9]);
    assert!(each_once(&rig, ids("a", 1..66)).await.is_empty());
}

#[tokio::test]
async fn a_page_that_cannot_be_read_stops_no_new_request() {
    let rig = Rig::new();
    each_once(&rig, ids("a", [1])).await;
    let damaged = rig.write(|tx| {
        let sql = "INSERT INTO request_page (time, answers) VALUES (?1, '[[1]]')";
        Ok::<_, Failed>(tx.connection().execute(sql, [tx.now.wall.0])?)
    });
    damaged.await.expect("committed");
    let many = ids("a", 2..100);
    assert_eq!(each_once(&rig, many.clone()).await, many);
    assert!(each_once(&rig, many).await.is_empty());
    let [_, pages, blocks] = rows(&rig).await;
    assert!(pages > 1 && blocks > 1, "{pages} {blocks}");
    // It may have been answered.
    let unknown = rig.write(|tx| once(tx, "a-0")).await.expect_err("nothing is known of it");
    assert!(format!("{unknown:?}").contains("page 2 cannot be read"), "{unknown:?}");
    assert_eq!(*rig.health().borrow(), Health::Ok);
}

fn cutoffs(before: i64) -> Cutoffs {
    Cutoffs { history: WallTime(0), requests: WallTime(before) }
}

/// Makes a pass of the retention in steps of a few rows; returns their number.
async fn prune(rig: &Rig, before: i64) -> usize {
    let (mut cursor, mut steps) = (Cursor::default(), 0);
    loop {
        let from = cursor.clone();
        let step = rig.write(move |tx| {
            let requests = retention::old_requests(tx, cutoffs(before), &from, 3)?;
            Ok::<_, Failed>(retention::prune(tx, cutoffs(before), &from, requests, 3)?)
        });
        steps += 1;
        match step.await.expect("committed") {
            Some(next) => cursor = next,
            None => return steps,
        }
        assert!(steps < 1000, "{cursor:?}");
    }
}

#[tokio::test]
async fn old_pages_and_blocks_are_deleted_and_new_ones_are_not() {
    let rig = Rig::new();
    let many = ids("a", 1..71);
    each_once(&rig, many.clone()).await;
    each_once(&rig, ["x".to_owned()]).await;
    let time = rig.write(|tx| Ok::<_, Failed>(tx.now.wall.0)).await.expect("read");
    prune(&rig, time).await;
    assert_eq!(rows(&rig).await, [1, 6, 9], "they are not older than that");
    assert!(each_once(&rig, many.clone()).await.is_empty());
    assert!(prune(&rig, time + 1).await >= 3, "in steps of three");
    assert_eq!(rows(&rig).await, [0, 0, 0]);
    assert_eq!(each_once(&rig, many.clone()).await, many, "they are new again");
}

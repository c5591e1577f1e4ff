//! Search: which items an agent finds, and that the index can be lost, late or wrong without
//! showing an agent the mail of others.

use std::path::{Path, PathBuf};

use hive_core::id::QuestionId;
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::question::{Answer, Wording};
use rusqlite::Connection;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::engine::mail::search::{Hit, Search};
use crate::store::AgentKey;

const DAY: u64 = 86_400;
const MONTH: Duration = Duration::from_secs(30 * DAY);

fn search_for(query: &str) -> Search {
    Search { query: query.to_owned(), rows: 20, ..Search::default() }
}

/// Brings the index up to date.
async fn index(hive: &Hive) {
    while hive.engine().index_search().await.expect("the index is brought further") {}
}

async fn hits(hive: &Hive, who: &str, search: Search) -> Result<(Vec<Hit>, Option<u64>), Refusal> {
    hive.engine().search_messages(caller(who), search).await
}

/// Returns the numbers of the items that an agent finds.
async fn found(hive: &Hive, who: &str, query: &str) -> Vec<u64> {
    let (hits, next) = hits(hive, who, search_for(query)).await.expect("found");
    assert_eq!(next, None, "a test's hits fit on a page");
    hits.iter().map(Hit::id).collect()
}

/// Searches the mail of one agent.
async fn found_of(hive: &Hive, who: &str, agent: &str, query: &str) -> Result<Vec<u64>, Reason> {
    let search = Search { agent: agent.to_owned(), ..search_for(query) };
    let found = hits(hive, who, search).await.map_err(|refusal| refusal.reason())?;
    Ok(found.0.iter().map(Hit::id).collect())
}

async fn reason_of(hive: &Hive, who: &str, query: &str) -> Reason {
    hits(hive, who, search_for(query)).await.expect_err("refused").reason()
}

async fn send(hive: &Hive, from: &str, to: &str, body: &str) -> u64 {
    hive.send(from, to, body).await.get()
}

async fn ask(hive: &Hive, from: &str, to: &str, text: &str, options: &[&str]) -> QuestionId {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    let ask = Ask {
        to: recipient(to),
        wording: Wording { text: text.to_owned(), options, multi: false },
        ttl: None,
        effect: None,
        short: None,
    };
    hive.engine().ask(actor(from), hive.request("AskQuestion"), ask).await.expect("asked").0.id
}

fn index_path(hive: &Hive) -> PathBuf {
    hive.path().with_file_name("search.sqlite3")
}

/// Changes or asks the index behind the broker's back.
fn meddle(hive: &Hive, sql: &str) -> i64 {
    let conn = Connection::open(index_path(hive)).expect("the index is opened");
    conn.execute_batch(sql).expect("meddled");
    conn.query_row("SELECT count(*) FROM words", [], |row| row.get(0)).expect("counted")
}

#[tokio::test]
async fn mail_is_found_after_one_step_newest_first() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let first = send(&hive, "alice", "bob", "the release is ready").await;
    send(&hive, "alice", "bob", "something else").await;
    let second = send(&hive, "bob", "alice", "which release?").await;
    assert!(!hive.engine().index_search().await.expect("a step"), "three messages are one step");
    for who in ["alice", "bob", "operator"] {
        assert_eq!(found(&hive, who, "release").await, [second, first], "{who}");
    }
    let third = send(&hive, "operator", "bob", "a release at last").await;
    assert_eq!(found(&hive, "bob", "release").await, [second, first], "not yet");
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "release").await, [third, second, first]);
    assert_eq!(found(&hive, "alice", "release").await, [second, first]);
    assert_eq!(found(&hive, "operator", "nowhere").await, [0; 0]);
}

#[tokio::test]
async fn a_hit_is_the_message_as_it_is() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let sent = hive.send("alice", "*", "all hands").await;
    index(&hive).await;
    let (hits, _) = hits(&hive, "bob", search_for("hands")).await.expect("found");
    let whole = hive.engine().get_message(caller("operator"), sent).await.expect("there");
    assert_eq!((whole.broadcast, whole.recipient_count), (true, 2));
    assert_eq!(hits, [Hit::Message(whole)]);
}

#[tokio::test]
async fn case_and_accents_make_no_difference_and_words_phrases_and_beginnings_do() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let cafe = send(&hive, "alice", "bob", "Das CAFÉ öffnet").await;
    let decomposed = send(&hive, "alice", "bob", "the cafe\u{301} is open").await;
    let build = send(&hive, "alice", "bob", "the build of step-3 failed: see /tmp/log.txt").await;
    index(&hive).await;
    let hive = &hive;
    let found = |query: &'static str| async move { found(hive, "bob", query).await };
    assert_eq!(found("cafe").await, [decomposed, cafe]);
    assert_eq!(found("CAFÉ offnet").await, [cafe]);
    assert_eq!(found("build failed").await, [build], "all words, in any place");
    assert_eq!(found("failed build cafe").await, [0; 0], "all of them");
    assert_eq!(found("\"build failed\"").await, [0; 0], "a phrase is one piece");
    assert_eq!(found("\"the build of\"").await, [build]);
    assert_eq!(found("buil").await, [0; 0], "a word is a whole word");
    assert_eq!(found("buil* fa*").await, [build]);
    assert_eq!(found("step-3").await, [build]);
    assert_eq!(found("/tmp/log.txt").await, [build]);
    assert_eq!(found("build NOT failed").await, [0; 0], "there are no operators");
}

#[tokio::test]
async fn a_search_without_a_word_is_refused_with_an_example() {
    let hive = Hive::new(&["alice"]).await;
    index(&hive).await;
    for query in ["", "  ", "->", "\"\"", "*"] {
        let refusal = hits(&hive, "alice", search_for(query)).await.expect_err("refused");
        assert_eq!(refusal.reason(), Reason::FieldInvalid);
        assert!(
            refusal.to_string().starts_with("query: ") && refusal.to_string().contains("deplo*"),
            "{refusal}"
        );
    }
    assert_eq!(reason_of(&hive, "alice", &"x".repeat(257)).await, Reason::FieldInvalid);
    assert_eq!(found(&hive, "alice", &"x".repeat(256)).await, [0; 0]);
}

#[tokio::test]
async fn pages_go_on_where_the_last_one_ended() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut sent = Vec::new();
    for number in 0..150 {
        sent.push(send(&hive, "alice", "bob", &format!("hello {number}")).await);
    }
    index(&hive).await;
    sent.reverse();
    let (mut seen, mut before, mut sizes) = (Vec::new(), None, Vec::new());
    loop {
        let (hits, next) = hits(&hive, "bob", Search { before, rows: 40, ..search_for("hello") })
            .await
            .expect("found");
        sizes.push(hits.len());
        seen.extend(hits.iter().map(Hit::id));
        // New mail is added before the first page, and no other entry moves.
        send(&hive, "alice", "bob", "hello again").await;
        index(&hive).await;
        before = next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [40, 40, 40, 30]);
    assert_eq!(seen, sent);
}

#[tokio::test]
async fn a_page_fits_into_a_reply() {
    let third = PAGE_BYTES_MAX / 3;
    let limits = Limits {
        body_bytes_max: u32::try_from(PAGE_BYTES_MAX).expect("small"),
        ..Limits::default()
    };
    let hive = Hive::with_limits(&["alice", "bob"], limits).await;
    let mut sent = Vec::new();
    for _ in 0..7 {
        sent.push(send(&hive, "alice", "bob", &format!("hello {}", ".".repeat(third - 6))).await);
    }
    let mut steps = 1;
    while hive.engine().index_search().await.expect("a step") {
        steps += 1;
    }
    assert_eq!(steps, 7, "a step takes about a megabyte");
    let (first, next) = hits(&hive, "bob", search_for("hello")).await.expect("found");
    assert_eq!((first.len(), next), (3, Some(sent[4])));
    let (second, next) =
        hits(&hive, "bob", Search { before: next, ..search_for("hello") }).await.expect("found");
    assert_eq!((second[0].id(), second.len(), next), (sent[3], 3, Some(sent[1])));
}

#[tokio::test]
async fn an_agent_finds_its_sent_and_received_mail_and_nothing_else() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let secret = send(&hive, "alice", "bob", "the secret word").await;
    let own = send(&hive, "carol", "operator", "a secret of carol").await;
    index(&hive).await;
    assert_eq!(found(&hive, "alice", "secret").await, [secret]);
    assert_eq!(found(&hive, "bob", "secret").await, [secret]);
    assert_eq!(found(&hive, "carol", "secret").await, [own]);
    assert_eq!(found(&hive, "operator", "secret").await, [own, secret]);
    assert_eq!(found_of(&hive, "carol", "carol", "secret").await, Ok(vec![own]));
    assert_eq!(found_of(&hive, "carol", "bob", "secret").await, Err(Reason::NotYours));
    assert_eq!(
        found_of(&hive, "carol", "nobody", "secret").await,
        Err(Reason::NotYours),
        "not even whether there is one"
    );
    assert_eq!(found_of(&hive, "carol", "operator", "secret").await, Err(Reason::NotYours));
    assert_eq!(found_of(&hive, "operator", "bob", "secret").await, Ok(vec![secret]));
    assert_eq!(found_of(&hive, "operator", "operator", "secret").await, Ok(vec![own]));
    assert_eq!(found_of(&hive, "operator", "nobody", "secret").await, Err(Reason::AgentNotFound));
}

#[tokio::test]
async fn a_broadcast_is_found_by_its_recipients() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let all = send(&hive, "alice", "*", "all hands").await;
    hive.create("dave", None, Policy::default()).await;
    index(&hive).await;
    for who in ["alice", "bob", "carol", "operator"] {
        assert_eq!(found(&hive, who, "hands").await, [all], "{who}");
    }
    assert_eq!(found(&hive, "dave", "hands").await, [0; 0]);
    assert_eq!(found_of(&hive, "operator", "operator", "hands").await, Ok(vec![]));
}

#[tokio::test]
async fn the_index_only_proposes() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let sent = send(&hive, "alice", "bob", "the secret word").await;
    index(&hive).await;
    let AgentKey(key) = hive.row("carol").await.key;
    // An index that says it was carol's, and one that knows of mail that is not there.
    meddle(
        &hive,
        &format!(
            "DELETE FROM words; INSERT INTO words (rowid, body, who) VALUES ({sent}, 'secret', 'k{key}'), (99, 'secret', 'k{key}')"
        ),
    );
    assert_eq!(found(&hive, "carol", "secret").await, [0; 0]);
    assert_eq!(found(&hive, "operator", "secret").await, [sent]);
}

#[tokio::test]
async fn many_proposals_that_come_to_nothing_end_a_page_and_not_the_search() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "alice", "bob", "needle").await;
    index(&hive).await;
    meddle(
        &hive,
        "WITH RECURSIVE n (i) AS (VALUES (1000) UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
         INSERT INTO words (rowid, body, who) SELECT i, 'needle', 'k2' FROM n",
    );
    let (mut before, mut pages) = (None, 0);
    let last = loop {
        let (hits, next) = hits(&hive, "operator", Search { before, ..search_for("needle") })
            .await
            .expect("found");
        pages += 1;
        before = next;
        if before.is_none() {
            break hits;
        }
        assert_eq!(hits, []);
    };
    assert_eq!((pages, last.iter().map(Hit::id).collect::<Vec<_>>()), (2, vec![sent]));
}

#[tokio::test]
async fn a_question_is_found_once_by_the_two_and_the_operator() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let asked =
        ask(&hive, "alice", "bob", "which colour shall it be", &["deep blue", "bright red"]).await;
    index(&hive).await;
    for who in ["alice", "bob", "operator"] {
        for query in ["colour", "\"deep blue\"", "red which"] {
            assert_eq!(found(&hive, who, query).await, [asked.get()], "{who}: {query}");
        }
        assert_eq!(
            found(&hive, who, "\"be deep\"").await,
            [0; 0],
            "no phrase reaches into the options"
        );
        assert_eq!(found(&hive, who, "\"blue bright\"").await, [0; 0]);
    }
    assert_eq!(found(&hive, "carol", "colour").await, [0; 0]);
    let (hits, _) = hits(&hive, "alice", search_for("colour")).await.expect("found");
    let question = hive.engine().get_question(caller("alice"), asked).await.expect("there");
    assert_eq!(hits, [Hit::Question(question)]);
}

#[tokio::test]
async fn an_answer_is_found_by_its_recipients_and_the_question_shows_it() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let asked = ask(&hive, "alice", "bob", "which colour", &[]).await;
    index(&hive).await;
    let answer = Answer { choices: Vec::new(), text: "ultramarine".to_owned() };
    hive.engine()
        .answer(actor("bob"), hive.request("AnswerQuestion"), asked, answer.clone())
        .await
        .expect("answered");
    index(&hive).await;
    let (told, _) = hits(&hive, "alice", search_for("ultramarine")).await.expect("found");
    assert!(
        matches!(&told[..], [Hit::Message(message)] if message.question_id == Some(asked)),
        "{told:?}"
    );
    assert_eq!(found(&hive, "carol", "ultramarine").await, [0; 0]);
    let (hits, _) = hits(&hive, "bob", search_for("colour")).await.expect("found");
    assert!(
        matches!(&hits[..], [Hit::Question(question)] if question.answer == Some(answer)),
        "{hits:?}"
    );
}

#[tokio::test]
async fn a_retired_agents_mail_is_the_operators_until_its_name_is_adopted() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "alice", "bob", "for bob alone").await;
    index(&hive).await;
    hive.retire("bob").await;
    assert_eq!(reason_of(&hive, "bob", "alone").await, Reason::AgentRetired);
    assert_eq!(found_of(&hive, "operator", "bob", "alone").await, Ok(vec![sent]));
    let create = Create {
        name: name("bob"),
        parent: None,
        role: String::new(),
        model: String::new(),
        policy: Policy::default(),
        adopt: true,
    };
    hive.try_create(create).await.expect("adopted");
    assert_eq!(found(&hive, "bob", "alone").await, [sent]);
}

#[tokio::test]
async fn the_index_is_made_when_something_is_searched_first() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "operator", "alice", "hello").await;
    assert!(!hive.engine().is_search_used());
    let file = hive.path().with_file_name("search.sqlite3");
    assert!(!file.exists());
    let (found, _) = hits(&hive, "alice", search_for("hello")).await.expect("found at once");
    assert_eq!(found.iter().map(Hit::id).collect::<Vec<_>>(), [sent]);
    assert!(hive.engine().is_search_used() && file.exists());
    hive.restart().await;
    assert!(hive.engine().is_search_used(), "it is kept up to date from now on");
}

#[tokio::test]
async fn a_search_before_the_index_is_filled_says_so() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..700 {
        send(&hive, "operator", if number % 2 == 0 { "alice" } else { "bob" }, "hello").await;
    }
    // The first search makes the index; this one is rebuilt later.
    hits(&hive, "alice", search_for("hello")).await.expect("made");
    hive.engine().searching.forget();
    let refusal =
        hits(&hive, "alice", search_for("hello")).await.expect_err("nothing is there yet");
    assert_eq!(refusal.reason(), Reason::StorageUnavailable);
    assert!(refusal.retry_after().is_some(), "it is worth a retry");
    assert!(hive.engine().index_search().await.expect("a step"), "there is more");
    assert_eq!(
        reason_of(&hive, "alice", "hello").await,
        Reason::StorageUnavailable,
        "half of it would look like all of it"
    );
    assert!(!hive.engine().index_search().await.expect("a step"));
    assert_eq!(hits(&hive, "alice", search_for("hello")).await.expect("found").0.len(), 20);
    assert_eq!(meddle(&hive, ""), 700);
}

#[tokio::test]
async fn a_restart_goes_on_where_the_index_stood() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    send(&hive, "alice", "bob", "hello one").await;
    index(&hive).await;
    let late = send(&hive, "alice", "bob", "hello two").await;
    // Indexed mail is not read again; otherwise the row would return.
    meddle(&hive, "DELETE FROM words");
    hive.restart().await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [late]);
}

#[tokio::test]
async fn a_lost_or_damaged_index_is_built_again() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "alice", "bob", "hello").await;
    index(&hive).await;
    hive.restart_after(|dir| std::fs::remove_file(dir.join("search.sqlite3")).expect("removed"))
        .await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [sent]);
    hive.restart_after(|dir| {
        std::fs::write(dir.join("search.sqlite3"), "no database".repeat(1000)).expect("written");
    })
    .await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [sent]);
    // The copy that is left of a killed broker has none at all.
    hive.crash().await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [sent]);
}

#[tokio::test]
async fn damage_found_by_a_search_wakes_the_reconciler() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "alice", "bob", "hello").await;
    index(&hive).await;
    meddle(&hive, "UPDATE words_data SET block = x'0102' WHERE id > 10");
    assert_eq!(reason_of(&hive, "bob", "hello").await, Reason::StorageUnavailable);
    hive.engine().index_wanted().await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [sent]);
}

/// Puts a copy of a database in the place of the hive's.
fn put_back(copy: &Path, dir: &Path) {
    for file in ["hive.db-wal", "hive.db-shm"] {
        drop(std::fs::remove_file(dir.join(file)));
    }
    std::fs::copy(copy, dir.join("hive.db")).expect("put back");
}

fn backup(hive: &Hive, to: &Path) {
    let conn = Connection::open(hive.path()).expect("the database is opened");
    conn.execute("VACUUM INTO ?1", [to.to_str().expect("a plain path")]).expect("a backup");
}

#[tokio::test]
async fn an_older_or_other_database_gets_an_index_of_its_own() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let kept = send(&hive, "alice", "bob", "kept word").await;
    let place = directory();
    let copy = place.path().join("copy.db");
    backup(&hive, &copy);
    for _ in 0..3 {
        send(&hive, "alice", "bob", "lost word").await;
    }
    index(&hive).await;
    // Its newest message is older than the index.
    hive.restart_after(|dir| put_back(&copy, dir)).await;
    assert!(hive.engine().index_search().await.expect("a step"), "it is made anew");
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "word").await, [kept]);
    for _ in 0..3 {
        send(&hive, "alice", "bob", "lost word").await;
    }
    index(&hive).await;
    // The same ids were given to other messages before the index was checked.
    hive.restart_after(|dir| put_back(&copy, dir)).await;
    let mut other = vec![kept];
    for _ in 0..5 {
        other.insert(0, send(&hive, "alice", "bob", "other word").await);
    }
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "word").await, other);
    assert_eq!(found(&hive, "bob", "lost").await, [0; 0]);
    // A backup that is younger than the index is gone on with.
    meddle(&hive, &format!("DELETE FROM words WHERE rowid = {kept}"));
    send(&hive, "alice", "bob", "one more").await;
    backup(&hive, &place.path().join("younger.db"));
    hive.restart_after(|dir| put_back(&place.path().join("younger.db"), dir)).await;
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "more").await.len(), 1);
    assert_eq!(found(&hive, "bob", "kept").await, [0; 0], "it was not made anew");
}

#[tokio::test]
async fn pruned_mail_leaves_the_index_and_is_not_shown_before() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let old = hive.send("alice", "bob", "hello old").await;
    let unsettled = send(&hive, "alice", "bob", "hello unsettled").await;
    let asked = ask(&hive, "alice", "bob", "hello question", &[]).await;
    hive.decide("bob", old, Decision::Ack).await.expect("acked");
    index(&hive).await;
    hive.pass(31 * DAY);
    let new = send(&hive, "alice", "bob", "hello new").await;
    index(&hive).await;
    while hive.engine().sweep_retention(MONTH).await.expect("pruned") {}
    assert_eq!(found(&hive, "bob", "hello").await, [new, asked.get(), unsettled]);
    assert_eq!(meddle(&hive, ""), 4);
    while hive.engine().prune_search(MONTH).await.expect("taken out") {}
    assert_eq!(meddle(&hive, ""), 3);
    assert_eq!(found(&hive, "bob", "hello").await, [new, asked.get(), unsettled]);
    assert_eq!(found(&hive, "bob", "old").await, [0; 0]);
}

#[tokio::test]
async fn pruning_takes_small_steps_and_starts_again_after_the_last() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for round in 0..2 {
        let mut sent = Vec::new();
        for _ in 0..600 {
            sent.push(hive.send("operator", "bob", "hello").await);
        }
        for id in sent {
            hive.decide("bob", id, Decision::Ack).await.expect("acked");
        }
        index(&hive).await;
        assert_eq!(meddle(&hive, ""), 600, "round {round}");
        hive.pass(31 * DAY);
        while hive.engine().sweep_retention(MONTH).await.expect("pruned") {}
        assert!(hive.engine().prune_search(MONTH).await.expect("a step"), "there is more");
        assert_eq!(meddle(&hive, ""), 100);
        while hive.engine().prune_search(MONTH).await.expect("a step") {}
        assert_eq!(meddle(&hive, ""), 0);
    }
}

#[tokio::test]
async fn an_index_that_cannot_be_written_stops_no_send() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    hive.restart_after(|dir| {
        std::fs::create_dir(dir.join("search.sqlite3")).expect("something is in the way");
    })
    .await;
    let sent = send(&hive, "alice", "bob", "hello").await;
    assert_eq!(reason(hive.engine().index_search().await), Reason::StorageUnavailable);
    let refusal = hits(&hive, "alice", search_for("hello")).await.expect_err("there is no index");
    assert_eq!(refusal.reason(), Reason::StorageUnavailable);
    assert!(
        refusal.to_string().starts_with("search does not work now: ")
            && refusal.to_string().contains("search.sqlite3"),
        "{refusal}"
    );
    assert_eq!(hive.receive("bob", 1).await.len(), 1, "mail goes on");
    std::fs::remove_dir(index_path(&hive)).expect("out of the way");
    index(&hive).await;
    assert_eq!(found(&hive, "bob", "hello").await, [sent]);
}

#[tokio::test]
async fn more_searches_than_places_wait_for_each_other() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = send(&hive, "alice", "bob", "hello").await;
    index(&hive).await;
    let searches: Vec<_> = (0..32)
        .map(|_| {
            let engine = Arc::clone(hive.engine());
            tokio::spawn(
                async move { engine.search_messages(caller("bob"), search_for("hello")).await },
            )
        })
        .collect();
    for search in searches {
        let (hits, _) = done(search).await.expect("found");
        assert_eq!(hits.iter().map(Hit::id).collect::<Vec<_>>(), [sent]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_reconciler_finds_new_mail_within_a_second_and_ends_when_cancelled() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let before = send(&hive, "alice", "bob", "hello from before").await;
    let stop = CancellationToken::new();
    let reconciler = tokio::spawn(crate::task::search(Arc::clone(hive.engine()), stop.clone()));
    let mut expected = vec![before];
    for number in 0..3 {
        let start = Instant::now();
        while hits(&hive, "bob", search_for("hello")).await.map_or(0, |(hits, _)| hits.len())
            < expected.len()
        {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!(found(&hive, "bob", "hello").await, expected);
        expected.insert(0, send(&hive, "alice", "bob", &format!("hello {number}")).await);
    }
    stop.cancel();
    done(reconciler).await;
}

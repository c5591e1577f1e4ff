//! The writer's queue and the wake path: every order of steps that Shuttle comes up with, on a real
//! database.
//!
//! The code under test is the store's own, with Shuttle's channels, locks and threads in place of
//! tokio's. Invariant of each story: no reply before the commit, no waiter asleep beside its mail,
//! every caller answered exactly once.

mod stories;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hive_broker::store::{AgentKey, Step, Tx};
use hive_fault::Bug;

use stories::{AGENT, Failed, OTHER, Planted, Story, explore, give, say, take};

#[test]
fn no_reply_comes_before_its_commit() {
    explore(senders_are_answered_after_their_commits);
}

fn senders_are_answered_after_their_commits() {
    let story = Story::open();
    let senders = (0..3).map(|number| {
        let (store, commits) = (Arc::clone(&story.store), Arc::clone(&story.commits));
        shuttle::future::spawn(async move {
            for round in 0..2 {
                let body = format!("{number}.{round}");
                let text = body.clone();
                let command = move |tx: &Tx<'_>| say(tx, AGENT, &text);
                // The two ways on which answers come back.
                let told = match round {
                    0 => store.write(command).await,
                    _ => store.write_after_checks(command).await,
                };
                let told = told.expect("accepted");
                // The commit that made it durable was announced before the answer could be seen.
                assert!(commits.last_event() >= told, "answered before its commit");
                let seen =
                    store.read(move |conn, _| stories::heard(conn, &body)).await.expect("read");
                assert!(seen, "every reader sees an answered message");
            }
        })
    });
    let senders: Vec<_> = senders.collect();
    shuttle::future::block_on(async {
        for sender in senders {
            sender.await.expect("no panic");
        }
    });
    story.close();
}

#[test]
fn a_waiter_gets_mail_of_a_commit_before_or_after_it_registers() {
    explore(waiters_are_woken);
}

fn waiters_are_woken() {
    let story = Story::open();
    let waits = |agent: AgentKey| {
        let store = Arc::clone(&story.store);
        shuttle::future::spawn(async move { take(&store, agent).await })
    };
    let (first, second) = (waits(AGENT), waits(OTHER));
    let sends = |agent: AgentKey, body: &'static str| {
        let store = Arc::clone(&story.store);
        shuttle::future::spawn(async move { give(&store, agent, body).await })
    };
    let (one, two) = (sends(AGENT, "one"), sends(OTHER, "two"));
    // A waiter that is not woken never ends, which Shuttle reports as a deadlock.
    shuttle::future::block_on(async {
        assert_eq!(first.await.expect("no panic").expect("mail"), "one");
        assert_eq!(second.await.expect("no panic").expect("mail"), "two");
        one.await.expect("no panic").expect("accepted");
        two.await.expect("no panic").expect("accepted");
    });
    story.close();
}

#[test]
fn two_waiters_of_one_inbox_get_one_message_each_and_none_twice() {
    explore(|| {
        let story = Story::open();
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let store = Arc::clone(&story.store);
                shuttle::future::spawn(async move { take(&store, AGENT).await })
            })
            .collect();
        let store = Arc::clone(&story.store);
        let sender = shuttle::future::spawn(async move {
            for body in ["one", "two"] {
                give(&store, AGENT, body).await.expect("accepted");
            }
        });
        let mut got = Vec::new();
        shuttle::future::block_on(async {
            for waiter in waiters {
                got.push(waiter.await.expect("no panic").expect("mail"));
            }
            sender.await.expect("no panic");
        });
        got.sort_unstable();
        assert_eq!(got, ["one", "two"]);
        story.close();
    });
}

#[test]
fn a_waiter_that_is_cancelled_either_has_the_message_or_leaves_it() {
    explore(|| {
        let story = Story::open();
        let store = Arc::clone(&story.store);
        let sender = shuttle::future::spawn(async move { give(&store, AGENT, "one").await });
        let store = Arc::clone(&story.store);
        let waiter = shuttle::future::spawn(async move {
            let waiter = store.wait(AGENT, stories::look(AGENT)).await;
            match waiter.cancel().await {
                Some(found) => found.map(Some),
                None => Ok(None),
            }
        });
        let (found, left) = shuttle::future::block_on(async {
            sender.await.expect("no panic").expect("accepted");
            let found = waiter.await.expect("no panic").expect("no fault").flatten();
            (found, story.store.read(|conn, _| stories::untaken(conn)).await.expect("read"))
        });
        assert_eq!(
            u32::from(found.is_some()) + left,
            1,
            "taken by a caller that gets it, or still there: {found:?}, {left}"
        );
        story.close();
    });
}

#[test]
fn a_waiter_that_is_dropped_takes_nothing_that_is_sent_later() {
    explore(|| {
        let story = Story::open();
        let store = Arc::clone(&story.store);
        shuttle::future::block_on(async {
            drop(store.wait(AGENT, stories::look(AGENT)).await);
            give(&store, AGENT, "one").await.expect("accepted");
            // Its place is free: the next one gets the message.
            assert_eq!(take(&store, AGENT).await.expect("mail"), "one");
        });
        story.close();
    });
}

#[test]
fn queued_calls_are_answered_truthfully_when_the_store_closes() {
    explore(|| {
        let story = Story::open();
        let answered = Arc::new(AtomicU32::new(0));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (store, answered) = (Arc::clone(&story.store), Arc::clone(&answered));
                shuttle::future::spawn(async move {
                    if give(&store, AGENT, "one").await.is_ok() {
                        answered.fetch_add(1, Ordering::SeqCst);
                    }
                })
            })
            .collect();
        let store = Arc::clone(&story.store);
        let closer = shuttle::thread::spawn(move || store.close());
        shuttle::future::block_on(async {
            for sender in senders {
                sender.await.expect("no panic");
            }
        });
        closer.join().expect("no panic");
        let accepted = story.count_on_disk();
        assert_eq!(
            accepted,
            answered.load(Ordering::SeqCst),
            "accepted is on disk, and refused is not"
        );
    });
}

#[test]
fn a_fault_aborts_its_batch_and_no_caller_waits_for_ever() {
    explore(|| {
        let story = Story::open();
        let store = Arc::clone(&story.store);
        let waiter = shuttle::future::spawn(async move { take(&store, AGENT).await });
        let store = Arc::clone(&story.store);
        let faulty = shuttle::future::spawn(async move {
            store.write(|_| Err::<(), _>(stories::disk_full())).await
        });
        let store = Arc::clone(&story.store);
        let sender = shuttle::future::spawn(async move {
            // A caller does what the contract says: what is unknown is asked again.
            loop {
                match give(&store, AGENT, "one").await {
                    Err(Failed::Store(_)) => shuttle::future::yield_now().await,
                    other => return other,
                }
            }
        });
        shuttle::future::block_on(async {
            assert!(faulty.await.expect("no panic").is_err(), "the fault is reported");
            sender.await.expect("no panic").expect("accepted in the end");
            match waiter.await.expect("no panic") {
                // The command was queued while the database could not be used, and was refused.
                Err(Failed::Store(_)) => {
                    assert_eq!(take(&story.store, AGENT).await.expect("mail"), "one")
                }
                taken => assert_eq!(taken.expect("mail"), "one"),
            }
        });
        story.close();
    });
}

#[test]
fn a_reconciler_that_registers_before_it_reads_misses_nothing() {
    explore(|| {
        let story = Story::open();
        let (store, commits) = (Arc::clone(&story.store), Arc::clone(&story.commits));
        let reconciler = shuttle::future::spawn(async move {
            loop {
                let signal = commits.due.notified();
                if store.read(|conn, _| stories::untaken(conn)).await.expect("read") == 2 {
                    return;
                }
                signal.await;
            }
        });
        let store = Arc::clone(&story.store);
        let sender = shuttle::future::spawn(async move {
            for body in ["one", "two"] {
                give(&store, AGENT, body).await.expect("accepted");
            }
        });
        shuttle::future::block_on(async {
            sender.await.expect("no panic");
            reconciler.await.expect("no panic");
        });
        story.close();
    });
}

/// The hand of a simulation is not a second writer: it does nothing by itself.
#[test]
fn a_stepped_store_commits_only_at_a_step() {
    explore(|| {
        let (story, mut hand) = Story::by_hand();
        let store = Arc::clone(&story.store);
        let sender = shuttle::future::spawn(async move { give(&store, AGENT, "one").await });
        shuttle::thread::yield_now();
        assert_eq!(story.count_on_disk(), 0);
        let stepped = loop {
            match hand.step(8) {
                Step::Idle => shuttle::thread::yield_now(),
                stepped => break stepped,
            }
        };
        assert_eq!(stepped, Step::Batch { committed: true });
        shuttle::future::block_on(sender).expect("no panic").expect("accepted");
        assert_eq!(story.count_on_disk(), 1);
    });
}

/// The exploration can fail: a writer that replies before it commits is found.
#[test]
#[should_panic(expected = "answered before its commit")]
fn the_stories_find_a_reply_before_its_commit() {
    explore(|| {
        let _planted = Planted::new(Bug::ReplyBeforeCommit);
        senders_are_answered_after_their_commits();
    });
}

/// And so is one that forgets to wake.
#[test]
#[should_panic(expected = "deadlock")]
fn the_stories_find_a_lost_hint() {
    explore(|| {
        let _planted = Planted::new(Bug::LostWake);
        waiters_are_woken();
    });
}

/// And a caller that runs a batch and leaves what others have queued in the meantime.
#[test]
#[should_panic(expected = "deadlock")]
fn the_stories_find_an_item_that_a_caller_leaves_behind() {
    explore(|| {
        let _planted = Planted::new(Bug::LeftQueued);
        senders_are_answered_after_their_commits();
    });
}

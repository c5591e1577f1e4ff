//! Memory: what the broker caches while it works, it frees once nothing is written.

use hive_tests::rig::{Rig, soon};

/// Messages that fill the cache of the writer, each of this many bytes.
const MESSAGES: usize = 100;
const BYTES: usize = 30_000;
/// Part of the cache that has to go, in KiB. The cache is 1,792 KiB.
const FREED: u64 = 1024;

/// Returns the memory of the broker's SQLite, in KiB: the heap of the C library, which all threads
/// share.
fn heap(rig: &mut Rig) -> u64 {
    let pid = rig.broker().pid().as_raw_nonzero();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/smaps")).expect("the broker runs");
    let heap = maps.lines().skip_while(|line| !line.ends_with("[heap]"));
    let resident = heap.skip(1).find_map(|line| line.strip_prefix("Rss:"));
    let number = resident.and_then(|line| line.split_whitespace().next()).expect("a heap");
    number.parse().expect("a number")
}

#[tokio::test]
async fn an_idle_broker_frees_what_it_has_cached() {
    let mut rig = Rig::duo().await;
    let operator = rig.operator().await;
    let (body, mut most) = ("x".repeat(BYTES), 0);
    for _ in 0..MESSAGES {
        operator.send("bob", &body).await;
        most = most.max(heap(&mut rig));
    }
    // There is no signal for it. A call in between leaves the broker time.
    let freed = async {
        while heap(&mut rig) + FREED > most {
            operator.get_agent("bob").await;
        }
    };
    soon(&format!("a MiB of {most} KiB is freed"), freed).await;
    assert_eq!(operator.send("bob", "afterwards").await, MESSAGES as u64 + 1);
}

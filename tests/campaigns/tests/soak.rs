//! A slice of the soak: 20 agents for less than a minute, with a restart of the broker, of
//! harnesses, and a guest. Nothing is lost, and files, processes and sizes are flat; delays are for
//! the long run.
//!
//! Invariant: it runs what `soak` runs, for a shorter time.

use std::time::Duration;

use hive_campaigns::soak::{self, Options};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_minute_of_twenty_agents_is_flat_and_loses_nothing() {
    let options = Options {
        span: Duration::from_secs(45),
        workers: 16,
        players: 4,
        rate: 4,
        sample_every: Duration::from_secs(2),
        restart_every: Duration::from_secs(15),
        day: Duration::from_secs(5),
        change_every: Duration::from_secs(8),
        seed: 11,
        judge_delays: false,
    };
    let outcome = soak::run(&options, |_| {}).await;
    assert!(
        outcome.violations.is_empty(),
        "seed {}: {:#?}\n{:#?}",
        options.seed,
        outcome.violations,
        outcome.judged
    );
    let done = |name: &str| outcome.figures.get(name).copied().unwrap_or_default();
    assert!(outcome.deeds > 20, "{outcome:?}");
    assert!(
        outcome.judged.iter().any(|judged| judged.counts),
        "{} samples show nothing",
        outcome.samples.len()
    );
    for name in [
        "broker restarted",
        "harnesses restarted",
        "guests came",
        "messages to workers",
        "messages between players",
    ] {
        assert!(done(name) > 0, "none of {name}: {:?}", outcome.figures);
    }
}

//! A slice of the leaves; `make leaves` runs a thousand tries.

use hive_campaigns::leaves::{self, AFTER, BEFORE, ENDING, LEAVING, Options, Outcome};

/// The first seed, and the last one that is tried for a moment that no try has hit.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=10;

#[tokio::test(flavor = "multi_thread")]
async fn no_mail_waits_that_comes_as_a_harness_leaves() {
    let mut outcome = Outcome::default();
    for seed in SEEDS {
        outcome.add(leaves::run(&Options { tries: 20, hives: 2, seed }).await);
        assert_eq!(outcome.violations, [""; 0]);
        let hits = |moment: &str| outcome.figures.contains_key(moment);
        if hits(BEFORE) && (hits(LEAVING) || hits(ENDING)) && hits(AFTER) {
            return;
        }
    }
    panic!("the moments are missed: {:?}", outcome.figures);
}

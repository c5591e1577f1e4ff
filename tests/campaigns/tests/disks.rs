//! A short slice of the campaign on failing disks; `make disks` continues after its last seed.

use hive_campaigns::disks::{self, Options};

#[tokio::test(flavor = "multi_thread")]
async fn sixty_runs_keep_every_receipt() {
    let outcome = disks::run(&Options { runs: 60, seed: 0 }, |_, _| {}).await;
    assert_eq!(outcome.found, [""; 0]);
    assert!(outcome.figures["sends answered unknown"] > 20, "{:?}", outcome.figures);
    assert!(outcome.figures["kills and power cuts"] > 20, "{:?}", outcome.figures);
    assert!(outcome.figures["receipts"] > 500, "{:?}", outcome.figures);
}

//! The units themselves: systemd finds no fault in them, and they give their programs few rights.

use crate::bed::Bed;

const UNITS: [&str; 3] = ["hived.service", "hived.socket", "hive@ada.service"];

#[tokio::test]
async fn systemd_finds_no_fault_in_the_units() {
    let Some(bed) = Bed::boot("").await else { return };
    for unit in UNITS {
        // The manuals are not installed here.
        assert_eq!(bed.run(&["systemd-analyze", "verify", "--man=no", unit]).await, "", "{unit}");
    }
    bed.end().await;
}

/// Thresholds in tenths, as `systemd-analyze` takes them.
#[tokio::test]
async fn the_services_have_few_rights() {
    let Some(bed) = Bed::boot("").await else { return };
    for (unit, threshold) in [("hived.service", "15"), ("hive@ada.service", "25")] {
        let threshold = format!("--threshold={threshold}");
        let words =
            ["systemd-analyze", "security", "--offline=true", "--no-pager", &threshold, unit];
        bed.run(&words).await;
    }
    bed.end().await;
}

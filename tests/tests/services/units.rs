//! The units themselves: systemd finds no fault in them, and they give their programs few rights.

use crate::bed::Bed;
use crate::nixos::rendered;

const UNITS: [&str; 4] =
    ["hived.service", "hived.socket", "hive@ada.service", "hive-launcher.service"];

#[tokio::test]
async fn systemd_finds_no_fault_in_the_units() {
    let Some(bed) = Bed::boot("").await else { return };
    for unit in UNITS {
        // The manuals are not installed here.
        assert_eq!(bed.run(&["systemd-analyze", "verify", "--man=no", unit]).await, "", "{unit}");
    }
    bed.end().await;
}

/// Has `systemd-analyze` find at most this exposure, in tenths.
async fn at_most(bed: &Bed, unit: &str, tenths: u32) {
    let threshold = format!("--threshold={tenths}");
    let words = ["systemd-analyze", "security", "--offline=true", "--no-pager", &threshold, unit];
    bed.run(&words).await;
}

#[tokio::test]
async fn the_services_have_few_rights() {
    let Some(bed) = Bed::boot("").await else { return };
    at_most(&bed, "hived.service", 15).await;
    at_most(&bed, "hive-launcher.service", 15).await;
    at_most(&bed, "hive@ada.service", 25).await;
    // With sudo it needs the capabilities of the root of its container.
    let drop_in = "hive@ada.service.d/overrides.conf";
    bed.run(&["mkdir", "/etc/systemd/system/hive@ada.service.d"]).await;
    let text = &rendered("a_container_with_sudo")[&format!("hive-ada: {drop_in}")];
    assert!(text.contains("NoNewPrivileges=false"), "{text}");
    bed.write(&format!("/etc/systemd/system/{drop_in}"), text);
    at_most(&bed, "hive@ada.service", 45).await;
    bed.end().await;
}

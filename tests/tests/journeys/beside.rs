//! `hive` beside an agent: what a program there publishes, and the bridge under its other name.

use hive_tests::rig::Rig;

use crate::steps::{handled, rule, text, tool};

#[tokio::test]
async fn a_set_published_from_stdin_is_shown_to_claude() {
    let mut rig = Rig::duo().await;
    rig.start_harness(
        "bob",
        &[rule("", vec![tool("get_loose_ends", serde_json::json!({})), text("Done.")])],
    );
    let operator = rig.operator().await;
    for (stdin, shown) in [
        ("pr-7\treview of the parser\n\npr-9\tmerge\n", ["pr-7", "pr-9"].as_slice()),
        ("pr-9\tmerge\n", &["pr-9"]),
        ("", &[]),
    ] {
        let said = rig.hive("bob", &["publish", "--from", "forge"], stdin).await;
        assert_eq!((said.code, said.stdout.as_str()), (0, ""), "{said:?}");
        let keys: Vec<String> =
            operator.loose_ends("bob").await.into_iter().map(|loose_end| loose_end.key).collect();
        assert_eq!(keys, shown);
        handled(&rig, &operator, "bob", "What is open?").await;
    }
    let results = rig.tool_results("bob");
    assert!(
        results[0].contains("review of the parser") && !results[2].contains("merge"),
        "{results:?}"
    );
    for (args, stdin, code, says) in [
        (["publish", "--from", "forge"], "no tab\n", 2, "line 1 has no tab"),
        (["publish", "--from", "ada"], "k\tt\n", 1, "is the name of an agent"),
        (["publish", "--from", "operator"], "", 2, "reserved"),
        (["publish", "--from", "forge"], "k\tt\nk\tu\n", 1, "FIELD_INVALID"),
    ] {
        let said = rig.hive("bob", &args, stdin).await;
        assert!(said.code == code && said.stderr.contains(says), "{says}: {said:?}");
    }
    rig.end().await;
}

#[tokio::test]
async fn hive_mcp_is_the_bridge() {
    let rig = Rig::duo().await;
    let said = rig.hive("bob", &["mcp", "--version"], "").await;
    assert!(said.code == 0 && said.stdout.starts_with("hive-mcp "), "{said:?}");
    rig.end().await;
}

//! An agent that is created while `hivectl up` runs: it has a sandbox of the same kind, and none of
//! the grants of other agents.

use hive_proto::v1::EventKind;
use hive_tests::rig::Rig;

use super::hive::{Hive, shell};
use super::installed::Installed;

native!(an_agent_that_is_created_at_run_time_is_isolated);

async fn an_agent_that_is_created_at_run_time_is_isolated(installed: Installed) {
    let mut hive = Hive::start(installed, "writable = [\"~/project\"]", async |rig: &Rig| {
        rig.user_file("operator/project/a.txt", "of the project", 0o644);
        rig.user_file("agents/ada/state/note", "of ada", 0o644);
    })
    .await;
    let said = hive.rig().hivectl(&["agent", "create", "eve", "--parent", "ada"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    hive.watch.kind("eve", EventKind::HarnessAttached).await;
    let (project, note) = (hive.text("operator/project/a.txt"), hive.text("agents/ada/state/note"));
    let task = format!("cat {project} {note}; echo kept >~/kept; ls {}", hive.text("agents"));
    let answers = hive.calls_of("eve", "look around", [shell(&task)]).await;
    let [(words, false)] = &answers[..] else { panic!("{answers:?}") };
    assert!(
        words.contains("\neve") && !words.contains("of the project") && !words.contains("of ada"),
        "{words}"
    );
    assert_eq!(hive.rig().read("agents/eve/home/kept"), "kept\n");
    hive.and("eve");
    hive.end().await;
}

//! A project that the agent may write in: claude's own tools, the programs of shell tasks, and what
//! both do not see.

use hive_tests::api::Reply;
use hive_tests::rig::Rig;
use serde_json::json;

use super::hive::{Hive, shell};
use super::installed::Installed;

every!(files_of_a_project_are_changed_and_others_are_not_seen);

async fn files_of_a_project_are_changed_and_others_are_not_seen(installed: Installed) {
    let mut hive = Hive::start(installed, "writable = [\"~/project\"]", async |rig: &Rig| {
        rig.user_file("operator/project/src/a.txt", "one\n", 0o644);
        rig.user_file("operator/.ssh/id_ed25519", "a key", 0o600);
        rig.user_file("operator/other/b.txt", "private", 0o644);
    })
    .await;
    let (old, new) =
        (hive.text("operator/project/src/a.txt"), hive.text("operator/project/new.txt"));
    let outside = hive.text("operator/other/b.txt");
    let read = |path: &str| Reply::tool("Read", json!({ "file_path": path }));
    let task = format!(
        "cat {old}; echo task >>{new}; cat {outside} ~/../../../operator/.ssh/id_ed25519; ls -A {}",
        hive.text("operator")
    );
    let answers = hive
        .calls(
            "change the project",
            [
                read(&old),
                Reply::tool(
                    "Edit",
                    json!({ "file_path": old, "old_string": "one", "new_string": "two" }),
                ),
                Reply::tool("Write", json!({ "file_path": new, "content": "three\n" })),
                read(&outside),
                read(&hive.text("operator/.ssh/id_ed25519")),
                Reply::tool("Write", json!({ "file_path": outside, "content": "mine now" })),
                Reply::tool(
                    "Write",
                    json!({ "file_path": hive.text("operator/more.txt"), "content": "mine" }),
                ),
                shell(&task),
            ],
        )
        .await;
    let failed: Vec<bool> = answers.iter().map(|(_, failed)| *failed).collect();
    assert_eq!(failed, [false, false, false, true, true, true, true, false], "{answers:?}");
    assert!(answers[3].0.contains("does not exist"), "{answers:?}");
    let task = &answers[7].0;
    assert!(task.contains("two") && !task.contains("private") && !task.contains("a key"), "{task}");
    assert!(!task.contains("\nother"), "{task}");
    for (name, text) in [
        ("project/src/a.txt", "two\n"),
        ("project/new.txt", "three\ntask\n"),
        ("other/b.txt", "private"),
    ] {
        let path = hive.rig().path("operator").join(name);
        assert_eq!(std::fs::read_to_string(&path).expect("a file"), text, "{name}");
        let (user, _) = hive.rig().user();
        assert_eq!(
            std::os::unix::fs::MetadataExt::uid(&path.metadata().expect("a file")),
            user,
            "{name}"
        );
    }
    assert!(!hive.rig().path("operator/more.txt").exists());
    hive.end().await;
}

//! What the approval of an action stands for: the lines of the preview that the operator has read,
//! and the command as it is now.

use hive_proto::v1::{AskQuestionResponse, EventKind};
use hive_tests::rig::call::done;
use hive_tests::rig::{Rig, Said};

use super::{channel, hive, request, shown, start};

/// Asks for an action as ada; returns the question, its id and its digest.
async fn asked(rig: &Rig, action: &str) -> (AskQuestionResponse, u64, String) {
    let asked: AskQuestionResponse = done(&channel(rig, "ada").await, &request(action)).await;
    let question = asked.question.clone().expect("a question");
    (asked, question.id, question.approval.expect("an approval").diff_digest)
}

async fn approve(rig: &Rig, id: u64, digest: &str) -> Said {
    let id = id.to_string();
    rig.hivectl(&["answer", &id, "--choice", "approve", "--diff", digest]).await
}

/// Asserts that a digest approves nothing.
async fn is_refused(rig: &Rig, id: u64, digest: &str) {
    let said = approve(rig, id, digest).await;
    assert!(said.code == 5 && said.stderr.contains("DIFF_CHANGED"), "{said:?}");
}

async fn is_approved(rig: &Rig, id: u64, digest: &str) {
    let mut watch = rig.watch_from_now().await;
    let said = approve(rig, id, digest).await;
    assert_eq!(said.code, 0, "{said:?}");
    let ended = watch.kind("ada", EventKind::ActionEnded).await;
    assert_eq!((ended.question_id, ended.detail.as_str()), (id, "diff: exit status: 0"));
}

#[tokio::test]
async fn the_digest_of_one_preview_approves_no_other() {
    let mut rig = hive(&[("diff", 60, "echo run >> runs\ncat now\n")]).await;
    let mut both = Vec::new();
    for now in ["one", "two"] {
        std::fs::write(rig.path("now"), now).expect("written");
        both.push(asked(&rig, "diff").await);
    }
    let [(one, id, digest), (two, other_id, other_digest)] = &both[..] else { panic!("two") };
    assert!(id != other_id && digest != other_digest);
    is_refused(&rig, *id, other_digest).await;
    is_refused(&rig, *other_id, digest).await;
    // A preview runs when its action is asked for, and at no other time.
    assert_eq!(
        (shown(&rig, one).await, shown(&rig, two).await),
        (vec!["one".to_owned()], vec!["two".to_owned()])
    );
    assert_eq!(rig.read("runs"), "run\nrun\n");

    // The digest stands for the lines, too: of other lines it approves nothing.
    rig.stop_broker().await;
    {
        let database = rusqlite::Connection::open(rig.path("state/hive.db")).expect("the database");
        let sql =
            "UPDATE question SET effect = replace(effect, '\"two\"', '\"all\"') WHERE id = ?1";
        let changed = database.execute(sql, [i64::try_from(*other_id).expect("an id")]);
        assert_eq!(changed.expect("changed"), 1);
    }
    start(&mut rig).await;
    assert_eq!(shown(&rig, two).await, ["all"]);
    is_refused(&rig, *other_id, other_digest).await;
    // The one that was left alone is what was read before the restart.
    is_approved(&rig, *id, digest).await;
    assert_eq!(rig.read("runs"), "run\nrun\n");
    rig.end().await;
}

#[tokio::test]
async fn a_command_that_changed_after_it_was_shown_is_shown_again() {
    let mut rig = hive(&[("diff", 60, "echo run >> runs\necho seen\n")]).await;
    let (question, id, digest) = asked(&rig, "diff").await;
    rig.stop_broker().await;
    rig.configure(&rig.read("hive.toml").replace("/bin/true", "/bin/echo"));
    start(&mut rig).await;
    is_refused(&rig, id, &digest).await;
    let text = rig.hivectl(&["questions", "show", &id.to_string()]).await.stdout;
    assert!(text.contains("+ command: /bin/echo"), "{text}");
    assert_eq!(
        (shown(&rig, &question).await, rig.read("runs")),
        (vec!["seen".to_owned()], "run\n".to_owned())
    );
    let now = rig.operator().await.question(id).await.approval.expect("an approval").diff_digest;
    assert_ne!(now, digest);
    is_approved(&rig, id, &now).await;
    rig.end().await;
}

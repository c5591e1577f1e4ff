//! A large conversation that has gone cold is replaced: the first prompt of the new one names the
//! file of the old one.

use std::path::{Path, PathBuf};

use hive_proto::v1::TurnKind;
use hive_tests::api::{Recorded, Reply, Script, Usage};

use crate::stage::Stage;
use hive_tests::rig::Mode;

both!(a_cold_conversation_is_replaced, notes_may_be_asked_for_before);

/// A stage where a conversation of 2000 tokens is large, and cold a second after.
async fn cold(mode: Mode) -> Stage {
    let small = Reply::text("Done.").using(Usage::context(1000));
    let large = Reply::text("Done.").using(Usage::context(2000));
    let mut stage =
        Stage::in_mode(mode, Script::new().when("grow", [large]).when("", [small])).await;
    stage.set_env("HIVE_AUTO_RESET_WATERMARK_TOKENS", "2000");
    stage.set_env("HIVE_CACHE_TTL_SECS", "0");
    stage
}

fn conversations(stage: &Stage) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(stage.rig.path("agents/ada/home/.claude/projects"))
        .expect("claude's files")
        .flatten();
    let files =
        folders.flat_map(|folder| std::fs::read_dir(folder.path()).expect("a directory").flatten());
    files
        .map(|file| file.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect()
}

/// The prompt names this file, and the conversation begins with it.
fn is_new(request: &Recorded, old: &Path) {
    assert!(request.prompt.contains("A new conversation starts here"), "{}", request.prompt);
    assert!(request.prompt.contains(&*old.to_string_lossy()), "{}", request.prompt);
    let messages = request.body["messages"].as_array().expect("messages");
    assert!(!messages.iter().any(|message| message["role"] == "assistant"), "{messages:#?}");
}

async fn a_cold_conversation_is_replaced(mode: Mode) {
    let mut stage = cold(mode).await;
    stage.start();
    stage.send("small talk").await;
    stage.ok().await;
    let grown = stage.send("grow").await;
    stage.ok().await;
    assert!(stage.last_request_of(grown).mentions("| small talk\n"), "small and cold is no reason");
    let [old] = &conversations(&stage)[..] else {
        panic!("one conversation: {:?}", conversations(&stage))
    };
    assert!(std::fs::read_to_string(old).expect("a file").contains("small talk"));

    let next = stage.send("good morning").await;
    stage.ok().await;
    is_new(&stage.last_request_of(next), old);
    assert_eq!(conversations(&stage).len(), 2);
    // The new conversation is small, and continues.
    let last = stage.send("good evening").await;
    stage.ok().await;
    let last = stage.last_request_of(last);
    assert!(
        last.mentions("| good morning\n") && !last.prompt.contains("A new conversation starts"),
        "{:#}",
        last.body["messages"]
    );
    assert_eq!(conversations(&stage).len(), 2);
    stage.end().await;
}

async fn notes_may_be_asked_for_before(mode: Mode) {
    let mut stage = cold(mode).await;
    stage.set_env("HIVE_AUTO_RESET_CHECKPOINT", "true");
    stage.start();
    stage.send("grow").await;
    stage.ok().await;
    let [old] = &conversations(&stage)[..] else {
        panic!("one conversation: {:?}", conversations(&stage))
    };

    let next = stage.send("good morning").await;
    let turn = stage.ok().await;
    assert_eq!((turn.kind(), turn.message_id), (TurnKind::Mail, next), "{turn:?}");
    assert_eq!(
        turn.usage.as_ref().map(|usage| usage.inference_count),
        Some(2),
        "notes and work are one turn: {turn:?}"
    );
    let recorded = stage.api.recorded();
    let [_, notes, work] = &recorded[..] else { panic!("{} requests", recorded.len()) };
    assert!(
        notes.prompt.starts_with("Hive asks for your notes")
            && notes.prompt.contains("left behind"),
        "{}",
        notes.prompt
    );
    assert!(
        notes.mentions("| grow\n") && !notes.mentions("good morning"),
        "{:#}",
        notes.body["messages"]
    );
    is_new(work, old);
    stage.end().await;
}

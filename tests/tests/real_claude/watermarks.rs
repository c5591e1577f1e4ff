//! A conversation that has become large is kept small: notes, then a compaction, each a turn of its
//! own behind the one that filled it.

use hive_proto::v1::{Turn, TurnKind, TurnOutcome};
use hive_tests::api::{Kind, Reply, Script, Usage};

use crate::stage::{Stage, count};
use hive_tests::rig::Mode;

both!(
    a_full_conversation_is_noted_down_and_compacted,
    a_compaction_that_fails_takes_nothing_and_waits
);

/// A turn whose conversation has this many tokens.
fn large(tokens: u64) -> Reply {
    Reply::text("Done.").using(Usage::context(tokens))
}

fn shape(turn: &Turn) -> (TurnKind, TurnOutcome, u64) {
    (turn.kind(), turn.outcome(), turn.message_id)
}

async fn a_full_conversation_is_noted_down_and_compacted(mode: Mode) {
    let script = Script::new()
        .when("a long story", [large(50_000)])
        .compacting([Reply::text("<summary>A story.</summary>")]);
    let mut stage = Stage::in_mode(mode, script).await;
    stage.set_env("HIVE_COMPACT_WATERMARK_TOKENS", "40000");
    stage.start();
    stage.send("small talk").await;
    stage.ok().await;
    let story = stage.send("a long story").await;
    assert_eq!(stage.ok().await.context_tokens, 50_000);
    let (notes, compaction) = (stage.ok().await, stage.ok().await);
    assert_eq!(shape(&notes), (TurnKind::Checkpoint, TurnOutcome::Ok, 0));
    assert_eq!(shape(&compaction), (TurnKind::Compact, TurnOutcome::Ok, 0));
    assert!(compaction.compacted && !notes.compacted, "{compaction:?}");
    for turn in [&notes, &compaction] {
        let usage = turn.usage.as_ref().expect("it says what it used");
        assert!(usage.cost_micro_usd > 0, "{turn:?}");
    }
    let asked = stage
        .api
        .recorded()
        .into_iter()
        .find(|request| request.prompt.starts_with("Hive asks for your notes"));
    assert_eq!(count(&asked.expect("the agent was asked for notes"), "| a long story\n"), 1);
    // The conversation continues after the summary.
    let next = stage.send("and now").await;
    stage.ok().await;
    let last = stage.last_request_of(next);
    assert!(
        last.mentions("A story.") && !last.mentions("| a long story\n"),
        "{:#}",
        last.body["messages"]
    );
    assert_eq!(
        (stage.turns().await.len(), stage.api.count(Kind::Compaction)),
        (5, 1),
        "nothing else was done"
    );
    assert_eq!(stage.requests_of(story).len(), 1);
    stage.end().await;
}

async fn a_compaction_that_fails_takes_nothing_and_waits(mode: Mode) {
    let script = Script::new().when("a story", [large(50_000)]).compacting([Reply::too_long()]);
    let mut stage = Stage::in_mode(mode, script).await;
    stage.set_env("HIVE_COMPACT_WATERMARK_TOKENS", "40000");
    stage.start();
    let story = stage.send("a story").await;
    assert_eq!(shape(&stage.ok().await), (TurnKind::Mail, TurnOutcome::Ok, story));
    assert_eq!(shape(&stage.ok().await), (TurnKind::Checkpoint, TurnOutcome::Ok, 0));
    let failed = stage.turn().await;
    assert_eq!(shape(&failed), (TurnKind::Compact, TurnOutcome::Failed, 0), "{failed:?}");
    assert!(failed.error.contains("Compaction failed") && !failed.compacted, "{failed:?}");
    // The conversation is as large as before, and a compaction is not paid for again.
    let tries = stage.api.count(Kind::Compaction);
    for body in ["a story again", "a story once more"] {
        stage.send(body).await;
        stage.ok().await;
    }
    assert_eq!((stage.turns().await.len(), stage.api.count(Kind::Compaction)), (5, tries));
    let agent = stage.operator.get_agent("ada").await;
    assert!(agent.park.is_none(), "{agent:?}");
    assert!(stage.operator.deliveries("operator", &[]).await.is_empty(), "no agent is notified");
    stage.end().await;
}

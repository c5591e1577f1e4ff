//! Runs approved actions, one at a time.
//!
//! Invariant: the next action begins only after the end of the last one is stored. A broker that
//! ends in between runs it again.

use std::sync::Arc;

use hive_core::limits::OUTPUT_TAIL_BYTES_MAX;
use tokio_util::sync::CancellationToken;

use super::RETRY_PAUSE;
use crate::engine::Engine;
use crate::engine::action::{Ended, Run};
use crate::engine::background::ACTIONS;
use crate::program::{self, Program, RunError};

/// Runs actions until `stop`. A run that has not ended then is ended, and begins again after the
/// next start of the broker.
pub async fn actions(engine: Arc<Engine>, stop: CancellationToken) {
    loop {
        let signal = engine.hints().actions.notified();
        let next = engine.next_action().await;
        match next {
            Ok(Some(run)) => {
                engine.task_succeeded(ACTIONS);
                let question = run.question;
                tracing::info!(action = run.action, agent = run.agent, id = %question, "an approved action begins");
                let Some(ended) = stop.run_until_cancelled(carry_out(run)).await else { return };
                tracing::info!(id = %question, how = ended.how, "an approved action has ended");
                // Retried: an action whose end is not stored would run again.
                while let Err(error) = engine.end_action(question, ended.clone()).await {
                    engine.task_failed(ACTIONS, &error);
                    let pause = tokio::time::sleep(RETRY_PAUSE);
                    if stop.run_until_cancelled(pause).await.is_none() {
                        return;
                    }
                }
            }
            Ok(None) => {
                engine.task_succeeded(ACTIONS);
                if stop.run_until_cancelled(signal).await.is_none() {
                    return;
                }
            }
            Err(error) => {
                engine.task_failed(ACTIONS, &error);
                let pause = tokio::time::sleep(RETRY_PAUSE);
                if stop.run_until_cancelled(pause).await.is_none() {
                    return;
                }
            }
        }
    }
}

async fn carry_out(run: Run) -> Ended {
    let Run { question, action, agent, argv, timeout } = run;
    let program = argv.first().cloned().unwrap_or_default();
    let mut env = program::for_action(&action, &agent);
    env.push(("HIVE_ACTION_QUESTION".into(), question.to_string().into()));
    let run = Program {
        words: &argv,
        env,
        input: String::new(),
        limit: timeout,
        output_bytes_max: OUTPUT_TAIL_BYTES_MAX,
    };
    let failed = |how: String| Ended { is_well: false, how, output: String::new() };
    match run.run().await {
        Err(RunError::Start(error)) => failed(format!("`{program}` cannot be started: {error}")),
        Err(RunError::Lost(error)) => failed(format!("`{program}` was lost: {error}")),
        Ok(ended) => {
            let is_well = ended.in_time && ended.status.success();
            let how = if ended.in_time {
                ended.status.to_string()
            } else {
                format!("it did not end within {} s and was killed", timeout.as_secs())
            };
            Ended { is_well, how, output: ended.output().await }
        }
    }
}

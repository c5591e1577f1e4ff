//! The driver of the Rust client: reads verbs of the conformance suite, and writes what came of
//! them.

#![expect(clippy::print_stdout, reason = "its results are its output")]

mod verbs;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    println!("{}", json!({"kit": "rust", "version": env!("CARGO_PKG_VERSION")}));
    let objects = Arc::new(verbs::Objects::default());
    let (mut running, mut tasks) = (HashMap::<u64, CancellationToken>::new(), JoinSet::new());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let id = request["id"].as_u64().unwrap_or(0);
        let (objects, cancel) = (Arc::clone(&objects), CancellationToken::new());
        if let Some(cancel) = request["args"]["request"].as_u64().and_then(|id| running.get(&id)) {
            cancel.cancel();
        }
        running.insert(id, cancel.clone());
        tasks.spawn(async move {
            let verb = request["verb"].as_str().unwrap_or_default();
            // To drop the future cancels the call.
            let done = tokio::select! {
                done = objects.verb(verb, &request["args"]) => done,
                () = cancel.cancelled() => Err(json!({"code": "CANCELLED"})),
            };
            println!(
                "{}",
                match done {
                    Ok(answer) => json!({"id": id, "ok": answer}),
                    Err(error) => json!({"id": id, "error": error}),
                }
            );
        });
    }
    Ok(())
}

//! Kills the broker again and again while a kit sends and takes mail.
//!
//! Invariant: every message that was accepted is handed out once, and acked, and the broker has as
//! many messages as the kit has receipts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, ensure};
use hive_tests::rig::Rig;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::kit::Kit;
use crate::task::Task;
use crate::wire;

const CONFIG: &str = "[hive]\nname = \"kills\"\n[broker.limits]\nsends_per_minute_max = 1000000\n\
     [agents.ada]\n[agents.bob]\n";
/// Messages that are handled between two kills.
const BETWEEN: usize = 3;
/// The longest time in which a verb has to come through.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns the number of messages.
pub(crate) async fn run(kit: Arc<Kit>, kills: usize) -> Result<usize> {
    let mut rig = Rig::new(CONFIG);
    rig.start_broker().await;
    for name in ["ada", "bob"] {
        let args = json!({"as": name, "path": rig.agent_socket(name), "timeout": 60});
        does(&kit, "connect", args).await?;
    }
    does(&kit, "mail", json!({"on": "bob", "as": "mail", "window": 16})).await?;
    let (handled, progress) = watch::channel(0);
    let (stop, stopped) = watch::channel(false);
    let mut sending = Task::start(send(Arc::clone(&kit), stopped));
    let mut taking = Task::start(take(Arc::clone(&kit), handled));
    for _ in 0..kills {
        let begin = *progress.borrow();
        let mut progress = progress.clone();
        let moved = progress.wait_for(|handled| *handled >= begin + BETWEEN);
        timeout(PATIENCE, moved).await.context("no mail came through")??;
        rig.crash_broker().await;
    }
    stop.send_replace(true);
    let sent = sending.result().await??;
    let mut progress = progress.clone();
    let all = progress.wait_for(|handled| *handled >= sent.len());
    timeout(PATIENCE, all).await.context("some mail did not come")??;
    does(&kit, "close", json!({"of": "mail"})).await?;
    let taken = taking.result().await??;
    for name in ["ada", "bob"] {
        does(&kit, "close", json!({"on": name})).await?;
    }
    for (id, body) in &sent {
        ensure!(taken.get(id) == Some(&(body.clone(), 1)), "message {id}: {:?}", taken.get(id));
    }
    ensure!(taken.len() == sent.len(), "{} sent, {} taken", sent.len(), taken.len());
    check(&rig, sent.len()).await?;
    Ok(sent.len())
}

/// Sends until it is stopped; returns the bodies by the ids of their receipts.
async fn send(kit: Arc<Kit>, stopped: watch::Receiver<bool>) -> Result<BTreeMap<String, String>> {
    let mut sent = BTreeMap::new();
    while !*stopped.borrow() {
        let body = format!("message {}", sent.len());
        let receipt = does(&kit, "send", json!({"on": "ada", "to": "bob", "body": body})).await?;
        let id = receipt["messageId"].as_str().unwrap_or_default().to_owned();
        let before = sent.insert(id.clone(), body);
        ensure!(before.is_none(), "two sends have the receipt {id}");
    }
    Ok(sent)
}

/// Takes mail until it is closed; returns the bodies by their ids, with how often each came.
async fn take(
    kit: Arc<Kit>,
    handled: watch::Sender<usize>,
) -> Result<BTreeMap<String, (String, usize)>> {
    let mut taken = BTreeMap::new();
    loop {
        let next = does(&kit, "next", json!({"of": "mail"})).await?;
        if next["end"] == true {
            return Ok(taken);
        }
        let text = |name: &str| next["message"][name].as_str().unwrap_or_default().to_owned();
        taken.entry(text("id")).or_insert((text("body"), 0)).1 += 1;
        does(&kit, "ack", json!({"of": "mail", "token": next["token"]})).await?;
        handled.send_modify(|handled| *handled += 1);
    }
}

/// Compares with what the broker has.
async fn check(rig: &Rig, count: usize) -> Result<()> {
    let channel = wire::channel(&rig.operator_socket())?;
    let none = wire::Metadata::new();
    let (mut token, mut found) = (String::new(), 0);
    loop {
        let request = json!({
            "agent": "bob", "pageSize": 500, "pageToken": token,
            "states": ["DELIVERY_STATE_READY", "DELIVERY_STATE_LEASED", "DELIVERY_STATE_HELD",
                "DELIVERY_STATE_DEAD", "DELIVERY_STATE_ACKED"],
        });
        let page = wire::call(channel.clone(), "InboxService/ListDeliveries", &request, &none);
        let page = page.await?.map_err(|error| anyhow!("{error}"))?;
        for delivery in page["deliveries"].as_array().into_iter().flatten() {
            let is_acked = delivery["state"] == "DELIVERY_STATE_ACKED";
            ensure!(is_acked && delivery["attempt"] == 1, "a delivery is {delivery}");
            found += 1;
        }
        token = page["nextPageToken"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    ensure!(found == count, "the kit has {count} receipts, and the broker {found} messages");
    Ok(())
}

async fn does(kit: &Kit, verb: &str, args: Value) -> Result<Value> {
    let done = timeout(PATIENCE, kit.does(verb, args)).await;
    let done = done.with_context(|| format!("{verb} has not ended"))??;
    done.map_err(|error| anyhow!("{verb}: {error}"))
}

//! A new item of the operator outbox is notified by a command or a webhook: once, also after a
//! kill, and without a connected operator.

use std::collections::BTreeSet;

use hive_tests::rig::{DUO, QUICK_LIMITS, Rig, soon, strays};
use hive_tests::scripted::appear;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::scheduled_backup::task_of;

/// Appends the item to the file `told`.
const TELL: &str = "read -r item\nprintf '%s\\n' \"$item\" >> \"$dir/told\"\n";

/// Sets up a hive with this notifier script, which knows the hive's directory as `$dir`; its broker
/// does not run yet.
fn hive_with_notifier(script: &str) -> Rig {
    let rig = Rig::new(DUO);
    let path = rig.path("tell.sh");
    let text = format!("dir='{}'\n{script}", rig.dir().display());
    std::fs::write(&path, text).expect("the script is written");
    rig.configure(&format!(
        "{DUO}{QUICK_LIMITS}[operator]\nnotify.command = ['sh', '{}']\n",
        path.display()
    ));
    rig.touch("told");
    rig
}

/// Waits until the brokers of this hive have notified this many items, and recorded it: a broker
/// that ends in between would notify again.
async fn notified(rig: &mut Rig, items: usize) {
    rig.broker().says_times("the operator was notified", items).await;
}

/// Returns the items that were notified, sorted.
fn items(rig: &Rig) -> Vec<Value> {
    rig.read("told")
        .lines()
        .map(|line| serde_json::from_str(line).expect("an item is JSON"))
        .collect()
}

#[tokio::test]
async fn each_mail_to_the_operator_is_notified_once() {
    let mut rig = hive_with_notifier(TELL);
    rig.start_broker().await;
    let (ada, bob) = (rig.agent("ada").await, rig.agent("bob").await);
    bob.send("ada", "not for the operator").await;
    let mut sent = BTreeSet::new();
    for number in 1..=6 {
        sent.insert((
            "ada".to_owned(),
            ada.send("operator", &format!("From ada: {number}\nand a second line.")).await,
        ));
        sent.insert((
            "bob".to_owned(),
            bob.send("operator", &format!("From bob: {number}\nand a second line.")).await,
        ));
    }
    notified(&mut rig, sent.len()).await;
    rig.stop_broker().await;
    // Another broker does not notify again.
    rig.start_broker().await;
    let last = ada.send("operator", "From ada: 7\nand a second line.").await;
    sent.insert(("ada".to_owned(), last));
    notified(&mut rig, sent.len()).await;
    rig.stop_broker().await;
    let items = items(&rig);
    assert_eq!(items.len(), sent.len(), "{items:?}");
    for item in &items {
        assert_eq!(item["kind"], "mail");
        let (agent, id) =
            (item["agent"].as_str().expect("a name"), item["id"].as_u64().expect("an id"));
        assert!(sent.remove(&(agent.to_owned(), id)), "{item} was sent once");
        let text = item["text"].as_str().expect("a text");
        assert!(
            text.starts_with(&format!("From {agent}: ")) && text.ends_with("\nand a second line."),
            "{item}"
        );
        assert!(item["create_time"].as_str().is_some_and(|time| time.ends_with('Z')), "{item}");
    }
    rig.end().await;
}

#[tokio::test]
async fn a_failed_notification_is_repeated_after_a_kill() {
    let mut rig = hive_with_notifier(&format!(
        "test -e \"$dir/go\" || {{ echo 'no way' >&2; exit 7; }}\n{TELL}"
    ));
    rig.start_broker().await;
    let sent = rig.agent("ada").await.send("operator", "hello").await;
    rig.broker().says("the operator could not be notified: `sh` ended with exit status: 7; the end of its output: \"no way\"").await;
    let task = task_of(&rig, "notifications", |task| task.failure_count > 0).await;
    assert!(task.error.contains("no way"), "{task:?}");
    rig.kill_broker().await;
    assert!(items(&rig).is_empty());
    rig.touch("go");
    rig.start_broker().await;
    notified(&mut rig, 1).await;
    task_of(&rig, "notifications", |task| task.failure_count == 0).await;
    rig.stop_broker().await;
    let items = items(&rig);
    assert_eq!((items.len(), items[0]["id"].as_u64()), (1, Some(sent)), "{items:?}");
    rig.end().await;
}

#[tokio::test]
async fn a_command_that_hangs_blocks_nothing_and_ends_with_the_broker() {
    let hangs =
        "mkfifo \"$dir/pipe\" 2>/dev/null\necho >> \"$dir/begun\"\nread -r never < \"$dir/pipe\"\n";
    let mut rig = hive_with_notifier(hangs);
    rig.touch("begun");
    rig.start_broker().await;
    let ada = rig.agent("ada").await;
    let mut sent = BTreeSet::new();
    for number in 0..6 {
        sent.insert(ada.send("operator", &format!("letter {number}")).await);
    }
    let begun = rig.path("begun");
    soon("four tellings begin", appear::said(&begun, "\n", 4))
        .await
        .expect("the file can be watched");
    assert_eq!(ada.send("bob", "all goes on").await, sent.last().expect("six") + 1);
    rig.stop_broker().await;
    let log = rig.read("hived.log");
    assert!(
        !log.contains("did not end in time") && !log.contains("could not be notified"),
        "{log}"
    );
    assert_eq!(rig.read("begun").lines().count(), 4, "four at a time");
    for pid in strays(rig.dir()) {
        hive_tests::rig::gone(pid).await;
    }

    std::fs::write(rig.path("tell.sh"), format!("dir='{}'\n{TELL}", rig.dir().display()))
        .expect("the script is written");
    rig.start_broker().await;
    notified(&mut rig, 6).await;
    rig.stop_broker().await;
    let ids: BTreeSet<u64> = items(&rig).iter().filter_map(|item| item["id"].as_u64()).collect();
    assert_eq!((items(&rig).len(), ids), (6, sent));
    rig.end().await;
}

#[tokio::test]
async fn a_webhook_is_posted_the_item_and_again_where_it_was_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let host = listener.local_addr().expect("an address");
    let mut rig =
        Rig::new(&format!("{DUO}[operator]\nnotify.webhook = 'http://{host}/hook?token=secret'\n"));
    rig.start_broker().await;
    let sent = rig.agent("ada").await.send("operator", "hello").await;
    for answer in ["503 Service Unavailable", "200 OK"] {
        let (mut stream, _) =
            soon("the webhook is called", listener.accept()).await.expect("a caller");
        let mut request = String::new();
        while !request.ends_with("Z\"}") {
            let mut buffer = [0; 4096];
            let count =
                soon("a request comes", stream.read(&mut buffer)).await.expect("the caller writes");
            assert!(count > 0, "the request was cut off: {request}");
            request.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        }
        assert!(request.starts_with("POST /hook?token=secret HTTP/1.1\r\n"), "{request}");
        let (_, body) = request.split_once("\r\n\r\n").expect("a body");
        let item: Value = serde_json::from_str(body).expect("an item is JSON");
        assert_eq!(
            (item["kind"].as_str(), item["id"].as_u64(), item["text"].as_str()),
            (Some("mail"), Some(sent), Some("hello"))
        );
        let answer = format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("the caller reads");
    }
    rig.stop_broker().await;
    let log = rig.read("hived.log");
    assert!(
        log.contains(&format!("{host} answered 503 Service Unavailable"))
            && !log.contains("secret"),
        "{log}"
    );
    rig.end().await;
}

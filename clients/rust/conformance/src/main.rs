//! The driver of the Rust client: reads verbs of the conformance suite, and writes what came of
//! them.

#![expect(clippy::print_stdout, reason = "its results are its output")]

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hive_client::json::{error as error_value, from_value, to_value};
use hive_client::v1::{Recipient, ReplaceLooseEndsRequest};
use hive_client::{Asked, Delivery, Follow, Followed, Hive, Mail, MailCloser, MailOptions};
use hive_client::{Options, Position};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What verbs have made, by the names that the suite gave them.
#[derive(Default)]
struct Objects(Mutex<HashMap<String, Arc<dyn Any + Send + Sync>>>);

/// A mail, the deliveries that it handed out, and what became of the handlers.
struct Inbox {
    mail: Mutex<Mail>,
    closer: MailCloser,
    held: Mutex<HashMap<String, Delivery>>,
    handled: HashMap<&'static str, AtomicUsize>,
}

#[tokio::main]
async fn main() -> Result<()> {
    println!("{}", json!({"kit": "rust", "version": env!("CARGO_PKG_VERSION")}));
    let (objects, mut tasks) = (Arc::new(Objects::default()), JoinSet::new());
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    while let Some(line) = lines.next_line().await? {
        let request: Value = serde_json::from_str(&line)?;
        let (objects, cancel) = (Arc::clone(&objects), CancellationToken::new());
        objects.put(&request["id"].to_string(), Arc::new(cancel.clone())).await;
        tasks.spawn(async move {
            let verb = request["verb"].as_str().unwrap_or_default();
            // To drop the future of a verb cancels its call.
            let done = cancel.run_until_cancelled(objects.verb(verb, &request["args"])).await;
            let (name, result) = match done {
                Some(Ok(answer)) => ("ok", answer),
                Some(Err(error)) => ("error", failure(&error)),
                None => ("error", json!({"code": "CANCELLED"})),
            };
            println!("{}", json!({"id": request["id"], name: result}));
        });
    }
    Ok(())
}

fn failure(error: &anyhow::Error) -> Value {
    let fault = || json!({"code": "INVALID_ARGUMENT", "message": error.to_string()});
    error.downcast_ref().map_or_else(fault, error_value)
}

impl Objects {
    async fn put(&self, name: &str, object: Arc<dyn Any + Send + Sync>) -> Value {
        self.0.lock().await.insert(name.to_owned(), object);
        json!({})
    }

    async fn get<T: Any + Send + Sync>(&self, name: &str) -> Result<Arc<T>> {
        let found = self.0.lock().await.get(name).cloned();
        let found = found.and_then(|object| object.downcast().ok());
        found.with_context(|| format!("there is no such {name}"))
    }

    async fn verb(&self, verb: &str, args: &Value) -> Result<Value> {
        let text = |name| args[name].as_str().unwrap_or_default();
        let (name, of, token) = (text("as"), text("of"), text("token"));
        let span = |name| args[name].as_f64().map(Duration::from_secs_f64);
        let timed = |hive: &Hive| span("timeout").map_or(hive.clone(), |time| hive.within(time));
        let hive = async || self.get::<Hive>(text("on")).await.map(|hive| timed(&hive));
        let call = async |rpc| anyhow::Ok(hive().await?.call_json(rpc, &request(args)).await?);
        let inbox = self.get::<Inbox>(of).await;
        Ok(match verb {
            "connect" => {
                let options = Options { socket: text("path").into(), ..Options::default() };
                self.put(name, Arc::new(timed(&Hive::connect_with(options)?))).await
            }
            "info" => to_value("GetServerInfoResponse", &hive().await?.info().await?)?,
            "supports" => json!({"supported": hive().await?.supports(text("capability")).await?}),
            "call" => hive().await?.call_json(text("method"), &args["request"]).await?,
            "send" if args["requestId"].is_null() && args["inReplyTo"].is_null() => {
                let to: Recipient = from_value("Recipient", &request(args)["to"])?;
                let receipt = hive().await?.send(to, text("body")).await?;
                to_value("SendMessageResponse", &receipt)?
            }
            "send" => call("MessageService/SendMessage").await?,
            "answer" => call("QuestionService/AnswerQuestion").await?["question"].take(),
            "remind" => {
                let delay = span("delay").unwrap_or_default();
                to_value("Reminder", &hive().await?.remind(text("body"), delay).await?)?
            }
            "wake" => {
                let (label, body, key) = (text("label"), text("body"), text("coalescingKey"));
                to_value("WakeResponse", &hive().await?.wake(label, body, key).await?)?
            }
            "publish" => {
                let all: ReplaceLooseEndsRequest =
                    from_value("ReplaceLooseEndsRequest", &request(args))?;
                hive().await?.publish(all.label, all.loose_ends).await?;
                json!({})
            }
            "ask" => {
                let request = from_value("AskQuestionRequest", &request(args))?;
                let asked = hive().await?.ask_as(request).await?;
                self.put(name, Arc::new(asked.clone())).await;
                to_value("Question", &asked.question)?
            }
            "outcome" => to_value("Question", &self.get::<Asked>(of).await?.outcome().await?)?,
            "follow" => {
                let after = args["after"].as_object().map(|after| Position {
                    log_id: after["logId"].as_str().unwrap_or_default().to_owned(),
                    sequence: after["sequence"].to_string().trim_matches('"').parse().unwrap_or(0),
                });
                let follow = hive().await?.follow(after, text("agent"));
                self.put(name, Arc::new(Mutex::new(follow))).await
            }
            "mail" => {
                let mail = hive().await?.mail(MailOptions {
                    window: args["window"].as_u64().unwrap_or(8).try_into()?,
                    window_bytes: args["windowBytes"].as_u64().unwrap_or(0).try_into()?,
                    orphan_grace: span("orphanGrace"),
                    stream_id: text("streamId").to_owned(),
                });
                let (closer, mail, held) = (mail.closer(), Mutex::new(mail), Mutex::default());
                let handled = ["begun", "done", "cancelled"].map(|name| (name, 0.into())).into();
                self.put(name, Arc::new(Inbox { mail, closer, held, handled })).await
            }
            "next" => match (inbox, self.get::<Mutex<Follow>>(of).await) {
                (Ok(inbox), _) => match inbox.mail.lock().await.next().await.transpose()? {
                    Some(delivery) => {
                        let answer = json!({
                            "token": delivery.token(),
                            "message": to_value("Message", delivery.message())?,
                            "attempt": delivery.delivery().attempt,
                            "delivery": to_value("Delivery", delivery.delivery())?,
                        });
                        inbox.held.lock().await.insert(delivery.token().to_owned(), delivery);
                        answer
                    }
                    None => json!({"end": true}),
                },
                (_, follow) => followed(follow?.lock().await.next().await?)?,
            },
            "ack" | "nack" | "release" => {
                let held = inbox?.held.lock().await.remove(token).context("no such delivery")?;
                let state = match verb {
                    "ack" => held.ack().await?,
                    "release" => held.release().await?,
                    _ if args["permanent"] == true => held.nack_for_good(text("error")).await?,
                    _ => held.nack(text("error")).await?,
                };
                json!({"state": state.as_str_name()})
            }
            "lost" => {
                let lost = inbox?.held.lock().await.get(token).map(Delivery::lost);
                lost.context("no such delivery")?.await;
                json!({})
            }
            "each" => {
                let inbox = inbox?;
                self.put(name, Arc::<Inbox>::clone(&inbox)).await;
                inbox.mail.lock().await.each(|_| inbox.handle(text("mode"))).await?;
                json!({})
            }
            "handled" => json!(inbox?.handled),
            "close" => {
                if let Ok(inbox) = inbox {
                    // `each` and `next` end now, and free the mail.
                    inbox.closer.close();
                    inbox.mail.lock().await.close().await;
                }
                self.0.lock().await.retain(|name, _| name != text("on") && name != of);
                json!({})
            }
            "cancel" => {
                self.get::<CancellationToken>(&args["request"].to_string()).await?.cancel();
                json!({})
            }
            _ => bail!("there is no verb {verb}"),
        })
    }
}

impl Inbox {
    async fn handle(&self, mode: &str) -> Result<(), String> {
        self.handled["begun"].fetch_add(1, Relaxed);
        let mut handler = Handler(self, "cancelled");
        if mode == "hang" {
            std::future::pending::<()>().await;
        }
        handler.1 = "done";
        match mode {
            "fail" => Err("handler failed".to_owned()),
            "fail long" => Err("handler failed".repeat(1000)),
            _ => Ok(()),
        }
    }
}

/// Counts a handler when it is dropped.
struct Handler<'a>(&'a Inbox, &'static str);

impl Drop for Handler<'_> {
    fn drop(&mut self) {
        self.0.handled[self.1].fetch_add(1, Relaxed);
    }
}

/// Returns the arguments of a verb as the request whose fields they are, in the JSON form.
fn request(args: &Value) -> Value {
    let field = |(name, value): (&String, &Value)| match &name[..] {
        "on" | "as" | "timeout" => None,
        "to" => match value.as_str()?.strip_prefix('@') {
            Some(role) => Some((name.clone(), json!({role: {}}))),
            None => Some((name.clone(), json!({"agent": value}))),
        },
        "delay" | "ttl" => Some((name.clone(), json!(format!("{value}s")))),
        "entries" => Some(("looseEnds".to_owned(), value.clone())),
        _ => Some((name.clone(), value.clone())),
    };
    args.as_object().into_iter().flatten().filter_map(field).collect()
}

fn followed((followed, position): (Followed, Position)) -> Result<Value> {
    let (name, value) = match followed {
        Followed::Fact(event) => ("fact", to_value("Event", &event)?),
        Followed::Gap => ("gap", json!(true)),
        Followed::LogChanged => ("logChanged", json!(true)),
        other => bail!("there is no line for {other:?}"),
    };
    let position = json!({"logId": position.log_id, "sequence": position.sequence.to_string()});
    Ok(json!({name: value, "position": position}))
}

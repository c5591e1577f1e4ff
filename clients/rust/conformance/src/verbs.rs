//! The verbs, each a line or a few.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hive_client::json::{self as proto, from_value, to_value};
use hive_client::v1::{AskQuestionRequest, Recipient, SendMessageRequest, WakeRequest};
use hive_client::{Asked, Delivery, Error, Follow, Followed, Hive, Mail, MailCloser};
use hive_client::{MailOptions, Options, Position};
use serde_json::{Value, json};
use tokio::sync::Mutex as AsyncMutex;
use tokio::time::timeout;

type Map<T> = Mutex<HashMap<String, T>>;
type Answer = Result<Value, Value>;

/// What verbs have made, by the names that the suite gave them.
#[derive(Default)]
pub(crate) struct Objects {
    hives: Map<Hive>,
    asked: Map<Asked>,
    follows: Map<Arc<AsyncMutex<Follow>>>,
    mails: Map<(Arc<AsyncMutex<Option<Mail>>>, MailCloser)>,
    held: Map<Delivery>,
    each: Map<Arc<[AtomicUsize; 3]>>,
}

fn lock<T>(map: &Map<T>) -> MutexGuard<'_, HashMap<String, T>> {
    map.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text<'a>(args: &'a Value, name: &str) -> &'a str {
    args[name].as_str().unwrap_or_default()
}

fn number<T: TryFrom<u64>>(value: &Value) -> Option<T> {
    let number = value.as_u64().or_else(|| value.as_str()?.parse().ok())?;
    T::try_from(number).ok()
}

fn span(value: &Value) -> Option<Duration> {
    value.as_f64().map(Duration::from_secs_f64)
}

fn to(args: &Value) -> Recipient {
    match text(args, "to") {
        "@operator" => Recipient::operator(),
        "@parent" => Recipient::parent(),
        "@everyone" => Recipient::everyone(),
        agent => agent.into(),
    }
}

fn fault(error: Error) -> Value {
    proto::error(&error)
}

fn none(name: &str) -> Value {
    json!({"code": "INVALID_ARGUMENT", "message": format!("there is no {name}")})
}

impl Objects {
    pub(crate) async fn verb(&self, verb: &str, args: &Value) -> Answer {
        self.inner(verb, args).await.unwrap_or_else(|error| Err(fault(error)))
    }

    async fn inner(&self, verb: &str, args: &Value) -> Result<Answer, Error> {
        let name = text(args, "as").to_owned();
        let on = lock(&self.hives).get(text(args, "on")).cloned();
        let of = text(args, "of");
        let hive = || on.clone().ok_or_else(|| none("such hive"));
        macro_rules! some {
            ($found:expr) => {
                match $found {
                    Ok(found) => found,
                    Err(e) => return Ok(Err(e)),
                }
            };
        }
        Ok(Ok(match verb {
            "connect" => {
                let mut options = Options::default();
                if let Some(path) = args["path"].as_str() {
                    options.socket = path.into();
                }
                if let Some(time) = span(&args["timeout"]) {
                    options.timeout = time;
                }
                lock(&self.hives).insert(name, Hive::connect_with(options)?);
                json!({})
            }
            "supports" => {
                json!({"supported": some!(hive()).supports(text(args, "capability")).await?})
            }
            "info" => to_value("GetServerInfoResponse", &some!(hive()).info().await?)?,
            "call" => {
                let method =
                    some!(proto::method(text(args, "method")).ok_or_else(|| none("such RPC")));
                let bytes = proto::encode(method.input(), &args["request"])?;
                let path = format!("/hive.v1.{}", text(args, "method")).parse().expect("a path");
                let wait = text(&args["request"], "wait").trim_end_matches('s').parse();
                let wait = Duration::from_secs_f64(wait.unwrap_or(0.0));
                let hive = timed(some!(hive()), args);
                proto::decode(method.output(), hive.call_bytes(path, bytes, wait).await?)?
            }
            "send" => {
                let (body, request_id) =
                    (text(args, "body").into(), text(args, "requestId").into());
                let in_reply_to = number(&args["inReplyTo"]).unwrap_or(0);
                let request =
                    SendMessageRequest { request_id, to: Some(to(args)), body, in_reply_to };
                to_value("SendMessageResponse", &timed(some!(hive()), args).call(request).await?)?
            }
            "ask" => {
                let options = args["options"].as_array().into_iter().flatten();
                let request = AskQuestionRequest {
                    to: Some(to(args)),
                    text: text(args, "text").into(),
                    options: options.filter_map(|o| Some(o.as_str()?.to_owned())).collect(),
                    multi: args["multi"].as_bool().unwrap_or(false),
                    ttl: span(&args["ttl"]).and_then(|ttl| ttl.try_into().ok()),
                    ..Default::default()
                };
                let asked = some!(hive()).ask_as(request).await?;
                let question = to_value("Question", &asked.question)?;
                lock(&self.asked).insert(name, asked);
                question
            }
            "outcome" => {
                let asked = some!(lock(&self.asked).get(of).cloned().ok_or_else(|| none(of)));
                to_value("Question", &some!(within(args, asked.outcome()).await)?)?
            }
            "answer" => {
                let mut request = json!({"questionId": args["questionId"], "text": args["text"]});
                if !args["choices"].is_null() {
                    request["choices"] = args["choices"].clone();
                }
                let request: hive_client::v1::AnswerQuestionRequest =
                    from_value("AnswerQuestionRequest", &request)?;
                to_value(
                    "Question",
                    &some!(hive()).call(request).await?.question.unwrap_or_default(),
                )?
            }
            "remind" => {
                let delay = span(&args["delay"]).unwrap_or_default();
                to_value("Reminder", &some!(hive()).remind(text(args, "body"), delay).await?)?
            }
            "wake" => {
                let (label, body) = (text(args, "label").into(), text(args, "body").into());
                let coalescing_key = text(args, "coalescingKey").into();
                let request = WakeRequest { label, body, coalescing_key, ..Default::default() };
                to_value("WakeResponse", &some!(hive()).call(request).await?)?
            }
            "publish" => {
                let entries = args["entries"].as_array().into_iter().flatten();
                let entries: Result<_, Error> =
                    entries.map(|e| from_value("PublishedLooseEnd", e)).collect();
                some!(hive()).publish(text(args, "label"), entries?).await?;
                json!({})
            }
            "follow" => {
                let after = args["after"].as_object().map(|after| Position {
                    log_id: after["logId"].as_str().unwrap_or_default().into(),
                    sequence: number(&after["sequence"]).unwrap_or(0),
                });
                let follow = some!(hive()).follow(after, text(args, "agent"));
                lock(&self.follows).insert(name, Arc::new(AsyncMutex::new(follow)));
                json!({})
            }
            "mail" => {
                let mail = some!(hive()).mail(MailOptions {
                    window: number(&args["window"]).unwrap_or(8),
                    window_bytes: number(&args["windowBytes"]).unwrap_or(0),
                    orphan_grace: span(&args["orphanGrace"]),
                    stream_id: text(args, "streamId").into(),
                });
                let closer = mail.closer();
                lock(&self.mails).insert(name, (Arc::new(AsyncMutex::new(Some(mail))), closer));
                json!({})
            }
            "next" => return self.next(of, args).await,
            "ack" | "nack" | "release" => {
                let held = lock(&self.held).remove(text(args, "token"));
                let (held, error) =
                    (some!(held.ok_or_else(|| none("such delivery"))), text(args, "error"));
                let state = match verb {
                    "ack" => held.ack().await?,
                    "release" => held.release().await?,
                    _ if args["permanent"] == true => held.nack_for_good(error).await?,
                    _ => held.nack(error).await?,
                };
                json!({"state": state.as_str_name()})
            }
            "lost" => {
                let lost = lock(&self.held).get(text(args, "token")).map(Delivery::lost);
                some!(within(args, some!(lost.ok_or_else(|| none("such delivery")))).await);
                json!({})
            }
            "each" => {
                let (mail, _) = some!(lock(&self.mails).get(of).cloned().ok_or_else(|| none(of)));
                let counts = Arc::new([const { AtomicUsize::new(0) }; 3]);
                lock(&self.each).insert(name, Arc::clone(&counts));
                each(&mail, &counts, text(args, "mode")).await?
            }
            "handled" => {
                let counts = some!(lock(&self.each).get(of).cloned().ok_or_else(|| none(of)));
                let [begun, done, cancelled] = &*counts;
                json!({"begun": begun.load(Relaxed), "done": done.load(Relaxed), "cancelled": cancelled.load(Relaxed)})
            }
            "close" => {
                let mail = lock(&self.mails).get(of).cloned();
                if let Some((mail, closer)) = mail {
                    // `each` and `next` end now.
                    closer.close();
                    if let Some(mail) = mail.lock().await.take() {
                        mail.close().await;
                    }
                }
                lock(&self.follows).remove(of);
                lock(&self.hives).remove(text(args, "on"));
                json!({})
            }
            "cancel" => json!({}),
            other => return Ok(Err(none(other))),
        }))
    }

    async fn next(&self, of: &str, args: &Value) -> Result<Answer, Error> {
        let mail = lock(&self.mails).get(of).cloned();
        if let Some((mail, _)) = mail {
            let next = async {
                let mut mail = mail.lock().await;
                match &mut *mail {
                    Some(mail) => mail.next().await,
                    None => None,
                }
            };
            let next = match within(args, next).await {
                Ok(next) => next,
                Err(late) => return Ok(Err(late)),
            };
            let Some(delivery) = next.transpose()? else { return Ok(Ok(json!({"end": true}))) };
            let token = delivery.token().to_owned();
            let message = to_value("Message", delivery.message())?;
            let rest = to_value("Delivery", delivery.delivery())?;
            let attempt = delivery.delivery().attempt;
            lock(&self.held).insert(token.clone(), delivery);
            return Ok(Ok(
                json!({"token": token, "message": message, "attempt": attempt, "delivery": rest}),
            ));
        }
        let follow = lock(&self.follows).get(of).cloned();
        let Some(follow) = follow else { return Ok(Err(none(of))) };
        let next = match within(args, async { follow.lock().await.next().await }).await {
            Ok(next) => next?,
            Err(late) => return Ok(Err(late)),
        };
        let (followed, Position { log_id, sequence }) = next;
        let mut answer = match followed {
            Followed::Fact(event) => json!({"fact": to_value("Event", &event)?}),
            Followed::Gap => json!({"gap": true}),
            Followed::LogChanged => json!({"logChanged": true}),
            _ => json!({}),
        };
        answer["position"] = json!({"logId": log_id, "sequence": sequence.to_string()});
        Ok(Ok(answer))
    }
}

fn timed(hive: Hive, args: &Value) -> Hive {
    span(&args["timeout"]).map_or(hive.clone(), |time| hive.within(time))
}

async fn within<T>(args: &Value, future: impl Future<Output = T>) -> Result<T, Value> {
    let time = span(&args["timeout"]).unwrap_or(Duration::MAX);
    timeout(time, future).await.map_err(|_| json!({"code": "DEADLINE_EXCEEDED"}))
}

/// Counts a handler that is dropped before its end as cancelled.
struct Handling(Arc<[AtomicUsize; 3]>, bool);

impl Handling {
    fn end(&mut self) {
        self.1 = true;
    }
}

impl Drop for Handling {
    fn drop(&mut self) {
        self.0[if self.1 { 1 } else { 2 }].fetch_add(1, Relaxed);
    }
}

async fn each(
    mail: &AsyncMutex<Option<Mail>>,
    counts: &Arc<[AtomicUsize; 3]>,
    mode: &str,
) -> Result<Value, Error> {
    let handler = |_: &Delivery| {
        counts[0].fetch_add(1, Relaxed);
        let (mut handling, mode) = (Handling(Arc::clone(counts), false), mode.to_owned());
        async move {
            if mode == "hang" {
                std::future::pending::<()>().await;
            }
            handling.end();
            match &mode[..] {
                "fail" => Err("handler failed".to_owned()),
                "fail long" => Err("handler failed".repeat(1000)),
                _ => Ok(()),
            }
        }
    };
    if let Some(mail) = &mut *mail.lock().await {
        mail.each(handler).await?;
    }
    Ok(json!({}))
}

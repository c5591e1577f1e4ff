//! Serving: executes a call on the engine, as the RPC layer would.

use std::rc::Rc;
use std::time::Duration;

use hive_broker::engine::launch::wanted::Wish;
use hive_broker::engine::mail::handover::Handover;
use hive_broker::engine::mail::question::{Ask, Reply as Verdict};
use hive_broker::engine::mail::receive::Receive;
use hive_broker::engine::mail::reminder::Due as EngineDue;
use hive_broker::engine::mail::send::Send;
use hive_broker::engine::mail::wake::Wake;
use hive_broker::engine::operator::agents::Create;
use hive_broker::engine::operator::commands::NewCommand;
use hive_broker::engine::turn::attach::{Attach, Attached};
use hive_broker::engine::turn::begin::Begin;
use hive_broker::engine::turn::problem::Problem;
use hive_broker::engine::{Actor, Engine, Refusal};
use hive_broker::store::request::RequestKey;
use hive_core::agent::{APPROVALS, HarnessState, OWN_SCHEDULES, Policy, SCHEDULING};
use hive_core::caller::{Caller, OperatorName};
use hive_core::command::Order;
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::message::Recipient;
use hive_core::name::{AgentName, Label};
use hive_core::question::{Answer, Wording};
use hive_core::time::WallTime;
use hive_core::turn::{Ended, MAIN_CONVERSATION};
use hive_history as history;
use hive_history::{Counts, Reply};
use sha2::{Digest as _, Sha256};

use crate::broker::Broker;
use crate::call::{Call, Due, Rights, To, Who};
use crate::{effect, seen, settle};

/// The result of a call: what the observer records, and what only its client needs.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) reply: Reply,
    /// The answers to its settlements, in order.
    pub(crate) settled: Vec<history::Answer>,
    pub(crate) attached: Option<Attached>,
    /// The leases that are requeued unless the client gets this answer.
    pub(crate) handover: Option<Handover>,
    /// The broker that served it, which owns the stream of an attachment.
    pub(crate) broker: Option<Rc<Broker>>,
}

fn given(reply: Reply) -> Given {
    Given { reply, settled: Vec::new(), attached: None, handover: None, broker: None }
}

fn done(text: impl Into<String>) -> Given {
    given(Reply::Done(text.into()))
}

pub(crate) fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("the simulation's agents have good names")
}

/// Returns the policy of an agent with these rights.
pub(crate) fn policy(rights: Rights) -> Policy {
    let Rights { schedules, approvals } = rights;
    let mut policy = Policy::default();
    if schedules {
        policy.grants.push(OWN_SCHEDULES.to_owned());
    }
    if schedules || approvals {
        policy.tool_groups.push(SCHEDULING.to_owned());
    }
    if approvals {
        policy.tool_groups.push(APPROVALS.to_owned());
    }
    policy
}

fn number<T>(make: fn(u64) -> Option<T>, id: u64) -> Result<T, Refusal> {
    make(id).ok_or(Refusal::Field { field: "id", problem: "it is 0".to_owned() })
}

fn recipient(to: &To) -> Recipient {
    match to {
        To::Name(name) if name == "operator" => Recipient::Operator,
        To::Name(to) => Recipient::Agent(name(to)),
        To::Parent => Recipient::Parent,
        To::Everyone => Recipient::Everyone,
    }
}

pub(crate) fn caller(who: &str) -> Caller {
    if who == "operator" {
        Caller::Operator(OperatorName::new(1000, Some("ada")))
    } else {
        Caller::Agent(name(who))
    }
}

/// Returns the caller that a connection of theirs has.
fn caller_of(who: &Who) -> Caller {
    if who.is_second {
        return Caller::Operator(OperatorName::new(1001, Some("bea")));
    }
    caller(&who.name)
}

/// Returns the request key as its RPC makes it: the id, and a digest of everything else.
fn key(call: &Call, who: &Who, request_id: &str) -> RequestKey {
    let mut content = call.clone();
    if let Call::Receive { wait_ms, lease_ms, settle, .. } = &mut content {
        (*wait_ms, *lease_ms) = (0, 0);
        settle.clear();
    }
    let digest = Sha256::digest(format!("{content:?} {:?}", who.process).as_bytes());
    let mut fingerprint = [0; 16];
    fingerprint.copy_from_slice(&digest[..16]);
    RequestKey { rpc: call.rpc(), id: request_id.to_owned(), fingerprint }
}

fn send(to: &To, body: String, reply_to: u64) -> Send {
    Send { in_reply_to: MessageId::new(reply_to), ..Send::new(recipient(to), body) }
}

/// Returns a send as a stream of messages has it; `None` for another call.
pub(crate) fn prepared(call: &Call, who: &Who, request_id: &str) -> Option<(RequestKey, Send)> {
    let Call::Send { to, body, reply_to } = call else { return None };
    Some((key(call, who, request_id), send(to, body.clone(), *reply_to)))
}

pub(crate) async fn serve(
    engine: &Engine,
    who: &Who,
    request_id: &str,
    call: Call,
) -> Result<Given, Refusal> {
    let request = key(&call, who, request_id);
    let caller = caller_of(who);
    let actor = Actor {
        caller: caller.clone(),
        process_token: who.process.as_ref().map(|(token, _)| token.clone()),
        cause: Default::default(),
    };
    let ms = Duration::from_millis;
    match call {
        Call::Send { to, body, reply_to } => {
            let receipt = engine.send(actor, request, send(&to, body, reply_to)).await?;
            let skipped = receipt.skipped;
            Ok(given(Reply::Sent {
                message: receipt.message.get(),
                already: receipt.already_sent,
                skipped,
            }))
        }
        Call::Wake { label, body, key } => {
            let label = Label::parse(&label).expect("the simulation's labels are good");
            let coalescing_key = (!key.is_empty()).then_some(key);
            let woken = engine
                .wake(actor, request, Wake { label, body, coalescing_key, session_token: None })
                .await?;
            let superseded = woken.superseded.map_or(0, MessageId::get);
            Ok(given(Reply::Woken { message: woken.message.get(), superseded }))
        }
        Call::Settle { entries } => {
            let results = engine.settle(actor, settle::entries(&entries)).await?;
            Ok(Given { settled: settle::answers(&entries, results), ..done("") })
        }
        Call::Receive { max, wait_ms, lease_ms, tool_use, settle } => {
            let tool_use = (!tool_use.is_empty()).then_some(tool_use);
            let receive = Receive {
                max_deliveries: max,
                max_bytes: None,
                wait: ms(wait_ms),
                leases_until: None,
                lease: ms(lease_ms),
                tool_use,
            };
            let entries = settle::entries(&settle);
            let (received, results, handover) =
                engine.settle_and_receive(actor, request, entries, |_| {}, receive).await?;
            let handed = received
                .deliveries
                .iter()
                .map(|leased| seen::handed(&leased.delivery, leased.token.as_deref()));
            let reply = Reply::Leased(handed.collect());
            let settled = settle::answers(&settle, results);
            Ok(Given { settled, handover: Some(handover), ..given(reply) })
        }
        Call::Ack { .. } | Call::Nack { .. } | Call::Release { .. } | Call::Extend { .. } => {
            let entry = settle::entry(&call).ok_or(Refusal::Fault("it is no settlement"))?;
            let settled = engine.settle_one(actor, entry).await?;
            Ok(given(settle::reply(&call, settled)))
        }
        Call::Attach { session, take_over } => {
            let attach = Attach {
                session_token: session,
                take_over,
                revision: "sim".to_owned(),
                isolation: None,
            };
            let attached = engine.attach(caller, attach).await?;
            let reply = Reply::Attached {
                session: attached.session_token.clone(),
                epoch: attached.attachment.epoch(),
                resumed: attached.resumed,
                open_turn: attached.open_turn.as_ref().map_or(0, |turn| turn.id.get()),
            };
            Ok(Given { attached: Some(attached), ..given(reply) })
        }
        Call::Begin { session, process, kind } => {
            let begin = Begin {
                session_token: session,
                process_token: process,
                conversation: MAIN_CONVERSATION.to_owned(),
                kind,
            };
            let begun = engine.begin_turn(caller, request, begin).await?;
            let delivery = begun.delivery.map(|delivery| seen::handed(&delivery, None));
            Ok(given(Reply::Turn {
                turn: begun.turn.id.get(),
                epoch: begun.turn.session_epoch,
                delivery,
            }))
        }
        Call::End { session, turn, outcome, returned, retry_at, compacted } => {
            let error = if outcome == hive_core::turn::Outcome::Ok {
                String::new()
            } else {
                format!("it was {outcome:?}")
            };
            let ended = Ended {
                error,
                returned_tool_uses: returned.into_iter().collect(),
                compacted,
                retry_time: retry_at.map(WallTime),
                ..Ended::new(outcome)
            };
            let turn = number(TurnId::new, turn)?;
            let answer = engine.end_turn(caller, request, session, turn, ended).await?;
            let counts = answer.settled;
            let counts = Counts {
                acked: counts.acked,
                returned: counts.returned,
                dead: counts.dead,
                held: counts.held,
            };
            Ok(given(Reply::TurnEnded(counts)))
        }
        Call::NextTurn => engine.request_next_turn(actor).await.map(|()| done("")),
        Call::Heartbeat { session } => engine.heartbeat(caller, session).await.map(|_| done("")),
        Call::Report { session, idle } => {
            let state = if idle { HarnessState::Idle } else { HarnessState::NeedsLogin };
            engine.report_harness(caller, session, state).await.map(|()| done(""))
        }
        Call::Problem { session, subject, text } => {
            let problem = Problem { session_token: session, subject, text };
            let message = engine.report_problem(caller, request, problem).await?;
            Ok(given(Reply::Reported { message: message.get() }))
        }
        Call::AckCommand { session, command } => {
            let id = number(CommandId::new, command)?;
            engine.ack_command(caller, session, id, String::new()).await.map(|()| done(""))
        }
        Call::Ask { to, text, options, effect, ttl_ms } => {
            let multi = options.len() > 2;
            let wording = Wording { text, options, multi };
            let ttl = (ttl_ms > 0).then(|| ms(ttl_ms));
            let effect = effect.map(|effect| *effect);
            let ask = Ask { to: recipient(&to), wording, ttl, effect, short: None };
            let (question, already) = engine.ask(actor, request, ask).await?;
            let message = question.message_id.map_or(0, MessageId::get);
            Ok(given(Reply::Asked { question: question.id.get(), message, already }))
        }
        Call::Schedule { text, ttl_ms, schedule, terms } => {
            let effect = effect::schedule(ScheduleId::new(schedule), terms);
            let wording = Wording { text, options: Vec::new(), multi: false };
            let to = Recipient::Operator;
            let ttl = (ttl_ms > 0).then(|| ms(ttl_ms));
            let ask = Ask { to, wording, ttl, effect: Some(effect), short: None };
            let (question, already) = engine.ask(actor, request, ask).await?;
            let message = question.message_id.map_or(0, MessageId::get);
            Ok(given(Reply::Asked { question: question.id.get(), message, already }))
        }
        Call::CancelSchedule { schedule } => {
            let id = number(ScheduleId::new, schedule)?;
            engine.cancel_schedule(actor, request, id).await.map(|_| done(""))
        }
        Call::FireSchedule { schedule } => {
            let id = number(ScheduleId::new, schedule)?;
            let (_, fired) = engine.fire_schedule(actor, request, id).await?;
            Ok(done(format!("{fired:?}")))
        }
        Call::PauseSchedule { schedule } => {
            let id = number(ScheduleId::new, schedule)?;
            engine.pause_schedule(caller, request, id).await.map(|_| done(""))
        }
        Call::ResumeSchedule { schedule } => {
            let id = number(ScheduleId::new, schedule)?;
            engine.resume_schedule(caller, request, id).await.map(|_| done(""))
        }
        Call::Answer { question, choices, text, digest } => {
            let id = number(QuestionId::new, question)?;
            let answer = Answer { choices, text };
            let verdict = Verdict { answer, diff_digest: digest, short: None };
            let question = engine.answer(actor, request, id, verdict).await?;
            Ok(given(Reply::Question(seen::question(&question))))
        }
        Call::CancelQuestion { question } => {
            let question =
                engine.cancel_question(actor, request, number(QuestionId::new, question)?).await?;
            Ok(given(Reply::Question(seen::question(&question))))
        }
        Call::ReadQuestion { question } => {
            let question = engine.get_question(caller, number(QuestionId::new, question)?).await?;
            Ok(given(Reply::Question(seen::question(&question))))
        }
        Call::Remind { body, due } => {
            let due = match due {
                Due::In(delay) => EngineDue::In(ms(delay)),
                Due::At(time) => EngineDue::At(WallTime(time)),
            };
            let (reminder, already) = engine.set_reminder(actor, request, body, due).await?;
            Ok(given(Reply::Reminded {
                reminder: reminder.id.get(),
                due: reminder.due_time.0,
                already,
            }))
        }
        Call::CancelReminder { reminder } => {
            let id = number(ReminderId::new, reminder)?;
            engine.cancel_reminder(actor, request, id).await.map(|_| done(""))
        }
        Call::Decide { agent, message, decision } => {
            let message = number(MessageId::new, message)?;
            engine.decide(caller, request, agent, message, decision).await.map(|()| done(""))
        }
        Call::CancelTurn { agent } => {
            let id = engine
                .create_command(caller, request, name(&agent), NewCommand::CancelOpenTurn)
                .await?;
            Ok(done(id.to_string()))
        }
        Call::RestartHarness { agent } => {
            let id = engine
                .create_command(
                    caller,
                    request,
                    name(&agent),
                    NewCommand::Order(Order::RestartHarness),
                )
                .await?;
            Ok(done(id.to_string()))
        }
        Call::Create { agent, parent, adopt, rights } => {
            let create = Create {
                name: name(&agent),
                parent: parent.as_deref().map(name),
                role: String::new(),
                model: String::new(),
                policy: policy(rights),
                adopt,
            };
            engine.create_agent(caller, request, create).await.map(|_| done(agent))
        }
        Call::SetPolicy { agent, part, number } => {
            let wanted = effect::policy(part, number);
            engine
                .set_policy(caller, request, name(&agent), wanted, vec![part])
                .await
                .map(|_| done(agent))
        }
        Call::Purge { agent } => {
            engine.purge_agent(caller, request, name(&agent)).await.map(|_| done(agent))
        }
        Call::Stop { agent } => {
            engine.wish(caller, request, name(&agent), Wish::Stop).await.map(|_| done(agent))
        }
        Call::Start { agent } => engine
            .wish(caller, request, name(&agent), Wish::Start { on_demand: None })
            .await
            .map(|_| done(agent)),
        Call::Retire { agent } => {
            let open = engine.retire_agent(caller, request, name(&agent)).await?;
            Ok(done(open.to_string()))
        }
    }
}

//! Histories of a hive, played through the contract. Each step gives the commands under test one
//! more kind of row.
//!
//! Invariant: a history is the same in every run, ids and times included; whatever the broker does
//! by itself is waited for.

use hive_proto::in_session;
use hive_proto::v1::TurnEventStream::{Note, Stderr, Stdout};
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::status_service_client::StatusServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::v1::*;
use hive_tests::rig::{Client, fresh_id, request};
use tonic::Response;

use super::hive::{Hive, NOON};
use super::play::Player;

/// Ada leads; bob is created below her.
const DUO: &str = r#"
[hive]
name = "duo"
[broker.limits]
attempts_max = 2
harness_grace_ms = 864000000
retry_backoff_base_ms = 1000
retry_backoff_max_ms = 1000
[agents.ada]
role = "leads"
model = "opus"
available_models = ["opus", "haiku", "claude opus"]
kick_on_start = "interrupted"
tool_groups = ["messaging", "inbox", "meta"]
"#;

const DAY: i64 = 24 * 3600;

const PRINTED: [(TurnEventStream, &str); 6] = [
    (Note, "claude starts"),
    (Stdout, r#"{"type":"assistant","message":{"content":[{"type":"text","text":"It is 42."}]}}"#),
    (
        Stdout,
        r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"mcp__hive__send","input":{"body":"It is\n42.","to":"operator"}}]}}"#,
    ),
    (
        Stdout,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"sent as \u001b[31m14"}]}}"#,
    ),
    (Stdout, r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":2}"#),
    (Stderr, "a \u{1b}[1mwarning"),
];

impl Hive {
    /// Ada and her child bob, with some history.
    pub(crate) async fn start() -> Self {
        let mut hive = Self::new(DUO);
        hive.people().await;
        hive.work().await;
        hive.mail().await;
        hive.failures().await;
        hive.questions().await;
        hive.reminders().await;
        hive.as_elsewhere();
        hive
    }

    /// Ada and bob with their troubles, in 2020. Nothing in it has a deadline, so the timers of the
    /// kernel do not run.
    pub(crate) async fn in_trouble() -> Self {
        let mut hive = Self::since(NOON, DUO);
        hive.people().await;
        hive.work().await;
        hive.mail().await;
        hive.failures().await;
        hive.ada().open(TurnKind::Continue).await;
        hive.claude().await.ask("operator", "Why?").await;
        hive.as_elsewhere();
        hive
    }

    /// A week of ada, with turns of every origin.
    pub(crate) async fn busy() -> Self {
        let mut hive = Self::new(DUO);
        hive.people().await;
        let (operator, bob) = (hive.operator().await, hive.client("bob").await);
        let mut ada = Player::attach(&hive, "ada").await;
        for day in 0..7_i64 {
            operator.send("ada", "from the operator").await;
            bob.send("ada", "from bob").await;
            wake(&hive.client("ada").await, "from a room").await;
            // The messages of this day, and the reminder of the day before.
            for number in 0..3 + day.min(1) {
                ada.begin().await;
                let claude = ada.claude(&hive).await;
                if number == 0 {
                    claude.remind("again", hive.due(day * DAY + 3600)).await;
                }
                hive.pass(3500);
                ada.end(TurnOutcome::Ok, used(10 * day.unsigned_abs(), false)).await;
            }
            hive.pass(DAY.unsigned_abs() * 1000);
        }
        operator.send("bob", "hello").await;
        let mut bob = Player::attach(&hive, "bob").await;
        bob.begin().await.end(TurnOutcome::Ok, EndTurnRequest::default()).await;
        hive.bob = Some(bob);
        ada.open(TurnKind::Compact).await;
        operator.ask("ada", "How long?").await;
        let claude = ada.claude(&hive).await;
        claude.ask("operator", "Why?").await;
        claude.remind("later", hive.due(40 * DAY)).await;
        hive.pass(75_000);
        ada.end(TurnOutcome::Ok, used(5, true)).await;
        ada.begin().await;
        ada.end(TurnOutcome::Failed, EndTurnRequest::default()).await;
        hive.ada = Some(ada);
        hive.as_elsewhere();
        hive
    }

    /// Edits responses with values that this broker does not have: a sandbox, a task that fails, a
    /// fixed path, control characters that a broker refuses, and pages so short that each list has
    /// several.
    fn as_elsewhere(&self) {
        fn agent(agent: &mut Agent) {
            let escape = "\u{1b}[31m";
            if agent.name == "ada" {
                agent.status_text = format!("sorting{escape} the mail");
            } else if agent.name == "bob" {
                agent.set_isolation(Isolation::Partly);
                let note = format!("the socket @/tmp/.X11-unix/X0 can be reached{escape}");
                agent.isolation_notes = vec![note];
            }
        }
        self.edit("GetAgent", |answer: &mut Response<GetAgentResponse>| {
            answer.get_mut().agent.as_mut().into_iter().for_each(agent);
        });
        self.edit("ListAgents", |answer: &mut Response<ListAgentsResponse>| {
            answer.get_mut().agents.iter_mut().for_each(agent);
        });
        self.edit("GetBrokerStatus", |answer: &mut Response<GetBrokerStatusResponse>| {
            let status = answer.get_mut();
            status.not_isolated_agents.retain(|agent| agent != "bob");
            status.partly_isolated_agents = vec!["bob".to_owned()];
            status.database_path = "/var/lib/hive/hive.db".to_owned();
            status.database_bytes = 40_960;
            status.background_tasks = vec![BackgroundTask {
                name: "search-index".to_owned(),
                last_run_time: status.start_time,
                failure_count: 3,
                error: "the disk is\nfull".to_owned(),
            }];
        });
        self.edit("GetTurnStats", |answer: &mut Response<GetTurnStatsResponse>| {
            let GetTurnStatsResponse { total, agents, .. } = answer.get_mut();
            for tool in total.iter_mut().flat_map(|total| &mut total.tools) {
                tool.name = tool.name.replace("recv", "\u{1b}[31mrecv");
            }
            for agent in agents {
                agent.agent = agent.agent.replace("bob", "bob\u{1b}[31m");
            }
        });
        self.edit_request("ListDeliveries", |list: &mut ListDeliveriesRequest| list.page_size = 1);
        self.edit_request("ListQuestions", |list: &mut ListQuestionsRequest| list.page_size = 2);
        self.edit_request("ListLooseEnds", |list: &mut ListLooseEndsRequest| list.page_size = 2);
        self.edit_request("ListEvents", |list: &mut ListEventsRequest| list.page_size = 4);
    }

    /// Bob is created, and an agent of earlier is retired.
    async fn people(&self) {
        let create = ["agent", "create", "bob", "--parent", "ada", "--tool-group", "messaging"];
        self.operate(&[&create[..], &["--allow", "ada", "--allow", "operator"]].concat()).await;
        let limits = ["--questions-open", "5", "--stored-bytes", "1000000"];
        self.operate(&[&["agent", "set-policy", "bob"][..], &limits].concat()).await;
        self.operate(&["agent", "create", "old"]).await;
        self.operate(&["agent", "retire", "old"]).await;
    }

    /// Ada answers the operator.
    async fn work(&mut self) {
        let operator = self.operator().await;
        let asked = operator.send("ada", "What is six times seven?").await;
        self.ada = Some(Player::attach(self, "ada").await);
        self.pass(100);
        let mut ada = self.ada.take().expect("attached");
        ada.begin().await.print(&PRINTED).await;
        self.pass(2400);
        let claude = ada.claude(self).await;
        let answer = SendMessageRequest {
            in_reply_to: asked,
            ..request::send("operator", "It is 42.\nI asked bob.\u{1b}]0;owned\u{7}")
        };
        let mut messages = MessageServiceClient::new(claude.channel());
        messages.send_message(claude.request(answer)).await.expect("it is sent");
        let thanks = claude.send("operator", "Is there more?").await;
        claude.send("bob", "poison").await;
        let text = "sorting the mail".to_owned();
        let status = SetStatusTextRequest { request_id: fresh_id(), text };
        let mut service = StatusServiceClient::new(claude.channel());
        service.set_status_text(claude.request(status)).await.expect("its status is taken");
        self.pass(600);
        let how = EndTurnRequest {
            model: "claude-opus-5".to_owned(),
            context_tokens: 12_000,
            context_window_tokens: 200_000,
            ..used(1, false)
        };
        ada.end(TurnOutcome::Ok, how).await;
        self.operate(&["inbox", "ack", &thanks.to_string()]).await;
        self.ada = Some(ada);
    }

    /// The operator cancels turns of ada, and mail for bob arrives.
    async fn mail(&mut self) {
        let operator = self.operator().await;
        let mut ada = self.ada.take().expect("attached");
        for body in ["Sort the mail.", "Answer it.", "Burn it."] {
            operator.send("ada", body).await;
            ada.begin().await;
            self.pass(1000);
            ada.end(TurnOutcome::Cancelled, EndTurnRequest::default()).await;
        }
        self.ada = Some(ada);
        let bob = self.client("bob").await;
        operator.send("bob", "bitter almonds").await;
        wake(&bob, "more poison").await;
        let left = ask("operator", "What is left?", &["tests", "docs", "lint"], true, 0);
        bob.question_of(left).await;
        bob.publish("tracker", &[("issue-7", "issue 7 is yours")]).await;
    }

    /// Bob's mail dies, and he reaches a limit.
    async fn failures(&mut self) {
        let mut bob = Player::attach(self, "bob").await;
        let how = EndTurnRequest {
            error: "claude exited with 1".to_owned(),
            output_tail: "first line\nlast \u{1b}[31mline".to_owned(),
            ..EndTurnRequest::default()
        };
        for _ in 0..6 {
            bob.begin().await;
            self.pass(400);
            bob.end(TurnOutcome::Failed, how.clone()).await;
            self.pass(2000);
        }
        self.operator().await.send("bob", "Are you there?").await;
        bob.begin().await;
        let until = EndTurnRequest {
            error: "429".to_owned(),
            retry_time: Some(self.due(3600)),
            ..EndTurnRequest::default()
        };
        bob.end(TurnOutcome::RateLimited, until).await;
        self.bob = Some(bob);
    }

    /// Ada, in a turn without mail, has questions.
    async fn questions(&mut self) {
        let operator = self.operator().await;
        let mut ada = self.ada.take().expect("attached");
        ada.open(TurnKind::Continue).await.print(&[(Note, "started: no message")]).await;
        operator.ask("ada", "How long will it take?").await;
        let claude = ada.claude(self).await;
        let yes_no = &["yes", "no"];
        let deploy = "Deploy now?\nThe build is\u{1b}[31m green.";
        claude.question_of(ask("operator", deploy, yes_no, false, 90 * DAY)).await;
        claude.question_of(ask("operator", "Merge?", yes_no, false, 0)).await;
        let which = claude.question_of(ask("bob", "Which?", &["a", "b"], true, 0)).await;
        let answer = ["--choice", "a", "--choice", "b", "both\nthen"];
        self.operate(&[&["answer", &which.to_string()][..], &answer].concat()).await;
        self.user = operator.question(which).await.closed_by;
        let withdrawn = claude.ask("bob", "Still there?").await;
        claude.withdraw(withdrawn).await;
        let ready = operator.question_of(ask("bob", "Ready?", &[], false, 60)).await;
        self.pass(70_000);
        operator.closed(ready, QuestionState::Expired).await;
        self.ada = Some(ada);
    }

    /// Ada's reminders, and a problem of her harness.
    async fn reminders(&mut self) {
        let (operator, claude) = (self.operator().await, self.claude().await);
        claude.remind("look at the build\nagain", self.due(40 * DAY)).await;
        claude.remind("stretch", self.due(120)).await;
        let cancelled = claude.remind("never mind", self.due(40 * DAY)).await.id;
        self.operate(&["reminders", "cancel", &cancelled.to_string()]).await;
        self.pass(60_000);
        let fired = |found: &Reminder| found.state() == ReminderState::Fired;
        while !operator.reminders("ada").await.iter().any(fired) {
            tokio::task::yield_now().await;
        }
        let problem = ReportProblemRequest {
            request_id: fresh_id(),
            subject: "disk".to_owned(),
            text: "Its disk is full.".to_owned(),
        };
        let problem = in_session(problem, &self.ada().session);
        let problem =
            self.ada().turns.report_problem(problem).await.expect("it is taken").into_inner();
        self.finds("disk", problem.message_id).await;
    }
}

/// Mail from outside.
async fn wake(agent: &Client, body: &str) {
    let wake = WakeRequest {
        request_id: fresh_id(),
        label: "matrix.room".to_owned(),
        body: body.to_owned(),
        coalescing_key: "k".to_owned(),
    };
    WakeServiceClient::new(agent.channel()).wake(wake).await.expect("it is taken");
}

fn used(factor: u64, compacted: bool) -> EndTurnRequest {
    let uses = [("mcp__hive__send", 100), ("mcp__hive__recv", 30), ("Read", 1)];
    let uses = uses.map(|(name, count)| ToolUse { name: name.to_owned(), count });
    EndTurnRequest {
        usage: Some(TurnUsage {
            input_tokens: 1200,
            cache_read_tokens: 200_000,
            cache_creation_tokens: 3000,
            output_tokens: 550 * factor,
            cost_micro_usd: 12_345 * factor,
            inference_count: 9,
            tool_call_count: 131,
        }),
        tool_uses: uses.to_vec(),
        compacted,
        ..EndTurnRequest::default()
    }
}

fn ask(
    target: &str,
    text: &str,
    options: &[&str],
    multi: bool,
    seconds: i64,
) -> AskQuestionRequest {
    let ttl = prost_types::Duration { seconds, nanos: 0 };
    let options = request::texts(options);
    let ttl = (seconds > 0).then_some(ttl);
    AskQuestionRequest { options, multi, ttl, ..request::ask(target, text) }
}

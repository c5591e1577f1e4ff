//! Turns, as the script has them. Ada's open turn does what the test says, and there may be a next
//! one.

use std::sync::atomic::Ordering;

use hive_core::reason::Reason;
use hive_proto::status::{bad_field, refusal};
use hive_proto::v1::turn_history_service_server::TurnHistoryService;
use hive_proto::v1::*;
use prost_types::Duration;
use tokio_stream::wrappers::BroadcastStream;
use tokio_stream::{StreamExt as _, iter};
use tonic::{Request, Response, Status};

use super::people::Streaming;
use super::{Answer, Broker, Script, data, refused};

/// The open turn, and the one after it.
const OPEN: u64 = 21;
const NEXT: u64 = 24;

/// What ada's open turn does.
#[derive(Clone)]
pub(crate) enum Output {
    /// It prints a line, of this number.
    Line(u64, String),
    /// It ends.
    Ends,
    /// The connection breaks; it goes on all the same.
    Breaks,
}

impl Broker {
    /// Ada's open turn does something.
    pub(crate) fn turn_does(&self, output: Output) {
        if matches!(output, Output::Ends) {
            self.script.has_ended.store(true, Ordering::SeqCst);
        }
        let _ = self.script.output.send(output);
    }

    /// Ada's next turn begins.
    pub(crate) fn next_turn(&self) {
        self.script.has_begun.store(true, Ordering::SeqCst);
        let kind = EventKind::TurnBegun.into();
        self.happens(Event {
            sequence: 20,
            kind,
            agent: "ada".to_owned(),
            turn_id: NEXT,
            ..Event::default()
        });
    }
}

impl Script {
    /// The newest first.
    fn turns(&self) -> Vec<Turn> {
        if self.empty {
            return Vec::new();
        }
        let mut turns = data::turns();
        if self.has_ended.load(Ordering::SeqCst) {
            turns[0].outcome = TurnOutcome::Ok.into();
            turns[0].end_time = data::at(9000);
        }
        if self.has_begun.load(Ordering::SeqCst) {
            let next = Turn {
                id: NEXT,
                kind: TurnKind::Compact.into(),
                outcome: TurnOutcome::Failed.into(),
                ..turns[0].clone()
            };
            turns.insert(0, Turn { error: "nothing to compact".to_owned(), ..next });
        }
        turns
    }
}

fn line(sequence: u64, stream: TurnEventStream, line: &str) -> TurnEvent {
    TurnEvent { sequence, stream: stream.into(), line: line.to_owned(), time: data::at(200) }
}

fn printed(events: Vec<TurnEvent>) -> Result<WatchTurnResponse, Status> {
    Ok(WatchTurnResponse { events, state: RunState::Partial.into(), state_time: data::at(200) })
}

#[tonic::async_trait]
impl TurnHistoryService for Script {
    async fn list_turns(&self, request: Request<ListTurnsRequest>) -> Answer<ListTurnsResponse> {
        let agent = request.into_inner().agent;
        if agent == "bbo" {
            return Err(refusal(
                Reason::AgentNotFound,
                "there is no agent `bbo`; did you mean `bob`?",
                None,
            ));
        }
        let mut turns = self.turns();
        turns.retain(|turn| agent.is_empty() || turn.agent == agent);
        Ok(Response::new(ListTurnsResponse { turns, next_page_token: String::new() }))
    }

    async fn get_turn(&self, request: Request<GetTurnRequest>) -> Answer<GetTurnResponse> {
        let id = request.into_inner().turn_id;
        let turn = self.turns().into_iter().find(|turn| turn.id == id);
        let turn = turn
            .ok_or_else(|| refusal(Reason::TurnNotFound, format!("there is no turn {id}"), None))?;
        Ok(Response::new(GetTurnResponse { turn: Some(turn) }))
    }

    type WatchTurnStream = Streaming<WatchTurnResponse>;

    async fn watch_turn(
        &self,
        request: Request<WatchTurnRequest>,
    ) -> Answer<Self::WatchTurnStream> {
        use TurnEventStream::{Note, Stderr, Stdout};
        let WatchTurnRequest { turn_id, after_sequence, follow } = request.into_inner();
        let mut events = match turn_id {
            11 => vec![
                line(1, Note, "claude starts"),
                line(
                    2,
                    Stdout,
                    r#"{"type":"assistant","message":{"content":[{"type":"text","text":"It is 42."}]}}"#,
                ),
                line(
                    3,
                    Stdout,
                    r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"mcp__hive__send","input":{"body":"It is\n42.","to":"operator"}}]}}"#,
                ),
                line(
                    4,
                    Stdout,
                    r#"{"type":"user","message":{"content":[{"type":"tool_result","content":"sent as \u001b[31m14"}]}}"#,
                ),
                line(
                    5,
                    Stdout,
                    r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":2}"#,
                ),
                line(6, Stderr, "a \u{1b}[1mwarning"),
            ],
            OPEN => vec![line(1, Note, "started: no message")],
            NEXT => vec![line(1, Note, "started: to compact")],
            _ => Vec::new(),
        };
        events.retain(|event| event.sequence > after_sequence);
        let kept = iter([printed(events)]);
        if turn_id != OPEN || !follow || self.has_ended.load(Ordering::SeqCst) {
            return Ok(Response::new(Box::pin(kept)));
        }
        let live = BroadcastStream::new(self.output.subscribe())
            .map(|output| output.expect("the test sends few"));
        let _ = self.watched.send(());
        let live =
            live.take_while(|output| !matches!(output, Output::Ends)).map(|output| match output {
                Output::Line(sequence, text) => printed(vec![line(sequence, Stdout, &text)]),
                Output::Ends | Output::Breaks => Err(Status::unavailable("transport lost")),
            });
        Ok(Response::new(Box::pin(kept.chain(live))))
    }

    async fn get_turn_stats(
        &self,
        request: Request<GetTurnStatsRequest>,
    ) -> Answer<GetTurnStatsResponse> {
        let GetTurnStatsRequest { agent, window } = request.into_inner();
        let seconds = window.map_or(86_400, |window| window.seconds);
        if seconds > 366 * 86_400 {
            return Err(bad_field("window", "at most 366 days are looked back"));
        }
        let open = Some(OpenCounts {
            questions_asked: 1,
            questions_owed: if agent.is_empty() { 0 } else { 2 },
            reminders_pending: 3,
        });
        let response = GetTurnStatsResponse {
            start_time: data::at(-seconds * 1000),
            end_time: data::at(0),
            open,
            ..Default::default()
        };
        if self.empty {
            return Ok(Response::new(GetTurnStatsResponse {
                total: Some(TurnStats::default()),
                ..response
            }));
        }
        match agent.as_str() {
            "" => {
                let rows = [("ada", ada()), ("bob\u{1b}[31m", bob())];
                let agents = rows.map(|(agent, stats)| AgentTurnStats {
                    agent: agent.to_owned(),
                    stats: Some(stats),
                });
                Ok(Response::new(GetTurnStatsResponse {
                    total: Some(together()),
                    agents: agents.to_vec(),
                    ..response
                }))
            }
            "ada" => Ok(Response::new(GetTurnStatsResponse {
                total: Some(detailed(seconds)),
                ..response
            })),
            "bob" => Ok(Response::new(GetTurnStatsResponse {
                total: Some(TurnStats::default()),
                ..response
            })),
            _ => refused(Reason::AgentNotFound, format!("there is no agent `{agent}`")),
        }
    }
}

fn counts(ok: u64, failed: u64) -> Vec<TurnOutcomeCount> {
    let rows = [(TurnOutcome::Ok, ok), (TurnOutcome::Failed, failed)]
        .into_iter()
        .filter(|(_, count)| *count > 0);
    rows.map(|(outcome, count)| TurnOutcomeCount { outcome: outcome.into(), count }).collect()
}

fn ada() -> TurnStats {
    TurnStats {
        turn_count: 40,
        kinds: vec![
            TurnKindCount { kind: TurnKind::Mail.into(), count: 37 },
            TurnKindCount { kind: TurnKind::Compact.into(), count: 3 },
        ],
        outcomes: counts(38, 2),
        usage: Some(TurnUsage {
            input_tokens: 1200,
            cache_read_tokens: 2_000_000,
            cache_creation_tokens: 30_000,
            output_tokens: 5500,
            cost_micro_usd: 1_234_567,
            inference_count: 90,
            tool_call_count: 131,
        }),
        duration_p50: Some(Duration { seconds: 3, nanos: 500_000_000 }),
        duration_p95: Some(Duration { seconds: 75, nanos: 0 }),
        compaction_count: 3,
        ..TurnStats::default()
    }
}

fn bob() -> TurnStats {
    TurnStats { turn_count: 1, outcomes: counts(1, 0), ..TurnStats::default() }
}

fn together() -> TurnStats {
    TurnStats { turn_count: 41, outcomes: counts(39, 2), ..ada() }
}

fn detailed(seconds: i64) -> TurnStats {
    let tools = [("mcp__hive__send", 100), ("mcp__hive__\u{1b}[31mrecv", 30), ("Read", 1)];
    let wakes = [
        (OriginKind::Agent, "", 20),
        (OriginKind::Operator, "", 10),
        (OriginKind::System, "reminder", 4),
        (OriginKind::External, "matrix.room", 3),
        (OriginKind::Unspecified, "", 3),
    ];
    let slice = |number: i64| TurnStatsSlice {
        start_time: data::at((number - 24) * seconds * 1000 / 24),
        turn_count: u64::try_from(number % 7).expect("positive"),
        not_ok_count: u64::from(number == 6),
        cost_micro_usd: u64::try_from(number % 7 * 20_000).expect("positive"),
        output_tokens: 100,
    };
    TurnStats {
        tools: tools.map(|(name, count)| ToolUse { name: name.to_owned(), count }).to_vec(),
        wakes: wakes
            .map(|(kind, detail, count)| TurnWakeCount {
                origin_kind: kind.into(),
                detail: detail.to_owned(),
                count,
            })
            .to_vec(),
        slices: (0..24).map(slice).collect(),
        ..ada()
    }
}

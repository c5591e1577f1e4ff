//! Sums of turns on the wire.

use hive_core::limits::STATS_WINDOW_DEFAULT;
use hive_core::turn::{Kind, Outcome};
use hive_proto::convert::{IntoWire, time};
use hive_proto::v1;
use tonic::{Request, Response, Status};

use crate::engine::turn::stats::{Open, Slice, Stats, TurnStats, Waker, Window};
use crate::rpc::Rpc;
use crate::rpc::edge::caller;

fn wake((waker, count): (Waker, u64)) -> v1::TurnWakeCount {
    use v1::OriginKind as Origin;
    let (origin, detail) = match waker {
        Waker::Agent => (Some(Origin::Agent), String::new()),
        Waker::Operator => (Some(Origin::Operator), String::new()),
        Waker::System(kind) => (Some(Origin::System), kind.to_string().replace(' ', "_")),
        Waker::External(label) => (Some(Origin::External), label),
        Waker::Turn(kind) => (None, kind.to_string()),
    };
    v1::TurnWakeCount { origin_kind: origin.map(Into::into), detail, count }
}

fn slice(slice: Slice) -> v1::TurnStatsSlice {
    let Slice { start, turns, not_ok, cost_micro_usd, output_tokens } = slice;
    v1::TurnStatsSlice {
        start_time: Some(time::timestamp(start)),
        turn_count: turns,
        not_ok_count: not_ok,
        cost_micro_usd,
        output_tokens,
    }
}

fn stats(stats: Stats) -> v1::TurnStats {
    let Stats {
        turns,
        kinds,
        outcomes,
        usage,
        duration_p50,
        duration_p95,
        compactions,
        tools,
        wakes,
        slices,
    } = stats;
    let kind =
        |(kind, count): (Kind, u64)| v1::TurnKindCount { kind: kind.into_wire().into(), count };
    let outcome = |(outcome, count): (Outcome, u64)| v1::TurnOutcomeCount {
        outcome: outcome.into_wire().into(),
        count,
    };
    v1::TurnStats {
        turn_count: turns,
        kinds: kinds.into_iter().map(kind).collect(),
        outcomes: outcomes.into_iter().map(outcome).collect(),
        usage: Some(usage.into_wire()),
        duration_p50: duration_p50.map(time::duration),
        duration_p95: duration_p95.map(time::duration),
        compaction_count: compactions,
        tools: tools.into_iter().map(IntoWire::into_wire).collect(),
        wakes: wakes.into_iter().map(wake).collect(),
        slices: slices.into_iter().map(slice).collect(),
    }
}

impl Rpc {
    /// Handles `GetTurnStats`.
    pub(in crate::rpc) async fn turn_stats(
        &self,
        request: Request<v1::GetTurnStatsRequest>,
    ) -> Result<Response<v1::GetTurnStatsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let v1::GetTurnStatsRequest { agent, window } = request.into_inner();
        let window = time::optional_span(window, "window")?.unwrap_or(STATS_WINDOW_DEFAULT);
        let TurnStats { window: Window { start, end }, total, agents, open } =
            self.engine.turn_stats(caller, agent, window).await?;
        let Open { questions_asked, questions_owed, reminders_pending } = open;
        let agents = agents
            .into_iter()
            .map(|(agent, of)| v1::AgentTurnStats { agent, stats: Some(stats(of)) });
        Ok(Response::new(v1::GetTurnStatsResponse {
            start_time: Some(time::timestamp(start)),
            end_time: Some(time::timestamp(end)),
            total: Some(stats(total)),
            agents: agents.collect(),
            open: Some(v1::OpenCounts { questions_asked, questions_owed, reminders_pending }),
        }))
    }
}

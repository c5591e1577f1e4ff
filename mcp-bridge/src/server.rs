//! The MCP server: the handshake, the list, and the envelope that every tool call runs in.
//!
//! Invariant: only a tool call, and the list of an agent that may ask for actions, connect to the
//! broker or the harness; everything else is answered from the process's own arguments and
//! environment.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use hive_core::limits::PROCESS_TOKEN_CHARS_MIN;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, DiscoverRequestMethod,
    DiscoverResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ProgressNotificationParam, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{QuitReason, RequestContext, ServerInitializeError};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::call::Call;
use crate::call_log::CallLog;
use crate::cli::{Args, PROCESS_TOKEN_ENV, Server};
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::{Peer, PeerKind};
use crate::stdio::WatchedReader;
use crate::tool::approvals::action;
use crate::tool::{self, Offer};
use crate::{call, group, render};

/// Interval of the progress notifications of a waiting call.
const PROGRESS_EVERY: Duration = Duration::from_secs(10);
/// Shortest outage that a result mentions.
const OUTAGE_SHOWN_MIN: Duration = Duration::from_secs(1);

/// Serves claude over stdin and stdout until stdin ends or a signal arrives.
pub async fn serve(args: Args) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let ended = stop.child_token();
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;

    let process_token = std::env::var(PROCESS_TOKEN_ENV)
        .ok()
        .filter(|token| token.len() >= PROCESS_TOKEN_CHARS_MIN);
    if process_token.is_none() && args.server.is_none() {
        tracing::warn!(
            "{PROCESS_TOKEN_ENV} is not set, or too short: this bridge belongs to no turn"
        );
    }
    let bridge = match &args.server {
        None => Bridge::hive(&args, process_token, ended.clone(), stop.clone()),
        Some(Server::Bash { task_socket }) => {
            Bridge::bash(task_socket, process_token, ended.clone(), stop.clone())
        }
    };
    let (stdin, stdout) = rmcp::transport::io::stdio_pipes();
    let served = async {
        let running = bridge
            .serve_with_ct((WatchedReader::new(stdin, ended), stdout), stop.clone())
            .await
            .map_err(Box::new)?;
        Ok::<QuitReason, ServeError>(running.waiting().await?)
    };
    tokio::pin!(served);
    let outcome = tokio::select! {
        outcome = &mut served => outcome,
        _ = interrupt.recv() => { stop.cancel(); served.await }
        _ = terminate.recv() => { stop.cancel(); served.await }
    };
    match outcome {
        Err(ServeError::Handshake(error)) if went_away(&error) => Ok(()),
        outcome => Ok(outcome.map(drop)?),
    }
}

/// Returns whether the client left before the handshake, as a probe does. That is not a fault.
fn went_away(error: &ServerInitializeError) -> bool {
    matches!(error, ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled)
}

#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("the MCP handshake failed")]
    Handshake(#[from] Box<ServerInitializeError>),
    #[error("the MCP session broke")]
    Session(#[from] tokio::task::JoinError),
}

struct Bridge {
    /// Name in the handshake.
    name: &'static str,
    peer: Peer,
    process_token: Option<String>,
    offers: Vec<Offer>,
    log: CallLog,
    /// Cancelled when stdin has ended: waiting calls end, the others may still finish.
    ended: CancellationToken,
    /// Cancelled by a signal: every call ends.
    stop: CancellationToken,
}

impl Bridge {
    /// Returns the server of Hive's own tools.
    fn hive(
        args: &Args,
        process_token: Option<String>,
        ended: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        let Args { socket, tool_groups, label: _, server: _ } = args;
        let offers = tool::of_groups(&group::parse(tool_groups));
        let peer =
            Peer::broker(socket, process_token.as_deref().and_then(|token| token.parse().ok()));
        Self {
            name: "hive",
            peer,
            process_token,
            offers,
            log: CallLog::from_environment(),
            ended,
            stop,
        }
    }

    /// Returns the server of shell tasks. Calls belong to no turn; the token only separates the
    /// tool uses of one claude process from those of another.
    fn bash(
        socket: &Path,
        process_token: Option<String>,
        ended: CancellationToken,
        stop: CancellationToken,
    ) -> Self {
        let process_token = Some(process_token.unwrap_or_else(call::random_id));
        Self {
            name: "bash",
            peer: Peer::harness(socket),
            process_token,
            offers: tool::bash(),
            log: CallLog::from_environment(),
            ended,
            stop,
        }
    }

    /// Returns whether the agent may ask for actions, each with a tool of its own.
    fn offers_actions(&self) -> bool {
        self.offers.iter().any(|offer| offer.group == Group::Approvals)
    }

    /// Returns the tool of this name. Which actions there are, the broker decides.
    fn find(&self, name: &str) -> Option<Found<'_>> {
        let offer = self.offers.iter().find(|offer| offer.tool.name == name).map(Found::Offer);
        let action = || name.strip_prefix(action::PREFIX).filter(|_| self.offers_actions());
        offer.or_else(|| action().map(|action| Found::Action(action.to_owned())))
    }

    async fn answer(
        &self,
        found: Found<'_>,
        call: &Call,
        params: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Outcome {
        let arguments = params.arguments.unwrap_or_default();
        let work = async {
            match found {
                Found::Offer(offer) => (offer.run)(&self.peer, call, arguments).await,
                // In a box, as the tools: all that a call may become counts for each call.
                Found::Action(name) => {
                    Box::pin(action::run(&self.peer, call, name, arguments)).await
                }
            }
        };
        tokio::select! {
            result = work => Outcome::Done(result),
            () = report_progress(call, context) => unreachable!("reporting never ends"),
            () = context.ct.cancelled() => Outcome::Cancelled,
            () = self.stop.cancelled() => Outcome::Cancelled,
        }
    }
}

/// A tool that can be called.
enum Found<'a> {
    Offer(&'a Offer),
    /// The tool of the action of this name.
    Action(String),
}

enum Outcome {
    Done(Result<String, Refusal>),
    Cancelled,
}

impl ServerHandler for Bridge {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new(self.name, env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25))
    }

    /// Claude's first frame asks for a newer protocol without `initialize`; after this refusal it
    /// sends `initialize` at once.
    async fn discover(
        &self,
        _context: RequestContext<RoleServer>,
    ) -> Result<DiscoverResult, ErrorData> {
        Err(ErrorData::method_not_found::<DiscoverRequestMethod>())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools: Vec<_> = self.offers.iter().map(|offer| offer.tool.clone()).collect();
        if self.offers_actions() {
            let call = Call::new(self.process_token.as_deref(), &context.meta, self.ended.clone());
            tools.extend(Box::pin(action::tools(&self.peer, &call)).await);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(found) = self.find(&params.name) else {
            let name = render::one_line(&params.name, 100);
            return Err(ErrorData::invalid_params(
                format!("there is no tool {name} here; tools/list names those there are"),
                None,
            ));
        };
        let call = Call::new(self.process_token.as_deref(), &context.meta, self.ended.clone());
        let tool = &params.name.clone();
        tracing::info!(%tool, tool_use_id = call.tool_use_id, request_id = call.request_id, "tool call");
        tracing::debug!(%tool, arguments = ?params.arguments, "tool call arguments");
        let started = Instant::now();
        let outcome = self.answer(found, &call, params, &context).await;
        let took = started.elapsed();
        let duration_ms = took.as_millis();
        let word = match &outcome {
            Outcome::Done(Ok(_)) => "ok",
            Outcome::Done(Err(refusal)) => refusal.code,
            Outcome::Cancelled => "cancelled",
        };
        self.log.note(self.name, tool, &call, took, word);
        let result = match outcome {
            Outcome::Done(Ok(text)) => {
                tracing::info!(%tool, tool_use_id = call.tool_use_id, duration_ms, outcome = "ok", "tool call done");
                tracing::debug!(%tool, text, "tool call result");
                CallToolResult::success(content(text, &call, self.peer.kind()))
            }
            Outcome::Done(Err(refusal)) => {
                tracing::info!(%tool, tool_use_id = call.tool_use_id, duration_ms, outcome = refusal.code, "tool call done");
                tracing::debug!(%tool, sentence = refusal.sentence, "tool call refused");
                CallToolResult::error(content(refusal.to_string(), &call, self.peer.kind()))
            }
            Outcome::Cancelled => {
                tracing::info!(%tool, tool_use_id = call.tool_use_id, duration_ms, outcome = "cancelled", "tool call done");
                CallToolResult::error(vec![ContentBlock::text(
                    "CLOSING: the call was ended before its answer came",
                )])
            }
        };
        Ok(result.into())
    }
}

/// Returns the result, with a line about an outage of the peer, if there was one.
fn content(mut text: String, call: &Call, kind: PeerKind) -> Vec<ContentBlock> {
    let away = call.away();
    if away >= OUTAGE_SHOWN_MIN {
        text.push_str(&format!(
            "\n(The {} was away; this call waited {} s for it.)",
            kind.as_str(),
            away.as_secs()
        ));
    }
    vec![ContentBlock::text(text)]
}

/// Sends progress notifications while a call waits; never returns.
async fn report_progress(call: &Call, context: &RequestContext<RoleServer>) {
    let Some(token) = context.meta.get_progress_token() else {
        return std::future::pending().await;
    };
    let started = Instant::now();
    loop {
        tokio::time::sleep(PROGRESS_EVERY).await;
        let mut progress =
            ProgressNotificationParam::new(token.clone(), started.elapsed().as_secs_f64().floor());
        progress.message = Some(call.waiting_for().to_owned());
        if let Err(error) = context.peer.notify_progress(progress).await {
            tracing::debug!(%error, "progress was not reported");
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_waiting_call_reports_progress_every_ten_seconds() {
        let nowhere = tempfile::tempdir().expect("a temporary directory");
        let socket = nowhere.path().join("hive.sock");
        let args = Args {
            socket,
            tool_groups: "messaging".to_owned(),
            label: String::new(),
            server: None,
        };
        let stop = CancellationToken::new();
        let bridge = Bridge::hive(
            &args,
            Some("a token of a turn".to_owned()),
            stop.child_token(),
            stop.clone(),
        );
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let served = tokio::spawn(async move {
            let running = bridge
                .serve_with_ct(tokio::io::split(theirs), stop)
                .await
                .expect("the handshake works");
            running.waiting().await.expect("the session ends well")
        });
        let (reader, mut writer) = tokio::io::split(ours);
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
        let call = json!({"name": "recv", "arguments": {"wait_seconds": 180}, "_meta": {"progressToken": "p"}});
        for (id, method, params) in [(1, "initialize", hello), (2, "tools/call", call)] {
            let frame = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            writer.write_all(format!("{frame}\n").as_bytes()).await.expect("the bridge reads");
        }
        let mut progress = Vec::new();
        let mut lines = BufReader::new(reader).lines();
        // The broker never runs, so the call fails after 45 s; until then it reports progress four
        // times.
        let result = loop {
            let line = lines.next_line().await.expect("frames are text").expect("the bridge lives");
            let frame: Value = serde_json::from_str(&line).expect("a frame is JSON");
            if frame["method"] == "notifications/progress" {
                progress.push(frame["params"].clone());
            } else if frame["id"] == 2 {
                break frame["result"].clone();
            }
        };
        let seconds: Vec<u64> = progress
            .iter()
            .map(|params| params["progress"].as_f64().expect("a number") as u64)
            .collect();
        assert_eq!(seconds, [10, 20, 30, 40]);
        assert_eq!(progress[0]["progressToken"], "p");
        assert_eq!(progress[0]["message"], "waiting for the broker, which is away");
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.starts_with("BROKER_AWAY: the broker did not answer for 45 s"), "{text}");
        drop((writer, lines));
        served.await.expect("the server ends when its client goes");
    }
}

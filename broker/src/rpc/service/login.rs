//! The login dialogue on the wire: the operator's stream (`Login`) and the harness's
//! (`ServeLogin`), each with the engine's channels behind it.
//!
//! Invariant: each direction waits for its slower side alone, and the end of either stream ends the
//! other. Input and output are passed on unchanged, and never logged.

use hive_core::caller::Caller;
use hive_core::limits::{
    ERROR_BYTES_MAX, LOGIN_ANSWER_MAX, LOGIN_STEP_BYTES_MAX, TERMINAL_KIND_CHARS_MAX,
};
use hive_proto::convert::{self, message};
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::{login_request, login_response, serve_login_request, serve_login_response};
use tokio::sync::{mpsc, oneshot};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::engine::operator::login::{End, Login, Said, Serving, Terminal, Typed};
use crate::engine::{Refusal, permit};
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::spawn::spawn;

/// Steps of a stream that wait for the transport.
const STREAM_STEPS: usize = 8;

type Out<T> = mpsc::Sender<Result<T, Status>>;
pub(in crate::rpc) type Answers<T> = Response<ReceiverStream<Result<T, Status>>>;

fn terminal(wire: v1::Terminal) -> Result<Terminal, Status> {
    let v1::Terminal { rows, columns, kind } = wire;
    let cells = |number, field| {
        u16::try_from(number)
            .map_err(|_| bad_field(field, "no terminal is so large; at most 65535"))
    };
    if kind.chars().count() > TERMINAL_KIND_CHARS_MAX || kind.contains(char::is_control) {
        return Err(bad_field(
            "terminal.kind",
            format!("it has at most {TERMINAL_KIND_CHARS_MAX} printable characters"),
        ));
    }
    Ok(Terminal {
        rows: cells(rows, "terminal.rows")?,
        columns: cells(columns, "terminal.columns")?,
        kind,
    })
}

fn wire_terminal(terminal: Terminal) -> v1::Terminal {
    let Terminal { rows, columns, kind } = terminal;
    v1::Terminal { rows: rows.into(), columns: columns.into(), kind }
}

/// Returns an operator's request as the harness gets it.
pub(in crate::rpc) fn wanted((login_id, terminal): (u64, Terminal)) -> v1::LoginWanted {
    v1::LoginWanted { login_id, terminal: Some(wire_terminal(terminal)) }
}

fn wire_end(end: End) -> v1::LoginEnd {
    let End { logged_in, error, exit_code } = end;
    v1::LoginEnd { logged_in, error, exit_code }
}

fn end(wire: v1::LoginEnd) -> End {
    let v1::LoginEnd { logged_in, mut error, exit_code } = wire;
    error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
    End { logged_in, error, exit_code }
}

fn piece(bytes: Vec<u8>, field: &str) -> Result<Vec<u8>, Status> {
    if bytes.len() > LOGIN_STEP_BYTES_MAX {
        let problem =
            format!("it has {} bytes; send at most {LOGIN_STEP_BYTES_MAX} at a time", bytes.len());
        return Err(bad_field(field, problem));
    }
    Ok(bytes)
}

fn not_a_start(field: &str) -> Status {
    bad_field(field, "it is the first step, and only that")
}

/// Returns the outcome of a dialogue for the log.
fn how(end: &End) -> String {
    match (end.logged_in, end.error.as_str()) {
        (true, _) => "logged in".to_owned(),
        (false, "") => format!("not logged in; claude ended with {}", end.exit_code),
        (false, error) => format!("not logged in: {error}"),
    }
}

/// Passes the operator's input to the harness. Returns the operator's error, or nothing if the
/// operator disconnected. If the operator only closes the input, it does not return.
async fn type_in(
    stream: &mut Streaming<v1::LoginRequest>,
    typed: &mpsc::Sender<Typed>,
) -> Option<Status> {
    use login_request::Step;
    loop {
        let step = match stream.message().await {
            Ok(Some(v1::LoginRequest { step: Some(Step::Input(bytes)) })) => {
                piece(bytes, "input").map(Typed::Input)
            }
            Ok(Some(v1::LoginRequest { step: Some(Step::Terminal(size)) })) => {
                terminal(size).map(Typed::Terminal)
            }
            Ok(Some(v1::LoginRequest { step: Some(Step::Start(_)) })) => Err(not_a_start("start")),
            Ok(Some(v1::LoginRequest { step: None })) => Err(bad_field("step", "must be set")),
            Ok(None) => return std::future::pending().await,
            Err(_) => return None,
        };
        match step {
            // If the harness has disconnected, its own side reports that.
            Ok(step) => drop(typed.send(step).await),
            Err(status) => return Some(status),
        }
    }
}

/// Passes the harness's output to the operator until its end; `None` if the harness disconnected
/// without one.
async fn show(said: &mut mpsc::Receiver<Said>, out: &Out<v1::LoginResponse>) -> Option<End> {
    while let Some(said) = said.recv().await {
        match said {
            // If the operator has disconnected, the stream is closed.
            Said::Output(bytes) => {
                drop(
                    out.send(Ok(v1::LoginResponse {
                        step: Some(login_response::Step::Output(bytes)),
                    }))
                    .await,
                );
            }
            Said::End(end) => return Some(end),
        }
    }
    None
}

/// The outcome in the log if the operator did not wait for the end.
const GONE: &str = "the operator went away";

/// Passes the output of the dialogue to the operator's side: until its end, or an error of the
/// harness.
async fn say(
    stream: &mut Streaming<v1::ServeLoginRequest>,
    said: &mpsc::Sender<Said>,
) -> Result<(), Status> {
    use serve_login_request::Step;
    while let Some(v1::ServeLoginRequest { step }) = stream.message().await? {
        let step = match step {
            Some(Step::Output(bytes)) => Said::Output(piece(bytes, "output")?),
            Some(Step::End(wire)) => Said::End(end(wire)),
            Some(Step::Start(_)) => return Err(not_a_start("start")),
            None => return Err(bad_field("step", "must be set")),
        };
        let over = matches!(step, Said::End(_));
        if said.send(step).await.is_err() || over {
            return Ok(());
        }
    }
    Ok(())
}

/// Passes the operator's input to the harness; ends when either disconnects.
async fn hand_over(typed: &mut mpsc::Receiver<Typed>, out: &Out<v1::ServeLoginResponse>) {
    use serve_login_response::Step;
    while let Some(step) = typed.recv().await {
        let step = match step {
            Typed::Input(bytes) => Step::Input(bytes),
            Typed::Terminal(terminal) => Step::Terminal(wire_terminal(terminal)),
        };
        if out.send(Ok(v1::ServeLoginResponse { step: Some(step) })).await.is_err() {
            return;
        }
    }
}

impl Rpc {
    /// Returns the first step of a stream.
    async fn first<M>(&self, stream: &mut Streaming<M>) -> Result<Option<M>, Status> {
        tokio::select! {
            first = stream.message() => first,
            () = self.engine.draining().cancelled() => Err(Refusal::Draining.into()),
        }
    }

    /// Handles `Login`: the operator's side. It is answered once the harness serves the dialogue.
    pub(in crate::rpc) async fn begin_login(
        &self,
        request: Request<Streaming<v1::LoginRequest>>,
    ) -> Result<Answers<v1::LoginResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut stream = request.into_inner();
        let Some(v1::LoginRequest { step: Some(login_request::Step::Start(start)) }) =
            self.first(&mut stream).await?
        else {
            return Err(not_a_start("start"));
        };
        let v1::LoginStart { agent, terminal: size } = start;
        let name = message::agent_name(&agent, "start.agent")?;
        let login =
            self.engine.begin_login(caller, name, terminal(size.unwrap_or_default())?).await?;
        permit::release();
        let (out, answers) = mpsc::channel(STREAM_STEPS);
        let (begun, answered) = oneshot::channel();
        // A task of its own: it ends the dialogue cleanly, even if this call is dropped.
        spawn(&self.streams, self.clone().log_in(login, stream, out, begun));
        answered.await.unwrap_or(Err(Refusal::Draining))?;
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn log_in(
        self,
        mut login: Login,
        mut stream: Streaming<v1::LoginRequest>,
        out: Out<v1::LoginResponse>,
        begun: oneshot::Sender<Result<(), Refusal>>,
    ) {
        let answered = tokio::select! {
            answered = self.engine.login_answered(&mut login, LOGIN_ANSWER_MAX) => answered,
            () = out.closed() => return self.engine.end_login(login, false, GONE).await,
        };
        if let Err(refusal) = answered {
            self.engine.end_login(login, false, &refusal.to_string()).await;
            drop(begun.send(Err(refusal)));
            return;
        }
        drop(begun.send(Ok(())));
        let (done, how) = tokio::select! {
            // An end that arrives at the same moment is not lost.
            biased;
            end = show(&mut login.said, &out) => self.last_word(end, &out).await,
            fault = type_in(&mut stream, &login.typed) => match fault {
                Some(status) => {
                    let how = format!("broken off: {}", status.message());
                    drop(out.send(Err(status)).await);
                    (false, how)
                }
                None => (false, GONE.to_owned()),
            },
            () = out.closed() => (false, GONE.to_owned()),
            () = self.engine.draining().cancelled() => self.last_word(None, &out).await,
        };
        self.engine.end_login(login, done, &how).await;
    }

    /// Reports the outcome of the dialogue to the operator, and returns it for the log. When the
    /// broker ends, both sides may go in any order.
    async fn last_word(&self, end: Option<End>, out: &Out<v1::LoginResponse>) -> (bool, String) {
        if end.is_none() && self.engine.draining().is_cancelled() {
            drop(out.send(Err(Refusal::Draining.into())).await);
            return (false, Refusal::Draining.to_string());
        }
        let end = end
            .unwrap_or_else(|| End { error: "the harness went away".to_owned(), ..End::default() });
        let (done, how) = (end.logged_in, how(&end));
        drop(
            out.send(Ok(v1::LoginResponse {
                step: Some(login_response::Step::End(wire_end(end))),
            }))
            .await,
        );
        (done, how)
    }

    /// Handles `ServeLogin`: the harness's side.
    pub(in crate::rpc) async fn take_login(
        &self,
        request: Request<Streaming<v1::ServeLoginRequest>>,
    ) -> Result<Answers<v1::ServeLoginResponse>, Status> {
        let (caller, token) = caller::session(&request)?;
        let mut stream = request.into_inner();
        let first = self.first(&mut stream).await?;
        let Some(v1::ServeLoginRequest { step: Some(serve_login_request::Step::Start(start)) }) =
            first
        else {
            return Err(not_a_start("start"));
        };
        let login_id = convert::bounded(start.login_id, "start.login_id")?;
        let serving = self.engine.serve_login(caller.clone(), token.clone(), login_id).await?;
        let (out, answers) = mpsc::channel(STREAM_STEPS);
        spawn(&self.streams, self.clone().serve(caller, token, serving, stream, out));
        Ok(Response::new(ReceiverStream::new(answers)))
    }

    async fn serve(
        self,
        caller: Caller,
        session_token: String,
        serving: Serving,
        mut stream: Streaming<v1::ServeLoginRequest>,
        out: Out<v1::ServeLoginResponse>,
    ) {
        let Serving { mut typed, said } = serving;
        let last_word = tokio::select! {
            biased;
            ended = say(&mut stream, &said) => ended.err(),
            () = hand_over(&mut typed, &out) => None,
            () = said.closed() => None,
            () = out.closed() => None,
            refusal = self.engine.session_over(caller, session_token) => Some(refusal.into()),
            () = self.engine.draining().cancelled() => Some(Refusal::Draining.into()),
        };
        if let Some(status) = last_word {
            drop(out.send(Err(status)).await);
        }
    }
}

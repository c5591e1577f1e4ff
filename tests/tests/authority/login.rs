//! The login dialogue through both sockets: the operator and one agent's own harness exchange data,
//! no other caller takes part, and each side gets a report if the other leaves.

use hive_core::reason::Reason;
use hive_proto::v1::admin_service_client::AdminServiceClient;
use hive_proto::v1::attach_response::Step as Attached;
use hive_proto::v1::event::Facts;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_proto::v1::*;
use hive_proto::{in_session, status, v1};
use hive_tests::rig::{Rig, Watch, soon};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Response, Status, Streaming};

/// An agent's harness that attaches and runs no turns.
#[derive(Debug)]
struct Harness {
    turns: TurnServiceClient<Channel>,
    session: String,
    stream: Streaming<AttachResponse>,
}

impl Harness {
    async fn attach(rig: &Rig, name: &str, take_over: bool) -> Self {
        let mut turns = TurnServiceClient::new(rig.agent(name).await.channel());
        let request = AttachRequest { take_over, ..AttachRequest::default() };
        let mut stream = turns.attach(request).await.expect("it may attach").into_inner();
        let first = soon("the harness is attached", stream.message())
            .await
            .expect("an answer")
            .expect("an answer");
        let Some(Attached::Attached(v1::Attached { session_token, .. })) = first.step else {
            panic!("{first:?}")
        };
        Self { turns, session: session_token, stream }
    }

    /// Returns the login that the broker requests.
    async fn wanted(&mut self) -> LoginWanted {
        let step = soon("a login is wanted", self.stream.message())
            .await
            .expect("it is attached")
            .expect("it is attached");
        match step.step {
            Some(Attached::LoginWanted(wanted)) => wanted,
            step => panic!("{step:?}"),
        }
    }

    /// Serves a dialogue with this session.
    async fn serve(&self, session: &str, login_id: u64) -> Result<Served, Status> {
        let (say, said) = mpsc::channel(4);
        let start = ServeLoginStart { login_id };
        say.send(of_harness(serve_login_request::Step::Start(start))).await.expect("a stream");
        let said = in_session(ReceiverStream::new(said), session);
        let answer = soon("it is answered", self.turns.clone().serve_login(said)).await?;
        Ok(Served { say, typed: answer.into_inner() })
    }
}

fn of_harness(step: serve_login_request::Step) -> ServeLoginRequest {
    ServeLoginRequest { step: Some(step) }
}

fn of_operator(step: login_request::Step) -> LoginRequest {
    LoginRequest { step: Some(step) }
}

fn terminal(rows: u32) -> Terminal {
    Terminal { rows, columns: 80, kind: "xterm-256color".to_owned() }
}

#[derive(Debug)]
struct Served {
    say: mpsc::Sender<ServeLoginRequest>,
    typed: Streaming<ServeLoginResponse>,
}

impl Served {
    async fn output(&self, bytes: &[u8]) {
        self.say
            .send(of_harness(serve_login_request::Step::Output(bytes.to_vec())))
            .await
            .expect("a stream");
    }

    async fn end(&self, logged_in: bool, error: &str) {
        let end = LoginEnd { logged_in, error: error.to_owned(), exit_code: 0 };
        self.say.send(of_harness(serve_login_request::Step::End(end))).await.expect("a stream");
    }

    async fn next(&mut self) -> Result<Option<serve_login_response::Step>, Status> {
        Ok(soon("the operator says something", self.typed.message())
            .await?
            .and_then(|step| step.step))
    }
}

type Answer = Result<Response<Streaming<LoginResponse>>, Status>;

#[derive(Debug)]
struct Login {
    typing: mpsc::Sender<LoginRequest>,
    answer: JoinHandle<Answer>,
}

impl Login {
    async fn start(rig: &Rig, agent: &str, terminal: Terminal) -> Self {
        let mut admin = AdminServiceClient::new(rig.operator().await.channel());
        let (typing, typed) = mpsc::channel(4);
        let start = LoginStart { agent: agent.to_owned(), terminal: Some(terminal) };
        typing.send(of_operator(login_request::Step::Start(start))).await.expect("a stream");
        let answer = tokio::spawn(async move { admin.login(ReceiverStream::new(typed)).await });
        Self { typing, answer }
    }

    async fn answered(
        self,
    ) -> Result<(mpsc::Sender<LoginRequest>, Streaming<LoginResponse>), Status> {
        let answer = soon("the operator is answered", self.answer).await.expect("no panic")?;
        Ok((self.typing, answer.into_inner()))
    }
}

async fn next(
    stream: &mut Streaming<LoginResponse>,
) -> Result<Option<login_response::Step>, Status> {
    Ok(soon("the dialogue says something", stream.message()).await?.and_then(|step| step.step))
}

fn reason<T: std::fmt::Debug>(answer: Result<T, Status>) -> Reason {
    let refusal = answer.expect_err("it is refused");
    status::reason(&refusal).unwrap_or_else(|| panic!("{refusal:?}"))
}

async fn hive() -> (Rig, Harness, Watch) {
    let mut rig = Rig::new("[agents.ada]\n[agents.bob]\n");
    rig.start_broker().await;
    let harness = Harness::attach(&rig, "bob", false).await;
    let events = rig.watch_from_now().await;
    (rig, harness, events)
}

/// Opens a dialogue with both sides present.
async fn dialogue(
    rig: &Rig,
    harness: &mut Harness,
) -> (mpsc::Sender<LoginRequest>, Streaming<LoginResponse>, Served) {
    let login = Login::start(rig, "bob", terminal(24)).await;
    let wanted = harness.wanted().await;
    let served = harness.serve(&harness.session, wanted.login_id).await.expect("it may serve");
    let (typing, shown) = login.answered().await.expect("the harness answers");
    (typing, shown, served)
}

fn ended(error: &str) -> Option<login_response::Step> {
    Some(login_response::Step::End(LoginEnd {
        logged_in: false,
        error: error.to_owned(),
        exit_code: 0,
    }))
}

#[tokio::test]
async fn the_operator_logs_an_agents_claude_in() {
    let (rig, mut harness, mut events) = hive().await;
    let login = Login::start(&rig, "bob", terminal(24)).await;
    let wanted = harness.wanted().await;
    assert_eq!(wanted.terminal, Some(terminal(24)));
    let mut served = harness.serve(&harness.session, wanted.login_id).await.expect("it may serve");
    let (typing, mut shown) = login.answered().await.expect("the harness answers");
    let begun = events.kind("bob", EventKind::CommandGiven).await;
    assert!(begun.detail.starts_with("login, by uid "), "{begun:?}");
    let asked = CommandGiven { kind: CommandKind::Login.into(), command_id: 0 };
    assert_eq!(begun.facts, Some(Facts::CommandGiven(asked)));
    served.output(b"Paste the code: ").await;
    assert_eq!(
        next(&mut shown).await.expect("said"),
        Some(login_response::Step::Output(b"Paste the code: ".to_vec()))
    );
    for step in [
        login_request::Step::Terminal(terminal(50)),
        login_request::Step::Input(b"c0de-of-the-login\r".to_vec()),
    ] {
        typing.send(of_operator(step)).await.expect("a stream");
    }
    assert_eq!(
        served.next().await.expect("typed"),
        Some(serve_login_response::Step::Terminal(terminal(50)))
    );
    let input = serve_login_response::Step::Input(b"c0de-of-the-login\r".to_vec());
    assert_eq!(served.next().await.expect("typed"), Some(input));
    served.output(b"Logged in.").await;
    served.end(true, "").await;
    assert_eq!(
        next(&mut shown).await.expect("said"),
        Some(login_response::Step::Output(b"Logged in.".to_vec()))
    );
    let end = LoginEnd { logged_in: true, ..LoginEnd::default() };
    assert_eq!(next(&mut shown).await.expect("said"), Some(login_response::Step::End(end)));
    assert_eq!(next(&mut shown).await.expect("its end"), None);
    assert_eq!(served.next().await.expect("its end"), None);
    let closed = events.kind("bob", EventKind::CommandClosed).await;
    assert_eq!(closed.detail, "login: logged in");
    let done = CommandClosed { done: true, command_id: 0 };
    assert_eq!(closed.facts, Some(Facts::CommandClosed(done)));
    assert!(!rig.read("hived.log").contains("c0de-of-the-login"), "what is typed is in no log");
    let on_disk = format!("{:?}", rig.on_disk());
    assert!(!on_disk.contains("c0de-of-the-login"), "nor on disk");
}

#[tokio::test]
async fn only_the_agents_own_harness_serves_it() {
    let (rig, mut harness, _) = hive().await;
    let other = Harness::attach(&rig, "ada", false).await;
    let _login = Login::start(&rig, "bob", terminal(24)).await;
    let id = harness.wanted().await.login_id;
    let before = rig.on_disk();
    assert_eq!(reason(other.serve(&other.session, id).await), Reason::LoginNotFound);
    assert_eq!(reason(other.serve(&harness.session, id).await), Reason::SessionLost);
    assert_eq!(reason(harness.serve(&other.session, id).await), Reason::SessionLost);
    assert_eq!(reason(harness.serve(&harness.session, id ^ 1).await), Reason::LoginNotFound);
    let served = harness.serve(&harness.session, id).await.expect("its own");
    assert_eq!(reason(harness.serve(&harness.session, id).await), Reason::LoginNotFound);
    rig.unchanged(&before, "a dialogue");
    drop(served);
    // The operator's service is absent from an agent's socket.
    let (typing, typed) = mpsc::channel(1);
    let start = LoginStart { agent: "bob".to_owned(), terminal: None };
    typing.send(of_operator(login_request::Step::Start(start))).await.expect("a stream");
    let refusal = AdminServiceClient::new(rig.agent("bob").await.channel())
        .login(ReceiverStream::new(typed))
        .await;
    assert_eq!(refusal.map(drop).expect_err("no such service").code(), Code::Unimplemented);
}

#[tokio::test]
async fn a_login_that_cannot_be_is_refused_with_its_reason() {
    let (rig, mut harness, _) = hive().await;
    let before = rig.on_disk();
    let try_with = async |agent: &str, terminal| {
        reason(Login::start(&rig, agent, terminal).await.answered().await)
    };
    assert_eq!(try_with("ada", terminal(24)).await, Reason::HarnessOffline);
    assert_eq!(try_with("nobody", terminal(24)).await, Reason::AgentNotFound);
    assert_eq!(try_with("", terminal(24)).await, Reason::FieldInvalid);
    assert_eq!(try_with("bob", terminal(70_000)).await, Reason::FieldInvalid);
    for kind in ["x".repeat(65), "a\u{1b}b".to_owned()] {
        assert_eq!(try_with("bob", Terminal { kind, ..terminal(24) }).await, Reason::FieldInvalid);
    }
    for step in [None, Some(login_request::Step::Input(b"x".to_vec()))] {
        let mut admin = AdminServiceClient::new(rig.operator().await.channel());
        let answer =
            soon("an answer", admin.login(tokio_stream::once(LoginRequest { step }))).await;
        assert_eq!(reason(answer), Reason::FieldInvalid);
    }
    for step in [None, Some(serve_login_request::Step::Output(b"x".to_vec()))] {
        let answer = harness.turns.serve_login(tokio_stream::once(ServeLoginRequest { step }));
        assert_eq!(reason(soon("an answer", answer).await), Reason::FieldInvalid);
    }
    rig.unchanged(&before, "a login that cannot be");
    let first = Login::start(&rig, "bob", terminal(24)).await;
    let wanted = harness.wanted().await;
    assert_eq!(try_with("bob", terminal(24)).await, Reason::LoginOpen);
    // A harness that cannot serve it, because a turn runs, reports so.
    let served = harness.serve(&harness.session, wanted.login_id).await.expect("it may serve");
    served.end(false, "a turn runs").await;
    let (_typing, mut shown) = first.answered().await.expect("the harness answers");
    assert_eq!(next(&mut shown).await.expect("said"), ended("a turn runs"));
    let (_typing, mut shown, served) = dialogue(&rig, &mut harness).await;
    served.end(false, "").await;
    assert_eq!(next(&mut shown).await.expect("said"), ended(""));
}

#[tokio::test]
async fn when_the_harness_goes_the_operator_is_notified() {
    let (rig, mut harness, mut events) = hive().await;
    // The harness ends its stream without a report.
    let (_typing, mut shown, served) = dialogue(&rig, &mut harness).await;
    drop(served);
    assert_eq!(next(&mut shown).await.expect("said"), ended("the harness went away"));
    assert_eq!(next(&mut shown).await.expect("its end"), None);
    let closed = events.kind("bob", EventKind::CommandClosed).await;
    assert_eq!(closed.detail, "login: not logged in: the harness went away");
    let not_done = CommandClosed { done: false, command_id: 0 };
    assert_eq!(closed.facts, Some(Facts::CommandClosed(not_done)));
    // Another harness takes over.
    let (_typing, mut shown, mut served) = dialogue(&rig, &mut harness).await;
    let mut newer = Harness::attach(&rig, "bob", true).await;
    assert_eq!(reason(served.next().await), Reason::SessionLost);
    assert_eq!(next(&mut shown).await.expect("said"), ended("the harness went away"));
    // Invalid output ends it too.
    let (_typing, mut shown, mut served) = dialogue(&rig, &mut newer).await;
    served.output(&[b'x'; 64 * 1024 + 1]).await;
    assert_eq!(reason(served.next().await), Reason::FieldInvalid);
    assert_eq!(next(&mut shown).await.expect("said"), ended("the harness went away"));
}

#[tokio::test]
async fn when_the_operator_goes_the_harness_is_notified() {
    let (rig, mut harness, mut events) = hive().await;
    let (typing, shown, mut served) = dialogue(&rig, &mut harness).await;
    // The end of input does not end the dialogue.
    drop(typing);
    served.output(b"Are you there?").await;
    let mut shown = shown;
    assert_eq!(
        next(&mut shown).await.expect("said"),
        Some(login_response::Step::Output(b"Are you there?".to_vec()))
    );
    drop(shown);
    assert_eq!(served.next().await.expect("its end"), None);
    assert_eq!(
        events.kind("bob", EventKind::CommandClosed).await.detail,
        "login: the operator went away"
    );
    // The operator leaves before the harness has answered.
    let login = Login::start(&rig, "bob", terminal(24)).await;
    let id = harness.wanted().await.login_id;
    login.answer.abort();
    drop(login);
    assert_eq!(
        events.kind("bob", EventKind::CommandClosed).await.detail,
        "login: the operator went away"
    );
    assert_eq!(reason(harness.serve(&harness.session, id).await), Reason::LoginNotFound);
    // Invalid steps of the operator.
    let (typing, mut shown, mut served) = dialogue(&rig, &mut harness).await;
    let start = LoginStart { agent: "bob".to_owned(), terminal: None };
    typing.send(of_operator(login_request::Step::Start(start))).await.expect("a stream");
    assert_eq!(reason(next(&mut shown).await), Reason::FieldInvalid);
    assert_eq!(served.next().await.expect("its end"), None);
}

#[tokio::test]
async fn a_broker_that_ends_ends_dialogues_with_it() {
    let (mut rig, mut harness, _) = hive().await;
    let (_typing, mut shown, mut served) = dialogue(&rig, &mut harness).await;
    rig.operator().await.admin().drain(DrainRequest {}).await.expect("it drains");
    assert_eq!(reason(next(&mut shown).await), Reason::Draining);
    // The harness sees first either that the broker ends, or that the operator has gone.
    let last = served.next().await;
    assert!(matches!(&last, Ok(None)) || reason(last) == Reason::Draining);
    assert!(soon("the broker ends", rig.broker().wait()).await.success());
}

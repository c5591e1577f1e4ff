//! The broker of the hive: how it is started, and whether it answers.
//!
//! - `link`: the sandboxes, reported to each broker that is started
//!
//! Invariant: no second hive starts on the socket of one that runs.

pub(super) mod link;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hive_proto::connect::connect;
use hive_proto::v1::GetServerInfoRequest;
use hive_proto::v1::server_info_service_client::ServerInfoServiceClient;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{sleep, timeout};

use self::link::{BrokerStart, Registrar};
use crate::output::note;
use crate::supervise::UpError;
use crate::supervise::files::dir_lock::DirLock;
use crate::supervise::process::child::{Spec, last_words};
use crate::supervise::process::supervised::Ended;
use crate::supervise::setup::binaries::Binaries;
use crate::supervise::setup::environment;
use crate::supervise::setup::plan::Plan;
use crate::supervise::signals::Stop;

/// Maximum time of a broker that starts without an answer and without a new line in its log. While
/// it migrates a large database, it writes a line every other second.
const SILENCE_MAX: Duration = Duration::from_secs(20);
/// Interval between two tries to call the broker while it starts.
const ANSWER_PAUSE: Duration = Duration::from_millis(20);

pub(super) fn spec(plan: &Plan, binaries: &Binaries, registrar: Registrar) -> Spec {
    let mut args = vec!["--config".into(), plan.config_file.clone().into_os_string()];
    args.extend(["--state-dir".into(), plan.state_dir.clone().into_os_string()]);
    args.extend(["--runtime-dir".into(), plan.runtime_dir.clone().into_os_string()]);
    args.extend(["--agents-dir".into(), plan.agents_dir.clone().into_os_string()]);
    let env = environment::for_broker(&environment::of_caller());
    Spec {
        name: "hived".to_owned(),
        start: Arc::new(BrokerStart { program: binaries.hived.clone(), args, env, registrar }),
        dir: plan.base.clone(),
        log: plan.log_file("hived"),
        is_filtered: false,
        own_death_signal: true,
    }
}

/// Takes the place of this hive's only `up`, for as long as the value lives. Fails if a hive runs
/// there already, or is being started: its broker would answer in place of the one that this
/// program starts.
pub(crate) async fn take_place(plan: &Plan) -> Result<DirLock, UpError> {
    let dir = plan.runtime_dir.clone();
    let place = match DirLock::take(&dir) {
        Ok(Some(place)) => place,
        Ok(None) => return Err(UpError::OtherUp { dir }),
        Err(source) => return Err(UpError::Lock { dir, source }),
    };
    let socket = plan.operator_socket();
    match connect(&socket).await {
        Ok(_) => Err(UpError::AlreadyUp { socket }),
        Err(_) => Ok(place),
    }
}

pub(crate) async fn first_answer(
    plan: &Plan,
    ended: &mut UnboundedReceiver<Ended>,
    stop: &mut Stop,
) -> Result<(), UpError> {
    let log = plan.log_file("hived");
    tokio::select! {
        answered = answer_or_silence(plan) => answered.map_err(|Silent| UpError::BrokerSilent {
            seconds: SILENCE_MAX.as_secs(),
            last_words: last_words(&log),
        }),
        Some(ended) = ended.recv() => Err(UpError::BrokerEnded { ending: ended.description, last_words: last_words(&log) }),
        () = stop.asked() => Err(UpError::Interrupted),
    }
}

/// Waits until a broker that has ended is started again and answers; no longer than it may take to
/// start.
pub(crate) async fn answers_again(plan: &Plan, ended: &mut UnboundedReceiver<Ended>) {
    tokio::select! {
        // Without the broker, the harnesses end alone.
        _ = answer_or_silence(plan) => {}
        Some(_) = ended.recv() => note("the broker cannot be started again"),
    }
}

/// The broker neither answers nor writes to its log.
struct Silent;

/// Waits for the first answer for as long as the broker's log goes on, and shows its last line.
async fn answer_or_silence(plan: &Plan) -> Result<(), Silent> {
    let (socket, log) = (plan.operator_socket(), plan.log_file("hived"));
    let length = || std::fs::metadata(&log).map_or(0, |log| log.len());
    let mut heard = length();
    let mut answer = std::pin::pin!(answer(&socket));
    while timeout(SILENCE_MAX, &mut answer).await.is_err() {
        let now = length();
        if now == heard {
            return Err(Silent);
        }
        heard = now;
        note(&format!("the broker is still starting{}", last_words(&log)));
    }
    Ok(())
}

/// Waits until the broker answers a call. It takes connections earlier, while it opens its
/// database, and may yet refuse to start.
async fn answer(socket: &Path) {
    while !answers(socket).await {
        sleep(ANSWER_PAUSE).await;
    }
}

async fn answers(socket: &Path) -> bool {
    let Ok(channel) = connect(socket).await else { return false };
    let mut info = ServerInfoServiceClient::new(channel);
    // A refusal is an answer, too.
    match info.get_server_info(GetServerInfoRequest::default()).await {
        Ok(_) => true,
        Err(refusal) => !hive_proto::status::is_of_connection(&refusal),
    }
}

//! The way to the broker: the socket, an answer, and the long reading of its database.

use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;

use hive_proto::v1::{
    CheckIntegrityRequest, CheckIntegrityResponse, GetBrokerStatusRequest, GetBrokerStatusResponse,
};
use jiff::Timestamp;

use super::list::List;
use super::repair::Repair;
use crate::connect::{Broker, patiently, within};
use crate::context::Context;
use crate::error::Failure;
use crate::output::progress::Progress;
use crate::view::check::State;

const START: &str = "start it with `hivectl up --config hive.toml`, or its service; --socket or HIVE_SOCKET names another socket";

#[derive(Debug)]
pub(crate) struct Reached {
    pub(crate) broker: Broker,
    pub(crate) status: GetBrokerStatusResponse,
    /// The time of the broker's clock when it answered, to the second.
    pub(super) clock: Option<Timestamp>,
    pub(super) here: Timestamp,
}

pub(super) fn socket(path: &Path, list: &mut List) {
    let shown = path.display();
    let metadata = match path.metadata() {
        Ok(metadata) => metadata,
        Err(error) => {
            return list.problem("socket", format!("there is no socket {shown}: {error}"), START);
        }
    };
    let mode = metadata.permissions().mode() & 0o777;
    if !metadata.file_type().is_socket() {
        list.problem(
            "socket",
            format!("{shown} is no socket"),
            "name the broker's with --socket or HIVE_SOCKET",
        );
    } else if mode & 0o002 != 0 {
        let sentence = format!("{shown} has mode {mode:04o}: every user of this host can open it");
        list.repairable(
            "socket",
            State::Problem,
            sentence,
            format!("`chmod 0600 {shown}`; `socket_group` in hive.toml lets a group in"),
            Repair::SetMode { path: path.to_path_buf(), forbidden: 0o007, required: 0 },
            mode,
        );
    } else {
        list.ok("socket", format!("{shown}, mode {mode:04o}"));
    }
}

pub(super) async fn broker(context: &Context, list: &mut List) -> Option<Reached> {
    match ask(context).await {
        Ok(reached) => {
            let GetBrokerStatusResponse { version, pid, .. } = &reached.status;
            list.ok("broker", format!("hived {version} answers, pid {pid}"));
            Some(reached)
        }
        Err(failure) => {
            list.failure("broker", &failure, START);
            None
        }
    }
}

async fn ask(context: &Context) -> Result<Reached, Failure> {
    let broker = context.broker().await?;
    let mut admin = broker.admin();
    let call = admin.get_broker_status(GetBrokerStatusRequest {});
    let answer = within(context.timeout, call).await??;
    // HTTP puts the time of the server on every answer.
    let date = answer.metadata().get("date").and_then(|date| date.to_str().ok());
    let clock =
        date.and_then(|date| jiff::fmt::rfc2822::parse(date).ok()).map(|date| date.timestamp());
    Ok(Reached { broker, clock, here: Timestamp::now(), status: answer.into_inner() })
}

/// Checks the integrity of the whole database.
pub(super) async fn integrity(context: &Context, reached: Option<&Reached>, list: &mut List) {
    const NAME: &str = "integrity";
    let Some(reached) = reached else {
        return list.not_checked(NAME, "no broker answers who could read its database");
    };
    let progress = Progress::begin("the broker reads its database ...");
    let mut admin = reached.broker.admin();
    let call = admin.check_integrity(CheckIntegrityRequest {});
    let answer = patiently(context.patience, call).await;
    drop(progress);
    match answer.and_then(|answer| Ok(answer?.into_inner())) {
        Ok(CheckIntegrityResponse { problems, page_count }) => {
            if problems.is_empty() {
                list.ok(
                    NAME,
                    format!("{page_count} pages were read, and nothing is wrong with them"),
                );
            }
            for problem in problems {
                list.problem(NAME, problem, "keep the state directory as it is, and restore the last good backup into another");
            }
        }
        Err(failure) => list.failure(NAME, &failure, "try again"),
    }
}

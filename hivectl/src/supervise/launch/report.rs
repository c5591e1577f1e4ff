//! Reports to the broker of what becomes of harnesses, for the notices to their parents.
//!
//! Invariant: the reports of a launcher reach the broker in their order, and one that cannot be
//! sent now is sent again until the broker has answered.

use std::path::PathBuf;
use std::time::Duration;

use hive_core::agent::HarnessReport;
use hive_core::name::AgentName;
use hive_proto::connect::connect;
use hive_proto::convert::IntoWire;
use hive_proto::v1::ReportHarnessRequest;
use hive_proto::v1::launcher_service_client::LauncherServiceClient;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::spawn::spawn;

/// Pause before a report is sent again.
const AGAIN: Duration = Duration::from_millis(500);

/// Sends reports, until it is dropped.
#[derive(Debug)]
pub(crate) struct Reporter {
    reports: UnboundedSender<ReportHarnessRequest>,
    task: JoinHandle<()>,
}

/// Reports about the harness of one agent.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    name: AgentName,
    restart_count: u64,
    reports: UnboundedSender<ReportHarnessRequest>,
}

impl Reporter {
    pub(crate) fn new(socket: PathBuf) -> Self {
        let (reports, receiver) = unbounded_channel();
        Self { reports, task: spawn("reports", send_all(socket, receiver)) }
    }

    /// Returns the line for a harness that is started for this count of restarts.
    pub(crate) fn line(&self, name: AgentName, restart_count: u64) -> Line {
        Line { name, restart_count, reports: self.reports.clone() }
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Line {
    pub(crate) fn report(&self, report: HarnessReport, text: String) {
        let request = ReportHarnessRequest {
            name: self.name.to_string(),
            report: report.into_wire().into(),
            restart_count: self.restart_count,
            text,
        };
        // At the end it is not sent, and not needed.
        let _ = self.reports.send(request);
    }
}

async fn send_all(socket: PathBuf, mut reports: UnboundedReceiver<ReportHarnessRequest>) {
    let mut launcher = None;
    while let Some(report) = reports.recv().await {
        loop {
            let client = match launcher.take() {
                Some(client) => Some(client),
                None => connect(&socket).await.ok().map(LauncherServiceClient::new),
            };
            let Some(mut client) = client else {
                sleep(AGAIN).await;
                continue;
            };
            match client.report_harness(report.clone()).await {
                Err(status) if hive_proto::status::is_transient(&status) => sleep(AGAIN).await,
                // For an agent that is gone no notice is wanted.
                Ok(_) | Err(_) => {
                    launcher = Some(client);
                    break;
                }
            }
        }
    }
}

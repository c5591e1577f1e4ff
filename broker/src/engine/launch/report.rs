//! What a launcher reports of a harness.
//!
//! Invariant: the row has what the parent was notified of, so a repeated report has no effect, and
//! a harness that crashes again and again is one notice until it has run for a minute.

use std::sync::Arc;

use hive_core::agent::{HarnessReport, Heard};
use hive_core::event::Facts;
use hive_core::limits::OUTPUT_TAIL_BYTES_MAX;
use hive_core::message::SystemKind;
use hive_core::name::AgentName;

use crate::engine::mail::notice::{to_parent, to_parent_agent};
use crate::engine::mail::text::{cut_start, printable, quoted};
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::AgentRow;
use crate::store::event::{Fact, log};
use crate::store::wanted;

/// Longest text of how a harness ended, in bytes.
const ENDING_BYTES_MAX: usize = 256;

/// A report of a launcher.
#[derive(Clone, Debug)]
pub struct Report {
    /// The agent of the harness.
    pub name: AgentName,
    /// What became of it.
    pub report: HarnessReport,
    /// The restarts that were requested when it was started.
    pub restart_count: u64,
    /// How it ended, and its last lines.
    pub text: String,
}

impl Engine {
    /// Stores a report, and notifies the parent of what is new to it.
    pub async fn report_of_launcher(&self, report: Report) -> Result<(), Refusal> {
        self.check_open()?;
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                let me = actor::active(tx, report.name.as_str())?;
                let AgentRow { name, heard, restart_count, restarts_told, .. } = &*me;
                let tell = |heard, restarts| wanted::set_heard(tx, me.key, heard, restarts);
                match report.report {
                    HarnessReport::Started => {
                        let restarts = report.restart_count.min(*restart_count);
                        let restarted = restarts > *restarts_told;
                        if !restarted && *heard != Heard::Stopped {
                            return Ok(());
                        }
                        let still = if *heard == Heard::Stopped { Heard::Well } else { *heard };
                        tell(still, restarts.max(*restarts_told))?;
                        let how = if restarted { "restarted" } else { "started" };
                        let body = format!("{name} was {how}.");
                        to_parent_agent(tx, &limits, &me, SystemKind::Started, &body)
                    }
                    HarnessReport::Stopped if !me.stopped || *heard == Heard::Stopped => Ok(()),
                    HarnessReport::Stopped => {
                        tell(Heard::Stopped, *restarts_told)?;
                        let body = format!("{name} is stopped. Its mail waits until it is started.");
                        to_parent_agent(tx, &limits, &me, SystemKind::Stopped, &body)
                    }
                    HarnessReport::Crashed => {
                        let (ending, lines) = ending_and_lines(&report.text);
                        log(tx, Fact::about(Facts::HarnessCrashed, me.key).detail(&ending));
                        if *heard == Heard::Crashed {
                            return Ok(());
                        }
                        tell(Heard::Crashed, *restarts_told)?;
                        let words = "ended by itself, and is started again. How it ended, and its last lines";
                        let said = quoted(&format!("{ending}\n{lines}"));
                        let body = format!("The harness of {name} {words}:\n\n{said}");
                        to_parent(tx, &limits, &me, SystemKind::Crashed, &body)
                    }
                    HarnessReport::Steady if *heard != Heard::Crashed => Ok(()),
                    HarnessReport::Steady => {
                        tell(Heard::Well, *restarts_told)?;
                        let body =
                            format!("The harness of {name}, which had crashed, has run for a minute.");
                        to_parent(tx, &limits, &me, SystemKind::Recovered, &body)
                    }
                }
            })
            .await
    }
}

/// Returns how a harness ended, which is the first line, and the end of the other lines.
fn ending_and_lines(text: &str) -> (String, String) {
    let (ending, lines) = text.split_once('\n').unwrap_or((text, ""));
    let mut ending = printable(ending);
    ending.truncate(ending.floor_char_boundary(ENDING_BYTES_MAX));
    let mut lines = printable(lines);
    cut_start(&mut lines, OUTPUT_TAIL_BYTES_MAX);
    (ending, lines)
}

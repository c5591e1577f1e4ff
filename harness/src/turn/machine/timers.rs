//! Timers: watchdogs, graces, backoffs.

use hive_core::time::{BootTime, Now};

use crate::claude::outcome::StopCause;
use crate::turn::machine::Machine;
use crate::turn::output::{Output, Signal};
use crate::turn::phase::{Cli, Phase};

impl Machine {
    /// Returns when [`crate::turn::input::Input::Tick`] is due, if ever.
    pub fn deadline(&self) -> Option<BootTime> {
        if matches!(self.phase, Phase::Gone) {
            return None;
        }
        let cli = match &self.cli {
            Cli::Broken { next_at, .. } if self.may_probe() => Some(*next_at),
            Cli::Broken { .. } | Cli::Unknown | Cli::Ready => None,
        };
        let phase = if let Phase::Running(run) = &self.phase {
            let watchdogs = [run.idle_at, run.plan.overlong_at, self.orders.grace_at()];
            let first = || watchdogs.into_iter().flatten().min();
            run.stop.as_ref().map_or_else(first, |stop| stop.next_at)
        } else if let Phase::Recovering(at) = &self.phase {
            Some(*at)
        } else if matches!(self.phase, Phase::Beginning) {
            self.parked.as_ref().and_then(|parked| parked.ends_at)
        } else {
            None
        };
        [cli, phase, self.leave_by, self.ask_at()].into_iter().flatten().min()
    }

    /// Returns whether the CLI may be probed in the background: only while no other work runs.
    fn may_probe(&self) -> bool {
        !self.probing && matches!(self.phase, Phase::Beginning)
    }

    pub(super) fn tick(&mut self, now: Now) {
        let is_due = |at: Option<BootTime>| at.is_some_and(|at| at <= now.boot);
        if is_due(self.leave_by) {
            self.end_unanswered();
            return;
        }
        if matches!(self.phase, Phase::Recovering(at) if at <= now.boot) {
            self.attach_again();
        } else if matches!(self.phase, Phase::Beginning) {
            if is_due(self.parked.as_ref().and_then(|parked| parked.ends_at)) {
                self.parked = None;
                self.report_idle(now);
            }
            if self.may_probe()
                && matches!(&self.cli, Cli::Broken { next_at, .. } if *next_at <= now.boot)
            {
                self.probe();
            }
        } else {
            self.watch(now);
        }
        self.rest(now);
    }

    /// Checks the watchdogs of a running claude.
    fn watch(&mut self, now: Now) {
        let is_due = |at: Option<BootTime>| at.is_some_and(|at| at <= now.boot);
        let Phase::Running(run) = &mut self.phase else { return };
        if let Some(stop) = &mut run.stop {
            if is_due(stop.next_at) {
                stop.sent =
                    if stop.sent == Signal::Interrupt { Signal::Terminate } else { Signal::Kill };
                stop.next_at =
                    (stop.sent < Signal::Kill).then(|| now.boot.after(self.spans.kill_grace));
                let signal = stop.sent;
                self.emit(Output::Signal(signal));
            }
            return;
        }
        let seconds = |span: Option<std::time::Duration>| span.map_or(0, |span| span.as_secs());
        let cause = if is_due(run.idle_at) {
            StopCause::Idle {
                seconds: seconds(self.spans.turn_idle),
                in_tool: run.transcript.waits_for_a_tool(),
            }
        } else if is_due(run.plan.overlong_at) {
            StopCause::Overlong(seconds(self.spans.turn_max))
        } else if is_due(self.orders.grace_at()) {
            StopCause::Drained
        } else {
            return;
        };
        self.stop(cause, Signal::Interrupt, now);
    }
}

//! The runs of claude in a turn, and their reports to the broker.

use tokio::sync::mpsc;

use super::Performer;
use crate::driver::calls;
use crate::driver::report::Reporter;
use crate::turn::output::{Ending, Launch};
use crate::wire::output::LineSource;

impl Performer {
    pub(super) fn start(&mut self, launch: Launch) {
        hive_fault::point("harness.claude.starting");
        tracing::info!(
            turn_id = launch.turn_id,
            trigger = launch.trigger.summary(),
            model = launch.model,
            retry = launch.retry,
            "turn started"
        );
        // claude's own writes are no login; the end of the turn decides whether the watch
        // continues.
        Self::abort(&mut self.login);
        let (signals, received) = mpsc::unbounded_channel();
        self.signals = Some(signals);
        if self.reporter.as_ref().is_none_or(|(turn_id, _)| *turn_id != launch.turn_id) {
            let (reporter, task) = Reporter::new(self.link.clone(), launch.turn_id);
            self.reporter = Some((launch.turn_id, reporter));
            self.final_calls.spawn(task);
        }
        self.line(LineSource::Note, &format!("started: {}", launch.trigger.summary()));
        let run =
            self.runner.clone().run(launch, self.process_token.clone(), received, self.to.clone());
        self.tasks.spawn(run);
    }

    pub(super) fn line(&mut self, source: LineSource, text: &str) {
        if let Some((_, reporter)) = &mut self.reporter {
            reporter.line(source, text);
        }
    }

    pub(super) fn end(&mut self, ending: Ending) {
        hive_fault::point("harness.claude.ended");
        let outcome = ending.outcome.map_or_else(String::new, |outcome| format!("{outcome:?}"));
        tracing::info!(turn_id = ending.turn_id, outcome, error = ending.error, "turn ended");
        self.line(LineSource::Note, &format!("ended: {outcome} {}", ending.error));
        // The last line was sent; the reporter's task ends by itself.
        self.reporter = None;
        self.signals = None;
        let end = calls::end(self.link.clone(), ending);
        self.call(end);
    }
}

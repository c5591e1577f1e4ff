//! Rules that select the answer to a request.

use std::fmt;
use std::sync::Arc;

use super::reply::Reply;
use super::{Kind, Recorded};

type Test = Arc<dyn Fn(&Recorded) -> bool + Send + Sync>;

/// Answers for the requests that it fits.
#[derive(Clone)]
pub struct Rule {
    fits: Test,
    steps: Vec<Reply>,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rule").field("steps", &self.steps).finish_non_exhaustive()
    }
}

/// All rules; the first that fits answers.
#[derive(Clone, Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
    compactions: Vec<Reply>,
}

impl Script {
    /// No rules: every turn ends with `Done.`, every compaction gets its summary.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule: where the prompt contains `when`, these are the answers, one after another.
    /// Behind the last one the turn ends with `Done.`
    #[must_use]
    pub fn when(self, when: &str, steps: impl IntoIterator<Item = Reply>) -> Self {
        let when = when.to_owned();
        self.on(move |request| request.prompt.contains(&when), steps)
    }

    /// Adds a rule with a condition on the whole request, not only on text in the prompt.
    #[must_use]
    pub fn on(
        mut self,
        fits: impl Fn(&Recorded) -> bool + Send + Sync + 'static,
        steps: impl IntoIterator<Item = Reply>,
    ) -> Self {
        self.rules.push(Rule { fits: Arc::new(fits), steps: steps.into_iter().collect() });
        self
    }

    /// The answers to requests for a summary: the first that is not used up, as [`Reply::times`]
    /// counts; a summary behind the last one.
    #[must_use]
    pub fn compacting(mut self, answers: impl IntoIterator<Item = Reply>) -> Self {
        self.compactions = answers.into_iter().collect();
        self
    }

    /// The answer to a request; counts down what is given only some times.
    pub(super) fn reply(&mut self, request: &Recorded) -> Reply {
        match request.kind {
            Kind::Compaction => next(&mut self.compactions, 0)
                .unwrap_or_else(|| Reply::text("<summary>What was said so far.</summary>")),
            Kind::Turn => {
                let rule = self.rules.iter_mut().find(|rule| (rule.fits)(request));
                rule.and_then(|rule| next(&mut rule.steps, request.step))
                    .unwrap_or_else(|| Reply::text("Done."))
            }
        }
    }
}

/// Returns the answer that follows `step` answers of the model.
fn next(steps: &mut [Reply], mut step: usize) -> Option<Reply> {
    for reply in steps {
        match &mut reply.times {
            // An answer that is used up does not count as a step.
            Some(0) => {}
            Some(times) if step == 0 => {
                *times -= 1;
                return Some(reply.clone());
            }
            Some(_) => {}
            None if step == 0 => return Some(reply.clone()),
            None => step -= 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::Value;

    use super::super::reply;
    use super::*;

    fn chosen(script: &mut Script, kind: Kind, prompt: &str, step: usize) -> String {
        let request = Recorded {
            kind,
            prompt: prompt.to_owned(),
            step,
            body: Value::Null,
            time: Instant::now(),
        };
        match script.reply(&request).kind {
            reply::Kind::Message { blocks, .. } => {
                blocks[0]["text"].as_str().unwrap_or("a tool").to_owned()
            }
            reply::Kind::Status { code, .. } => code.to_string(),
            reply::Kind::Hang => "hang".to_owned(),
            reply::Kind::Broken(broken) => format!("{broken:?}"),
        }
    }

    fn in_turn(script: &mut Script, prompt: &str, step: usize) -> String {
        chosen(script, Kind::Turn, prompt, step)
    }

    #[test]
    fn steps_go_by_the_answers_given() {
        let mut script = Script::new()
            .when("x", [Reply::text("one"), Reply::text("two")])
            .when("", [Reply::text("other")]);
        assert_eq!(in_turn(&mut script, "an x", 0), "one");
        assert_eq!(in_turn(&mut script, "an x", 1), "two");
        assert_eq!(in_turn(&mut script, "an x", 0), "one", "asked again, it answers again");
        assert_eq!(in_turn(&mut script, "an x", 2), "Done.");
        assert_eq!(in_turn(&mut script, "y", 0), "other");
    }

    #[test]
    fn repeated_replies_are_no_steps() {
        let refusals = [
            Reply::overloaded().times(2),
            Reply::text("one"),
            Reply::unauthorized().times(1),
            Reply::text("two"),
        ];
        let mut script = Script::new().when("", refusals);
        let answers: Vec<String> =
            [0, 0, 0, 1, 1].into_iter().map(|step| in_turn(&mut script, "", step)).collect();
        assert_eq!(answers, ["529", "529", "one", "401", "two"]);
    }

    #[test]
    fn a_rule_may_match_more_than_the_prompt() {
        let mut script = Script::new()
            .on(|request| request.prompt.len() > 3, [Reply::text("long")])
            .when("", [Reply::text("short")]);
        let answers: Vec<String> = ["long prompt", "x"]
            .into_iter()
            .map(|prompt| in_turn(&mut script, prompt, 0))
            .collect();
        assert_eq!(answers, ["long", "short"]);
    }

    #[test]
    fn compactions_have_answers_of_their_own() {
        let mut script = Script::new()
            .when("", [Reply::text("a turn")])
            .compacting([Reply::too_long().times(1), Reply::cut().times(1)]);
        let answers: Vec<String> =
            (0..3).map(|_| chosen(&mut script, Kind::Compaction, "", 5)).collect();
        assert_eq!(answers, ["400", "Cut", "<summary>What was said so far.</summary>"]);
        assert_eq!(in_turn(&mut script, "", 0), "a turn");
    }
}

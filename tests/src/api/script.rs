//! Which answer belongs to which request.

use super::reply::Reply;

/// Answers for turns whose prompt contains a text.
#[derive(Clone, Debug)]
pub struct Rule {
    when: String,
    steps: Vec<Reply>,
}

/// All rules; the first that fits answers.
#[derive(Clone, Debug, Default)]
pub struct Script {
    rules: Vec<Rule>,
}

impl Script {
    /// No rules: every turn ends with `Done.`
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a rule: where the prompt contains `when`, these are the answers, one after another. Behind the last one the turn ends with `Done.`
    #[must_use]
    pub fn when(mut self, when: &str, steps: impl IntoIterator<Item = Reply>) -> Self {
        self.rules.push(Rule { when: when.to_owned(), steps: steps.into_iter().collect() });
        self
    }

    /// The answer for a prompt after `step` answers; counts down what is given only some times.
    pub(super) fn reply(&mut self, prompt: &str, mut step: usize) -> Reply {
        let steps = self.rules.iter_mut().find(|rule| prompt.contains(&rule.when)).map(|rule| &mut rule.steps);
        for reply in steps.into_iter().flatten() {
            match &mut reply.times {
                // It is no answer of the model, so it stands before the step that the turn has come to.
                Some(0) => {}
                Some(times) if step == 0 => {
                    *times -= 1;
                    return reply.clone();
                }
                Some(_) => {}
                None if step == 0 => return reply.clone(),
                None => step -= 1,
            }
        }
        Reply::text("Done.")
    }
}

#[cfg(test)]
mod tests {
    use super::super::reply::Kind;
    use super::*;

    fn told(script: &mut Script, prompt: &str, step: usize) -> String {
        match script.reply(prompt, step).kind {
            Kind::Message { blocks, .. } => blocks[0]["text"].as_str().unwrap_or("a tool").to_owned(),
            Kind::Status { code, .. } => code.to_string(),
            Kind::Hang => "hang".to_owned(),
            Kind::Cut => "cut".to_owned(),
        }
    }

    #[test]
    fn steps_go_by_the_answers_given() {
        let mut script = Script::new().when("x", [Reply::text("one"), Reply::text("two")]).when("", [Reply::text("other")]);
        assert_eq!(told(&mut script, "an x", 0), "one");
        assert_eq!(told(&mut script, "an x", 1), "two");
        assert_eq!(told(&mut script, "an x", 0), "one", "asked again, it answers again");
        assert_eq!(told(&mut script, "an x", 2), "Done.");
        assert_eq!(told(&mut script, "y", 0), "other");
    }

    #[test]
    fn what_is_given_some_times_is_no_step() {
        let refusals = [Reply::overloaded().times(2), Reply::text("one"), Reply::unauthorized().times(1), Reply::text("two")];
        let mut script = Script::new().when("", refusals);
        let answers: Vec<String> = [0, 0, 0, 1, 1].into_iter().map(|step| told(&mut script, "", step)).collect();
        assert_eq!(answers, ["529", "529", "one", "401", "two"]);
    }
}

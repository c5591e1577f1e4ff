//! The list that the doctor writes.
//!
//! Invariant: a warning or a problem always has a next step.

use super::repair::Repair;
use crate::error::Failure;
use crate::view::check::{Check, Fix, Outcome, State};

#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) checks: Vec<Check>,
    /// The repairs of findings, each with the place of its check.
    pub(super) repairs: Vec<(usize, Repair)>,
}

impl List {
    pub(super) fn ok(&mut self, name: &'static str, sentence: impl Into<String>) {
        self.add(name, State::Ok, None, sentence.into(), None);
    }

    /// Adds a check that works but needs attention.
    pub(super) fn warning(
        &mut self,
        name: &'static str,
        sentence: impl Into<String>,
        next: impl Into<String>,
    ) {
        self.add(name, State::Warning, None, sentence.into(), Some(next.into()));
    }

    pub(super) fn problem(
        &mut self,
        name: &'static str,
        sentence: impl Into<String>,
        next: impl Into<String>,
    ) {
        self.add(name, State::Problem, None, sentence.into(), Some(next.into()));
    }

    /// Adds a finding that `--fix` can repair; `mode` is the present one of the file.
    pub(super) fn repairable(
        &mut self,
        name: &'static str,
        state: State,
        sentence: String,
        next: impl Into<String>,
        repair: Repair,
        mode: u32,
    ) {
        self.add(name, state, None, sentence, Some(next.into()));
        let place = self.checks.len() - 1;
        self.checks[place].fix = Some(Fix {
            name: repair.name(),
            path: repair.path().display().to_string(),
            action: repair.intent(mode),
            outcome: Outcome::Possible,
            error: None,
        });
        self.repairs.push((place, repair));
    }

    /// Adds a problem that a failed call reports.
    pub(super) fn failure(&mut self, name: &'static str, failure: &Failure, next: &str) {
        let next = failure.hint().unwrap_or_else(|| next.to_owned());
        self.problem(name, failure.in_one_line(), next);
    }

    pub(super) fn about_agent(
        &mut self,
        name: &'static str,
        state: State,
        agent: &str,
        sentence: String,
        next: String,
    ) {
        self.add(name, state, Some(agent.to_owned()), sentence, Some(next));
    }

    pub(super) fn not_checked(&mut self, name: &'static str, why: impl Into<String>) {
        self.add(name, State::NotChecked, None, why.into(), None);
    }

    /// Returns the counts of warnings and of problems.
    pub(super) fn findings(&self) -> (usize, usize) {
        let count = |state| self.checks.iter().filter(|check| check.state == state).count();
        (count(State::Warning), count(State::Problem))
    }

    fn add(
        &mut self,
        name: &'static str,
        state: State,
        agent: Option<String>,
        sentence: String,
        next: Option<String>,
    ) {
        self.checks.push(Check { name, state, agent, sentence, next, fix: None });
    }
}

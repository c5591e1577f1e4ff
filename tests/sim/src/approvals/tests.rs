//! Logs of approvals, sound ones and broken ones.

use hive_core::agent::Source;
use hive_core::effect::{Change, DENY};
use hive_core::event::AgentCreated;
use hive_core::id::QuestionId;
use hive_core::question::{self, Wording};

use super::*;
use crate::serve::name;

const DIGEST: &str = "d1";

/// The log of a hive with the agents `ada` and `kid1`, its child.
struct Story {
    events: Vec<Event>,
    questions: Vec<Question>,
    agents: Vec<AgentRow>,
    by_hand: BTreeSet<String>,
    shown: Shown,
}

impl Story {
    fn new() -> Self {
        let row = |name: &str| AgentRow {
            name: name.to_owned(),
            role: String::new(),
            policy: Policy::default(),
            retired: false,
        };
        Self {
            events: Vec::new(),
            questions: Vec::new(),
            agents: vec![row("ada"), row("kid1")],
            by_hand: BTreeSet::new(),
            shown: Shown::default(),
        }
    }

    fn log(&mut self, facts: impl Into<Facts>, agent: &str, question: Option<u64>, detail: &str) {
        self.events.push(Event {
            sequence: self.events.len() as u64 + 1,
            facts: facts.into(),
            time: WallTime(0),
            agent: agent.to_owned(),
            message_id: None,
            turn_id: None,
            detail: detail.to_owned(),
            question_id: question.and_then(QuestionId::new),
            reminder_id: None,
        });
    }

    /// `ada` asks for an effect; the operator reads what it changes.
    fn ask(&mut self, id: u64, effect: Effect, changes: &[(&str, &str, &str)]) {
        let change = |&(field, before, after): &(&str, &str, &str)| Change {
            field: field.to_owned(),
            before: before.to_owned(),
            after: after.to_owned(),
            exceeds: String::new(),
        };
        let changes: Vec<Change> = changes.iter().map(change).collect();
        self.shown.diffs.insert((id, DIGEST.to_owned()), seen::changes(&changes));
        let approval = Approval {
            effect,
            changes,
            diff_digest: String::new(),
            problem: String::new(),
            run: None,
        };
        self.questions.push(Question {
            id: QuestionId::new(id).expect("an id"),
            asker: "ada".to_owned(),
            target: "operator".to_owned(),
            wording: Wording { text: "may it?".to_owned(), options: Vec::new(), multi: false },
            state: State::Open,
            create_time: WallTime(0),
            deadline_time: None,
            answer: None,
            closed_by: String::new(),
            operator_override: false,
            close_time: None,
            turn_id: None,
            message_id: None,
            approval: Some(Box::new(approval)),
        });
    }

    fn ask_role(&mut self, id: u64, before: &str, role: &str) {
        let role_after = Some(role.to_owned());
        let effect = Effect::SetAgent { name: name("ada"), role: role_after, model: None };
        self.ask(id, effect, &[("ada.role", before, role)]);
    }

    fn row(&mut self, id: u64) -> &mut Question {
        self.questions.iter_mut().find(|row| row.id.get() == id).expect("it was asked")
    }

    /// The log has the new role of `ada`, for a question.
    fn set_role(&mut self, id: u64, role: &str) {
        role.clone_into(&mut self.agents[0].role);
        let changed = AgentChanged { change: AgentChange::Role };
        self.log(changed, "ada", None, &format!("role, for ada, question {id}"));
    }

    /// The operator answers.
    fn answer(&mut self, id: u64, choice: &str) {
        let text = format!("verdict {id}");
        self.shown.answers.insert(text.clone(), DIGEST.to_owned());
        let row = self.row(id);
        row.answer = Some(question::Answer { choices: vec![choice.to_owned()], text });
        row.closed_by = "uid 1000 (ada)".to_owned();
        self.end(id, State::Answered, Facts::QuestionAnswered);
    }

    fn end(&mut self, id: u64, state: State, facts: Facts) {
        self.row(id).state = state;
        self.log(facts, "ada", Some(id), "");
    }

    fn check(self) -> String {
        let rows = Rows { agents: &self.agents, schedules: &[], by_hand: &self.by_hand };
        let mut approvals = Approvals::new(&self.questions, rows);
        self.events.iter().for_each(|event| approvals.follow(event));
        approvals.finish(self.shown).join("\n")
    }

    /// Asserts that there is one problem, with these words.
    #[track_caller]
    fn breaks(self, words: &str) {
        let found = self.check();
        assert!(found.contains(words) && found.lines().count() == 1, "{found:?} has no {words:?}");
    }
}

#[test]
fn an_effect_with_its_outcome_is_sound() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.ask_role(2, "role 1", "role 2");
    story.ask_role(3, "", "role 3");
    story.set_role(1, "role 1");
    story.answer(1, APPROVE);
    story.answer(3, DENY);
    story.set_role(2, "role 2");
    story.answer(2, APPROVE);
    story.ask_role(4, "", "role 4");
    story.end(4, State::Expired, Facts::QuestionExpired);
    let effect = Effect::RetireAgent { name: name("kid1") };
    story.ask(5, effect, &[("agent", "kid1", "retired")]);
    story.log(Facts::AgentRetired, "kid1", None, "");
    story.answer(5, APPROVE);
    assert_eq!(story.check(), "");
}

#[test]
fn an_effect_has_no_outcome() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.ask_role(2, "role 1", "role 2");
    story.set_role(1, "role 1");
    story.set_role(2, "role 2");
    story.answer(2, APPROVE);
    story.breaks("effect of question 1 was applied without its outcome");
}

#[test]
fn an_outcome_has_no_effect() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.answer(1, APPROVE);
    let found = story.check();
    assert!(found.contains("approved: true, and its effect was applied 0 times"), "{found}");
    assert!(found.contains("ada.role was approved to be \"role 1\", and is Some(\"\")"), "{found}");
}

#[test]
fn an_effect_is_applied_twice() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.set_role(1, "role 1");
    story.answer(1, APPROVE);
    story.set_role(1, "role 1");
    story.breaks("effect of question 1 was applied without its outcome");
}

#[test]
fn a_denied_effect_is_applied() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.set_role(1, "role 1");
    story.answer(1, DENY);
    let found = story.check();
    assert!(found.contains("approved: false, and its effect was applied 1 times"), "{found}");
    assert!(found.contains("question 1 is Answered, and its effect is there"), "{found}");
}

#[test]
fn an_effect_that_expired_is_there() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.end(1, State::Expired, Facts::QuestionExpired);
    "role 1".clone_into(&mut story.agents[0].role);
    story.breaks("question 1 is Expired, and its effect is there");
}

#[test]
fn a_question_has_two_outcomes() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.end(1, State::Expired, Facts::QuestionExpired);
    story.end(1, State::Cancelled, Facts::QuestionCancelled);
    story.breaks("question 1 ended as QuestionExpired and as QuestionCancelled");
}

#[test]
fn a_row_has_another_outcome_than_the_log() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.row(1).state = State::Cancelled;
    story.breaks("question 1 is Cancelled, and the log has None");
}

#[test]
fn changes_that_were_not_shown_are_applied() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.set_role(1, "role 1");
    story.answer(1, APPROVE);
    story.shown.answers.insert("verdict 1".to_owned(), "d0".to_owned());
    let diff = vec!["ada.role: \"role 0\", then \"role 1\" ".to_owned()];
    story.shown.diffs.insert((1, "d0".to_owned()), diff);
    story.breaks("was approved by \"verdict 1\" for Some([\"ada.role: \\\"role 0\\\"");
}

#[test]
fn a_diff_states_another_value_than_there_was() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.set_role(1, "role 1");
    story.answer(1, APPROVE);
    story.ask_role(2, "", "role 2");
    story.set_role(2, "role 2");
    story.answer(2, APPROVE);
    story.breaks("question 2 changed ada.role from \"role 1\" to \"role 2\"");
}

#[test]
fn an_agent_comes_or_goes_without_an_approval() {
    let mut story = Story::new();
    story.log(Facts::AgentRetired, "kid1", None, "");
    story.breaks("kid1 was retired without an approval");
    let mut story = Story::new();
    story.log(AgentCreated { source: Source::Runtime }, "kid2", None, "for ada, question 1");
    story.breaks("effect of question 1 was applied without its outcome");
    let mut story = Story::new();
    story.by_hand.insert("kid1".to_owned());
    let effect = Effect::RetireAgent { name: name("kid1") };
    story.ask(1, effect, &[("agent", "kid1", "retired")]);
    story.log(Facts::AgentRetired, "kid1", None, "");
    story.end(1, State::Cancelled, Facts::QuestionCancelled);
    assert_eq!(story.check(), "");
}

#[test]
fn a_question_of_a_retired_agent_stays_open() {
    let mut story = Story::new();
    story.ask_role(1, "", "role 1");
    story.agents[0].retired = true;
    story.breaks("question 1 is open, and ada is retired");
}

#[test]
fn a_digest_stands_for_one_diff() {
    let seen = |line: &str| history::QuestionSeen {
        id: 1,
        asker: "ada".to_owned(),
        target: "operator".to_owned(),
        text: "may it?".to_owned(),
        state: history::QuestionState::Open,
        choices: Vec::new(),
        answer: String::new(),
        closed_by: String::new(),
        operator_override: false,
        deadline: None,
        message: 2,
        approval: Some(Box::new(history::ApprovalSeen {
            changes: vec![line.to_owned()],
            digest: DIGEST.to_owned(),
        })),
    };
    let mut history = History::new(history::Setting::default());
    for line in ["a", "b"] {
        let call = history.invoke(0, 0, "operator", "", Op::ReadQuestion { question: 1 });
        history.answer(0, 0, call, Answer::Ok(Reply::Question(seen(line))));
    }
    let mut story = Story::new();
    story.shown = Shown::of(&history);
    story.breaks("stands for [\"a\"] and for [\"b\"]");
}

//! The books: facts in the rows of turns that no client could see.
//!
//! Silent: about agents with redriven deliveries, and about mail that a consumer leased.

use std::collections::{BTreeMap, BTreeSet};

use hive_history::{
    Answer, Decision, Event, Final, History, Mark, Op, Outcome, Reply, State, Turn,
};

/// Returns whether a turn with this outcome has used an attempt.
fn is_fault(outcome: Outcome) -> bool {
    outcome.uses_attempt()
}

/// Returns the problems found.
pub(crate) fn check(history: &History, last: &Final) -> Vec<String> {
    let mut problems = Vec::new();
    attempts(history, last, &mut problems);
    fences(history, last, &mut problems);
    superseded(history, last, &mut problems);
    problems.extend(crate::grace::check(history));
    problems
}

/// Checks that a failed or vanished turn used an attempt of the delivery that started it.
fn attempts(history: &History, last: &Final, problems: &mut Vec<String>) {
    let mut redriven = BTreeSet::new();
    for observation in &history.observations {
        if let Event::Invoked {
            op: Op::Decide { agent, message, decision: Decision::Redrive },
            ..
        } = &observation.event
        {
            redriven.insert((agent.as_str(), *message));
        }
    }
    let mut earlier: BTreeMap<(&str, u64), &Turn> = BTreeMap::new();
    for turn in last.turns.iter().filter(|turn| turn.message > 0) {
        let key = (turn.agent.as_str(), turn.message);
        if let Some(before) = earlier.insert(key, turn)
            && before.outcome.is_some_and(is_fault)
            && turn.attempt <= before.attempt
            && !redriven.contains(&key)
        {
            let what = format!(
                "Attempts: turn {} for message {} to {} was attempt {} and ended {:?}, and turn {} is attempt {}",
                before.id,
                turn.message,
                turn.agent,
                before.attempt,
                before.outcome,
                turn.id,
                turn.attempt
            );
            problems.push(what);
        }
    }
}

/// Checks that only a take-over, a fresh start, a reboot or a retirement fenced a turn.
fn fences(history: &History, last: &Final, problems: &mut Vec<String>) {
    let mut marks = BTreeSet::new();
    let mut rebooted = false;
    for observation in &history.observations {
        match &observation.event {
            Event::Mark(Mark::Reboot | Mark::Restored { .. }) => rebooted = true,
            Event::Mark(Mark::Retiring { agent }) => drop(marks.insert(agent.as_str())),
            Event::Invoked { caller, op: Op::Attach { take_over: true, .. }, .. } => {
                marks.insert(caller.as_str());
            }
            Event::Mark(
                Mark::BrokerDown
                | Mark::BrokerReady
                | Mark::BackupBegun { .. }
                | Mark::BackedUp { .. }
                | Mark::Detached { .. }
                | Mark::Stopped { .. }
                | Mark::Starting { .. }
                | Mark::Purging { .. }
                | Mark::Purged { .. }
                | Mark::ClockSet
                | Mark::Note(_),
            )
            | Event::Invoked { .. }
            | Event::Answered { .. }
            | Event::Saw(_) => {}
        }
    }
    if rebooted {
        return;
    }
    for turn in last.turns.iter().filter(|turn| {
        turn.outcome == Some(Outcome::Fenced) && !marks.contains(turn.agent.as_str())
    }) {
        problems.push(format!(
            "TurnTable: turn {} of {} was fenced, and nobody took over",
            turn.id, turn.agent
        ));
    }
}

/// Checks that a superseded message is not served any more.
fn superseded(history: &History, last: &Final, problems: &mut Vec<String>) {
    for observation in &history.observations {
        if let Event::Answered { answer: Answer::Ok(Reply::Woken { message, superseded }), .. } =
            &observation.event
            && let Some(older) =
                last.deliveries.iter().find(|delivery| delivery.message == *superseded)
            && older.state != State::Superseded
        {
            problems.push(format!(
                "Coalescing: message {message} took the place of {superseded}, which is {:?}",
                older.state
            ));
        }
    }
}

//! Scripts: a model's reply depends on the message alone, so that a turn that runs again repeats
//! it.

use hive_core::question::Answer;

use crate::call::{Call, Due, To};
use crate::world::{Seat, World};

/// A hash of three numbers (SplitMix64).
fn mix(one: u64, two: u64, three: u64) -> u64 {
    let mut word = one ^ two.rotate_left(21) ^ three.rotate_left(42);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Returns the `step`th call of the script about a message, if there is one.
pub(crate) fn said(world: &World, agent: &str, message: u64, step: u64) -> Option<Call> {
    let owner = agent.bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
    let hash = mix(world.plan.seed ^ owner, message, step);
    let length = mix(world.plan.seed ^ owner, message, 1_000) % 9 / 4;
    if step >= length {
        return None;
    }
    let seats = world.seats.borrow();
    let other = &seats[usize::try_from((hash >> 8) % seats.len() as u64).unwrap_or(0)].name;
    let to = match hash % 10 {
        0 | 1 => to_parent(&seats, agent),
        2 => To::Name("operator".to_owned()),
        _ => To::Name(other.clone()),
    };
    let text = format!("{agent} on {message}, {step}");
    Some(match (hash >> 32) % 10 {
        0..=5 => Call::Send { to, body: text, reply_to: if hash & 1 == 0 { message } else { 0 } },
        6 | 7 => {
            let options = if hash & 2 == 0 {
                Vec::new()
            } else {
                ["yes", "no", "later"].map(str::to_owned).to_vec()
            };
            let ttl_ms =
                [0, 5_000, 60_000, 600_000][usize::try_from((hash >> 40) % 4).unwrap_or(0)];
            Call::Ask { to, text, options, effect: None, ttl_ms }
        }
        _ => Call::Remind { body: text, due: Due::In(1_000 + (hash >> 44) % 900_000) },
    })
}

/// Addresses the agent's parent, by its name if it may be retired concurrently: then the parent is
/// unknown to this observer.
fn to_parent(seats: &[Seat], agent: &str) -> To {
    let find = |name: &str| seats.iter().find(|seat| seat.name == name);
    let parent = find(agent).and_then(|seat| find(&seat.parent));
    parent
        .filter(|parent| !parent.of_file)
        .map_or(To::Parent, |parent| To::Name(parent.name.clone()))
}

/// Returns the call that gives an answer.
pub(crate) fn given(question: u64, answer: Answer) -> Call {
    let Answer { choices, text } = answer;
    Call::Answer { question, choices, text, digest: String::new() }
}

/// An answer to a question.
pub(crate) fn answer(world: &World, options: bool) -> Answer {
    let choices =
        if options && world.dice.chance(600) { vec!["later".to_owned()] } else { Vec::new() };
    let text = if choices.is_empty() || world.dice.chance(500) {
        world.fresh("answer")
    } else {
        String::new()
    };
    Answer { choices, text }
}

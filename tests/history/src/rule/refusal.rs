//! A refusal wrote nothing: a request refused in every call has no effect anywhere.
//!
//! Silent: if a call of the request got no answer, or another request has the same text.

use std::collections::{HashMap, HashSet};

use super::Found;
use super::phantom::text_of;
use crate::index::Index;
use crate::noun::Origin;
use crate::violation::Rule::Refusal;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut texts: HashSet<(&str, &str)> = index
        .last
        .questions
        .iter()
        .map(|known| (known.asker.as_str(), known.text.as_str()))
        .collect();
    texts.extend(
        index.last.reminders.iter().map(|known| (known.agent.as_str(), known.body.as_str())),
    );
    for message in &index.last.messages {
        let who = match &message.origin {
            Origin::Agent(agent) => agent,
            Origin::Operator => "operator",
            Origin::External(_) => message.recipients.first().map_or("", String::as_str),
            Origin::System(_) => continue,
        };
        texts.insert((who, &message.body));
    }
    let mut requests: HashMap<(&str, &str), Vec<&Vec<usize>>> = HashMap::new();
    for ((caller, _, _), calls) in &index.requests {
        if let Some((_, text)) = text_of(index.calls[calls[0]].op) {
            requests.entry((caller, text)).or_default().push(calls);
        }
    }
    for ((caller, text), requests) in requests {
        if !index.is_opaque(caller)
            && texts.contains(&(caller, text))
            && requests.iter().all(|calls| index.is_refused(calls))
        {
            let last = requests
                .iter()
                .flat_map(|calls| calls.iter())
                .filter_map(|place| index.calls[*place].answer);
            let seen: Vec<usize> = last.map(|(till, _)| till).collect();
            found.add(
                Refusal,
                &seen,
                format!("{caller} was refused, and it is there all the same: {text:?}"),
            );
        }
    }
}

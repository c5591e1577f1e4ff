//! The friendly agent: its reaction to a message.
//!
//! It answers its sender, forwards what it is asked to (`ask NAME: TEXT`, `tell NAME: TEXT`), and
//! reports the answer to the agent that made it ask. Invariant: two of these never write to each
//! other without end. Every answer and report carries a reply link. A message of an agent with a
//! reply link is never answered, only reported, once, to the agent that asked. A message without a
//! link is written only because a text said `ask` or `tell`, and is shorter than that text.

use super::mail::{Mail, Sender};
use super::session::Sent;

/// Maximum number of words of a message that an answer quotes.
const QUOTED_WORDS_MAX: usize = 8;

/// The reaction to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Do nothing, for this reason.
    Rest(String),
    /// Answer the message.
    Answer(Letter),
    /// Send a letter to another agent; its answer is reported.
    Ask(Letter),
    /// Send a letter to another agent, and answer that it was done.
    Tell(Letter),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Letter {
    pub to: String,
    pub body: String,
    /// The message it replies to; 0 for none.
    pub in_reply_to: u64,
}

/// Chooses the reaction; `sent` is what this conversation has sent before.
pub fn plan(mail: &Mail, body: &str, sent: &[Sent]) -> Plan {
    let sender = match &mail.sender {
        Sender::Oneself => return Plan::Rest("Nothing is left to do.".to_owned()),
        Sender::Other => {
            return Plan::Rest("Noted; nobody waits for an answer to this.".to_owned());
        }
        Sender::Operator => "operator",
        Sender::Agent(name) => name,
    };
    if mail.sender != Sender::Operator && mail.in_reply_to != 0 {
        return report(mail.in_reply_to, sender, body, sent);
    }
    if let Some((to, text)) = order("ask", body) {
        return Plan::Ask(Letter { to: to.to_owned(), body: text.to_owned(), in_reply_to: 0 });
    }
    if let Some((to, text)) = order("tell", body) {
        return Plan::Tell(Letter { to: to.to_owned(), body: text.to_owned(), in_reply_to: 0 });
    }
    Plan::Answer(Letter {
        to: sender.to_owned(),
        body: format!("I have read \"{}\".", quote(body)),
        in_reply_to: mail.id,
    })
}

/// Forwards an answer to the agent that wanted the question asked.
fn report(answered: u64, answerer: &str, body: &str, sent: &[Sent]) -> Plan {
    let asked = sent
        .iter()
        .find(|sent| sent.id == answered && !sent.asker.is_empty() && sent.asker != answerer);
    match asked {
        Some(asked) => Plan::Answer(Letter {
            to: asked.asker.clone(),
            body: format!("{answerer} answers: {body}"),
            in_reply_to: asked.cause,
        }),
        None => Plan::Rest("That is an answer; it needs none.".to_owned()),
    }
}

/// Reads `WORD NAME: TEXT` or `WORD NAME TEXT`.
fn order<'a>(word: &str, body: &'a str) -> Option<(&'a str, &'a str)> {
    let body = body.trim();
    let rest = body
        .get(..word.len())
        .filter(|begin| begin.eq_ignore_ascii_case(word))
        .map(|_| &body[word.len()..])?;
    let rest = rest.strip_prefix(char::is_whitespace)?.trim_start();
    let (name, text) = rest.split_once([':', ' ', '\n'])?;
    let text = text.trim();
    let named = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
        && !name.is_empty();
    ((named || name == "<parent>" || name == "*") && !text.is_empty()).then_some((name, text))
}

fn quote(body: &str) -> String {
    let words: Vec<&str> = body.split_whitespace().collect();
    let mut quote = words[..words.len().min(QUOTED_WORDS_MAX)].join(" ");
    if words.len() > QUOTED_WORDS_MAX {
        quote.push_str(" …");
    }
    quote
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(sender: Sender, in_reply_to: u64) -> Mail {
        Mail { id: 7, sender, in_reply_to, body: None }
    }

    fn bob() -> Sender {
        Sender::Agent("bob".to_owned())
    }

    fn letter(to: &str, body: &str, in_reply_to: u64) -> Letter {
        Letter { to: to.to_owned(), body: body.to_owned(), in_reply_to }
    }

    #[test]
    fn a_reply_quotes_the_first_words_of_the_message() {
        let plan_of =
            |sender| plan(&mail(sender, 0), "one two three four five six seven eight nine", &[]);
        let answer = "I have read \"one two three four five six seven eight …\".";
        assert_eq!(plan_of(Sender::Operator), Plan::Answer(letter("operator", answer, 7)));
        assert_eq!(plan_of(bob()), Plan::Answer(letter("bob", answer, 7)));
    }

    #[test]
    fn orders_are_passed_on() {
        let from_operator = |body| plan(&mail(Sender::Operator, 0), body, &[]);
        assert_eq!(
            from_operator("ask bob: how are you?"),
            Plan::Ask(letter("bob", "how are you?", 0))
        );
        assert_eq!(
            from_operator("Ask bob how are you?"),
            Plan::Ask(letter("bob", "how are you?", 0))
        );
        assert_eq!(
            from_operator("tell <parent> all is well"),
            Plan::Tell(letter("<parent>", "all is well", 0))
        );
        for no_order in
            ["asking bob: x", "ask", "ask bob", "ask bob:", "ask Bob: x", "we ask bob: x"]
        {
            assert!(matches!(from_operator(no_order), Plan::Answer(_)), "{no_order}");
        }
    }

    #[test]
    fn an_answer_is_reported_only_to_the_agent_that_wanted_it_asked() {
        let sent = [Sent { cause: 3, asker: "operator".to_owned(), id: 5 }];
        assert_eq!(
            plan(&mail(bob(), 5), "fine", &sent),
            Plan::Answer(letter("operator", "bob answers: fine", 3))
        );
        assert!(matches!(plan(&mail(bob(), 4), "fine", &sent), Plan::Rest(_)));
    }

    #[test]
    fn answers_are_never_answered_whatever_they_say() {
        let sent = [Sent { cause: 3, asker: "bob".to_owned(), id: 5 }];
        for body in ["thanks", "ask bob: again?", "tell bob again"] {
            assert!(matches!(plan(&mail(bob(), 4), body, &[]), Plan::Rest(_)));
            assert!(
                matches!(plan(&mail(bob(), 5), body, &sent), Plan::Rest(_)),
                "nor reported back to where they come from"
            );
        }
        for sender in [Sender::Other, Sender::Oneself] {
            assert!(matches!(plan(&mail(sender, 0), "ask bob: x", &[]), Plan::Rest(_)));
        }
    }
}

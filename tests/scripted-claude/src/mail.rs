//! A reader of mail in the prompt of a turn, or in the result of `recv`.
//!
//! Both contain frames: a head line, then the body's lines after `| `. The reader is tolerant,
//! because the words of the head lines belong to the prompts and to the bridge, and may change
//! there.

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Another agent.
    Agent(String),
    /// The human.
    Operator,
    /// The agent itself, by requesting another turn.
    Oneself,
    /// Hive, a program, or a sender unknown to this reader: not to be answered.
    Other,
}

/// A message as an agent reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mail {
    /// The message's number; 0 if it has none.
    pub id: u64,
    pub sender: Sender,
    /// The message it replies to; 0 for none.
    pub in_reply_to: u64,
    /// The text; `None` if the prompt says that the conversation holds it.
    pub body: Option<String>,
}

/// Returns the mail in `text`, in its order.
pub fn read(text: &str) -> Vec<Mail> {
    let mut mails: Vec<Mail> = Vec::new();
    // The frame being read: directly below a head, until the first line outside of it.
    let mut open = false;
    for line in text.lines() {
        if let Some(body) = line.strip_prefix("| ").or((line == "|").then_some("")) {
            if let Some(mail) = mails.last_mut().filter(|_| open) {
                let body = unescaped(body);
                match &mut mail.body {
                    Some(text) => {
                        text.push('\n');
                        text.push_str(&body);
                    }
                    none => *none = Some(body),
                }
            }
        } else if let Some(mail) = head(line) {
            mails.push(mail);
            open = true;
        } else {
            // A remark directly below a head, about the display of the body, does not end the
            // frame.
            open = open
                && line.starts_with('(')
                && mails.last().is_some_and(|mail| mail.body.is_none());
        }
    }
    mails
}

/// Returns whether the text says that more mail can be received now.
pub fn more_waits(text: &str) -> bool {
    let remark =
        text.lines().rfind(|line| !line.starts_with('|') && !line.trim().is_empty()).unwrap_or("");
    let counted = remark.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit());
    counted && remark.contains("more") && remark.contains("recv")
}

/// Reads `Message 17 from the operator, in reply to 9:` and `#17 from bob, in reply to #9`.
fn head(line: &str) -> Option<Mail> {
    let rest = line.strip_prefix("Message ").or_else(|| line.strip_prefix('#'))?;
    let (id, rest) = match rest.strip_prefix("from ") {
        Some(rest) => (0, rest),
        None => {
            let (id, rest) = rest.split_once(" from ")?;
            (id.parse().ok()?, rest)
        }
    };
    let in_reply_to = rest.split_once("in reply to ").map_or(0, |(_, after)| number(after));
    Some(Mail { id, sender: sender(rest), in_reply_to, body: None })
}

fn sender(words: &str) -> Sender {
    let words = words.strip_prefix("the ").unwrap_or(words);
    let (known, words) = match words.strip_prefix("agent ") {
        Some(words) => (true, words),
        None => (false, words),
    };
    let name: String = words
        .chars()
        .take_while(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_'))
        .collect();
    let after = &words[name.len()..];
    match name.as_str() {
        _ if known => Sender::Agent(name),
        "operator" => Sender::Operator,
        "self" => Sender::Oneself,
        "" | "system" | "external" | "program" | "somebody" | "unknown" | "reminder" => {
            Sender::Other
        }
        _ if after.is_empty() || after.starts_with([',', ':', ' ']) => Sender::Agent(name),
        _ => Sender::Other,
    }
}

fn number(text: &str) -> u64 {
    let digits: String =
        text.trim_start_matches('#').chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// Removes the backslash that keeps claude from attaching a file.
fn unescaped(line: &str) -> String {
    line.replace("\\@", "@")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mail(id: u64, sender: Sender, in_reply_to: u64, body: &str) -> Mail {
        Mail { id, sender, in_reply_to, body: Some(body.to_owned()) }
    }

    #[test]
    fn a_wake_prompt_is_read() {
        let prompt = "Message 17 from the operator (ann), in reply to 9, to everyone:\n| hello\n| \n| \\@bob\n(3 more pending: mcp__hub__recv takes them)\n";
        assert_eq!(read(prompt), [mail(17, Sender::Operator, 9, "hello\n\n@bob")]);
        assert!(more_waits(prompt));
        let redelivered = "Message 17 from agent alice:\n| x\nThis is attempt 2: the last turn failed. It said:\n| #3 from bob\nEarlier attempts sent this already:\n| message 18 to bob: done\n";
        assert_eq!(read(redelivered), [mail(17, Sender::Agent("alice".to_owned()), 0, "x")]);
        assert!(!more_waits(redelivered));
    }

    #[test]
    fn a_prompt_without_the_text_is_read() {
        let again = "Message 17 from agent alice, in reply to 4, whose text stands above in this conversation, is with you again.\n";
        assert_eq!(
            read(again),
            [Mail {
                id: 17,
                sender: Sender::Agent("alice".to_owned()),
                in_reply_to: 4,
                body: None
            }]
        );
    }

    #[test]
    fn senders_that_get_no_reply_are_distinguished() {
        for words in [
            "Hive itself, a notice: you were started anew",
            "the program ci beside you",
            "somebody unknown",
            "system (restarted)",
            "external:ci",
        ] {
            assert_eq!(
                read(&format!("Message 3 from {words}:\n| x"))[0].sender,
                Sender::Other,
                "{words}"
            );
        }
        assert_eq!(read("Message from self:\n| continue\n")[0].sender, Sender::Oneself);
    }

    #[test]
    fn the_result_of_recv_is_read() {
        let result = "#3 from bob\n| hi\n\n#4 from carol, in reply to #2, attempt 2 (came back: x)\n(line breaks are shown as ⏎)\n| ho\n\n1 message more: call recv again.";
        assert_eq!(
            read(result),
            [
                mail(3, Sender::Agent("bob".to_owned()), 0, "hi"),
                mail(4, Sender::Agent("carol".to_owned()), 2, "ho")
            ]
        );
        assert!(more_waits(result));
        assert!(!more_waits("#3 from bob\n| 1 message more: call recv again.\n"));
        assert!(read("No mail.").is_empty());
    }
}

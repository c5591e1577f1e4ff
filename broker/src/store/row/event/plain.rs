//! Pages as they are written, read without a parser of JSON.
//!
//! A parser takes half of the time in which a follower of the log reads it. Invariant: what is read
//! here is what `serde_json` reads, and everything else is left to that, such as spaces between
//! values and escapes in a text.

use super::EventRow;

/// Most digits of a number, which is below 2^63 with so many.
const DIGITS_MAX: usize = 18;

/// Returns the events of a page; `None` if it is not as most are.
pub(super) fn events(page: &str) -> Option<Vec<EventRow>> {
    let (mut text, mut events) = (Text(page.as_bytes()), Vec::new());
    text.take(b'[')?;
    loop {
        text.take(b'[')?;
        let sequence = id(text.number()?)?;
        let [kind, time] = [text.next()?, text.next()?];
        let [agent, message, code, number] =
            [text.optional()?, text.optional()?, text.optional()?, text.optional()?];
        let mut row = EventRow {
            sequence,
            kind,
            time,
            agent,
            message: optional_id(message)?,
            code,
            number,
            turn: None,
            detail: String::new(),
            question: None,
            reminder: None,
        };
        if text.take(b']').is_none() {
            (row.turn, row.detail) = (optional_id(text.optional()?)?, text.text()?);
            row.question = optional_id(text.optional()?)?;
            row.reminder = optional_id(text.optional()?)?;
            text.take(b']')?;
        }
        events.push(row);
        if text.take(b',').is_none() {
            text.take(b']')?;
            return text.0.is_empty().then_some(events);
        }
    }
}

fn id(number: i64) -> Option<u64> {
    number.try_into().ok()
}

fn optional_id(number: Option<i64>) -> Option<Option<u64>> {
    number.map_or(Some(None), |number| id(number).map(Some))
}

/// What is left of a page.
#[derive(Debug)]
struct Text<'t>(&'t [u8]);

impl Text<'_> {
    fn take(&mut self, byte: u8) -> Option<()> {
        let (first, rest) = self.0.split_first()?;
        (*first == byte).then(|| self.0 = rest)
    }

    fn next(&mut self) -> Option<i64> {
        self.take(b',')?;
        self.number()
    }

    fn optional(&mut self) -> Option<Option<i64>> {
        self.take(b',')?;
        match self.0.strip_prefix(b"null") {
            Some(rest) => {
                self.0 = rest;
                Some(None)
            }
            None => self.number().map(Some),
        }
    }

    fn text(&mut self) -> Option<String> {
        self.take(b',')?;
        self.take(b'"')?;
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..b' ');
        let (text, rest) = self.0.split_at(self.0.iter().position(is_special)?);
        self.0 = rest;
        self.take(b'"')?;
        str::from_utf8(text).ok().map(str::to_owned)
    }

    fn number(&mut self) -> Option<i64> {
        let is_negative = self.take(b'-').is_some();
        let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (digits, rest) = self.0.split_at(count);
        // JSON has no zero before other digits, and its -0 is a fraction.
        let is_plain = match digits {
            [b'0', ..] => count == 1 && !is_negative,
            _ => (1..=DIGITS_MAX).contains(&count),
        };
        if !is_plain {
            return None;
        }
        self.0 = rest;
        let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        Some(if is_negative { -number } else { number })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn event() -> impl Strategy<Value = EventRow> {
        let number = || prop_oneof![any::<i64>(), -20..20_i64];
        let option = || prop::option::of(number());
        let id = || prop::option::of(prop_oneof![any::<u64>(), 0..20_u64]);
        let first = (any::<u64>(), number(), number(), option(), id(), option(), option());
        let last = (prop::option::weighted(0.1, id()), "(x?|\\PC{3}|[\\\\\"\n]{2})", id());
        (first, last).prop_map(|(first, (turn, detail, question))| {
            let (sequence, kind, time, agent, message, code, number) = first;
            EventRow {
                sequence,
                kind,
                time,
                agent,
                message,
                code,
                number,
                turn: turn.flatten(),
                detail,
                question,
                reminder: None,
            }
        })
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_the_parser_reads(
            page in prop::collection::vec(event(), 0..4),
            cut in any::<prop::sample::Index>(),
            put in "[-0-9null,\\[\\]. e\"]{0,3}",
        ) {
            let text = serde_json::to_string(&page).expect("a page");
            prop_assert!(events(&text).is_none_or(|read| read == page));
            let (left, right) = text.split_at(text.floor_char_boundary(cut.index(text.len())));
            let spoilt = format!("{left}{put}{}", right.get(put.len()..).unwrap_or_default());
            if let Some(read) = events(&spoilt) {
                let parsed: Vec<EventRow> = serde_json::from_str(&spoilt).expect("JSON");
                prop_assert_eq!(read, parsed);
            }
        }
    }

    #[test]
    fn ordinary_mail_is_read_here() {
        let page = "[[1,1,1795858230212,4,12,null,null],[2,-3,0,null,null,7,123456789012345678],\
                    [3,1,1,1,1,1,1,null,\"from é\",5,null]]";
        let read = events(page).expect("numbers");
        assert_eq!(read, serde_json::from_str::<Vec<EventRow>>(page).expect("JSON"));
        for other in [
            "[]",
            "[[1,1,1,1,1,1]]",
            "[[1,1,1,1,1,1,1,1]]",
            "[[1,1,1,1,1,1,1]",
            "[[1,1,1,1,1,1,1]]]",
            "[[1,1,1,1,1,1,1],]",
            "[[-1,1,1,1,1,1,1]]",
            "[[1,1,1,1,-1,1,1]]",
            "[[01,1,1,1,1,1,1]]",
            "[[1,-0,1,1,1,1,1]]",
            "[[1,1,1234567890123456789,1,1,1,1]]",
            "[[1,null,1,1,1,1,1]]",
            "[[1, 1,1,1,1,1,1]]",
            "[[1,1,1,1,1,1,1,null,\"text\",null]]",
            "[[1,1,1,1,1,1,1,null,null,null,null]]",
            "[[1,1,1,1,1,1,1,null,\"te\\u0078t\",null,null]]",
            "[[1,1,1,1,1,1,1,null,\"te\nxt\",null,null]]",
            "[[1,1,1,1,1,1,1,-1,\"\",null,null]]",
        ] {
            assert_eq!(events(other), None, "{other}");
        }
    }
}

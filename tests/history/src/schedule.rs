//! Schedules as an observer sees them: what was asked for, and the messages of a firing.
//!
//! Invariant: a message is read as one of a schedule only if its text begins with all that the
//! broker writes before the text of the schedule.

/// What a schedule sends, where to, and when. In a change, `None` and empty lists leave it as it
/// is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The text of its messages, unique as in `Send`.
    pub body: Option<String>,
    /// The agents that get them, or those to add.
    pub targets_add: Vec<String>,
    /// Agents that get them no more.
    pub targets_remove: Vec<String>,
    /// The first due time on the wall clock, in ms since 1970.
    pub first_time: Option<i64>,
    /// The interval in seconds; a new schedule without one is due once.
    pub interval_s: Option<u64>,
    /// The zone of its days, empty for none.
    pub zone: Option<String>,
    /// The limit of its lateness in seconds, 0 for none.
    pub late_max_s: Option<u64>,
}

/// A message of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Firing<'a> {
    /// The schedule's ID.
    pub schedule: u64,
    /// The agent that owns it.
    pub owner: &'a str,
    /// The due time as the message has it; `None` if it was fired by hand.
    pub due: Option<&'a str>,
    /// The number of earlier due times that it says were skipped.
    pub skipped: u64,
    /// The text of the schedule.
    pub body: &'a str,
}

impl<'a> Firing<'a> {
    /// Reads the text of a message; `None` if it is not of a schedule.
    pub fn of(text: &'a str) -> Option<Self> {
        let (head, body) = text.split_once("\n\n")?;
        let (schedule, rest) = head.strip_prefix("Schedule ")?.split_once(" of ")?;
        let (owner, rest) = rest.split_once(", ")?;
        let (why, rest) = rest.split_once('.')?;
        let due = if why == "fired by hand" { None } else { Some(why.strip_prefix("for ")?) };
        let skipped = match rest {
            "" => 0,
            " 1 earlier due time was skipped." => 1,
            more => {
                let number = more.strip_suffix(" earlier due times were skipped.")?;
                number.strip_prefix(' ')?.parse().ok()?
            }
        };
        Some(Self { schedule: schedule.parse().ok()?, owner, due, skipped, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_firing_is_read_as_one() {
        let of = |head: &str| Firing::of(head).map(|firing| (firing.due.is_some(), firing.skipped));
        let due = "Schedule 7 of ada, for 2026-10-24T20:00:00Z.";
        assert_eq!(of(&format!("{due}\n\nReport.")), Some((true, 0)));
        assert_eq!(
            of(&format!("{due} 1 earlier due time was skipped.\n\nReport.")),
            Some((true, 1))
        );
        let by_hand = "Schedule 7 of ada, fired by hand.";
        assert_eq!(
            of(&format!("{by_hand} 12 earlier due times were skipped.\n\nReport.")),
            Some((false, 12))
        );
        for other in [
            "Report.",
            "Schedule 7 of ada, for 2026-10-24T20:00:00Z.",
            "Schedule x of ada, fired by hand.\n\nReport.",
            "Schedule 7 of ada, tomorrow.\n\nReport.",
            "Schedule 7 of ada, fired by hand. Many earlier due times were skipped.\n\nReport.",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
        let firing = Firing::of("Schedule 7 of ada, fired by hand.\n\nA.\n\nB.");
        let firing = firing.expect("a message of a schedule");
        assert_eq!((firing.schedule, firing.owner, firing.body), (7, "ada", "A.\n\nB."));
    }
}

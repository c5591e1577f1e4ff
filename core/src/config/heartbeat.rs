//! `heartbeat` of an agent: the times of a day at which it looks after its own work.
//!
//! Invariant: a table with an invalid value is no heartbeat.

use std::time::Duration;

use super::section::Section;
use crate::heartbeat::{EVERY_MAX, EVERY_MIN, Heartbeat, Window};
use crate::schedule::Zone;
use crate::span;

/// The zone of a heartbeat that names none.
const ZONE_DEFAULT: &str = "UTC";

/// Reads the table, if the agent has one.
pub(super) fn read(agent: &mut Section<'_, '_, '_>) -> Option<Heartbeat> {
    let span = agent.value("heartbeat")?.span();
    let table = agent.table("heartbeat")?;
    let mut section = Section::new(agent.key("heartbeat"), table, agent.findings());
    let has_every = section.value("every").is_some();
    let every = every(&mut section);
    let window = window(&mut section);
    let zone = zone(&mut section);
    section.finish();
    if !has_every {
        let sentence = "`heartbeat` has no `every`; name the time from one to the next, as \"30m\"";
        agent.object(span, "heartbeat", sentence.to_owned(), None);
    }
    Some(Heartbeat { every: every?, window: window?, zone: zone? })
}

fn every(section: &mut Section<'_, '_, '_>) -> Option<Duration> {
    let (text, place) = section.text("every")?;
    let every = span::parse(&text).filter(|every| (EVERY_MIN..=EVERY_MAX).contains(every));
    if every.is_none() {
        let sentence = format!("`every` must be {}, and from 1m to 24h", span::RULE);
        section.object(place, "every", sentence, None);
    }
    every
}

/// Reads the window. `Some(None)` is the whole day, and `None` is an invalid one.
fn window(section: &mut Section<'_, '_, '_>) -> Option<Option<Window>> {
    let key = "between";
    let is_absent = section.value(key).is_none();
    let Some((text, place)) = section.text(key) else { return is_absent.then_some(None) };
    let window = Window::parse(&text);
    if window.is_none() {
        let sentence = "`between` must be two different times of day, as \"08:00-22:00\", or over midnight as \"22:00-06:00\"; leave it out for the whole day";
        section.object(place, key, sentence.to_owned(), None);
    }
    window.map(Some)
}

fn zone(section: &mut Section<'_, '_, '_>) -> Option<Zone> {
    let key = "zone";
    let is_absent = section.value(key).is_none();
    let Some((text, place)) = section.text(key) else {
        return is_absent.then(|| Zone::parse(ZONE_DEFAULT).ok()).flatten();
    };
    let zone = Zone::parse(&text).ok();
    if zone.is_none() {
        let shown = text.escape_debug();
        let sentence =
            format!("`{shown}` is no zone of the IANA database; write one, as \"Europe/Berlin\"");
        section.object(place, key, sentence, None);
    }
    zone
}

//! All that the screen shows and remembers.
//!
//! Invariant: a row is chosen by its key. Rows come, go and move, and no key press applies to a row
//! that took the place of another.

use hive_core::time::WallTime;
use jiff::tz::TimeZone;

use super::answer::Form;
use super::change::{Change, Changes};
use super::details::Details;
use super::hive::Hive;
use super::item::{Item, Key};
use super::layout;
use super::reads::Reads;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Waiting,
    /// Items that do not continue by themselves.
    Stuck,
    Agents,
}

impl Pane {
    pub(crate) const ALL: [Self; 3] = [Self::Waiting, Self::Stuck, Self::Agents];
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) key: Option<Key>,
    pub(crate) index: usize,
    /// Whether the row that was chosen went away by itself, so that this one was never chosen.
    slipped: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Link {
    /// The first reading of the hive is under way.
    Beginning,
    Up,
    Down {
        since: WallTime,
        why: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Plain,
    Good,
    Bad,
}

#[derive(Clone, Debug)]
pub(crate) struct Note {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

/// A dialog over the panes, which gets the keys.
#[derive(Debug)]
pub(crate) enum Dialog {
    Help,
    Confirm(Change),
    Answer(Box<Form>),
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) hive: Hive,
    pub(crate) link: Link,
    pub(crate) reads: Reads,
    pub(crate) changes: Changes,
    /// Columns and lines.
    pub(crate) size: (u16, u16),
    pub(crate) focus: Pane,
    choices: [Choice; 3],
    pub(crate) details: Option<Details>,
    pub(crate) dialog: Option<Dialog>,
    /// A form that was left or sent, in case it is taken up again.
    pub(crate) draft: Option<Form>,
    pub(crate) note: Option<Note>,
    pub(crate) color: bool,
    pub(crate) zone: TimeZone,
}

impl State {
    /// Returns an empty screen. `seed` makes request ids that no other process makes.
    pub(crate) fn new(size: (u16, u16), color: bool, zone: TimeZone, seed: String) -> Self {
        Self {
            hive: Hive::default(),
            link: Link::Beginning,
            reads: Reads::default(),
            changes: Changes::new(seed),
            size,
            focus: Pane::Waiting,
            choices: Default::default(),
            details: None,
            dialog: None,
            draft: None,
            note: None,
            color,
            zone,
        }
    }

    pub(crate) fn items(&self, pane: Pane) -> Vec<Item<'_>> {
        match pane {
            Pane::Waiting => self.hive.waiting(),
            Pane::Stuck => self.hive.stuck(),
            Pane::Agents => self.hive.tree(),
        }
    }

    pub(crate) fn rows(&self) -> [u16; 3] {
        layout::rows(self.size.1, Pane::ALL.map(|pane| self.items(pane).len()))
    }

    pub(crate) fn choice(&self, pane: Pane) -> &Choice {
        &self.choices[pane as usize]
    }

    /// Returns the object of keys: the row in full, else the chosen row.
    pub(crate) fn subject(&self) -> Option<Key> {
        match &self.details {
            Some(details) => Some(details.key.clone()),
            None => self.choice(self.focus).key.clone(),
        }
    }

    pub(crate) fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.note = Some(Note { tone, text: text.into() });
    }

    /// Returns whether the chosen row replaced one that disappeared; after this call it counts as
    /// chosen.
    pub(crate) fn slipped(&mut self) -> bool {
        self.details.is_none() && std::mem::take(&mut self.choices[self.focus as usize].slipped)
    }

    /// Moves the choice by this many rows, within the pane.
    pub(crate) fn step(&mut self, by: isize) {
        let keys: Vec<Key> = self.items(self.focus).iter().map(Item::key).collect();
        let choice = &mut self.choices[self.focus as usize];
        let index = choice.index.saturating_add_signed(by).min(keys.len().saturating_sub(1));
        *choice = Choice { key: keys.into_iter().nth(index), index, slipped: false };
    }

    /// Puts the choice of each pane on the rows that are there now.
    pub(crate) fn settle_choices(&mut self) {
        for pane in Pane::ALL {
            let keys: Vec<Key> = self.items(pane).iter().map(Item::key).collect();
            let old = std::mem::take(&mut self.choices[pane as usize]);
            let found = keys.iter().position(|key| Some(key) == old.key.as_ref());
            let index = found.unwrap_or_else(|| old.index.min(keys.len().saturating_sub(1)));
            // A row that disappeared by a change of this screen was not lost.
            let slipped =
                found.is_none() && old.key.as_ref().is_some_and(|key| !self.changes.settle(key));
            let key = keys.into_iter().nth(index);
            self.choices[pane as usize] = Choice {
                slipped: key.is_some() && (slipped || old.slipped && found.is_some()),
                key,
                index,
            };
        }
    }

    /// Focuses the first pane that has rows, when the screen is shown for the first time.
    pub(crate) fn focus_first_filled(&mut self) {
        let full = Pane::ALL.into_iter().find(|pane| !self.items(*pane).is_empty());
        self.focus = full.unwrap_or(Pane::Agents);
    }
}

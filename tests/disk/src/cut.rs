//! The effect of a power cut on unsynced changes: none survive, all do, those up to a point do, or
//! each sector is as it was at some time of its own.
//!
//! A sector is written whole or not at all, and never returns to an older state; there is no order
//! between sectors. Invariant: synced data is not touched, unless an unsynced change covers it.

use std::collections::BTreeMap;

use rand::{Rng, RngExt as _};

use crate::model::{Change, Model};

const SECTOR: u64 = 512;

pub(crate) fn coin(rng: &mut dyn Rng) -> bool {
    rng.random_range(0..2) == 0
}

/// Returns what is left of a file.
pub(crate) fn image(model: &Model, rng: &mut dyn Rng) -> Vec<u8> {
    let mut image = model.durable.clone().unwrap_or_default();
    let pending = &model.pending;
    match rng.random_range(0..6) {
        0 => {}
        1 => pending.iter().for_each(|change| change.apply(&mut image)),
        2 | 3 => {
            let until = rng.random_range(0..=pending.len());
            pending[..until].iter().for_each(|change| change.apply(&mut image));
            // The next change was under way.
            if let Some(next) = pending.get(until) {
                torn(&mut image, std::slice::from_ref(next), rng);
            }
        }
        _ => torn(&mut image, pending, rng),
    }
    image
}

/// Takes each sector as it was after some of the changes that touch it, and the length as it was
/// after some of all changes.
fn torn(image: &mut Vec<u8>, changes: &[Change], rng: &mut dyn Rng) {
    let before = std::mem::take(image);
    let mut lens = vec![before.len() as u64];
    let mut touched: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, change) in changes.iter().enumerate() {
        let old = *lens.last().expect("it begins with one");
        let (from, to, new) = match change {
            Change::Write { offset, data } => {
                (*offset, *offset + data.len() as u64, old.max(*offset + data.len() as u64))
            }
            Change::Truncate { len } => (*len, old.max(*len), *len),
        };
        for sector in from / SECTOR..to.div_ceil(SECTOR) {
            touched.entry(sector).or_default().push(index);
        }
        lens.push(new);
    }
    *image = before;
    let len = lens[rng.random_range(0..lens.len())];
    for (sector, indices) in touched {
        let count = rng.random_range(0..=indices.len());
        for index in &indices[..count] {
            within(image, sector * SECTOR, &changes[*index]);
        }
    }
    image.resize(usize::try_from(len).expect("files of tests fit into memory"), 0);
}

/// Applies the part of a change in the sector that begins at `start`.
fn within(image: &mut Vec<u8>, start: u64, change: &Change) {
    let at = |offset: u64| usize::try_from(offset).expect("files of tests fit into memory");
    let end = start + SECTOR;
    if image.len() < at(end) {
        image.resize(at(end), 0);
    }
    match change {
        Change::Write { offset, data } => {
            let (from, to) = ((*offset).max(start), (*offset + data.len() as u64).min(end));
            image[at(from)..at(to)].copy_from_slice(&data[at(from - offset)..at(to - offset)]);
        }
        Change::Truncate { len } => image[at((*len).clamp(start, end))..at(end)].fill(0),
    }
}

//! Serving: which due delivery of an inbox is leased next.
//!
//! Invariant: what [`Serving::next`] returns is the only delivery that is leased next, so lanes,
//! backoff and "served alone" apply to every receiver.

use std::collections::VecDeque;

use hive_core::delivery::{Lane, next_lane, system_run_after};

use crate::engine::Refusal;
use crate::store::delivery::DeliveryRow;
use crate::store::{AgentKey, Tx, delivery, inbox};

/// The due deliveries of an inbox, read as pages in one command. Each that is returned is claimed
/// before the next one is asked for.
pub(super) struct Serving<'a, 'tx> {
    tx: &'a Tx<'tx>,
    agent: AgentKey,
    failures_below: u32,
    /// Most deliveries that are claimed.
    most: u32,
    system: VecDeque<DeliveryRow>,
    normal: VecDeque<DeliveryRow>,
    read: Read,
}

/// What was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Read {
    Nothing,
    /// One page of both lanes, the system's first; more normal ones may follow it.
    Page,
    /// All that may be claimed.
    All,
}

impl<'a, 'tx> Serving<'a, 'tx> {
    /// Serves at most `most` deliveries. `failures_below` leaves out those that are served alone.
    pub(super) fn new(tx: &'a Tx<'tx>, agent: AgentKey, failures_below: u32, most: u32) -> Self {
        let (system, normal) = (VecDeque::new(), VecDeque::new());
        Self { tx, agent, failures_below, most, system, normal, read: Read::Nothing }
    }

    /// Returns the next due delivery, in lane order.
    pub(super) fn next(&mut self) -> Result<Option<DeliveryRow>, Refusal> {
        let counts = inbox::get(self.tx, self.agent)?;
        if counts.ready_count == 0 {
            return Ok(None);
        }
        if self.read == Read::Nothing {
            self.read_page(counts.ready_count)?;
        }
        let normal_first =
            hive_fault::planted!(LanesMixed) || next_lane(counts.system_run) == Lane::Normal;
        if normal_first {
            if self.normal.is_empty() && self.read == Read::Page {
                self.normal = self.due(Some(Lane::Normal), self.most)?.into();
                self.read = Read::All;
            }
            return Ok(self.normal.pop_front().or_else(|| self.system.pop_front()));
        }
        Ok(self.system.pop_front().or_else(|| self.normal.pop_front()))
    }

    fn read_page(&mut self, ready_count: u32) -> Result<(), Refusal> {
        let most = self.most.min(ready_count);
        let page = self.due(None, most)?;
        let is_full = page.len() == most as usize && most < ready_count;
        self.read = if is_full { Read::Page } else { Read::All };
        for row in page {
            match row.lane {
                Lane::System => self.system.push_back(row),
                Lane::Normal => self.normal.push_back(row),
            }
        }
        Ok(())
    }

    fn due(&self, lane: Option<Lane>, rows: u32) -> Result<Vec<DeliveryRow>, Refusal> {
        let Self { tx, agent, failures_below, .. } = *self;
        Ok(delivery::due(tx, agent, lane, failures_below, rows)?)
    }
}

/// Returns whether a delivery is due.
pub(crate) fn is_due(tx: &Tx<'_>, agent: AgentKey) -> Result<bool, Refusal> {
    Ok(Serving::new(tx, agent, u32::MAX, 1).next()?.is_some())
}

/// Claims the next due delivery, in lane order.
pub(crate) fn pick(tx: &Tx<'_>, agent: AgentKey) -> Result<Option<DeliveryRow>, Refusal> {
    let Some(mut row) = Serving::new(tx, agent, u32::MAX, 1).next()? else { return Ok(None) };
    take(tx, &mut row)?;
    Ok(Some(row))
}

/// Claims the delivery that [`Serving::next`] has returned.
pub(super) fn take(tx: &Tx<'_>, row: &mut DeliveryRow) -> Result<(), Refusal> {
    row.progress = row.progress.lease(tx.now).expect("what is due can be leased");
    let run = system_run_after(inbox::get(tx, row.agent)?.system_run, row.lane);
    Ok(inbox::set_system_run(tx, row.agent, run)?)
}

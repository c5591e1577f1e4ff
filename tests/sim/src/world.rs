//! The world: the state that all tasks of one run share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use hive_broker::engine::declared::Declared;
use hive_core::name::AgentName;
use hive_history::{Event, History, Mark, Setting};
use tokio::sync::{Notify, watch};

use crate::broker::{Broker, End};
use crate::call::Rights;
use crate::client::restorer::Kept;
use crate::clock::Time;
use crate::dice::Dice;
use crate::exec::{CLIENTS, Exec, Group, TaskId};
use crate::host::Host;
use crate::log::{Echo, Log};
use crate::plan::{Fault, Plan};
use crate::watch::Waiters;

/// The reader of an agent's inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reader {
    /// Harnesses, one after another.
    Harness,
    /// Clients that lease.
    Consumer,
    /// No reader.
    Nobody,
}

/// An agent, as the world knows it.
#[derive(Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) parent: String,
    pub(crate) reader: Reader,
    /// Whether the configuration file created it.
    pub(crate) of_file: bool,
    /// Whether a co-process sends it `Wake`.
    pub(crate) has_waker: bool,
    pub(crate) rights: Rights,
}

/// IDs that tasks have received, to use them later.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) deliveries: Vec<(String, u64)>,
    /// Question, asker, target.
    pub(crate) questions: Vec<(u64, String, String)>,
    pub(crate) reminders: Vec<(u64, String)>,
    /// Agents that approvals create and retire, and the agent that asked for each.
    pub(crate) kids: Vec<(String, String)>,
    /// Those of them that an operator created or retired without an approval.
    pub(crate) by_hand: BTreeSet<String>,
    /// Old requests of others, which may arrive again.
    pub(crate) names: u64,
    pub(crate) requests: u64,
    pub(crate) calls: u64,
}

const KNOWN_MAX: usize = 48;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub calls: u64,
    /// Calls that were answered Ok.
    pub done: u64,
    /// Batches of the writer.
    pub commits: u64,
    /// Ends of the broker, clean or not.
    pub deaths: u64,
    /// Aborted batches.
    pub voids: u64,
    pub steps: u64,
    /// Milliseconds on the simulated clock.
    pub simulated_ms: u64,
}

impl Figures {
    /// Adds the other figures to these.
    pub fn add(&mut self, other: &Self) {
        let Self { calls, done, commits, deaths, voids, steps, simulated_ms } = other;
        self.calls += calls;
        self.done += done;
        self.commits += commits;
        self.deaths += deaths;
        self.voids += voids;
        self.steps += steps;
        self.simulated_ms += simulated_ms;
    }
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) dice: Dice,
    pub(crate) exec: Exec,
    pub(crate) log: Log,
    pub(crate) time: Time,
    pub(crate) host: Host,
    pub(crate) history: RefCell<History>,
    pub(crate) broker: RefCell<Option<Rc<Broker>>>,
    pub(crate) group: Cell<Group>,
    /// The number of host boots; tasks on the host watch it.
    pub(crate) boots: watch::Sender<u32>,
    pub(crate) boot_start: Cell<i64>,
    pub(crate) seats: RefCell<Vec<Seat>>,
    pub(crate) declared: RefCell<BTreeMap<AgentName, Declared>>,
    pub(crate) known: RefCell<Known>,
    /// The number of harnesses of each agent.
    pub(crate) lives: RefCell<BTreeMap<String, i32>>,
    /// Agents that were retired, and not created again since.
    pub(crate) retired: RefCell<BTreeSet<String>>,
    /// Messages whose deliveries the operator may have settled without their holders.
    pub(crate) decided: RefCell<BTreeSet<u64>>,
    /// The last backup, and the number of backups so far.
    pub(crate) backup: RefCell<Option<Kept>>,
    pub(crate) backups: Cell<u64>,
    pub(crate) figures: Cell<Figures>,
    pub(crate) waiters: RefCell<Waiters>,
    /// Number of times that no task was ready.
    pub(crate) idles: Cell<u64>,
    /// Problems that the simulation itself saw.
    pub(crate) problems: RefCell<Vec<String>>,
    /// Whether faults have ended and all mail is being worked off.
    pub(crate) healing: Cell<bool>,
    pub(crate) healed: Notify,
    pub(crate) wall_set: Notify,
    /// Notified when the disk goes bad.
    pub(crate) disk_bad: Notify,
    /// Notified when the steps of the plan are used up.
    pub(crate) early: Notify,
    /// How many times longer than usual the broker is down now: its clients call more rarely.
    pub(crate) outage: Cell<u64>,
    /// The kind of end of a doomed broker.
    pub(crate) struck_end: Cell<End>,
    pub(crate) finished: Cell<bool>,
    /// Whether the database may be tried again.
    pub(crate) recover: Cell<bool>,
    /// Probability of a step of the writer, in thousandths.
    pub(crate) eager: u64,
    /// The speed of people and models: their pauses are divided by it.
    pub(crate) haste: u64,
    /// The calm of the hive: the time between two spontaneous events, and the length of the run,
    /// are multiplied by it.
    pub(crate) calm: u64,
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the world of {}", self.plan)
    }
}

macro_rules! say {
    ($world:expr, $($arg:tt)*) => { $world.log.line($world.time.elapsed(), format_args!($($arg)*)) };
}
pub(crate) use say;

impl World {
    pub(crate) fn new(plan: Plan, echo: Echo) -> Self {
        let dice = Dice::new(plan.seed);
        let eager = dice.weighted(&[(1, 60), (2, 300), (1, 800)]);
        let calm = dice.weighted(&[(2, 1), (2, 6), (3, 40), (1, 720)]);
        let haste = dice.weighted(&[(3, 1), (2, 2), (1, 6)]);
        Self {
            dice,
            exec: Exec::default(),
            log: Log::new(echo),
            time: Time::of(plan.seed),
            host: Host::new(),
            history: RefCell::new(History::new(Setting { tolerance_ms: 5, ..Setting::default() })),
            broker: RefCell::default(),
            group: Cell::new(CLIENTS),
            boots: watch::Sender::new(1),
            boot_start: Cell::new(-1_000_000),
            seats: RefCell::default(),
            declared: RefCell::default(),
            known: RefCell::default(),
            lives: RefCell::default(),
            retired: RefCell::default(),
            decided: RefCell::default(),
            backup: RefCell::default(),
            backups: Cell::default(),
            figures: Cell::default(),
            waiters: RefCell::default(),
            idles: Cell::default(),
            problems: RefCell::default(),
            healing: Cell::new(false),
            healed: Notify::new(),
            wall_set: Notify::new(),
            disk_bad: Notify::new(),
            early: Notify::new(),
            outage: Cell::new(1),
            struck_end: Cell::new(End::Killed),
            finished: Cell::new(false),
            recover: Cell::new(false),
            eager,
            haste,
            calm,
            plan,
        }
    }

    pub(crate) fn count(&self, change: impl FnOnce(&mut Figures)) {
        let mut figures = self.figures.get();
        change(&mut figures);
        self.figures.set(figures);
    }

    /// Returns whether this fault happens now.
    pub(crate) fn fails(&self, fault: Fault, per_mille: u64) -> bool {
        !self.healing.get() && self.plan.has(fault) && self.dice.chance(per_mille)
    }

    pub(crate) fn client(&self, name: String, work: impl Future<Output = ()> + 'static) -> TaskId {
        self.exec.spawn(CLIENTS, name, work)
    }

    pub(crate) async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    /// Pauses for one of many possible lengths, as people and models do.
    pub(crate) async fn pause(&self, max: u64) {
        self.sleep(self.dice.span(max / self.haste)).await;
    }

    /// Waits, but not longer than until all is healed; returns whether it is.
    pub(crate) async fn rest(&self, ms: u64) -> bool {
        if !self.healing.get() {
            tokio::select! {
                biased;
                () = self.healed.notified() => {}
                () = self.sleep(ms) => {}
            }
        }
        self.healing.get()
    }

    pub(crate) fn mark(&self, mark: Mark) {
        say!(self, "mark {mark:?}");
        self.history.borrow_mut().push(self.at(), self.time.wall(), Event::Mark(mark));
    }

    pub(crate) fn at(&self) -> u64 {
        u64::try_from(self.time.elapsed()).unwrap_or(0)
    }

    /// Returns a text that no message has had before.
    pub(crate) fn fresh(&self, what: &str) -> String {
        format!("{what} {}", self.fresh_number())
    }

    /// Returns a number that no text or policy has had before.
    pub(crate) fn fresh_number(&self) -> u64 {
        let mut known = self.known.borrow_mut();
        known.names += 1;
        known.names
    }

    /// Returns an unused request id.
    pub(crate) fn request(&self) -> String {
        let mut known = self.known.borrow_mut();
        known.requests += 1;
        // Most clients count their calls, which the broker knows; it must not depend on it.
        let number = known.requests;
        if number.is_multiple_of(5) { format!("r{number}") } else { format!("r-{number}") }
    }

    pub(crate) fn wrong(&self, what: String) {
        say!(self, "WRONG {what}");
        self.problems.borrow_mut().push(what);
    }

    pub(crate) fn learn_delivery(&self, agent: &str, message: u64) {
        keep(&mut self.known.borrow_mut().deliveries, (agent.to_owned(), message));
    }

    pub(crate) fn learn_question(&self, question: u64, asker: &str, target: &str) {
        keep(
            &mut self.known.borrow_mut().questions,
            (question, asker.to_owned(), target.to_owned()),
        );
    }

    pub(crate) fn learn_reminder(&self, reminder: u64, agent: &str) {
        keep(&mut self.known.borrow_mut().reminders, (reminder, agent.to_owned()));
    }

    pub(crate) fn seat(&self, name: &str) -> Option<Seat> {
        self.seats.borrow().iter().find(|seat| seat.name == name).cloned()
    }

    pub(crate) fn parent_of(&self, name: &str) -> String {
        self.seat(name).map_or_else(|| "operator".to_owned(), |seat| seat.parent)
    }

    /// Returns a recipient: an agent, or sometimes the operator.
    pub(crate) fn anybody(&self) -> String {
        if self.dice.chance(120) {
            return "operator".to_owned();
        }
        let seats = self.seats.borrow();
        self.dice.pick(&seats).map_or_else(|| "operator".to_owned(), |seat| seat.name.clone())
    }
}

fn keep<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if list.contains(&item) {
        return;
    }
    if list.len() == KNOWN_MAX {
        list.remove(0);
    }
    list.push(item);
}

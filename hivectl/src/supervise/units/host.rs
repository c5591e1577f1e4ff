//! The loop: looks at the units, reports what is new, and gives the orders that are due.
//!
//! Invariant: no order is given before the broker has said how every agent is wanted, and none
//! about a unit for which systemd has an order already.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use hive_core::agent::HarnessReport;
use hive_core::name::AgentName;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::context::Context;
use crate::error::Failure;
use crate::output::note;
use crate::output::text::{visible_block, visible_line};
use crate::spawn::spawn;
use crate::supervise::launch::decide::{Next, Seen, Stops, Why, decide};
use crate::supervise::launch::report::Reporter;
use crate::supervise::launch::wanted::{self, Wanted, Wishes};
use crate::supervise::logs::{self, Harnesses};
use crate::supervise::signals::{Signals, Stop};
use crate::supervise::units::error::UnitsError;
use crate::supervise::units::news::{News, observe};
use crate::supervise::units::pace::Pace;
use crate::supervise::units::purge;
use crate::supervise::units::record::{Record, Records};
use crate::supervise::units::state::{Active, State};
use crate::supervise::units::systemctl::{Systemctl, Unit, Verb};

/// Pause between two looks at the units.
const LOOK: Duration = Duration::from_secs(2);
/// The same, while something changes.
const LOOK_SOON: Duration = Duration::from_millis(200);
/// How long a change is followed closely.
const CHANGE: Duration = Duration::from_secs(2);
/// How long a process has to run until it is steady.
const STEADY_AFTER: Duration = Duration::from_secs(60);

/// Starts and stops the units of agents until a signal asks for the end.
pub(crate) async fn run(state: PathBuf, context: Context) -> Result<(), Failure> {
    let mut signals = Signals::new().map_err(UnitsError::Signals)?;
    let systemctl = Systemctl::find()?;
    let records = Records::open(&state)?;
    let (wants, mut wanted) = watch::channel(Wanted::default());
    let (wants_logs, logs_wanted) = mpsc::unbounded_channel();
    let wishes = Wishes { fleet: wants, logs: wants_logs };
    let launching = wanted::run(context.socket.clone(), context.timeout, wishes);
    let launching = spawn("launcher", launching);
    let harnesses = Harnesses::Units(|name| Unit::of(name).to_string());
    let logs = spawn("logs", logs::run(context.socket.clone(), harnesses, logs_wanted));
    Host::new(systemctl, records, context.socket).run(&mut wanted, &mut signals.stop).await;
    launching.abort();
    logs.abort();
    note("the launcher ends; the units of agents run on");
    Ok(())
}

#[derive(Debug)]
struct Host {
    systemctl: Systemctl,
    records: Records,
    socket: PathBuf,
    reporter: Reporter,
    /// `None` until the broker has said it.
    wanted: Option<Wanted>,
    stops: Stops,
    /// Since when a start of a unit was seen to run, until it is reported as steady.
    young: BTreeMap<AgentName, (Option<String>, Option<Instant>)>,
    paces: BTreeMap<(AgentName, Verb), Pace>,
    purging: JoinSet<Over>,
    busy: BTreeSet<AgentName>,
    /// Purges that are finished, which the broker does not withdraw.
    purged: BTreeSet<u64>,
    /// What was last said of an agent whose order failed; `None` is about all.
    said: BTreeMap<Option<AgentName>, String>,
    /// Until when the units are looked at closely.
    close_until: Instant,
    next_look: Instant,
}

/// A purge that has ended.
#[derive(Debug)]
struct Over {
    name: AgentName,
    id: u64,
    done: Result<(), String>,
}

impl Host {
    fn new(systemctl: Systemctl, records: Records, socket: PathBuf) -> Self {
        let now = Instant::now();
        Self {
            systemctl,
            records,
            reporter: Reporter::new(socket.clone()),
            socket,
            wanted: None,
            stops: Stops::default(),
            young: BTreeMap::new(),
            paces: BTreeMap::new(),
            purging: JoinSet::new(),
            busy: BTreeSet::new(),
            purged: BTreeSet::new(),
            said: BTreeMap::new(),
            close_until: now,
            next_look: now,
        }
    }

    async fn run(&mut self, wanted: &mut watch::Receiver<Wanted>, stop: &mut Stop) {
        loop {
            tokio::select! {
                () = stop.asked() => return,
                Ok(()) = wanted.changed() => self.follow(wanted.borrow_and_update().clone()),
                Some(over) = self.purging.join_next() => match over {
                    Ok(over) => self.is_over(over),
                    Err(error) => note(&format!("a purge failed: {error}")),
                },
                () = sleep_until(self.next_look) => {}
            }
            tokio::select! {
                () = self.look() => {}
                () = stop.asked() => return,
            }
        }
    }

    fn follow(&mut self, mut wanted: Wanted) {
        wanted.purges.retain(|id, _| !self.purged.contains(id));
        self.wanted = Some(wanted);
        self.changes();
    }

    fn is_over(&mut self, Over { name, id, done }: Over) {
        self.busy.remove(&name);
        match done {
            Ok(()) => {
                self.purged.insert(id);
                if let Some(wanted) = &mut self.wanted {
                    wanted.purges.remove(&id);
                }
                self.paces.remove(&(name.clone(), Verb::Clean));
                self.succeeded(&name);
                note(&format!("{name} is purged, and its directories are deleted"));
            }
            Err(why) => self.failed(&name, &format!("{name} is purged, but {why}")),
        }
        self.changes();
    }

    /// Notes that the units are to be looked at closely for some time.
    fn changes(&mut self) {
        self.close_until = Instant::now() + CHANGE;
    }

    /// Looks at all units, reports what is new, and gives the orders that are due.
    async fn look(&mut self) {
        let Some(mut wanted) = self.wanted.take() else {
            self.next_look = Instant::now() + LOOK;
            return;
        };
        match self.systemctl.states().await {
            Ok(states) => {
                self.said.remove(&None);
                self.act(&mut wanted, &states).await;
            }
            Err(why) => self.say(None, &format!("nothing is started or stopped: {why}")),
        }
        self.wanted = Some(wanted);
        let now = Instant::now();
        self.next_look = now + if now < self.close_until { LOOK_SOON } else { LOOK };
    }

    async fn act(&mut self, wanted: &mut Wanted, states: &BTreeMap<AgentName, State>) {
        let none = State::default();
        let known: BTreeSet<AgentName> = {
            let purged = wanted.purges.values();
            let loaded = states.keys().filter(|name| wanted.agents.contains_key(*name));
            purged.chain(loaded).chain(self.records.names()).cloned().collect()
        };
        let mut seen = BTreeMap::new();
        for name in known {
            let state = states.get(&name).unwrap_or(&none);
            self.observe(&name, state).await;
            seen.insert(name.clone(), self.seen(&name, state));
        }
        self.stops.retain(wanted);
        for (name, next) in decide(wanted, &seen) {
            let state = states.get(&name).unwrap_or(&none);
            self.carry_out(name, next, state).await;
        }
        for (name, seen) in seen {
            let is_gone = !wanted.agents.contains_key(&name) && seen == Seen::Absent;
            if is_gone && !wanted.purges.values().any(|purged| *purged == name) {
                self.forget(&name);
            }
        }
    }

    /// Reports what is new about a unit.
    async fn observe(&mut self, name: &AgentName, state: &State) {
        let mut record = self.records.get(name).cloned();
        let news = observe(&mut record, state);
        let Some(record) = record else { return };
        let line = self.reporter.line(name.clone(), record.restart_count);
        for one in news {
            self.changes();
            match one {
                News::Started => line.report(HarnessReport::Started, String::new()),
                News::Crashed { invocation, ending } => {
                    let unit = Unit::of(name);
                    let last = self.systemctl.last_words(&unit, invocation.as_deref()).await;
                    note(&format!("{name} ended ({ending}){}", visible_block(&last)));
                    line.report(HarnessReport::Crashed, format!("{ending}{last}"));
                }
            }
        }
        if state.active == Active::Up {
            let now = Instant::now();
            let young = self.young.entry(name.clone()).or_default();
            if young.0 != state.invocation {
                *young = (state.invocation.clone(), Some(now));
            }
            if young.1.is_some_and(|since| now >= since + STEADY_AFTER) {
                young.1 = None;
                self.paces.remove(&(name.clone(), Verb::Start));
                line.report(HarnessReport::Steady, String::new());
            }
        } else if state.active == Active::Inactive && self.young.remove(name).is_some() {
            // It ran, and has left or was stopped.
            self.paces.remove(&(name.clone(), Verb::Start));
            self.paces.remove(&(name.clone(), Verb::Stop));
        }
        self.put(name, record);
    }

    fn seen(&mut self, name: &AgentName, state: &State) -> Seen {
        let restart_count = self.records.get(name).map_or(0, |record| record.restart_count);
        match state.active {
            _ if self.busy.contains(name) => Seen::Changing,
            Active::Changing => {
                self.changes();
                Seen::Changing
            }
            Active::Up | Active::Waiting => Seen::Running { restart_count },
            Active::Inactive | Active::Failed => Seen::Absent,
        }
    }

    async fn carry_out(&mut self, name: AgentName, next: Next, state: &State) {
        let runs = matches!(state.active, Active::Up | Active::Waiting);
        match next {
            Next::End(Why::Purge(id)) if !runs => self.purge(name, id, state),
            Next::End(why) => self.stop(&name, why, state).await,
            Next::Start { restart_count } => self.start(&name, restart_count).await,
            Next::ReportStopped => {
                if self.stops.is_new(&name) {
                    self.reporter.line(name, 0).report(HarnessReport::Stopped, String::new());
                }
            }
        }
    }

    async fn start(&mut self, name: &AgentName, restart_count: u64) {
        if !self.paced(name, Verb::Start) {
            return;
        }
        let unit = Unit::of(name);
        let failed = |why: &str| format!("{name} is not started: {why}");
        if let Err(why) = self.systemctl.check(&unit).await {
            return self.failed(name, &failed(&why));
        }
        let record = Record { restart_count, invocation: None, has_ended: false };
        if self.put(name, record) {
            match self.systemctl.order(Verb::Start, &unit).await {
                Ok(()) => self.succeeded(name),
                Err(why) => self.failed(name, &failed(&why)),
            }
        }
    }

    async fn stop(&mut self, name: &AgentName, why: Why, state: &State) {
        if !self.paced(name, Verb::Stop) {
            return;
        }
        let record = Record {
            restart_count: self.records.get(name).map_or(0, |record| record.restart_count),
            invocation: state.invocation.clone(),
            has_ended: true,
        };
        if !self.put(name, record) {
            return;
        }
        match self.systemctl.order(Verb::Stop, &Unit::of(name)).await {
            Ok(()) => {
                self.succeeded(name);
                let why = match why {
                    Why::Gone => "is removed, and its unit is stopped",
                    Why::Stopped => "is stopped, and its unit with it",
                    Why::Restart => "is restarted, as was requested",
                    Why::Purge(_) => "is purged, and its unit is stopped first",
                };
                note(&format!("{name} {why}"));
            }
            Err(why) => self.failed(name, &format!("the unit of {name} is not stopped: {why}")),
        }
    }

    fn purge(&mut self, name: AgentName, id: u64, state: &State) {
        if !self.paced(&name, Verb::Clean) {
            return;
        }
        // The next agent of this name begins without it. If this fails, the start replaces it.
        let _ = self.records.remove(&name);
        self.busy.insert(name.clone());
        let (systemctl, socket) = (self.systemctl.clone(), self.socket.clone());
        let has_failed = state.active == Active::Failed;
        self.purging.spawn(async move {
            let done = purge::run(&systemctl, &name, has_failed, &socket, id).await;
            Over { name, id, done }
        });
    }

    /// Returns whether an order may be given, and notes that it is.
    fn paced(&mut self, name: &AgentName, verb: Verb) -> bool {
        let now = Instant::now();
        let pace = self.paces.entry((name.clone(), verb)).or_default();
        let is_allowed = pace.allows(now);
        if is_allowed {
            pace.given(now);
            self.changes();
        }
        is_allowed
    }

    /// Keeps a record; returns whether it is on disk.
    fn put(&mut self, name: &AgentName, record: Record) -> bool {
        let put = self.records.put(name, record);
        if let Err(error) = &put {
            let sentence = format!(
                "the record of {name} cannot be written, so nothing is done about it: {error}"
            );
            self.failed(name, &sentence);
        }
        put.is_ok()
    }

    /// Forgets an agent that is gone.
    fn forget(&mut self, name: &AgentName) {
        // If it fails, it is tried at the next look.
        let _ = self.records.remove(name);
        self.paces.retain(|(of, _), _| of != name);
        self.said.remove(&Some(name.clone()));
        self.young.remove(name);
    }

    fn succeeded(&mut self, name: &AgentName) {
        self.said.remove(&Some(name.clone()));
    }

    fn failed(&mut self, name: &AgentName, sentence: &str) {
        self.say(Some(name.clone()), sentence);
    }

    /// Prints a sentence, unless it was the last one about this agent.
    fn say(&mut self, of: Option<AgentName>, sentence: &str) {
        if self.said.get(&of).is_none_or(|before| before != sentence) {
            note(&visible_line(sentence));
            self.said.insert(of, sentence.to_owned());
        }
    }
}

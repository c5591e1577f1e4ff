//! A run: sets a world up, lets the scheduler choose until all is over, and reports.
//!
//! Invariant: one thread, one seed, one outcome; the real world supplies only memory and computing
//! time.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::time::Duration;

use hive_broker::engine::declared::Declared;
use hive_broker::store::Step;
use hive_core::agent::{KickOnStart, Policy};
use tokio::time::Instant;

use crate::call::{Call, Rights, Who};
use crate::log::Echo;
use crate::plan::{Fault, Plan};
use crate::serve::{self, name};
use crate::world::{Figures, Reader, Seat, World, say};

const NAMES: [&str; 12] =
    ["ada", "bob", "cyd", "dan", "eve", "fay", "gus", "hal", "ivy", "jon", "kim", "lee"];
/// The pause before a failed database is recovered, in ms.
const RECOVERY_PAUSE: u64 = 500;

/// Maximum number of steps at one moment: more than any run needs.
const STEPS_AT_ONCE: u64 = 20_000;

#[derive(Clone, Debug)]
pub struct Report {
    pub plan: Plan,
    /// The hash of the whole event log.
    pub hash: String,
    pub figures: Figures,
    /// Broken promises, each with its evidence.
    pub violations: Vec<String>,
}

pub fn run(plan: &Plan, echo: Echo) -> Report {
    hive_fault::seed(Some(plan.seed));
    let world = Rc::new(World::new(plan.clone(), echo));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.expect("a runtime without threads");
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // Many tasks are polled in one poll of tokio's; its budget would make them yield for no
        // reason.
        runtime.block_on(tokio::task::coop::unconstrained(drive(&world)));
    }));
    if let Err(panic) = ran {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied());
        world.wrong(format!("Panic: {}", text.unwrap_or("?")));
    }
    let _context = runtime.enter();
    let report = Report {
        plan: plan.clone(),
        hash: world.log.hash(),
        figures: Figures { simulated_ms: world.at(), ..world.figures.get() },
        violations: world.problems.borrow().clone(),
    };
    // Tasks hold the world that holds them.
    world.abandon();
    hive_fault::seed(None);
    report
}

/// Chooses the next step, until all is over.
async fn drive(world: &Rc<World>) {
    let start = Instant::now();
    let now = || i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
    world.client("director".to_owned(), direct(Rc::clone(world)));
    let (mut steps, mut since) = (0u64, 0u64);
    while !world.finished.get() {
        steps += 1;
        if steps == world.plan.steps {
            world.early.notify_one();
        }
        if world.host.is_struck() {
            // Its last answers are received, or not; nothing that it does now counts any more.
            if world.dice.chance(500) {
                for _ in 0..world.exec.ready() {
                    if let Some(task) = world.exec.take(0) {
                        say!(world, "poll {task} {}", world.exec.name(task));
                        world.exec.poll(task);
                    }
                }
            }
            world.down(world.struck_end.get());
            let again = Rc::clone(world);
            world.client("service manager".to_owned(), async move { again.up_again().await });
        }
        let ready = world.exec.ready();
        let writer = world
            .broker
            .borrow()
            .as_ref()
            .is_some_and(|broker| broker.has_work(world.recover.get()));
        if ready == 0 && !writer {
            world.exec.idle().await;
            world.idles.set(world.idles.get() + 1);
            let elapsed = now();
            if elapsed != world.time.elapsed() {
                since = steps;
            }
            world.time.set_elapsed(elapsed);
            continue;
        }
        if steps - since > STEPS_AT_ONCE {
            world.wrong("Livelock: the clock stands still, and everybody is busy".to_owned());
            return;
        }
        if world.plan.has(Fault::Lag) && !world.healing.get() && world.dice.below(4_000) == 0 {
            let lag = world.dice.span(90_000);
            say!(world, "lag {lag}");
            tokio::time::advance(Duration::from_millis(lag)).await;
            world.time.set_elapsed(now());
        }
        if writer && (ready == 0 || world.dice.chance(world.eager)) {
            step_writer(world);
        } else if let Some(task) = world.exec.take(world.dice.index(ready)) {
            say!(world, "poll {task} {}", world.exec.name(task));
            world.exec.poll(task);
        }
    }
    world.count(|figures| figures.steps = steps);
}

fn step_writer(world: &Rc<World>) {
    let Some(broker) = world.broker.borrow().clone() else { return };
    let most = world.dice.weighted(&[(3, 1), (3, 2), (2, 5), (3, 512)]);
    world.recover.set(false);
    let stepped = broker.step(most);
    say!(world, "write {most}: {stepped:?}");
    match stepped {
        Step::Batch { committed: true } => world.count(|figures| figures.commits += 1),
        Step::Batch { committed: false } => world.count(|figures| figures.voids += 1),
        Step::Idle | Step::Recovery { .. } => {}
    }
    if broker.is_faulted() {
        let (again, group) = (Rc::clone(world), broker.group);
        world.exec.spawn(group, "recovery".to_owned(), async move {
            again.sleep(RECOVERY_PAUSE).await;
            again.recover.set(true);
        });
    }
}

/// Directs the run, from the first agent to the judgement.
async fn direct(world: Rc<World>) {
    people(&world);
    world.start_broker();
    let made: Vec<Seat> =
        world.seats.borrow().iter().filter(|seat| !seat.of_file).cloned().collect();
    for seat in made {
        let parent = (seat.parent != "operator").then_some(seat.parent);
        let rights = seat.rights;
        let create = Call::Create { agent: seat.name, parent, adopt: false, rights };
        if !world.insist(&Who::operator(), create, 200).await.is_done() {
            world.wrong("an agent cannot be made".to_owned());
        }
    }
    let seats = world.seats.borrow().clone();
    for seat in seats {
        let agent = seat.name;
        match seat.reader {
            Reader::Harness => {
                world.client(
                    format!("harness of {agent}"),
                    Rc::clone(&world).keep_harness(agent.clone(), false),
                );
                world.client(format!("usurper of {agent}"), Rc::clone(&world).usurp(agent.clone()));
            }
            Reader::Consumer => {
                for number in 0..world.dice.between(1, 2) {
                    world.client(
                        format!("consumer {number} of {agent}"),
                        Rc::clone(&world).consume(agent.clone()),
                    );
                }
            }
            Reader::Nobody => {}
        }
        if seat.has_waker {
            world.client(format!("waker of {agent}"), Rc::clone(&world).wake_from_beside(agent));
        }
    }
    world.client("operator".to_owned(), Rc::clone(&world).operate());
    world.client("streams of the operator".to_owned(), Rc::clone(&world).operate_on_streams());
    world.client("chaos".to_owned(), Rc::clone(&world).befall());
    world.client("watch".to_owned(), Rc::clone(&world).watch());
    tokio::select! {
        biased;
        () = world.early.notified() => {}
        () = world.sleep(world.plan.minutes * 60_000 * world.calm) => {}
    }
    world.heal();
    world.conclude().await;
    world.finished.set(true);
}

/// Chooses the agents of this world.
fn people(world: &World) {
    let dice = &world.dice;
    let count =
        usize::try_from(dice.between(3, world.plan.agents.max(3))).unwrap_or(3).min(NAMES.len());
    let mut seats: Vec<Seat> = Vec::new();
    let mut declared = BTreeMap::new();
    for name in &NAMES[..count] {
        let reader =
            dice.weighted(&[(6, Reader::Harness), (3, Reader::Consumer), (1, Reader::Nobody)]);
        let of_file = dice.chance(400);
        let rights = Rights { schedules: dice.chance(300), approvals: dice.chance(400) };
        // The file names only its own agents.
        let parents: Vec<String> = seats
            .iter()
            .filter(|seat| seat.of_file || !of_file)
            .map(|seat| seat.name.clone())
            .collect();
        let parent = dice.pick(&parents).filter(|_| dice.chance(500)).cloned();
        if of_file {
            let policy = policy(world, &seats, rights);
            let parent = parent.as_deref().map(self::name);
            let (role, model) = (String::new(), String::new());
            declared.insert(
                self::name(name),
                Declared {
                    parent,
                    role,
                    model,
                    policy,
                    available_models: Vec::new(),
                    kick_on_start: KickOnStart::default(),
                    on_demand: false,
                },
            );
        }
        seats.push(Seat {
            name: (*name).to_owned(),
            parent: parent.unwrap_or_else(|| "operator".to_owned()),
            reader,
            of_file,
            has_waker: dice.chance(400),
            rights,
        });
    }
    say!(world, "people {seats:?}");
    world.seats.replace(seats);
    world.declared.replace(declared);
}

fn policy(world: &World, others: &[Seat], rights: Rights) -> Policy {
    let mut policy = serve::policy(rights);
    if world.dice.chance(200)
        && let Some(other) = world.dice.pick(others)
    {
        policy.allowed_recipients = vec![other.name.clone()];
    }
    if world.dice.chance(150) {
        policy.sends_per_minute_max = Some(4);
    }
    if world.dice.chance(150) {
        policy.questions_open_max = Some(2);
        policy.reminders_pending_max = Some(2);
    }
    policy
}

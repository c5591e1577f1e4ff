//! A plain model of delivery, and a great many random stories that the broker and the model have to
//! agree on.
//!
//! [`Model`](plain::Model) is the contract once more, in memory and without a database, sessions'
//! tokens or transactions. [`World`](world::World) does each step of a story with both and
//! compares: answers, states, attempts, order and counts after every step; and it audits the
//! database. A story that fails is shrunk to the shortest one that does.

mod plain;
mod world;

use proptest::prelude::*;

use hive_core::delivery::Decision;
use hive_core::turn::{Kind, Outcome};

use world::World;

/// The agent that has harnesses, and consumers while it has none.
const WORKER: usize = 0;
/// The agent that has consumers only.
const READER: usize = 1;

/// A step of a story. Numbers choose among what there is at that moment.
#[derive(Clone, Copy, Debug)]
enum Step {
    Send { by_agent: bool, to: usize },
    Notice { to: usize },
    Wake { key: Option<u8> },
    AskForNext,
    Begin,
    Recv { max: u32 },
    End { outcome: Outcome, returned: bool },
    EndAgain,
    ZombieEnds,
    Attach { take_over: bool },
    Resume,
    Vanish,
    Open { kind: Kind },
    Login { is_there: bool },
    Receive { who: usize, max: u32 },
    Ack { which: usize },
    Nack { which: usize, permanent: bool },
    Extend { which: usize },
    Decide { who: usize, which: usize, decision: Decision },
    Pass { seconds: u64 },
    Restart,
    Crash,
    Reboot,
}

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Ok),
        12 => Just(Outcome::Failed),
        1 => Just(Outcome::RateLimited),
        1 => Just(Outcome::AuthFailed),
        2 => Just(Outcome::Unavailable),
        2 => Just(Outcome::Cancelled),
        2 => Just(Outcome::Drained),
    ];
    let decision = prop_oneof![
        1 => Just(Decision::Ack),
        1 => Just(Decision::Drop),
        3 => Just(Decision::Release),
        3 => Just(Decision::Redrive),
    ];
    let who = prop_oneof![Just(WORKER), Just(READER)];
    let kind = prop_oneof![Just(Kind::Continue), Just(Kind::Checkpoint), Just(Kind::Compact)];
    prop_oneof![
        8 => (any::<bool>(), who.clone()).prop_map(|(by_agent, to)| Step::Send { by_agent, to }),
        6 => who.clone().prop_map(|to| Step::Notice { to }),
        3 => proptest::option::of(0..2u8).prop_map(|key| Step::Wake { key }),
        14 => Just(Step::Begin),
        5 => (1..4u32).prop_map(|max| Step::Recv { max }),
        12 => (outcome, any::<bool>()).prop_map(|(outcome, returned)| Step::End { outcome, returned }),
        2 => Just(Step::AskForNext),
        1 => Just(Step::EndAgain),
        1 => Just(Step::ZombieEnds),
        5 => any::<bool>().prop_map(|take_over| Step::Attach { take_over }),
        2 => Just(Step::Resume),
        3 => Just(Step::Vanish),
        4 => kind.prop_map(|kind| Step::Open { kind }),
        3 => prop::bool::weighted(0.8).prop_map(|is_there| Step::Login { is_there }),
        5 => (who.clone(), 1..4u32).prop_map(|(who, max)| Step::Receive { who, max }),
        3 => any::<usize>().prop_map(|which| Step::Ack { which }),
        4 => (any::<usize>(), prop::bool::weighted(0.2)).prop_map(|(which, permanent)| Step::Nack { which, permanent }),
        1 => any::<usize>().prop_map(|which| Step::Extend { which }),
        4 => (who, any::<usize>(), decision).prop_map(|(who, which, decision)| Step::Decide { who, which, decision }),
        7 => prop_oneof![Just(1u64), Just(5), Just(15), Just(61), Just(700)].prop_map(|seconds| Step::Pass { seconds }),
        1 => Just(Step::Restart),
        1 => Just(Step::Crash),
        1 => Just(Step::Reboot),
    ]
}

fn tell(story: &[Step]) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut world = World::new().await;
        for step in story {
            world.take(*step).await;
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_broker_and_the_model_agree(story in prop::collection::vec(step(), 1..200)) {
        tell(&story);
    }
}

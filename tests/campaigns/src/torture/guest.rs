//! The guest: an agent that is created at run time, moved, given a policy, written to, stopped,
//! started and restarted, retired or purged, and created again.
//!
//! Invariant: only its host changes it, so every reader reads what the host was answered; at the
//! end it exists, so that its mail can be leased.

use std::sync::Arc;
use std::time::Duration;

use hive_history::{Answer, Mark, Op, Reply};

use super::cast::{CALLED, GUEST};
use super::dice::Dice;
use super::other::{CRASHED, PURGE, STARTED, STEADY, STOPPED, parts};
use super::perform::Carried;
use super::players::Table;
use super::reads;
use super::voice::Voice;

/// The client that manages the guest.
pub(crate) struct Host {
    operator: Voice,
    guest: Voice,
    /// Agents that may be above the guest.
    parents: Vec<Voice>,
    table: Arc<Table>,
    dice: Dice,
    /// Decides how agents are wanted.
    wishes: Dice,
    parent: String,
}

impl Host {
    pub(crate) fn new(
        operator: Voice,
        guest: Voice,
        parents: Vec<Voice>,
        table: Arc<Table>,
        dice: Dice,
    ) -> Self {
        let wishes = Dice::new(dice.clone().below(u64::MAX), "wishes");
        Self { operator, guest, parents, table, dice, wishes, parent: String::new() }
    }

    /// Removes the guest and creates it again until the table closes; it exists at the begin and at
    /// the end.
    pub(crate) async fn run(mut self) {
        while !self.table.is_closing() {
            self.change().await;
            self.live().await;
            if self.dice.chance(60) {
                let table = Arc::clone(&self.table);
                let _alone = table.without_guest.lock().await;
                self.remove().await;
                self.create().await;
            }
        }
    }

    async fn done(&self, rpc: &str, content: String) -> Answer {
        self.done_by(&self.operator, rpc, content).await
    }

    async fn done_by(&self, voice: &Voice, rpc: &str, content: String) -> Answer {
        let op = Op::Other { rpc: rpc.to_owned(), content };
        let answer = voice.insist(&op, &Carried::default()).await;
        self.table
            .facts
            .hold(matches!(answer, Answer::Ok(_)), || format!("{op:?} was answered {answer:?}"));
        answer
    }

    /// Creates the guest.
    pub(crate) async fn create(&mut self) {
        self.parent = (*self.dice.pick(&["c1", "c2", ""])).to_owned();
        self.done("CreateAgent", parts(&[GUEST, &self.parent])).await;
        self.look("made", None).await;
    }

    /// Checks that the guest reads as its changes were answered.
    async fn look(&self, what: &str, most: Option<u64>) {
        let Ok(read) = reads::agent(&self.operator, GUEST).await else { return };
        let facts = &self.table.facts;
        facts.hold(read.parent == self.parent, || {
            format!("the guest was {what} below {:?}: {read:?}", self.parent)
        });
        let allowed = read.policy.and_then(|policy| policy.sends_per_minute_max).map(u64::from);
        facts.hold(allowed == most, || {
            format!("the guest was {what} and may send {most:?} a minute, and reads {allowed:?}")
        });
    }

    async fn change(&mut self) {
        self.parent = (*self.dice.pick(&["c1", "c2", "c3", ""])).to_owned();
        self.done("SetParent", parts(&[GUEST, &self.parent])).await;
        let most = 1_000_000 + self.dice.below(1_000_000);
        self.done("SetPolicy", parts(&[GUEST, &most.to_string()])).await;
        self.look("changed", Some(most)).await;
        // Harnesses are notified of it.
        let other = *self.dice.pick(&["t1", "h1", "h2"]);
        self.done("SetPolicy", parts(&[other, &(9_000_000 + most).to_string()])).await;
        // On demand, the harness may leave.
        let on_demand = *self.wishes.pick(&["true", "false"]);
        self.done("StartAgent", parts(&[CALLED, on_demand])).await;
    }

    /// Sends the guest mail, and settles some of it.
    async fn live(&mut self) {
        for _ in 0..1 + self.dice.below(4) {
            let body = self.table.text("operator", "welcome");
            let op = if self.dice.chance(80) {
                Op::Send { to: vec![GUEST.to_owned()], everyone: false, body, reply_to: 0, turn: 0 }
            } else {
                let (target, effect) = (GUEST.to_owned(), String::new());
                Op::Ask { target, text: body, effect, ttl_ms: 0, turn: 0 }
            };
            self.operator.insist(&op, &Carried::default()).await;
        }
        if self.dice.chance(30) {
            let table = Arc::clone(&self.table);
            let _alone = table.without_guest.lock().await;
            self.pause().await;
        }
        let op = Op::Receive { max: 2, lease_ms: 20_000, turn: 0, tool_use: String::new() };
        let carried = Carried::waiting(Duration::from_millis(20 + self.dice.below(80)));
        if let Answer::Ok(Reply::Leased(all)) = self.guest.insist(&op, &carried).await {
            for handed in all {
                // Deliveries still leased are requeued when the guest is retired.
                if self.dice.chance(60) {
                    self.guest.insist(&Op::Ack { token: handed.token }, &Carried::default()).await;
                }
            }
        }
    }

    /// Stops the guest, whose mail then waits, and starts it again; its parent does, or the
    /// operator, who also reports what a launcher would.
    async fn pause(&mut self) {
        let parent = self.parents.iter().find(|voice| voice.name == self.parent);
        let parent = parent.filter(|_| self.wishes.chance(70)).cloned();
        let (by, stop, start) = match parent {
            Some(parent) => (parent, "StopChild", "StartChild"),
            None => (self.operator.clone(), "StopAgent", "StartAgent"),
        };
        self.done_by(&by, stop, GUEST.to_owned()).await;
        self.operator.mark(Mark::Stopped { agent: GUEST.to_owned() });
        let op = Op::Receive { max: 2, lease_ms: 20_000, turn: 0, tool_use: String::new() };
        if let Answer::Ok(Reply::Leased(all)) = self.guest.insist(&op, &Carried::default()).await {
            self.table
                .facts
                .hold(all.is_empty(), || format!("the guest is stopped, and was handed {all:?}"));
        }
        self.report(STOPPED).await;
        self.operator.mark(Mark::Starting { agent: GUEST.to_owned() });
        let on_demand = *self.wishes.pick(&["true", "false", ""]);
        self.done_by(&by, start, parts(&[GUEST, on_demand])).await;
        if let (Ok(read), Ok(wanted)) =
            (reads::agent(&self.operator, GUEST).await, on_demand.parse::<bool>())
        {
            let (facts, is_so) = (&self.table.facts, (read.stopped, read.on_demand));
            facts.hold(is_so == (false, wanted), || format!("on demand is {wanted} in {read:?}"));
        }
        if start == "StartChild" && self.wishes.chance(50) {
            self.done_by(&by, "RestartChild", GUEST.to_owned()).await;
        }
        self.report(STARTED).await;
        if self.wishes.chance(30) {
            self.report(CRASHED).await;
            self.report(STEADY).await;
        }
    }

    /// Reports what became of a harness of the guest. There is none: the reports alone are what the
    /// broker knows of it.
    async fn report(&self, report: &str) {
        let Ok(read) = reads::agent(&self.operator, GUEST).await else { return };
        let text = self.table.text("operator", "output");
        let content = parts(&[GUEST, report, &read.restart_count.to_string(), &text]);
        self.done("ReportHarness", content).await;
    }

    async fn remove(&mut self) {
        self.operator.mark(Mark::Retiring { agent: GUEST.to_owned() });
        if self.dice.chance(40) {
            // The next guest is another agent of the same name.
            self.operator.mark(Mark::Purging { agent: GUEST.to_owned() });
            let purged = self.done("RetireAgent", parts(&[GUEST, PURGE])).await;
            self.operator.mark(Mark::Purged { agent: GUEST.to_owned() });
            if let Answer::Ok(Reply::Done(purge_id)) = purged {
                self.done("FinishPurge", purge_id).await;
            }
            return;
        }
        self.done("RetireAgent", GUEST.to_owned()).await;
        if let Ok(read) = reads::agent(&self.operator, GUEST).await {
            self.table.facts.hold(read.retired, || format!("the guest was retired: {read:?}"));
        }
    }
}

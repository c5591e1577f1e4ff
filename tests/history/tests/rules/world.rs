//! A small world to write histories in: each call takes 10 ms, and its effect goes into the final
//! state too.
//!
//! Invariant: its methods write a history of a broker that keeps the contract; a test breaks it
//! afterwards, in one place.

use hive_history::{
    Answer, Cause, Counts, Decision, Delivery, Due, Event, Final, Handed, History, Kind, Lane,
    Mark, Message, Op, Origin, Outcome, QuestionSeen, QuestionState, Reminder, ReminderState,
    Reply, Rule, Setting, State, Violation, check,
};

/// The wall clock when the observer's clock shows 0.
pub(crate) const WALL: i64 = 1_000_000;
/// Duration of a consumer's lease in these tests, in ms.
pub(crate) const LEASE: u64 = 60_000;

pub(crate) struct World {
    pub(crate) history: History,
    pub(crate) last: Final,
    pub(crate) at: u64,
    ids: u64,
    requests: u64,
}

impl World {
    pub(crate) fn new() -> Self {
        Self {
            history: History::new(Setting::default()),
            last: Final::default(),
            at: 0,
            ids: 0,
            requests: 0,
        }
    }

    /// Returns a world in which `ada` has sent `one` to `bob`, and that message.
    pub(crate) fn with_message() -> (Self, u64) {
        let mut world = Self::new();
        let message = world.send("one");
        (world, message)
    }

    pub(crate) fn id(&mut self) -> u64 {
        self.ids += 1;
        self.ids
    }

    pub(crate) fn request(&mut self) -> String {
        self.requests += 1;
        format!("r{}", self.requests)
    }

    pub(crate) fn pass(&mut self, ms: u64) {
        self.at += ms;
    }

    fn wall(&self) -> i64 {
        WALL + i64::try_from(self.at).expect("small")
    }

    pub(crate) fn invoke(&mut self, caller: &str, request: &str, op: Op) -> u64 {
        self.at += 5;
        let wall = self.wall();
        self.history.invoke(self.at, wall, caller, request, op)
    }

    pub(crate) fn answer(&mut self, call: u64, answer: Answer) {
        self.at += 5;
        let wall = self.wall();
        self.history.answer(self.at, wall, call, answer);
    }

    pub(crate) fn mark(&mut self, mark: Mark) {
        let wall = self.wall();
        self.history.push(self.at, wall, Event::Mark(mark));
    }

    /// Records a call and its answer under a new request id.
    pub(crate) fn call(&mut self, caller: &str, op: Op, answer: Answer) {
        let request = self.request();
        self.call_as(caller, &request, op, answer);
    }

    pub(crate) fn call_as(&mut self, caller: &str, request: &str, op: Op, answer: Answer) {
        let call = self.invoke(caller, request, op);
        self.answer(call, answer);
    }

    /// Puts a message into the final state.
    pub(crate) fn put(&mut self, origin: Origin, to: &str, body: &str) -> u64 {
        let id = self.id();
        let lane = if matches!(origin, Origin::System(_)) { Lane::System } else { Lane::Normal };
        self.last.messages.push(Message {
            id,
            origin,
            recipients: vec![to.to_owned()],
            recipient_count: 1,
            body: body.to_owned(),
            reply_to: 0,
            turn: 0,
            key: String::new(),
            question: 0,
            reminder: 0,
        });
        let (agent, state) = (to.to_owned(), State::Ready);
        self.last.deliveries.push(Delivery {
            agent,
            message: id,
            state,
            lane,
            attempt: 0,
            cause: None,
        });
        id
    }

    pub(crate) fn send_op(to: &str, body: &str, turn: u64) -> Op {
        Op::Send {
            to: vec![to.to_owned()],
            everyone: false,
            body: body.to_owned(),
            reply_to: 0,
            turn,
        }
    }

    /// `ada` sends to `bob`, gets a receipt, and the delivery is ready.
    pub(crate) fn send(&mut self, body: &str) -> u64 {
        let message = self.put(Origin::Agent("ada".to_owned()), "bob", body);
        self.call("ada", Self::send_op("bob", body, 0), sent(message));
        message
    }

    pub(crate) fn message(&mut self, id: u64) -> &mut Message {
        self.last.messages.iter_mut().find(|message| message.id == id).expect("it was put")
    }

    pub(crate) fn delivery(&mut self, id: u64) -> &mut Delivery {
        self.last.deliveries.iter_mut().find(|delivery| delivery.message == id).expect("it was put")
    }

    /// Returns a message of the final state as `bob` receives it.
    pub(crate) fn handed(
        &mut self,
        message: u64,
        token: &str,
        attempt: u32,
        cause: Option<Cause>,
    ) -> Handed {
        self.delivery(message).attempt = attempt;
        let lane = self.delivery(message).lane;
        let known = self.message(message).clone();
        Handed {
            agent: known.recipients[0].clone(),
            message,
            origin: known.origin,
            body: known.body,
            reply_to: known.reply_to,
            lane,
            attempt,
            cause,
            token: token.to_owned(),
            question: known.question,
            reminder: known.reminder,
        }
    }

    /// `bob` leases it as a consumer.
    pub(crate) fn receive(
        &mut self,
        message: u64,
        token: &str,
        attempt: u32,
        cause: Option<Cause>,
    ) {
        let handed = self.handed(message, token, attempt, cause);
        self.call("bob", receive(), Answer::Ok(Reply::Leased(vec![handed])));
        self.delivery(message).cause = cause;
    }

    /// Receives a message in a turn of `bob`.
    pub(crate) fn receive_in(&mut self, turn: u64, message: u64) {
        let handed = self.handed(message, "", 1, None);
        let op = Op::Receive { max: 1, lease_ms: LEASE, turn, tool_use: "a tool".to_owned() };
        self.call("bob", op, Answer::Ok(Reply::Leased(vec![handed])));
    }

    pub(crate) fn ack(&mut self, message: u64, token: &str) {
        self.call("bob", Op::Ack { token: token.to_owned() }, Answer::Ok(Reply::Acked));
        self.delivery(message).state = State::Acked;
    }

    pub(crate) fn nack(&mut self, message: u64, token: &str) {
        let op = Op::Nack { token: token.to_owned(), permanent: false };
        self.call("bob", op, Answer::Ok(Reply::Nacked(State::Ready)));
        self.delivery(message).cause = Some(Cause::Nacked);
    }

    /// `bob`'s harness attaches again.
    pub(crate) fn attach(&mut self, session: &str, epoch: u64) {
        let op = Op::Attach { session: String::new(), take_over: true };
        let reply =
            Reply::Attached { session: session.to_owned(), epoch, resumed: false, open_turn: 0 };
        self.call("bob", op, Answer::Ok(reply));
    }

    /// Begins a turn of `bob` for a message.
    pub(crate) fn begin(
        &mut self,
        session: &str,
        message: u64,
        attempt: u32,
        cause: Option<Cause>,
    ) -> u64 {
        let turn = self.id();
        let delivery = Some(self.handed(message, "", attempt, cause));
        let op = Op::BeginTurn { session: session.to_owned(), mail: true };
        self.call("bob", op, Answer::Ok(Reply::Turn { turn, epoch: 1, delivery }));
        self.delivery(message).cause = cause;
        turn
    }

    pub(crate) fn end(&mut self, session: &str, turn: u64, outcome: Outcome, counts: Counts) {
        let op = Op::EndTurn { session: session.to_owned(), turn, outcome, returned: Vec::new() };
        self.call("bob", op, Answer::Ok(Reply::TurnEnded(counts)));
    }

    pub(crate) fn decide(&mut self, message: u64, decision: Decision) {
        let op = Op::Decide { agent: "bob".to_owned(), message, decision };
        self.call("operator", op, Answer::Ok(Reply::Done(String::new())));
    }

    /// `ada` asks `bob`.
    pub(crate) fn ask(&mut self, text: &str) -> u64 {
        let question = self.id();
        let message = self.put(Origin::System(Kind::QuestionAsked), "bob", text);
        self.message(message).question = question;
        let op = Op::Ask {
            target: "bob".to_owned(),
            text: text.to_owned(),
            effect: String::new(),
            ttl_ms: 0,
            turn: 0,
        };
        self.call("ada", op, Answer::Ok(Reply::Asked { question, message, already: false }));
        self.last.questions.push(QuestionSeen {
            id: question,
            asker: "ada".to_owned(),
            target: "bob".to_owned(),
            text: text.to_owned(),
            state: QuestionState::Open,
            choices: Vec::new(),
            answer: String::new(),
            closed_by: String::new(),
            operator_override: false,
            deadline: None,
            message,
            approval: None,
        });
        question
    }

    pub(crate) fn question(&mut self, id: u64) -> &mut QuestionSeen {
        self.last.questions.iter_mut().find(|question| question.id == id).expect("it was asked")
    }

    /// Returns the question after `bob`'s answer.
    pub(crate) fn answered(&mut self, id: u64, text: &str) -> QuestionSeen {
        let question = self.question(id);
        (question.state, question.answer, question.closed_by) =
            (QuestionState::Answered, text.to_owned(), "bob".to_owned());
        question.clone()
    }

    /// `bob` answers, and `ada` gets a notice.
    pub(crate) fn reply(&mut self, id: u64, text: &str) {
        let question = self.answered(id, text);
        self.call("bob", answer(id, text), Answer::Ok(Reply::Question(question)));
        let told = self.put(Origin::System(Kind::QuestionAnswered), "ada", text);
        self.message(told).question = id;
    }

    /// `bob` sets a reminder that is due after this many ms; returns its index in the final state.
    pub(crate) fn remind(&mut self, body: &str, after: u64) -> usize {
        let id = self.id();
        let due = self.wall() + 5 + i64::try_from(after).expect("small");
        let op = Op::Remind { body: body.to_owned(), due: Due::After(after), turn: 0 };
        self.call("bob", op, Answer::Ok(Reply::Reminded { reminder: id, due, already: false }));
        let (agent, body, state) = ("bob".to_owned(), body.to_owned(), ReminderState::Pending);
        self.last.reminders.push(Reminder { id, agent, body, state, due, closed: 0, message: 0 });
        self.last.reminders.len() - 1
    }

    /// Fires the reminder now.
    pub(crate) fn fire(&mut self, place: usize) -> u64 {
        let Reminder { id, body, .. } = self.last.reminders[place].clone();
        let message =
            self.put(Origin::System(Kind::Reminder), "bob", &format!("Reminder {id}: {body}"));
        self.message(message).reminder = id;
        let closed = self.wall();
        let reminder = &mut self.last.reminders[place];
        (reminder.state, reminder.closed, reminder.message) =
            (ReminderState::Fired, closed, message);
        message
    }

    pub(crate) fn check(mut self) -> Vec<Violation> {
        self.last.wall = self.wall();
        check(&self.history, &self.last)
    }

    /// Asserts that no rule finds a violation.
    #[track_caller]
    pub(crate) fn fine(self) {
        let history = self.history.clone();
        let found = self.check();
        assert!(found.is_empty(), "{found:#?}\n{}", history.tail(100));
    }

    /// Asserts that exactly this rule is broken and that the report contains these words.
    #[track_caller]
    pub(crate) fn breaks(self, rule: Rule, words: &str) {
        let history = self.history.clone();
        let found = self.check();
        assert_eq!(found.len(), 1, "{found:#?}\n{}", history.tail(100));
        assert_eq!(found[0].rule, rule, "{}", found[0]);
        assert!(found[0].to_string().contains(words), "{} has no {words:?}", found[0]);
        assert!(
            found[0].seen.iter().all(|index| *index < history.observations.len()),
            "{}",
            found[0]
        );
    }
}

pub(crate) fn sent(message: u64) -> Answer {
    Answer::Ok(Reply::Sent { message, already: false, skipped: Vec::new() })
}

pub(crate) fn unknown() -> Answer {
    Answer::Unknown("the connection was lost".to_owned())
}

pub(crate) fn refused(reason: &str) -> Answer {
    Answer::Refused(reason.to_owned())
}

pub(crate) fn receive() -> Op {
    Op::Receive { max: 1, lease_ms: LEASE, turn: 0, tool_use: String::new() }
}

pub(crate) fn answer(question: u64, text: &str) -> Op {
    Op::Answer { question, choices: Vec::new(), text: text.to_owned(), digest: String::new() }
}

/// Returns the counts of a turn.
pub(crate) fn counts(acked: u32, returned: u32) -> Counts {
    Counts { acked, returned, dead: 0, held: 0 }
}

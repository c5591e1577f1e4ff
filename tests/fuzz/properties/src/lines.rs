//! Output of claude: bytes to lines, lines to events, and events to everything that consumes
//! them.
//!
//! What it is not: a process; the lines are taken as they would come through its pipe. Invariants:
//! the lines do not depend on the pieces they came in; no line makes anything fail; memory and
//! reports to the broker stay bounded; the machine ends a turn that began exactly once, and every
//! time and sum it reports fits the contract.

use std::sync::Arc;
use std::time::Duration;

use hive_core::limits::{ERROR_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX};
use hive_core::time::{BootTime, Now, WallTime};
use hive_core::turn::Outcome;
use hive_harness::claude::event::{self, Event};
use hive_harness::claude::line::Splitter;
use hive_harness::claude::outcome::{self, Evidence, Exit, StopCause};
use hive_harness::claude::transcript::{TOOL_NAMES_MAX, Transcript};
use hive_harness::config::Spans;
use hive_harness::turn::context::Watermarks;
use hive_harness::turn::input::{Attachment, EndTurnAnswer, Found, Input};
use hive_harness::turn::machine::{Defaults, Machine};
use hive_harness::turn::output::{Ending, Output};
use hive_harness::wire::read;
use hive_proto::v1;

/// Longest line that is kept here, in bytes; small, so that cutting is reached.
const LINE_BYTES_MAX: usize = 2048;
/// The turn that runs.
const TURN: u64 = 7;

/// Checks the bytes: the first chooses how the process ends and in which pieces its output comes,
/// the rest is the output.
pub fn check(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let lines = whole(rest);
    assert_eq!(pieces(rest, 1 + usize::from(first & 31)), lines, "the pieces change the lines");
    let mut events = Vec::new();
    let mut transcript = Transcript::default();
    for line in &lines {
        match event::parse(line) {
            Some(event) => {
                transcript.absorb(&event);
                events.push(Some(event));
            }
            None => {
                transcript.absorb_stderr(line);
                events.push(None);
            }
        }
    }
    bounded(&transcript);
    judged(&transcript, *first);
    in_a_machine(&lines, &events, *first);
}

fn whole(bytes: &[u8]) -> Vec<String> {
    pieces(bytes, usize::MAX)
}

fn pieces(bytes: &[u8], size: usize) -> Vec<String> {
    let mut splitter = Splitter::new(LINE_BYTES_MAX);
    let mut lines = Vec::new();
    for piece in bytes.chunks(size.min(bytes.len()).max(1)) {
        lines.extend(splitter.push(piece));
    }
    lines.extend(splitter.finish());
    assert!(lines.iter().all(|line| !line.text.contains('\n')), "a line has one line");
    // A byte that is no text may become three.
    assert!(lines.iter().all(|line| line.text.len() <= LINE_BYTES_MAX * 3), "a line has a bound");
    lines.into_iter().map(|line| line.text).collect()
}

fn bounded(transcript: &Transcript) {
    assert!(
        transcript.tail().len() <= OUTPUT_TAIL_BYTES_MAX,
        "a tail of {} bytes",
        transcript.tail().len()
    );
    assert!(transcript.stderr().len() <= OUTPUT_TAIL_BYTES_MAX);
    assert!(transcript.remark.len() <= ERROR_BYTES_MAX);
    assert!(transcript.tools.len() <= TOOL_NAMES_MAX, "{} tools", transcript.tools.len());
    assert!(transcript.tools.keys().all(|name| name.len() <= 128), "a tool's name has a bound");
    for before in [None, Some(0.0), Some(1e300), Some(f64::NAN)] {
        assert!(transcript.usage(before).cost_micro_usd <= 1_000_000_000_000_000);
    }
}

fn judged(transcript: &Transcript, first: u8) {
    let exit = exit(first);
    let stops = [
        None,
        Some(StopCause::Cancelled),
        Some(StopCause::Idle { seconds: 5, in_tool: transcript.waits_for_a_tool() }),
        Some(StopCause::Overlong(9)),
    ];
    for stop in &stops {
        let evidence =
            Evidence { exit, transcript, stop: stop.as_ref(), retry_fallback: Some(WallTime(5)) };
        for verdict in [outcome::classify(&evidence), outcome::classify_compaction(&evidence)] {
            assert!(
                verdict.error.len() <= ERROR_BYTES_MAX,
                "an error of {} bytes",
                verdict.error.len()
            );
            assert_eq!(verdict.error.is_empty(), verdict.outcome == Outcome::Ok, "{verdict:?}");
            assert!(
                verdict.retry_time.is_none() || verdict.outcome == Outcome::RateLimited,
                "{verdict:?}"
            );
            assert!(
                !matches!(verdict.outcome, Outcome::Vanished | Outcome::Fenced),
                "only the broker says that"
            );
        }
    }
}

fn exit(first: u8) -> Exit {
    if first & 128 == 0 { Exit::Code(i32::from(first >> 5)) } else { Exit::Signal(9) }
}

/// A machine in the middle of a turn.
fn running(now: Now) -> Machine {
    let spans = Spans {
        turn_idle: Some(Duration::from_secs(100)),
        turn_max: Some(Duration::from_secs(1000)),
        rate_limit_sleep: None,
        drain_grace: Duration::from_secs(20),
        kill_grace: Duration::from_secs(5),
    };
    let defaults = Defaults {
        label: "bob".to_owned(),
        model: "a-model".to_owned(),
        operator_pronouns: String::new(),
        mcp_server_name: "hive".to_owned(),
        watermarks: Watermarks { cache_ttl: Duration::from_secs(3600), ..Watermarks::default() },
        extra_servers: vec!["extra".to_owned()],
    };
    let policy = v1::Policy { tool_groups: vec!["messaging".to_owned()], ..v1::Policy::default() };
    let agent = v1::Agent { name: "bob".to_owned(), policy: Some(policy), ..v1::Agent::default() };
    let agent = read::agent(agent).ok();
    let mut machine = Machine::new(spans, defaults);
    machine.handle(Input::Attached(Box::new(Attachment { agent, ..Attachment::default() })), now);
    machine.handle(Input::Probed(Ok(Found { logged_in: true, problems: Vec::new() })), now);
    let message = v1::Message { id: 17, ..v1::Message::default() };
    let begun = read::begun(v1::BeginTurnResponse {
        turn: Some(v1::Turn { id: TURN, ..v1::Turn::default() }),
        delivery: Some(v1::Delivery { message: Some(message), ..v1::Delivery::default() }),
        ..v1::BeginTurnResponse::default()
    });
    machine.handle(Input::Begun(Arc::new(begun.expect("a turn"))), now);
    machine
}

fn in_a_machine(lines: &[String], events: &[Option<Event>], first: u8) {
    let mut now = Now { wall: WallTime(1_000_000), boot: BootTime(5_000) };
    let mut machine = running(now);
    let mut endings = 0;
    let mut launches = 0;
    for (line, event) in lines.iter().zip(events) {
        match event {
            Some(event) => machine.handle(Input::Event(Box::new(event.clone())), now),
            None => machine.handle(Input::Stderr(line.clone()), now),
        }
        take(&mut machine, &mut endings, &mut launches);
        if first & 64 != 0 {
            // Time that passes may end the turn too, but not twice.
            let span = Duration::from_secs(30);
            now = Now { wall: now.wall.after(span), boot: now.boot.after(span) };
            machine.handle(Input::Tick, now);
            take(&mut machine, &mut endings, &mut launches);
        }
    }
    // Each step of the turn ends the same way, so the turn ends.
    for _ in 0..8 {
        if endings > 0 {
            break;
        }
        machine.handle(Input::Exited(exit(first)), now);
        take(&mut machine, &mut endings, &mut launches);
    }
    assert_eq!(endings, 1, "a turn that began is ended once");
    assert!((1..=8).contains(&launches), "{launches} runs of claude in one turn");
    machine.handle(Input::Ended(EndTurnAnswer::default()), now);
    take(&mut machine, &mut endings, &mut launches);
    assert_eq!(endings, 1, "no turn was begun, and one was ended");
}

fn take(machine: &mut Machine, endings: &mut u32, launches: &mut u32) {
    while let Some(output) = machine.poll() {
        match output {
            Output::End(ending) => {
                *endings += 1;
                check_ending(&ending);
            }
            Output::Start(launch) => {
                assert_eq!(launch.turn_id, TURN);
                *launches += 1;
            }
            Output::Problem(subject, words) => {
                assert!(!subject.is_empty() && !words.is_empty());
            }
            Output::Attach
            | Output::Begin
            | Output::Open(_)
            | Output::Probe
            | Output::Signal(_)
            | Output::Report(..)
            | Output::Ack(..)
            | Output::WatchLogin
            | Output::Login(_)
            | Output::RefuseLogin(..)
            | Output::Note(_)
            | Output::Leave
            | Output::AskToLeave
            | Output::Exit(_) => {}
        }
    }
}

fn check_ending(ending: &Ending) {
    assert_eq!(ending.turn_id, TURN);
    assert!(ending.outcome.is_some(), "an end says how");
    assert!(
        ending.error.len() <= ERROR_BYTES_MAX && ending.output_tail.len() <= OUTPUT_TAIL_BYTES_MAX,
        "{ending:?}"
    );
    assert!(ending.tool_uses.len() <= TOOL_NAMES_MAX, "{ending:?}");
    assert!(ending.returned_tool_use_ids.len() <= 10_000);
}

//! Checks of the broker and of its clock.

use std::time::Duration;

use hive_core::time::WallTime;
use hive_proto::v1::{GetBrokerStatusResponse, ListEventsRequest};
use jiff::Timestamp;

use super::list::List;
use super::reach::Reached;
use crate::output::style::Style;
use crate::output::time;

/// Largest difference of two clocks that is no finding.
const SKEW_MAX: Duration = Duration::from_secs(5);

pub(super) async fn all(reached: &Reached, style: &Style, list: &mut List) {
    let GetBrokerStatusResponse {
        version, storage_ok, storage_error, draining, start_time, ..
    } = &reached.status;
    let ours = env!("CARGO_PKG_VERSION");
    if version == ours {
        list.ok("version", format!("hived and hivectl are both {ours}"));
    } else {
        let sentence = format!("hived is {version}, and hivectl is {ours}");
        list.warning(
            "version",
            sentence,
            "install all programs from one build, then restart hived and the harnesses",
        );
    }
    if *storage_ok {
        list.ok("storage", "the database can be written");
    } else {
        let next = "make room on its disk, or repair the disk; hived continues by itself once it can write";
        list.problem("storage", format!("the database cannot be written: {storage_error}"), next);
    }
    if *draining {
        list.warning(
            "draining",
            "the broker is shutting down",
            "wait for its end, then start it again",
        );
    } else {
        list.ok(
            "draining",
            format!("no; the broker runs since {}", style.time(time::from_wire(*start_time))),
        );
    }
    let newest = if *storage_ok { newest_event(reached).await } else { None };
    clock(reached.clock, reached.here, newest.max(time::from_wire(*start_time)), list);
}

/// Returns the time of the newest event. If it cannot be read, another check reports why.
async fn newest_event(reached: &Reached) -> Option<WallTime> {
    let after_sequence = reached.status.last_event_sequence.saturating_sub(1);
    let request = ListEventsRequest {
        after_sequence,
        page_size: 1,
        log_id: reached.broker.log_id().await.ok()?,
        ..ListEventsRequest::default()
    };
    let page = reached.broker.read(reached.broker.events().list_events(request)).await.ok()?;
    time::from_wire(page.events.last()?.time)
}

/// Checks the clocks: the difference between ours and the broker's, and whether the broker's was
/// set back.
fn clock(theirs: Option<Timestamp>, ours: Timestamp, newest: Option<WallTime>, list: &mut List) {
    const NAME: &str = "clock";
    const NEXT: &str = "set the clock right; deadlines and reminders go by it";
    // The broker's time has a resolution of a second.
    let apart = theirs.map(|theirs| {
        theirs.duration_since(ours).unsigned_abs().saturating_sub(Duration::from_secs(1))
    });
    if let Some(apart) = apart.filter(|apart| *apart > SKEW_MAX) {
        return list.warning(
            NAME,
            format!("the broker's clock and this one are {} s apart", apart.as_secs()),
            NEXT,
        );
    }
    let ahead = newest.map(|newest| newest.since(WallTime(ours.as_millisecond())));
    if let Some(ahead) = ahead.filter(|ahead| *ahead > SKEW_MAX) {
        let sentence = format!(
            "the broker wrote something {} s in the future: the clock was set back since",
            ahead.as_secs()
        );
        return list.warning(NAME, sentence, NEXT);
    }
    if theirs.is_none() {
        return list.not_checked(NAME, "the broker does not report the time");
    }
    list.ok(NAME, "the broker's clock and this one agree");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::check::State;

    fn judged(theirs: Option<i64>, newest: Option<i64>) -> (State, String) {
        let mut list = List::default();
        let time = |second| Timestamp::from_second(second).expect("a time");
        clock(
            theirs.map(time),
            time(1_000),
            newest.map(|second| WallTime(second * 1000)),
            &mut list,
        );
        let check = list.checks.pop().expect("a check");
        (check.state, check.sentence)
    }

    #[test]
    fn clocks_may_differ_a_little_either_way() {
        let ok = (State::Ok, "the broker's clock and this one agree".to_owned());
        for theirs in [994, 1_000, 1_006] {
            assert_eq!(judged(Some(theirs), Some(1_005)), ok);
        }
        let apart = (State::Warning, "the broker's clock and this one are 6 s apart".to_owned());
        assert_eq!([judged(Some(993), None), judged(Some(1_007), None)], [apart.clone(), apart]);
        let back = "the broker wrote something 60 s in the future: the clock was set back since";
        assert_eq!(judged(Some(1_000), Some(1_060)), (State::Warning, back.to_owned()));
        assert_eq!(judged(None, None).0, State::NotChecked);
    }
}

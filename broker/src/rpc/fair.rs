//! Fairness between sockets: a few calls of each are worked on at once, and the others wait in line behind their own kind.
//!
//! A call is at work until it is answered, or waits for something. What reads pages takes all turns of an agent's socket until its answer has
//! been sent: a page costs the processors as much as many sends.
//! Invariant: a call's place among those under way is kept until its answer has been sent or given up, as an answer that nobody reads is held
//! in memory. Its turn ends after [`WORK_MAX`] in any case.

use std::sync::Arc;
use std::time::Duration;

use hive_core::limits::AGENT_CALLS_AT_WORK_MAX;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tonic::Status;
use tonic::body::Body;

use super::conn::{Bounds, Owner};

/// A call that has not answered by then waits for something, as a harness for its next turn, and keeps nobody else from working.
const WORK_MAX: Duration = Duration::from_millis(20);
/// A refusal keeps its call's turn for so long. A program that runs wild and hears only that it may not is slowed down by it, whatever it calls;
/// nobody else waits.
const REFUSAL_PAUSE: Duration = Duration::from_millis(10);

/// How many turns of its socket a call takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turns {
    One,
    All,
}

impl Turns {
    /// Those of a call to `path`.
    pub(super) fn of(owner: &Owner, path: &str) -> Self {
        let method = path.rsplit('/').next().unwrap_or_default();
        let reads_pages = ["List", "Search", "Watch"].iter().any(|word| method.starts_with(word));
        if reads_pages && matches!(owner, Owner::Agent(_)) { Self::All } else { Self::One }
    }

    fn count(self) -> u32 {
        match self {
            Self::One => 1,
            Self::All => AGENT_CALLS_AT_WORK_MAX,
        }
    }
}

/// Begins with a call when its turn has come, and lets the next one in when this one's is over.
pub(super) async fn in_turn<E>(
    bounds: Bounds,
    place: OwnedSemaphorePermit,
    turns: Turns,
    call: impl Future<Output = Result<http::Response<Body>, E>>,
) -> Result<http::Response<Body>, E> {
    // Nobody closes it; a call without a turn would still be a call.
    let turn = bounds.at_work.acquire_many_owned(turns.count()).await;
    let mut call = std::pin::pin!(call);
    let answer = tokio::select! {
        biased;
        answer = &mut call => answer?,
        () = tokio::time::sleep(WORK_MAX) => {
            drop(turn);
            return Ok(holding(place, call.await?));
        }
    };
    if is_refusal(&answer) {
        tokio::time::sleep(REFUSAL_PAUSE).await;
    } else if turns == Turns::All {
        let (unsent, sent) = oneshot::channel::<()>();
        // A task of its own: who does not read an answer is not asked for it again, and would keep the turn.
        tokio::spawn(async move {
            drop(tokio::time::timeout(WORK_MAX, sent).await);
            drop(turn);
        });
        return Ok(holding((place, unsent), answer));
    }
    Ok(holding(place, answer))
}

/// Whether it was answered with a status and nothing else.
fn is_refusal(answer: &http::Response<Body>) -> bool {
    answer.headers().get(Status::GRPC_STATUS).is_some_and(|code| code != "0")
}

/// The same answer, which keeps something until it has been sent or given up.
fn holding(kept: impl Send + Sync + 'static, answer: http::Response<Body>) -> http::Response<Body> {
    answer.map(|body| {
        // A response is a body, too, and carries what is put beside it.
        let mut carrier = http::Response::new(body);
        carrier.extensions_mut().insert(Arc::new(kept));
        Body::new(carrier)
    })
}

//! Callers: one place derives the authority of a call from its connection; handlers use nothing
//! else.
//!
//! Invariant: a peer whose user may not use the socket reaches no handler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::agent::Isolation;
use hive_core::caller::{Caller, OperatorName};
use hive_core::limits::TOKEN_CHARS_MAX;
use hive_core::trace::TraceContext;
use hive_proto::convert::{Invalid, request as fields};
use hive_proto::status::bad_field;
use hive_proto::{PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY, TOOL_USE_ID_KEY, TRACEPARENT_KEY};

use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Extensions, Request, Status};

use super::conn::{ConnInfo, Owner, Peers, Slots, Trust};
use super::deadline::{Deadline, Moments};
use super::fair::{Arriving, fairly};
use super::later::Call;
use super::method::{self, Method};
use super::services::Services;
use super::size::SizeLimit;
use crate::engine::sandboxes::{Denied, Sandboxes, Scope};
use crate::engine::trace::Cause;
use crate::engine::{Actor, Refusal};

/// The calls of all connections to a kind of socket: each gets its [`Caller`], or the answer that
/// the peer is not trusted.
#[derive(Debug)]
pub struct Calls {
    services: Arc<Services>,
    body_bytes_max: u32,
    sandboxes: Arc<Sandboxes>,
    tasks: TaskTracker,
}

/// The authority of a call, in the extensions of its request.
#[derive(Clone, Debug)]
struct Authority {
    /// Its connection, whose socket and peer are the caller.
    conn: Arc<ConnInfo>,
    scope: Scope,
    /// `None` without a deadline.
    moments: Option<Moments>,
}

/// Maximum wait of a caller until the supervisor has described the sandboxes.
const STARTING_RETRY: Duration = Duration::from_millis(500);

const ENCODING_KEY: &str = "grpc-encoding";
const ACCEPTED_KEY: &str = "grpc-accept-encoding";
/// The only encoding that the broker reads.
const UNCOMPRESSED: &str = "identity";
/// The part of another encoding that its refusal shows, in characters.
const ENCODING_CHARS: usize = 32;

impl Calls {
    /// Returns the calls to these services; `body_bytes_max` is the longest body of a message, in
    /// bytes. Work that outlives its call is tracked in `tasks`.
    pub(in crate::rpc) fn new(
        services: Services,
        body_bytes_max: u32,
        sandboxes: Arc<Sandboxes>,
        tasks: TaskTracker,
    ) -> Self {
        Self { services: Arc::new(services), body_bytes_max, sandboxes, tasks }
    }

    /// Answers a call on a connection.
    pub(super) fn call(&self, conn: &Arc<ConnInfo>, mut request: http::Request<Body>) -> Call {
        let (owner, slots) = (&conn.owner, &conn.slots);
        let method = method::of_path(request.uri().path());
        let scope = match self.admit(conn, method.scope) {
            Ok(scope) => scope,
            Err(refused) => return answered(refused),
        };
        let Ok(slot) = Arc::clone(&slots.calls).try_acquire_owned() else {
            return answered(Refusal::CallLimit { max: slots.calls_max }.into());
        };
        let deadline = Deadline::of(request.headers());
        let arriving: Arriving = match check_call(&request, &method, owner) {
            Err(refused) => Box::pin(std::future::ready(answered(refused))),
            Ok(()) => {
                let moments = deadline.as_ref().map(Deadline::moments);
                let authority = Authority { conn: Arc::clone(conn), scope, moments };
                request.extensions_mut().insert(authority);
                let size = SizeLimit::new(owner, method.size, self.body_bytes_max);
                Box::pin(arriving(Arc::clone(&self.services), size, request))
            }
        };
        let call = fairly(self.tasks.clone(), slots, slot, method.class_on(owner), arriving);
        match deadline {
            Some(deadline) => Box::pin(deadline.on(call)),
            None => call,
        }
    }

    /// Returns the scope of the caller on a connection, if it may make calls of the wanted one.
    fn admit(&self, conn: &ConnInfo, wanted: Scope) -> Result<Scope, Status> {
        check_peer(conn)?;
        let scope = scope(&self.sandboxes, conn)?;
        if scope == Scope::Limited && wanted == Scope::Everything {
            let sentence = beside(&conn.owner);
            return Err(Refusal::PeerNotTrusted { sentence }.into());
        }
        Ok(scope)
    }
}

/// Waits for the first message of a request, and returns its call.
async fn arriving(services: Arc<Services>, size: SizeLimit, request: http::Request<Body>) -> Call {
    let (parts, body) = request.into_parts();
    let request = http::Request::from_parts(parts, size.on(body).await);
    services.call(request)
}

fn answered(refused: Status) -> Call {
    Box::pin(std::future::ready(Ok(refused.into_http())))
}

/// Refuses a peer that may not use the socket.
fn check_peer(info: &ConnInfo) -> Result<(), Status> {
    match &info.refused {
        Some(sentence) => {
            Err(Refusal::PeerNotTrusted { sentence: sentence.clone().into_string() }.into())
        }
        None => Ok(()),
    }
}

/// Refuses a call that no handler of this socket can read.
fn check_call(request: &http::Request<Body>, method: &Method, owner: &Owner) -> Result<(), Status> {
    method.check_served(request.uri().path(), owner)?;
    match request.headers().get(ENCODING_KEY) {
        Some(encoding) if encoding != UNCOMPRESSED => {
            let encoding = String::from_utf8_lossy(encoding.as_bytes());
            let encoding = encoding.chars().take(ENCODING_CHARS).collect();
            let mut refused = Status::from(Refusal::Compressed { encoding });
            let accepted = MetadataValue::from_static(UNCOMPRESSED);
            refused.metadata_mut().insert(ACCEPTED_KEY, accepted);
            Err(refused)
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns the calls that the peer may make, according to its pid namespace.
fn scope(sandboxes: &Sandboxes, info: &ConnInfo) -> Result<Scope, Status> {
    // Without a supervisor only the user id counts.
    let Some(place) = &info.place else { return Ok(Scope::Everything) };
    let scope = match &info.owner {
        Owner::Agent(agent) => sandboxes.on_agent_socket(agent, place),
        Owner::Operator => {
            let is_own_user = info.peer.uid == rustix::process::geteuid().as_raw();
            sandboxes.on_operator_socket(place, is_own_user).map(|()| Scope::Everything)
        }
    };
    Ok(scope.map_err(|denied| match denied {
        Denied::Starting | Denied::Abandoned => {
            let sentence = denied.to_string();
            Refusal::Starting { sentence, retry_after: STARTING_RETRY }
        }
        Denied::Gone
        | Denied::NotInSandbox { .. }
        | Denied::NotRunning { .. }
        | Denied::NotTheOperator
        | Denied::Hidden { .. } => Refusal::PeerNotTrusted { sentence: denied.to_string() },
    })?)
}

/// Returns the refusal for a program beside an agent that makes a call of the agent's own programs.
fn beside(owner: &Owner) -> String {
    let Owner::Agent(agent) = owner else {
        return "this call is for the operator on the host".to_owned();
    };
    format!(
        "only the harness of `{agent}` and its claude may make this call; a shell task, or a program on the host, may wake the agent and \
         publish loose ends (`hive wake`, `hive publish`)"
    )
}

/// Returns the operator with this user id. Each user of the host is looked up once, so a name that
/// is added later is seen after a restart.
fn operator(uid: u32) -> OperatorName {
    static KNOWN: Mutex<BTreeMap<u32, OperatorName>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let named = || OperatorName::new(uid, look_up(uid).as_deref());
    known.entry(uid).or_insert_with(named).clone()
}

fn look_up(uid: u32) -> Option<String> {
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// Returns the caller of a request.
pub(in crate::rpc) fn identify<T>(request: &Request<T>) -> Result<Caller, Status> {
    caller_in(request.extensions())
}

fn caller_in(call: &Extensions) -> Result<Caller, Status> {
    let authority = call.get::<Authority>();
    let conn = &authority.ok_or_else(|| Status::internal("the call has no caller"))?.conn;
    Ok(match &conn.owner {
        Owner::Agent(name) => Caller::Agent(name.clone()),
        Owner::Operator => Caller::Operator(operator(conn.peer.uid)),
    })
}

/// Returns whether the call comes from the agent's own programs, which alone hold its tokens.
pub(in crate::rpc) fn holds_tokens<T>(request: &Request<T>) -> bool {
    is_unlimited(request.extensions())
}

fn is_unlimited(call: &Extensions) -> bool {
    call.get::<Authority>().is_none_or(|authority| authority.scope != Scope::Limited)
}

/// Returns the caller and its claude process. A process token counts only from the agent's own
/// programs.
pub(in crate::rpc) fn actor<T>(request: &Request<T>) -> Result<Actor, Status> {
    actor_in(request.metadata(), request.extensions())
}

/// Returns the caller of a call that sends, its claude process, and the cause that it states.
pub(in crate::rpc) fn sender<T>(request: &Request<T>) -> Result<Actor, Status> {
    let actor = actor(request)?;
    let metadata = request.metadata();
    let trace = stated(metadata, TRACEPARENT_KEY).and_then(TraceContext::parse);
    let is_in_turn = trace.is_none() && actor.process_token.is_some();
    let tool_use_id = if is_in_turn { stated(metadata, TOOL_USE_ID_KEY) } else { None };
    let tool_use_id = tool_use_id.filter(|id| id.len() <= TOKEN_CHARS_MAX).map(Box::from);
    Ok(Actor { cause: Cause { trace, tool_use_id }, ..actor })
}

/// Returns the text under a key that only traces need; a caller that states none, or a text that
/// cannot be read, is served alike.
fn stated<'m>(metadata: &'m MetadataMap, key: &str) -> Option<&'m str> {
    metadata.get(key)?.to_str().ok()
}

fn actor_in(metadata: &MetadataMap, extensions: &Extensions) -> Result<Actor, Status> {
    let process_token = if is_unlimited(extensions) {
        token_in(metadata, PROCESS_TOKEN_KEY, fields::process_token)?
    } else {
        None
    };
    Ok(Actor { caller: caller_in(extensions)?, process_token, cause: Default::default() })
}

/// Returns the token under this key; `None` without one.
fn token_in(
    metadata: &MetadataMap,
    key: &str,
    check: fn(String, &str) -> Result<String, Invalid>,
) -> Result<Option<String>, Status> {
    let Some(value) = metadata.get(key) else { return Ok(None) };
    let text = value.to_str().map_err(|_| bad_field(key, "it is not plain text"))?;
    Ok(Some(check(text.to_owned(), key)?))
}

/// Returns the session token of a call; `None` if it carries none.
pub(in crate::rpc) fn session_token<T>(request: &Request<T>) -> Result<Option<String>, Status> {
    token_in(request.metadata(), SESSION_TOKEN_KEY, fields::token)
}

/// Returns the caller of a call that needs a session, and its session token.
pub(in crate::rpc) fn session<T>(request: &Request<T>) -> Result<(Caller, String), Status> {
    let token = session_token(request)?.ok_or_else(|| {
        bad_field(
            SESSION_TOKEN_KEY,
            "it is missing; send the session token that Attach returned as metadata of this call",
        )
    })?;
    Ok((identify(request)?, token))
}

/// Returns the moments of a call with a deadline; `None` if it has none.
pub(in crate::rpc) fn moments<T>(request: &Request<T>) -> Option<Moments> {
    request.extensions().get::<Authority>()?.moments
}

/// Returns the limits of the socket of a call.
pub(in crate::rpc) fn slots<T>(request: &Request<T>) -> Result<Slots, Status> {
    let authority = request.extensions().get::<Authority>();
    let slots = authority.map(|authority| authority.conn.slots.clone());
    slots.ok_or_else(|| Status::internal("the call has no socket"))
}

/// Returns the isolation of the calling harness: `Uid` if it has a user id of its own. Its
/// namespaces prove nothing without a supervisor.
pub(in crate::rpc) fn isolation<T>(request: &Request<T>) -> Option<Isolation> {
    let info = &request.extensions().get::<Authority>()?.conn;
    let own_uid = info.peer.uid != 0 && info.peer.uid != rustix::process::geteuid().as_raw();
    match info.trust.as_ref() {
        Trust::Peers(Peers { uids, .. }) if own_uid && uids.as_slice() == [info.peer.uid] => {
            Some(Isolation::Uid)
        }
        Trust::Peers(Peers { unit: Some(_), .. }) => Some(Isolation::Unit),
        Trust::Peers(_) | Trust::FileMode => Some(Isolation::None),
    }
}

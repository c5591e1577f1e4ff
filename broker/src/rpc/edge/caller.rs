//! Callers: one layer derives the authority of a call from its connection; handlers use nothing
//! else.
//!
//! Invariant: a peer whose user may not use the socket reaches no handler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use hive_core::agent::Isolation;
use hive_core::caller::{Caller, OperatorName, Peer};
use hive_proto::convert::{Invalid, request as fields};
use hive_proto::status::bad_field;
use hive_proto::{PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY};

use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Extensions, Request, Status};
use tower::{Layer, Service};

use super::conn::{ConnInfo, Owner, Slots, Trust};
use super::deadline::{Deadline, Moments};
use super::fair::fairly;
use super::method;
use super::size::SizeLimit;
use crate::engine::sandboxes::{Denied, Sandboxes, Scope};
use crate::engine::{Actor, Refusal};

/// The layer that puts a [`Caller`] into every request, or answers that the peer is not trusted.
#[derive(Clone, Debug)]
pub struct CallerLayer {
    body_bytes_max: u32,
    sandboxes: Arc<Sandboxes>,
    tasks: TaskTracker,
}

impl CallerLayer {
    /// Returns the layer; `body_bytes_max` is the longest body of a message, in bytes. Work that
    /// outlives its call is tracked in `tasks`.
    #[must_use]
    pub fn new(body_bytes_max: u32, sandboxes: Arc<Sandboxes>, tasks: TaskTracker) -> Self {
        Self { body_bytes_max, sandboxes, tasks }
    }
}

impl<S> Layer<S> for CallerLayer {
    type Service = CallerService<S>;
    fn layer(&self, inner: S) -> Self::Service {
        CallerService {
            inner,
            body_bytes_max: self.body_bytes_max,
            sandboxes: Arc::clone(&self.sandboxes),
            tasks: self.tasks.clone(),
        }
    }
}

/// See [`CallerLayer`].
#[derive(Clone, Debug)]
pub struct CallerService<S> {
    inner: S,
    body_bytes_max: u32,
    sandboxes: Arc<Sandboxes>,
    tasks: TaskTracker,
}

/// Maximum wait of a caller until the supervisor has described the sandboxes.
const STARTING_RETRY: Duration = Duration::from_millis(500);

const ENCODING_KEY: &str = "grpc-encoding";
const ACCEPTED_KEY: &str = "grpc-accept-encoding";
/// The only encoding that the broker reads.
const UNCOMPRESSED: &str = "identity";
/// The part of another encoding that its refusal shows, in characters.
const ENCODING_CHARS: usize = 32;

type Answer<T, E> = std::pin::Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

impl<S> Service<http::Request<Body>> for CallerService<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Answer<S::Response, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: http::Request<Body>) -> Self::Future {
        let allowed = |info: &ConnInfo| {
            let (owner, method) = (&info.owner, method::of_path(request.uri().path()));
            let size = SizeLimit::new(owner, method.size, self.body_bytes_max);
            let caller = caller(info)?;
            let scope = scope(&self.sandboxes, info)?;
            if scope == Scope::Limited && method.scope == Scope::Everything {
                return Err(Status::from(Refusal::PeerNotTrusted { sentence: beside(owner) }));
            }
            let served = check_call(&request, owner);
            Ok((caller, scope, info.slots.clone(), size, method.class_on(owner), served))
        };
        match request.extensions().get::<ConnInfo>().map(allowed) {
            Some(Ok((caller, scope, slots, size, class, served))) => {
                request.extensions_mut().insert(caller);
                request.extensions_mut().insert(scope);
                let Ok(slot) = Arc::clone(&slots.calls).try_acquire_owned() else {
                    let refused = Status::from(Refusal::CallLimit { max: slots.calls_max });
                    return Box::pin(std::future::ready(Ok(refused.into_http())));
                };
                if let Err(refused) = served {
                    let refused = Box::pin(std::future::ready(Ok(refused.into_http())));
                    return Box::pin(fairly(self.tasks.clone(), slots, slot, class, refused));
                }
                let deadline = Deadline::of(request.headers());
                if let Some(deadline) = &deadline {
                    request.extensions_mut().insert(deadline.moments());
                }
                // The service that was polled ready takes the call.
                let next = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, next);
                let tasks = self.tasks.clone();
                let call = Box::pin(async move {
                    let (parts, body) = request.into_parts();
                    let request = http::Request::from_parts(parts, size.on(body).await);
                    let call = Box::pin(async move { inner.call(request).await });
                    fairly(tasks, slots, slot, class, call).await
                });
                match deadline {
                    Some(deadline) => Box::pin(deadline.on(call)),
                    None => call,
                }
            }
            Some(Err(status)) => Box::pin(std::future::ready(Ok(status.into_http()))),
            None => Box::pin(std::future::ready(Ok(Status::internal(
                "the connection has no owner",
            )
            .into_http()))),
        }
    }
}

fn caller(info: &ConnInfo) -> Result<Caller, Status> {
    let Peer { uid, .. } = info.peer;
    if !info.trust.allows(uid) {
        let sentence = format!(
            "user id {uid} may not use this socket; the configuration names those who may (`uids`)"
        );
        return Err(Refusal::PeerNotTrusted { sentence }.into());
    }
    Ok(match &info.owner {
        Owner::Agent(name) => Caller::Agent(name.clone()),
        Owner::Operator => Caller::Operator(OperatorName::new(uid, user_name(uid).as_deref())),
    })
}

/// Refuses a call that no handler of this socket can read.
fn check_call(request: &http::Request<Body>, owner: &Owner) -> Result<(), Status> {
    method::check_served(request.uri().path(), owner)?;
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

/// Returns the name of a user on this host. Each user is looked up once, so a name that is added
/// later is seen after a restart.
fn user_name(uid: u32) -> Option<String> {
    static KNOWN: Mutex<BTreeMap<u32, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry(uid).or_insert_with(|| look_up(uid)).clone()
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
    call.get::<Caller>().cloned().ok_or_else(|| Status::internal("the call has no caller"))
}

/// Returns whether the call comes from the agent's own programs, which alone hold its tokens.
pub(in crate::rpc) fn holds_tokens<T>(request: &Request<T>) -> bool {
    is_unlimited(request.extensions())
}

fn is_unlimited(call: &Extensions) -> bool {
    call.get::<Scope>() != Some(&Scope::Limited)
}

/// Returns the caller and its claude process. A process token counts only from the agent's own
/// programs.
pub(in crate::rpc) fn actor<T>(request: &Request<T>) -> Result<Actor, Status> {
    actor_in(request.metadata(), request.extensions())
}

fn actor_in(metadata: &MetadataMap, extensions: &Extensions) -> Result<Actor, Status> {
    let process_token = if is_unlimited(extensions) {
        token_in(metadata, PROCESS_TOKEN_KEY, fields::process_token)?
    } else {
        None
    };
    Ok(Actor { caller: caller_in(extensions)?, process_token })
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
    request.extensions().get().copied()
}

/// Returns the limits of the socket of a call.
pub(in crate::rpc) fn slots<T>(request: &Request<T>) -> Result<Slots, Status> {
    let info = request.extensions().get::<ConnInfo>();
    info.map(|info| info.slots.clone()).ok_or_else(|| Status::internal("the call has no socket"))
}

/// Returns the isolation of the calling harness: `Uid` if it has a user id of its own. Its
/// namespaces prove nothing without a supervisor.
pub(in crate::rpc) fn isolation<T>(request: &Request<T>) -> Option<Isolation> {
    let info = request.extensions().get::<ConnInfo>()?;
    let own_uid = info.peer.uid != 0 && info.peer.uid != rustix::process::geteuid().as_raw();
    match info.trust.as_ref() {
        Trust::Uids(uids) if own_uid && uids.as_slice() == [info.peer.uid] => Some(Isolation::Uid),
        Trust::Uids(_) | Trust::FileMode => Some(Isolation::None),
    }
}

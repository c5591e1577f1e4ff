//! Callers: one layer turns a connection into whose authority a call has; handlers ask for nothing else.
//!
//! Invariant: a peer whose user may not use the socket reaches no handler.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use hive_core::agent::Isolation;
use hive_core::caller::{Caller, OperatorName, Peer};
use hive_core::reason::Reason;
use hive_proto::PROCESS_TOKEN_KEY;
use hive_proto::status::refusal;

use tonic::body::Body;
use tonic::{Request, Status};
use tower::{Layer, Service};

use super::conn::{ConnInfo, Owner, Trust};
use super::fair::{Work, fairly};
use super::size::Bound;
use crate::engine::{Actor, Refusal};

/// Puts a [`Caller`] into every request, or answers that the peer is not trusted.
#[derive(Clone, Copy, Debug)]
pub struct CallerLayer {
    /// Longest body of a message, in bytes.
    pub body_bytes_max: u32,
}

impl<S> Layer<S> for CallerLayer {
    type Service = CallerService<S>;
    fn layer(&self, inner: S) -> Self::Service {
        CallerService { inner, body_bytes_max: self.body_bytes_max }
    }
}

/// See [`CallerLayer`].
#[derive(Clone, Debug)]
pub struct CallerService<S> {
    inner: S,
    body_bytes_max: u32,
}

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
            let (owner, path) = (&info.owner, request.uri().path());
            let (size, work) = (Bound::of(owner, path, self.body_bytes_max), Work::of(owner, path));
            caller(info).map(|caller| (caller, info.bounds.clone(), size, work))
        };
        match request.extensions().get::<ConnInfo>().map(allowed) {
            Some(Ok((caller, bounds, size, work))) => {
                request.extensions_mut().insert(caller);
                let Ok(place) = Arc::clone(&bounds.calls).try_acquire_owned() else {
                    let refused = Status::from(Refusal::CallLimit { max: bounds.calls_max });
                    return Box::pin(std::future::ready(Ok(refused.into_http())));
                };
                // The one that was asked whether it is ready does it.
                let next = self.inner.clone();
                let mut inner = std::mem::replace(&mut self.inner, next);
                Box::pin(async move {
                    let (parts, body) = request.into_parts();
                    let request = http::Request::from_parts(parts, size.on(body).await);
                    fairly(bounds, place, work, async move { inner.call(request).await }).await
                })
            }
            Some(Err(status)) => Box::pin(std::future::ready(Ok(status.into_http()))),
            None => Box::pin(std::future::ready(Ok(Status::internal("the connection has no owner").into_http()))),
        }
    }
}

fn caller(info: &ConnInfo) -> Result<Caller, Status> {
    let Peer { uid, .. } = info.peer;
    if !info.trust.allows(uid) {
        let sentence = format!("user id {uid} may not use this socket; the configuration names those who may (`uids`)");
        return Err(refusal(Reason::PeerNotTrusted, sentence, None));
    }
    Ok(match &info.owner {
        Owner::Agent(name) => Caller::Agent(name.clone()),
        Owner::Operator => Caller::Operator(OperatorName::of(uid, user_name(uid).as_deref())),
    })
}

/// The name of a user on this host; looked up once for each, and a user who gets a name later has it after a restart.
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

/// Who calls.
pub(super) fn of<T>(request: &Request<T>) -> Result<Caller, Status> {
    request.extensions().get::<Caller>().cloned().ok_or_else(|| Status::internal("the call has no caller"))
}

/// Who calls, and from which claude process.
pub(super) fn actor<T>(request: &Request<T>) -> Result<Actor, Status> {
    let process_token = match request.metadata().get(PROCESS_TOKEN_KEY) {
        None => None,
        Some(value) => {
            let text = value.to_str().map_err(|_| hive_proto::status::bad_field(PROCESS_TOKEN_KEY, "it is not plain text"))?;
            Some(hive_proto::convert::request::process_token(text.to_owned(), PROCESS_TOKEN_KEY)?)
        }
    };
    Ok(Actor { caller: of(request)?, process_token })
}

/// Whether the host keeps the calling harness apart from the broker and its peers, as the kernel shows it.
pub(super) fn isolation<T>(request: &Request<T>) -> Option<Isolation> {
    let info = request.extensions().get::<ConnInfo>()?;
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/mnt"));
    if let Some(pid) = info.peer.pid
        && let (Ok(theirs), Ok(ours)) = (namespace(&pid.to_string()), namespace("self"))
        && theirs != ours
    {
        return Some(Isolation::MountNamespace);
    }
    let own_uid = info.peer.uid != 0 && info.peer.uid != rustix::process::geteuid().as_raw();
    match info.trust.as_ref() {
        Trust::Uids(uids) if own_uid && uids.as_slice() == [info.peer.uid] => Some(Isolation::Uid),
        Trust::Uids(_) | Trust::FileMode => Some(Isolation::None),
    }
}

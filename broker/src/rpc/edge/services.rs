//! The services of a kind of socket, by name.
//!
//! tonic's own router is one of HTTP in general, which wraps each call twice. Invariant: a call
//! gets the future of its service and nothing around it.

use std::convert::Infallible;

use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tower::Service;

use super::later::Call;
use crate::map::Map;

type Handler = Box<dyn Fn(http::Request<Body>) -> Call + Send + Sync>;

/// See the module.
#[derive(Default)]
pub(in crate::rpc) struct Services(Map<&'static str, Handler>);

impl Services {
    /// Adds a service, which is always ready, as all services of tonic are.
    pub(in crate::rpc) fn add<S>(mut self, service: S) -> Self
    where
        S: Service<
                http::Request<Body>,
                Response = http::Response<Body>,
                Error = Infallible,
                Future = Call,
            > + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
    {
        let call = move |request| service.clone().call(request);
        self.0.insert(S::NAME, Box::new(call));
        self
    }

    /// Begins a call of the service that its path names.
    pub(super) fn call(&self, request: http::Request<Body>) -> Call {
        let name = request.uri().path().split('/').nth(1);
        match name.and_then(|name| self.0.get(name)) {
            Some(handler) => handler(request),
            // The table of methods names only services that there are.
            None => Box::pin(std::future::ready(Ok(Status::unimplemented("").into_http()))),
        }
    }
}

impl std::fmt::Debug for Services {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

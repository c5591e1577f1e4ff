//! Reflection, which is made when it is used first: most clients have the contract, and its
//! descriptors need time to read and memory to keep.
//!
//! Invariant: on a socket it has only the services that the socket serves.

use std::convert::Infallible;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use hive_proto::{ERROR_DESCRIPTOR_SET, FILE_DESCRIPTOR_SET};
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::Status;
use tonic::body::Body;
use tonic::server::NamedService;
use tonic_reflection::server::Builder;
use tower::Service;

use super::edge::method::{METHODS, Method};
use crate::engine::Refusal;

type Answer = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

/// A service that is made by its first call.
pub(super) struct Late<S> {
    made: Arc<OnceLock<Option<S>>>,
    make: fn(FileDescriptorSet) -> Option<S>,
    is_served: fn(&Method) -> bool,
}

impl<S> Late<S> {
    /// Returns the service for a socket; `make` makes it from the descriptors.
    pub(super) fn new(
        is_served: fn(&Method) -> bool,
        make: fn(FileDescriptorSet) -> Option<S>,
    ) -> Self {
        Self { made: Arc::default(), make, is_served }
    }

    fn get(&self) -> Option<&S> {
        let make = || (self.make)(descriptors(self.is_served).ok()?);
        self.made.get_or_init(make).as_ref()
    }
}

impl<S> Clone for Late<S> {
    fn clone(&self) -> Self {
        Self { made: Arc::clone(&self.made), make: self.make, is_served: self.is_served }
    }
}

impl<S: NamedService> NamedService for Late<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for Late<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible> + Clone,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answer;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // That of tonic is always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match self.get() {
            Some(service) => Box::pin(service.clone().call(request)),
            None => {
                let broken = Refusal::Fault("the descriptors of the contract cannot be read");
                Box::pin(ready(Ok(Status::from(broken).into_http())))
            }
        }
    }
}

/// Returns a builder with these descriptors and those of the errors and of the health service.
pub(super) fn builder(descriptors: FileDescriptorSet) -> Builder<'static> {
    Builder::configure()
        .register_file_descriptor_set(descriptors)
        .register_encoded_file_descriptor_set(ERROR_DESCRIPTOR_SET)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
}

/// Returns the descriptors for reflection on a socket: without the services that it does not serve.
fn descriptors(is_served: fn(&Method) -> bool) -> Result<FileDescriptorSet, prost::DecodeError> {
    let mut set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET)?;
    set.file.retain(|file| {
        file.service.iter().all(|service| {
            let name = format!("{}.{}", file.package(), service.name());
            METHODS.iter().any(|method| method.service() == name && is_served(method))
        })
    });
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_see_no_operator_service() {
        let services = |is_served: fn(&Method) -> bool| {
            let set = descriptors(is_served).expect("descriptors");
            set.file
                .iter()
                .flat_map(|file| &file.service)
                .map(|service| service.name().to_owned())
                .collect::<Vec<_>>()
        };
        let agents = services(|method| method.agent);
        assert!(
            agents.contains(&"TurnService".to_owned())
                && !agents.contains(&"AdminService".to_owned()),
            "{agents:?}"
        );
        let operator = services(|method| method.operator);
        assert!(
            operator.contains(&"AdminService".to_owned())
                && !operator.contains(&"TurnService".to_owned()),
            "{operator:?}"
        );
    }
}

//! Access as a layer of the service.
//!
//! Not the rules. The invariant: a request without a [`Peer`] never reaches the service.

use std::sync::Arc;

use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptorLayer;
use tonic::{Request, Status};

use super::{Access, Peer};

/// Refuses the calls of those who may not call, before their body is read.
pub type AccessLayer = InterceptorLayer<Gate>;

/// Asks [`Access`] about every call.
#[derive(Debug, Clone)]
pub struct Gate {
    access: Arc<Access>,
}

impl Gate {
    pub(super) fn new(access: Arc<Access>) -> Self {
        Self { access }
    }
}

impl Interceptor for Gate {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let peer = request.extensions().get::<Peer>();
        let peer = peer.ok_or_else(|| Status::internal("the connection has no known peer"))?;
        let authorization = request.metadata().get("authorization");
        let verdict = self
            .access
            .permit(peer, authorization.map(|value| value.as_encoded_bytes()));
        if let Err(status) = &verdict {
            tracing::warn!("refused a call from {peer}: {}", status.message());
        }
        verdict.map(|()| request)
    }
}

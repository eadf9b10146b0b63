//! HTTP requests to streams: a tower service in place of generated gRPC code, because that copies
//! every message once for each client.

use super::Xds;
use super::body::StreamBody;
use super::rpc;
use super::stream::{self, Opened, Requests};
use crate::ads::Protocol;
use crate::xds::pb::discovery::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codec::Codec;
use tonic::transport::server::TcpConnectInfo;
use tonic::{Status, Streaming};
use tonic_prost::ProstCodec;
use tower_service::Service;

/// Serves the methods of [`rpc`]. Each call spawns the task of its stream.
#[derive(Debug, Clone)]
pub(super) struct XdsService {
    pub(super) xds: Arc<Xds>,
    pub(super) stop: CancellationToken,
}

impl Service<Request<Body>> for XdsService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        ready(Ok(self.open(request).unwrap_or_else(Status::into_http)))
    }
}

impl XdsService {
    fn open(&self, request: Request<Body>) -> Result<Response<Body>, Status> {
        let path = request.uri().path();
        let rpc = rpc::find(path).ok_or_else(|| Status::unimplemented(path.to_owned()))?;
        if self.stop.is_cancelled() {
            return Err(stream::shutting_down());
        }
        // Nothing is served before everything was read once: an empty answer would delete what
        // the proxy has.
        if self.xds.source.current().is_none() {
            return Err(stream::not_ready());
        }
        let peer = request.extensions().get::<TcpConnectInfo>().and_then(|i| i.remote_addr());
        let limit = Some(self.xds.settings.max_request_bytes);
        let body = request.into_body();
        let requests = match rpc.protocol {
            Protocol::StateOfTheWorld => {
                let decoder = ProstCodec::<DiscoveryResponse, DiscoveryRequest>::new().decoder();
                Requests::State(Streaming::new_request(decoder, body, None, limit))
            }
            Protocol::Delta => {
                let decoder =
                    ProstCodec::<DeltaDiscoveryResponse, DeltaDiscoveryRequest>::new().decoder();
                Requests::Delta(Streaming::new_request(decoder, body, None, limit))
            }
        };
        let (outgoing, body) = StreamBody::channel();
        let (xds, stop) = (self.xds.clone(), self.stop.clone());
        tokio::spawn(stream::run(Opened { xds, rpc, peer, requests, outgoing, stop }));
        let mut response = Response::new(Body::new(body));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        Ok(response)
    }
}

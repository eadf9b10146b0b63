//! The gRPC methods that we serve: a table of path, variant and implied type.

use crate::ads::Protocol;
use crate::xds::TypeUrl;

/// One method.
#[derive(Debug)]
pub(super) struct Rpc {
    /// The HTTP path.
    pub(super) path: &'static str,
    /// Which variant of the protocol it speaks.
    pub(super) protocol: Protocol,
    /// The only type on its streams; any type on the aggregated ones.
    pub(super) type_url: Option<TypeUrl>,
}

const fn rpc(path: &'static str, protocol: Protocol, type_url: Option<TypeUrl>) -> Rpc {
    Rpc { path, protocol, type_url }
}

const SOTW: Protocol = Protocol::StateOfTheWorld;
const DELTA: Protocol = Protocol::Delta;

#[rustfmt::skip]
const RPCS: &[Rpc] = &[
    rpc("/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources", SOTW, None),
    rpc("/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources", DELTA, None),
    rpc("/envoy.service.cluster.v3.ClusterDiscoveryService/StreamClusters", SOTW, Some(TypeUrl::Cluster)),
    rpc("/envoy.service.cluster.v3.ClusterDiscoveryService/DeltaClusters", DELTA, Some(TypeUrl::Cluster)),
    rpc("/envoy.service.endpoint.v3.EndpointDiscoveryService/StreamEndpoints", SOTW, Some(TypeUrl::Endpoint)),
    rpc("/envoy.service.endpoint.v3.EndpointDiscoveryService/DeltaEndpoints", DELTA, Some(TypeUrl::Endpoint)),
    rpc("/envoy.service.listener.v3.ListenerDiscoveryService/StreamListeners", SOTW, Some(TypeUrl::Listener)),
    rpc("/envoy.service.listener.v3.ListenerDiscoveryService/DeltaListeners", DELTA, Some(TypeUrl::Listener)),
    rpc("/envoy.service.route.v3.RouteDiscoveryService/StreamRoutes", SOTW, Some(TypeUrl::Route)),
    rpc("/envoy.service.route.v3.RouteDiscoveryService/DeltaRoutes", DELTA, Some(TypeUrl::Route)),
    rpc("/envoy.service.secret.v3.SecretDiscoveryService/StreamSecrets", SOTW, Some(TypeUrl::Secret)),
    rpc("/envoy.service.secret.v3.SecretDiscoveryService/DeltaSecrets", DELTA, Some(TypeUrl::Secret)),
];

/// The method at this path.
pub(super) fn find(path: &str) -> Option<&'static Rpc> {
    RPCS.iter().find(|rpc| rpc.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_stream_of_its_own_in_both_variants() {
        for type_url in TypeUrl::ALL {
            for protocol in [SOTW, DELTA] {
                let of_type = RPCS
                    .iter()
                    .filter(|rpc| rpc.type_url == Some(type_url) && rpc.protocol == protocol);
                assert_eq!(of_type.count(), 1, "{type_url}");
            }
        }
    }
}

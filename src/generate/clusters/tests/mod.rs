//! Whole clusters and assignments, from model values to Envoy's messages.

use crate::diag::Code;
use crate::generate::test_support::{Facts, Parts, shared};
use crate::generate::test_support::{
    decode, destination_rule, endpoint, origin, port, proxy_at, router, service, sidecar, span,
    subset,
};
use crate::generate::{self, Generated};
use crate::model::{
    ClientTls, ClientTlsMode, ConnectionPool, DefaultEndpoint, DestinationRule, DestinationRules,
    Endpoint, HttpPool, IngressListener, ListenerPort, LoadBalancer, Locality, Location, Namespace,
    OutlierDetection, PrivateBytes, Protocol, ProxyProtocolVersion, Resolution, Secret, SecretKey,
    Service, Sidecar, SimpleLb, TcpPool, TrafficPolicy,
};
use crate::proxy::{ClientCertificates, Interception, IpMode, Options, Proxy};
use crate::xds::TypeUrl;
use crate::xds::pb::{self, Message};
use pb::cluster::Cluster;
use pb::cluster::cluster::{ClusterDiscoveryType, DiscoveryType, LbPolicy};
use pb::endpoint::ClusterLoadAssignment;
use std::sync::Arc;

mod inbound;
mod other;
mod outbound;
mod sharing;
mod tls;

const HOST: &str = "a.example";
const DEFAULT: &str = "outbound|80||a.example";
const V1: &str = "outbound|80|v1|a.example";

/// A snapshot of these services and rules.
fn snapshot(services: Vec<Service>, rules: Vec<DestinationRule>) -> Facts {
    let root = Namespace::from("istio-system");
    let destination_rules = DestinationRules::new(rules.into_iter().map(Arc::new), root, false);
    Facts { services, destination_rules, ..Default::default() }
}

/// A STATIC service with a `v1` and a `v2` endpoint.
fn two_versions() -> Service {
    let version = |address: &str, version: &str| Endpoint {
        labels: [("version", version)].into_iter().collect(),
        ..endpoint(address, 80)
    };
    let endpoints = vec![version("10.0.0.1", "v1"), version("10.0.0.2", "v2")];
    Service { endpoints: endpoints.into(), ..service(HOST, &[(80, Protocol::Http)]) }
}

fn by_dns(resolution: Resolution) -> Service {
    let mut service = two_versions();
    service.resolution = resolution;
    service
}

fn rule(policy: TrafficPolicy) -> DestinationRule {
    DestinationRule { subsets: vec![subset("v1", None)], ..destination_rule(HOST, policy) }
}

fn with_lb(simple: SimpleLb) -> TrafficPolicy {
    let load_balancer = Some(LoadBalancer { simple, ..Default::default() });
    TrafficPolicy { load_balancer, ..Default::default() }
}

fn client_tls(mode: ClientTlsMode) -> ClientTls {
    ClientTls {
        mode,
        client_certificate: String::new(),
        private_key: String::new(),
        ca_certificates: String::new(),
        credential_name: None,
        subject_alt_names: Vec::new(),
        sni: String::new(),
        insecure_skip_verify: false,
        ca_crl: String::new(),
        min_version: None,
    }
}

fn with_tls(tls: ClientTls) -> TrafficPolicy {
    TrafficPolicy { tls: Some(tls), ..Default::default() }
}

/// What a view gets; everything in it must be what Envoy takes.
fn generated(snapshot: &Facts, view: &Parts) -> Generated {
    acceptable(shared(snapshot, view))
}

fn acceptable(generated: Generated) -> Generated {
    assert!(!codes(&generated).contains(&Code::InvalidResource), "{:?}", generated.diagnostics);
    generated
}

fn find<M: Message + Default>(generated: &Generated, type_url: TypeUrl, name: &str) -> Option<M> {
    let resource = generated.set.get(type_url, name)?;
    Some(M::decode(resource.body.clone()).expect("a resource is what its type says"))
}

fn cluster(generated: &Generated, name: &str) -> Cluster {
    find(generated, TypeUrl::Cluster, name).unwrap_or_else(|| panic!("there is no {name}"))
}

fn has_cluster(generated: &Generated, name: &str) -> bool {
    generated.set.get(TypeUrl::Cluster, name).is_some()
}

fn assignment(generated: &Generated, name: &str) -> Option<ClusterLoadAssignment> {
    find(generated, TypeUrl::Endpoint, name)
}

fn addresses(assignment: &ClusterLoadAssignment) -> Vec<String> {
    use pb::core::address::Address;
    use pb::endpoint::lb_endpoint::HostIdentifier;
    let endpoints = assignment.endpoints.iter().flat_map(|l| &l.lb_endpoints);
    let address = |e: &pb::endpoint::LbEndpoint| match &e.host_identifier {
        Some(HostIdentifier::Endpoint(e)) => {
            match e.address.as_ref().and_then(|a| a.address.clone()) {
                Some(Address::SocketAddress(socket)) => socket.address,
                Some(Address::Pipe(pipe)) => pipe.path,
                other => panic!("no endpoint is at {other:?}"),
            }
        }
        other => panic!("an endpoint is not {other:?}"),
    };
    endpoints.map(address).collect()
}

fn has_type(cluster: &Cluster, kind: DiscoveryType) -> bool {
    cluster.cluster_discovery_type == Some(ClusterDiscoveryType::Type(kind.into()))
}

fn dns_settings(cluster: &Cluster) -> pb::dns_cluster::DnsCluster {
    match &cluster.cluster_discovery_type {
        Some(ClusterDiscoveryType::ClusterType(custom)) => {
            decode(custom.typed_config.as_ref().expect("a DNS cluster has settings"))
        }
        other => panic!("a DNS cluster is not {other:?}"),
    }
}

fn tls_context(cluster: &Cluster) -> Option<pb::tls::UpstreamTlsContext> {
    use pb::core::transport_socket::ConfigType;
    let socket = cluster.transport_socket.as_ref()?;
    assert_eq!(socket.name, "envoy.transport_sockets.tls");
    let Some(ConfigType::TypedConfig(packed)) = &socket.config_type else {
        panic!("a socket has settings")
    };
    Some(decode(packed))
}

fn http_options(cluster: &Cluster) -> Option<pb::upstream_http::HttpProtocolOptions> {
    cluster.typed_extension_protocol_options.values().next().map(decode)
}

fn codes(generated: &Generated) -> Vec<Code> {
    // The routers of these tests run no Gateway.
    let other = |code: &Code| *code != Code::NothingSelected;
    generated.diagnostics.iter().map(|d| d.code).filter(other).collect()
}

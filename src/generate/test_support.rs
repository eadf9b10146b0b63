//! Small model values for tests of generators. A builder gives the smallest value that makes
//! sense; a test changes what it is about with `..builder()`.

// Not every helper is used while generators are still being added.
#![allow(dead_code)]

use crate::diag::Span;
use crate::model::{
    Address, CaSource, CertificateSource, Destination, DestinationRule, DestinationRules, Endpoint,
    EndpointAddress, Endpoints, Gateway, GatewayRef, Headers, Health, Hostname, HttpAction,
    HttpMatch, HttpRule, Labels, Locality, Location, MeshSettings, Namespace, ObjectName, Origin,
    PathMatch, PrivateBytes, Protocol, Resolution, Routing, RuleOrder, Secret, SecretKey, Secrets,
    Selector, Server, ServerHost, ServerTls, ServerTlsMode, Service, ServicePort, Services,
    Sidecar, Snapshot, Subset, TrafficPolicy, VirtualService, Visibility, WeightedDestination,
};
use crate::proxy::{Interception, IpMode, Options, Proxy, Role};
use crate::xds::pb::{Any, Message};
use std::collections::BTreeMap;
use std::sync::Arc;

use super::engine::Engine;
use super::filters::Filters;
use super::scope::{Scope, World};
use super::targets::Workload;
pub use super::view::Parts;
use super::view::Viewer;
use super::worlds::Worlds;
use super::{Generated, View};

/// What a snapshot is made of, to be changed before it is made.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub mesh: MeshSettings,
    /// Services with their endpoints, whatever their resolution.
    pub services: Vec<Service>,
    pub virtual_services: Vec<VirtualService>,
    pub destination_rules: DestinationRules,
    pub gateways: Vec<Gateway>,
    pub sidecars: Vec<Sidecar>,
    pub secrets: BTreeMap<SecretKey, Secret>,
}

impl Facts {
    /// The snapshot.
    pub fn snapshot(&self) -> Snapshot {
        fn shared<T: Clone>(list: &[T]) -> Arc<[Arc<T>]> {
            list.iter().cloned().map(Arc::new).collect()
        }
        let endpoints = self.services.iter().map(|s| s.endpoints.clone()).collect();
        let services = self.services.iter().cloned().map(|mut service| {
            if service.resolution == Resolution::Static {
                service.endpoints = Arc::default();
            }
            Arc::new(service)
        });
        let secrets = self.secrets.iter().map(|(k, s)| (k.clone(), Arc::new(s.clone())));
        let routing = Routing {
            mesh: Arc::new(self.mesh.clone()),
            services: Arc::new(Services::new(services.collect())),
            virtual_services: shared(&self.virtual_services),
            destination_rules: Arc::new(self.destination_rules.clone()),
            gateways: shared(&self.gateways),
            sidecars: shared(&self.sidecars),
            secrets: Arc::new(Secrets::new(secrets)),
        };
        Snapshot {
            routing: Arc::new(routing),
            endpoints: Arc::new(Endpoints::new(endpoints, Arc::default())),
        }
    }
}

/// What proxies of this view share.
pub fn shared(facts: &Facts, who: &Parts) -> Generated {
    Engine::default().generate_shared(&facts.snapshot(), &View::from(who.clone()))
}

/// The workload of a proxy, as it is seen with nothing else in the way.
pub fn workload(facts: &Facts, proxy: &Proxy) -> (Workload, Arc<View>) {
    let snapshot = facts.snapshot();
    let view = Arc::new(View::of(&snapshot, proxy));
    let viewer = Viewer::new(&view);
    let world = Worlds::new(snapshot.routing.clone()).world(&viewer);
    let scope = Scope { world: &world, view: &viewer, filters: Filters::default() };
    let taken = Arc::new(super::plan::listener::egress::plan(&scope).taken);
    (Workload::of(&snapshot, &world, proxy, &taken), view)
}

/// A sidecar of this DNS domain.
pub fn in_domain(domain: &str) -> Arc<View> {
    Arc::new(View::from(Parts { domain: domain.into(), ..sidecar() }))
}

/// Somebody who looks at a world.
pub struct Eyes {
    world: World,
    view: Arc<View>,
}

impl Eyes {
    /// This view on these facts.
    pub fn new(facts: &Facts, who: &Parts) -> Eyes {
        Eyes::on(facts.snapshot().routing, who)
    }

    /// This view on this half of a snapshot.
    pub fn on(routing: Arc<Routing>, who: &Parts) -> Eyes {
        let view = Arc::new(View::from(who.clone()));
        let world = Worlds::new(routing).world(&Viewer::new(&view));
        Eyes { world, view }
    }

    /// What these eyes make of it.
    pub fn look<T>(&self, make: impl FnOnce(&Scope<'_>) -> T) -> T {
        let viewer = self.viewer();
        make(&self.scope(&viewer))
    }

    /// A viewer that saw nothing yet.
    pub fn viewer(&self) -> Viewer<'_> {
        Viewer::new(&self.view)
    }

    /// The scope.
    pub fn scope<'a>(&'a self, viewer: &'a Viewer<'a>) -> Scope<'a> {
        Scope { world: &self.world, view: viewer, filters: Filters::default() }
    }
}

/// Unpacks an `Any`.
pub fn decode<M: Message + Default>(packed: &Any) -> M {
    M::decode(packed.value.as_slice()).expect("generators pack what they name")
}

/// A place that no test looks at.
pub fn span() -> Span {
    Span::point(Arc::from("test.yaml"), 1, 1)
}

/// A document of this kind.
pub fn origin(kind: &'static str, namespace: &str, name: &str) -> Origin {
    Origin { kind, name: ObjectName::new(namespace, name), created: 0, span: span() }
}

/// A destination without port and subset.
pub fn destination(host: &str) -> Destination {
    Destination {
        host: Hostname::from(host),
        subset: Arc::from(""),
        port: None,
        span: span(),
        subset_span: span(),
        port_span: span(),
    }
}

/// A destination with a weight.
pub fn weighted(host: &str, weight: u32) -> WeightedDestination {
    WeightedDestination { destination: destination(host), weight, headers: Headers::default() }
}

/// A rule without matches that sends everything to `backend.default.svc.cluster.local`.
pub fn http_rule() -> HttpRule {
    HttpRule {
        name: String::new(),
        matches: Vec::new(),
        action: HttpAction::Route(vec![weighted("backend.default.svc.cluster.local", 0)]),
        rewrite: None,
        timeout: None,
        retries: None,
        fault: None,
        mirrors: Vec::new(),
        cors: None,
        headers: Headers::default(),
        span: span(),
    }
}

/// A rule that sends everything to one host.
pub fn rule_to(host: &str) -> HttpRule {
    HttpRule { action: HttpAction::Route(vec![weighted(host, 0)]), ..http_rule() }
}

/// A match without conditions.
pub fn http_match() -> HttpMatch {
    HttpMatch {
        name: String::new(),
        path: None,
        ignore_path_case: false,
        scheme: None,
        method: None,
        authority: None,
        headers: BTreeMap::new(),
        without_headers: BTreeMap::new(),
        query_params: BTreeMap::new(),
        port: None,
        source_labels: Selector::default(),
        source_namespace: None,
        gateways: Vec::new(),
        stat_prefix: String::new(),
        span: span(),
    }
}

/// A match of one exact path.
pub fn path(path: &str) -> HttpMatch {
    HttpMatch { path: Some(PathMatch::Exact(path.to_owned())), ..http_match() }
}

/// A match of a path prefix.
pub fn prefix(prefix: &str) -> HttpMatch {
    HttpMatch { path: Some(PathMatch::Prefix(prefix.to_owned())), ..http_match() }
}

/// A public VirtualService of the mesh in namespace `default`.
pub fn virtual_service(name: &str, hosts: &[&str], http: Vec<HttpRule>) -> VirtualService {
    VirtualService {
        origin: origin("VirtualService", "default", name),
        hosts: hosts.iter().map(|&h| Hostname::from(h)).collect(),
        gateways: vec![GatewayRef::Mesh],
        gateway_spans: Vec::new(),
        visibility: Visibility::Public,
        order: RuleOrder::AsWritten,
        http,
        tls: Vec::new(),
        tcp: Vec::new(),
    }
}

/// A service port.
pub fn port(number: u16, protocol: Protocol) -> ServicePort {
    ServicePort {
        number,
        name: Arc::from(format!("p{number}")),
        protocol,
        target_port: None,
        span: span(),
    }
}

/// A public service of namespace `default` without endpoints and addresses.
pub fn service(host: &str, ports: &[(u16, Protocol)]) -> Service {
    Service {
        hostname: Hostname::from(host),
        namespace: Namespace::from("default"),
        origin: origin("ServiceEntry", "default", host),
        labels: Labels::default(),
        ports: ports.iter().map(|&(number, protocol)| port(number, protocol)).collect(),
        addresses: Vec::<Address>::new(),
        resolution: Resolution::Static,
        location: Location::MeshInternal,
        visibility: Visibility::Public,
        subject_alt_names: Vec::new(),
        endpoints: Arc::default(),
    }
}

/// A snapshot of these services and rules with the mesh's defaults.
pub fn snapshot(services: Vec<Service>, rules: Vec<VirtualService>) -> Facts {
    Facts { services, virtual_services: rules, ..Facts::default() }
}

/// A sidecar of namespace `default` with captured traffic.
pub fn sidecar() -> Parts {
    Parts {
        role: Role::Sidecar,
        namespace: Namespace::from("default"),
        labels: Labels::default(),
        domain: Arc::from("default.svc.cluster.local"),
        ip_mode: IpMode::V4,
        interception: Interception::Redirect,
        locality: Locality::default(),
        network: Arc::from(""),
        gateway_ports: BTreeMap::new(),
        options: Options::default(),
    }
}

/// An edge proxy of namespace `default`.
pub fn router() -> Parts {
    Parts { role: Role::Router, interception: Interception::None, ..sidecar() }
}

/// A place told apart by its line.
pub fn line(number: u32) -> Span {
    Span::point(Arc::from("test.yaml"), number, 1)
}

/// A Gateway that every router runs.
pub fn gateway(namespace: &str, name: &str, servers: impl IntoIterator<Item = Server>) -> Gateway {
    Gateway {
        origin: origin("Gateway", namespace, name),
        selector: None,
        servers: servers.into_iter().collect(),
    }
}

/// A server without TLS settings; hosts may be `namespace/host`. The port is named after the
/// protocol, the server stands in the line of its port number.
pub fn server(port: u16, protocol: Protocol, hosts: &[&str]) -> Server {
    let host = |text: &&str| match text.split_once('/') {
        Some((namespace, host)) => {
            ServerHost { namespace: Some(namespace.into()), host: host.into() }
        }
        None => ServerHost { namespace: None, host: (*text).into() },
    };
    Server {
        name: String::new(),
        port,
        port_name: Arc::from(protocol.as_str().to_ascii_lowercase()),
        protocol,
        bind: None,
        hosts: hosts.iter().map(host).collect(),
        tls: None,
        span: line(u32::from(port)),
    }
}

/// A credential with a certificate, its key and a CA.
pub fn secret(namespace: &str, name: &str) -> (SecretKey, Secret) {
    let bytes = || Arc::<[u8]>::from(&b"pem"[..]);
    let key = SecretKey { namespace: Some(namespace.into()), name: name.into() };
    let secret = Secret {
        origin: None,
        certificate_chain: Some(bytes()),
        private_key: Some(PrivateBytes::new(bytes())),
        ca: Some(bytes()),
        crl: None,
    };
    (key, secret)
}

/// TLS settings of a server that uses the credential `cert`, where its mode uses any.
pub fn server_tls(mode: ServerTlsMode) -> ServerTls {
    let credential: Arc<str> = Arc::from("cert");
    ServerTls {
        https_redirect: false,
        mode,
        certificates: if mode.terminates() {
            CertificateSource::Credentials(vec![credential.clone()])
        } else {
            CertificateSource::None
        },
        ca: if mode.verifies_clients() { CaSource::Credential(credential) } else { CaSource::None },
        crl_file: None,
        subject_alt_names: Vec::new(),
        verify_certificate_spki: Vec::new(),
        verify_certificate_hash: Vec::new(),
        min_version: None,
        max_version: None,
        cipher_suites: Vec::new(),
        ecdh_curves: Vec::new(),
        insecure_skip_verify: false,
        span: span(),
    }
}

/// A snapshot that the closure fills.
pub fn snapshot_with(fill: impl FnOnce(&mut Facts)) -> Facts {
    let mut facts = Facts::default();
    fill(&mut facts);
    facts
}

/// The sidecar of [`sidecar`], at this address.
pub fn proxy_at(address: &str) -> Proxy {
    let view = sidecar();
    Proxy {
        role: view.role,
        namespace: view.namespace,
        labels: Labels::default(),
        addresses: vec![address.parse().expect("an IP address")],
        domain: view.domain,
        locality: view.locality,
        network: view.network,
        interception: view.interception,
        options: view.options,
    }
}

/// An endpoint of the port `p<number>` at this address (`IP`, `unix://path` or a name), listening
/// on the port's number.
pub fn endpoint(address: &str, number: u16) -> Endpoint {
    let address = match (address.parse(), address.strip_prefix("unix://")) {
        (Ok(ip), _) => EndpointAddress::Ip(ip),
        (Err(_), Some(path)) => EndpointAddress::Pipe(Arc::from(path)),
        (Err(_), None) => EndpointAddress::Hostname(Arc::from(address)),
    };
    Endpoint {
        port_name: Arc::from(format!("p{number}")),
        port_number: number,
        target_port: if matches!(address, EndpointAddress::Pipe(_)) { 0 } else { number },
        address,
        labels: Labels::default(),
        locality: Locality::default(),
        weight: 1,
        network: Arc::from(""),
        service_account: Arc::from(""),
        tls_mode: Arc::from("disabled"),
        workload: Arc::from("workload"),
        namespace: Namespace::from("default"),
        health: Health::Unknown,
    }
}

/// A public DestinationRule of namespace `default`.
pub fn destination_rule(host: &str, policy: TrafficPolicy) -> DestinationRule {
    DestinationRule {
        origin: origin("DestinationRule", "default", host),
        host: Hostname::from(host),
        host_span: span(),
        visibility: None,
        selector: None,
        policy: Some(policy),
        subsets: Vec::new(),
    }
}

/// A subset of the endpoints that have `version: <name>`.
pub fn subset(name: &str, policy: Option<TrafficPolicy>) -> Subset {
    Subset {
        name: Arc::from(name),
        labels: [("version", name)].into_iter().collect(),
        policy,
        span: span(),
    }
}

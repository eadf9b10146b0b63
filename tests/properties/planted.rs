//! Faults, planted into a set of resources that is whole: `support/consistency.rs` must find each.

use crate::support::consistency::check;
use pilotfish::diag::{Code, Diagnostic};
use pilotfish::xds::pb::{self, Message, Name, cluster, core, endpoint, hcm, listener, route, tls};
use pilotfish::xds::{ResourceSet, TypeUrl, canonical};

/// A set that is whole: a listener with a route configuration and a TCP chain, an EDS cluster
/// with endpoints and a secret.
#[derive(Clone)]
struct Fleet {
    listeners: Vec<listener::Listener>,
    routes: Vec<route::RouteConfiguration>,
    clusters: Vec<cluster::Cluster>,
    endpoints: Vec<endpoint::ClusterLoadAssignment>,
    secrets: Vec<tls::Secret>,
    findings: Vec<Diagnostic>,
}

const HOST: &str = "outbound|80||a.example";

impl Fleet {
    fn whole() -> Fleet {
        Fleet {
            listeners: vec![http_listener("first", 8080)],
            routes: vec![route_to(HOST)],
            clusters: vec![eds_cluster(HOST)],
            endpoints: vec![endpoint::ClusterLoadAssignment {
                cluster_name: HOST.to_owned(),
                ..Default::default()
            }],
            secrets: vec![tls::Secret { name: "cert".to_owned(), ..Default::default() }],
            findings: Vec::new(),
        }
    }

    fn problems(&self) -> Vec<String> {
        let mut set = ResourceSet::new();
        add(&mut set, TypeUrl::Listener, &self.listeners, |l| &l.name);
        add(&mut set, TypeUrl::Route, &self.routes, |r| &r.name);
        add(&mut set, TypeUrl::Cluster, &self.clusters, |c| &c.name);
        add(&mut set, TypeUrl::Endpoint, &self.endpoints, |e| &e.cluster_name);
        add(&mut set, TypeUrl::Secret, &self.secrets, |s| &s.name);
        check(&set, &self.findings)
    }
}

fn add<M: Message + Name>(
    set: &mut ResourceSet,
    type_url: TypeUrl,
    all: &[M],
    name: fn(&M) -> &String,
) {
    for message in all {
        set.insert(type_url, canonical::resource(name(message).as_str(), message));
    }
}

fn ads() -> core::ConfigSource {
    let ads = core::AggregatedConfigSource::default();
    core::ConfigSource {
        config_source_specifier: Some(core::config_source::ConfigSourceSpecifier::Ads(ads)),
        ..Default::default()
    }
}

fn http_listener(name: &str, port: u32) -> listener::Listener {
    use hcm::http_connection_manager::RouteSpecifier;
    let manager = hcm::HttpConnectionManager {
        stat_prefix: "http".to_owned(),
        route_specifier: Some(RouteSpecifier::Rds(hcm::Rds {
            route_config_name: "table".to_owned(),
            config_source: Some(ads()),
        })),
        ..Default::default()
    };
    let filter = listener::Filter {
        name: "http".to_owned(),
        config_type: Some(listener::filter::ConfigType::TypedConfig(pb::any(&manager))),
    };
    let socket = core::SocketAddress {
        address: "127.0.0.1".to_owned(),
        port_specifier: Some(core::socket_address::PortSpecifier::PortValue(port)),
        ..Default::default()
    };
    listener::Listener {
        name: name.to_owned(),
        address: Some(core::Address {
            address: Some(core::address::Address::SocketAddress(socket)),
        }),
        filter_chains: vec![listener::FilterChain { filters: vec![filter], ..Default::default() }],
        ..Default::default()
    }
}

fn route_to(cluster: &str) -> route::RouteConfiguration {
    use route::route_match::PathSpecifier;
    let action = route::RouteAction {
        cluster_specifier: Some(route::route_action::ClusterSpecifier::Cluster(cluster.to_owned())),
        ..Default::default()
    };
    let only = route::Route {
        r#match: Some(route::RouteMatch {
            path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
            ..Default::default()
        }),
        action: Some(route::route::Action::Route(action)),
        ..Default::default()
    };
    route::RouteConfiguration {
        name: "table".to_owned(),
        virtual_hosts: vec![route::VirtualHost {
            name: "all".to_owned(),
            domains: vec!["*".to_owned()],
            routes: vec![only],
            ..Default::default()
        }],
        ..Default::default()
    }
}

fn eds_cluster(name: &str) -> cluster::Cluster {
    use cluster::cluster::{ClusterDiscoveryType, DiscoveryType, EdsClusterConfig};
    let context = tls::UpstreamTlsContext {
        common_tls_context: Some(tls::CommonTlsContext {
            tls_certificate_sds_secret_configs: vec![tls::SdsSecretConfig {
                name: "cert".to_owned(),
                sds_config: Some(ads()),
            }],
            ..Default::default()
        }),
        ..Default::default()
    };
    cluster::Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(ClusterDiscoveryType::Type(DiscoveryType::Eds.into())),
        eds_cluster_config: Some(EdsClusterConfig::default()),
        transport_socket: Some(core::TransportSocket {
            name: "tls".to_owned(),
            config_type: Some(core::transport_socket::ConfigType::TypedConfig(pb::any(&context))),
        }),
        ..Default::default()
    }
}

#[test]
fn a_whole_set_has_no_problems() {
    assert_eq!(Fleet::whole().problems(), Vec::<String>::new());
}

#[test]
fn each_planted_fault_is_found() {
    type Fault = (fn(&mut Fleet), &'static str);
    let faults: &[Fault] = &[
        (|f| f.findings.push(Diagnostic::new(Code::InvalidResource, "'x' is left out")), "PF0409"),
        (|f| f.routes[0].virtual_hosts[0].domains.clear(), "domains"),
        (|f| f.endpoints.clear(), "an EDS cluster without endpoints resource"),
        (|f| f.clusters.clear(), "an endpoints resource that no cluster asks for"),
        (|f| f.routes.clear(), "a route configuration that a listener names is missing"),
        (|f| f.listeners.clear(), "a route configuration that no listener names"),
        (|f| f.secrets.clear(), "a secret that is referred to is missing"),
        (|f| f.clusters[0].transport_socket = None, "a secret that nothing refers to"),
        (
            |f| f.listeners.push(http_listener("second", 8080)),
            "listeners first and second share the address",
        ),
        (
            |f| f.routes = vec![route_to("outbound|80||b.example")],
            "cluster outbound|80||b.example is used, missing, and no diagnostic says so",
        ),
        (
            // A finding about something else explains nothing.
            |f| {
                f.routes = vec![route_to("outbound|80||b.example")];
                f.findings.push(Diagnostic::new(Code::UnknownSecret, "no secret 'x'"));
            },
            "cluster outbound|80||b.example is used, missing, and no diagnostic says so",
        ),
    ];
    for (plant, expected) in faults {
        let mut fleet = Fleet::whole();
        plant(&mut fleet);
        let problems = fleet.problems();
        assert!(problems.iter().any(|p| p.contains(expected)), "{expected}: {problems:?}");
    }
}

#[test]
fn a_missing_cluster_may_be_explained() {
    let mut fleet = Fleet::whole();
    fleet.routes = vec![route_to("outbound|80||b.example")];
    fleet.findings.push(Diagnostic::new(Code::UnknownHost, "there is no 'b.example'"));
    assert_eq!(fleet.problems(), Vec::<String>::new());
}

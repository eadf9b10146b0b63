//! Fragments against whole messages.

use super::*;
use crate::xds::pb::route::route_action::ClusterSpecifier;
use crate::xds::pb::route::route_match::PathSpecifier;
use crate::xds::pb::route::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualCluster, VirtualHost, route,
};
use crate::xds::{Version, canonical, constraints, pb};
use proptest::collection::vec;
use proptest::prelude::*;

fn subject<'a>(what: What, because: &'a Because) -> Subject<'a> {
    Subject { what, name: "any", because }
}

fn because() -> Because {
    Because::always("a test")
}

/// A route with several maps in it. Without a match Envoy refuses it.
fn a_route() -> impl Strategy<Value = Route> {
    let keys = proptest::collection::btree_set("[a-e]{1,2}", 0..5);
    ("[a-c]{0,2}", "/[a-c]{0,3}", keys, 0..8u8).prop_map(|(name, path, keys, refused)| {
        let fields = || pb::object(keys.iter().map(|key| (key.clone(), pb::boolean(true))));
        let wanted =
            RouteMatch { path_specifier: Some(PathSpecifier::Prefix(path)), ..Default::default() };
        let action = RouteAction {
            cluster_specifier: Some(ClusterSpecifier::Cluster("c".into())),
            ..Default::default()
        };
        Route {
            name,
            r#match: (refused > 0).then_some(wanted),
            action: Some(route::Action::Route(action)),
            metadata: Some(pb::core::Metadata {
                filter_metadata: keys.iter().map(|key| (key.clone(), fields())).collect(),
                ..Default::default()
            }),
            typed_per_filter_config: keys
                .iter()
                .map(|key| (key.clone(), pb::any(&fields())))
                .collect(),
            request_headers_to_remove: keys.iter().cloned().collect(),
            stat_prefix: "s".into(),
            ..Default::default()
        }
    })
}

/// A virtual host with fields on both sides of its routes. Without a name or a domain Envoy refuses
/// it.
fn a_virtual_host() -> impl Strategy<Value = VirtualHost> {
    ("[a-c]{0,9}", vec("[a-z]{1,3}", 0..4), vec(a_route(), 0..4), any::<bool>()).prop_map(
        |(name, domains, routes, tls)| VirtualHost {
            name,
            typed_per_filter_config: domains
                .iter()
                .map(|domain| (domain.clone(), pb::any(&pb::string("x"))))
                .collect(),
            domains,
            routes,
            require_tls: i32::from(tls),
            virtual_clusters: vec![VirtualCluster { name: "v".into(), ..Default::default() }],
            include_request_attempt_count: tls,
            ..Default::default()
        },
    )
}

fn a_configuration() -> impl Strategy<Value = RouteConfiguration> {
    ("[a-c0-9]{0,3}", vec(a_virtual_host(), 0..4), vec("[a-z]{1,3}", 0..3), any::<bool>()).prop_map(
        |(name, virtual_hosts, headers, ignore)| RouteConfiguration {
            name,
            virtual_hosts,
            internal_only_headers: headers,
            validate_clusters: Some(pb::bool_value(false)),
            ignore_port_in_host_matching: ignore,
            ..Default::default()
        },
    )
}

/// The configuration from fragments of its virtual hosts, and those from fragments of their routes.
fn from_fragments(whole: &RouteConfiguration) -> Fragment<RouteConfiguration> {
    let because = because();
    let host = |host: &VirtualHost| {
        let of_route = |r: &Route| Fragment::of(&subject(What::Route, &because), r.clone());
        let routes: Vec<Fragment<Route>> = host.routes.iter().map(of_route).collect();
        let outer = VirtualHost { routes: Vec::new(), ..host.clone() };
        Fragment::around(&subject(What::VirtualHost, &because), outer, &routes)
    };
    let hosts: Vec<Fragment<VirtualHost>> = whole.virtual_hosts.iter().map(host).collect();
    let outer = RouteConfiguration { virtual_hosts: Vec::new(), ..whole.clone() };
    Fragment::around(&subject(What::Resource(TypeUrl::Route), &because), outer, &hosts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn fragments_make_the_bytes_the_version_and_the_verdict_of_the_whole(
        whole in a_configuration()
    ) {
        let made = from_fragments(&whole);
        let bytes = canonical::bytes(&whole);
        prop_assert_eq!(made.bytes(), &bytes);
        prop_assert_eq!(made.version(), Version::of(&bytes));
        prop_assert_eq!(made.violations(), constraints::check(TypeUrl::Route.as_str(), &bytes));
        let sealed = resource(TypeUrl::Route, "80", &because(), whole);
        prop_assert_eq!(made.into_resource(TypeUrl::Route, "80"), sealed);
    }
}

#[test]
fn a_resource_that_envoy_would_refuse_is_a_finding() {
    let nameless = VirtualHost { domains: vec!["*".into()], ..Default::default() };
    let whole = RouteConfiguration { virtual_hosts: vec![nameless], ..Default::default() };
    let mut output = Output::default();
    output.seal(TypeUrl::Route, "80", &because(), whole.clone());
    output.seal_whole(TypeUrl::Route, "81", from_fragments(&whole));
    output.seal(TypeUrl::Route, "82", &because(), RouteConfiguration::default());
    let (resources, findings) = output.into_parts();
    let names: Vec<&str> = resources.iter().map(|(_, resource)| &*resource.name).collect();
    assert_eq!(names, ["82"]);
    let told = |name: &str| {
        format!(
            "Envoy would refuse the rds resource '{name}', so it is left out: \
             virtual_hosts[0].name: must not be empty"
        )
    };
    assert_eq!(findings.iter().map(|f| f.code).collect::<Vec<_>>(), [Code::InvalidResource; 2]);
    assert_eq!(findings[0].message, told("80"));
    assert_eq!(findings[1].message, told("81"));
}

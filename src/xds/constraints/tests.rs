//! The examples are those that a real Envoy 1.40 was seen to refuse, or not to.

use super::*;
use crate::xds::json::message_bytes;
use serde_json::{Value as Json, json};

const CLUSTER: &str = "envoy.config.cluster.v3.Cluster";
const ENDPOINTS: &str = "envoy.config.endpoint.v3.ClusterLoadAssignment";
const LISTENER: &str = "envoy.config.listener.v3.Listener";
const ROUTES: &str = "envoy.config.route.v3.RouteConfiguration";
const HCM: &str =
    "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

fn found(type_name: &str, json: Json) -> Vec<String> {
    let encoded = message_bytes(type_name, &json).expect("the example is a message");
    check(type_name, &encoded).iter().map(Violation::to_string).collect()
}

fn route(route: Json) -> Vec<String> {
    let host = json!({"name": "h", "domains": ["*"], "routes": [route]});
    found(ROUTES, json!({"name": "r", "virtual_hosts": [host]}))
}

fn route_match(matcher: Json) -> Vec<String> {
    route(json!({"match": matcher, "route": {"cluster": "c"}}))
}

#[test]
fn every_rule_of_the_api_is_known() {
    assert_eq!(TABLE.unknown, Vec::<String>::new());
}

#[test]
fn good_resources_break_nothing() {
    let none = Vec::<String>::new();
    assert_eq!(route_match(json!({"path_separated_prefix": "/a"})), none);
    assert_eq!(route_match(json!({"prefix": ""})), none);
    let mirror = json!([{"cluster": "m"}]); // Its cluster_header is a header name, but loosely.
    let action = json!({"cluster": "c", "request_mirror_policies": mirror});
    assert_eq!(route(json!({"match": {"prefix": "/"}, "route": action})), none);
    assert_eq!(found(CLUSTER, json!({"name": "c", "connect_timeout": "1s"})), none);
    assert_eq!(found(CLUSTER, json!({"name": "c"})), none);
    let endpoint = json!({"endpoint": {"address": {"socket_address": {
        "address": "10.0.0.1", "port_value": 0}}}, "load_balancing_weight": 1});
    let locality = json!({"lb_endpoints": [endpoint], "priority": 128});
    assert_eq!(found(ENDPOINTS, json!({"cluster_name": "c", "endpoints": [locality]})), none);
}

#[test]
fn a_path_separated_prefix_has_no_slash_at_its_end() {
    for bad in ["/", "/a/", "a", "", "/a?b", "/a#b"] {
        assert_eq!(
            route_match(json!({"path_separated_prefix": bad})),
            ["virtual_hosts[0].routes[0].match.path_separated_prefix: must match ^[^?#]+[^?#/]$"],
            "{bad}"
        );
    }
}

#[test]
fn a_route_has_an_action_and_a_match() {
    let actions = "virtual_hosts[0].routes[0]: must have one of route, redirect, direct_response, \
                   filter_action, non_forwarding_action";
    assert_eq!(route(json!({"match": {"prefix": "/"}})), [actions]);
    let missing = route(json!({"route": {"cluster": "c"}}));
    assert_eq!(missing, ["virtual_hosts[0].routes[0].match: is required"]);
    let empty = route_match(json!({}));
    assert!(empty[0].starts_with("virtual_hosts[0].routes[0].match: must have one of prefix, "));
}

#[test]
fn a_regex_is_not_empty() {
    let at = "virtual_hosts[0].routes[0].match.safe_regex.regex: must not be empty";
    assert_eq!(route_match(json!({"safe_regex": {"regex": ""}})), [at]);
    let header = json!({"name": "a", "string_match": {"prefix": ""}});
    let at = "virtual_hosts[0].routes[0].match.headers[0].string_match.prefix: must not be empty";
    assert_eq!(route_match(json!({"prefix": "/", "headers": [header]})), [at]);
    let header = json!({"name": "a", "string_match": {"exact": ""}});
    assert_eq!(route_match(json!({"prefix": "/", "headers": [header]})), Vec::<String>::new());
}

#[test]
fn names_are_given() {
    let nameless = json!({"virtual_hosts": [{"domains": ["*"]}, {"name": "a"}]});
    assert_eq!(
        found(ROUTES, nameless),
        [
            "virtual_hosts[0].name: must not be empty",
            "virtual_hosts[1].domains: must have at least 1 items, has 0",
        ]
    );
    assert_eq!(found(CLUSTER, json!({})), ["name: must not be empty"]);
}

#[test]
fn header_lines_cannot_be_broken() {
    let set = |key: &str, value: &str| {
        found(
            ROUTES,
            json!({"response_headers_to_add": [{"header": {"key": key, "value": value}}]}),
        )
    };
    assert_eq!(set("x a", "50%"), Vec::<String>::new());
    let at = "response_headers_to_add[0].header";
    assert_eq!(set("a", "b\r\nc"), [format!("{at}.value: must not contain NUL, CR or LF")]);
    assert_eq!(set("", "b"), [format!("{at}.key: must not be empty")]);
    assert_eq!(found(ROUTES, json!({"response_headers_to_remove": ["a", "b\n"]})).len(), 1);
}

#[test]
fn a_cluster_has_a_positive_timeout() {
    assert_eq!(
        found(CLUSTER, json!({"name": "c", "connect_timeout": "0s"})),
        ["connect_timeout: must be greater than 0s, is 0s"]
    );
    let outlier = json!({"interval": "0s", "max_ejection_percent": 101});
    assert_eq!(
        found(CLUSTER, json!({"name": "c", "outlier_detection": outlier})),
        [
            "outlier_detection.interval: must be greater than 0s, is 0s",
            "outlier_detection.max_ejection_percent: must be at most 100, is 101",
        ]
    );
    let ring = json!({"maximum_ring_size": 8388609});
    let ring = found(CLUSTER, json!({"name": "c", "ring_hash_lb_config": ring}));
    assert_eq!(
        ring,
        ["ring_hash_lb_config.maximum_ring_size: must be at most 8388608, is 8388609"]
    );
}

#[test]
fn endpoints_have_weight_and_a_priority_within_reach() {
    let endpoint = json!({"load_balancing_weight": 0});
    let locality = json!({"lb_endpoints": [endpoint], "load_balancing_weight": 0, "priority": 129});
    assert_eq!(
        found(ENDPOINTS, json!({"cluster_name": "c", "endpoints": [locality]})),
        [
            "endpoints[0].lb_endpoints[0].load_balancing_weight: must be at least 1, is 0",
            "endpoints[0].load_balancing_weight: must be at least 1, is 0",
            "endpoints[0].priority: must be at most 128, is 129",
        ]
    );
}

#[test]
fn rules_reach_into_any() {
    let hcm = json!({"@type": format!("type.googleapis.com/{HCM}"), "rds": {
        "route_config_name": "r", "config_source": {"ads": {}}}});
    let chain = json!({"filters": [{"name": "hcm", "typed_config": hcm}]});
    let listener = json!({"name": "l", "filter_chains": [chain],
        "listener_filters": [{"name": "x", "filter_disabled": {"or_match": {"rules": [
            {"any_match": true}]}}}]});
    assert_eq!(
        found(LISTENER, listener),
        [
            "filter_chains[0].filters[0].typed_config.stat_prefix: must not be empty",
            "listener_filters[0].filter_disabled.or_match.rules: must have at least 2 items, has 1",
        ]
    );
    let chain = json!({"filter_chain_match": {"destination_port": 0}});
    assert_eq!(
        found(LISTENER, json!({"filter_chains": [chain]})),
        ["filter_chains[0].filter_chain_match.destination_port: must be at least 1, is 0"]
    );
}

#[test]
fn an_any_of_an_unknown_type_is_not_judged() {
    let any = crate::xds::pb::Any { type_url: "t/no.such".into(), value: vec![0xff] };
    let filter = crate::xds::pb::listener::Filter {
        name: "f".into(),
        config_type: Some(crate::xds::pb::listener::filter::ConfigType::TypedConfig(any)),
    };
    let encoded = crate::xds::canonical::bytes(&filter);
    assert_eq!(check("envoy.config.listener.v3.Filter", &encoded), []);
}

#[test]
fn tcp_weights_are_positive() {
    let type_name = "envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
    let weighted = |clusters: Json| {
        found(type_name, json!({"stat_prefix": "s", "weighted_clusters": {"clusters": clusters}}))
    };
    assert_eq!(
        weighted(json!([{"name": "a", "weight": 1}, {"name": "b", "weight": 0}])),
        ["weighted_clusters.clusters[1].weight: must be at least 1, is 0"]
    );
    assert_eq!(
        weighted(json!([])),
        ["weighted_clusters.clusters: must have at least 1 items, has 0"]
    );
}

#[test]
fn faults_are_whole() {
    let type_name = "envoy.extensions.filters.http.fault.v3.HTTPFault";
    let fault = |fault: Json| found(type_name, fault);
    assert_eq!(fault(json!({"abort": {}})).len(), 1);
    assert_eq!(
        fault(json!({"abort": {"http_status": 199}, "delay": {"fixed_delay": "0s"}})),
        [
            "delay.fixed_delay: must be greater than 0s, is 0s",
            "abort.http_status: must be at least 200, is 199",
        ]
    );
    assert_eq!(
        fault(json!({"abort": {"http_status": 600}})),
        ["abort.http_status: must be less than 600, is 600"]
    );
}

#[test]
fn enums_maps_and_unique_lists_are_checked() {
    let lb_policy = crate::xds::pb::cluster::Cluster { lb_policy: 99, ..Default::default() };
    let policy = check(CLUSTER, &crate::xds::canonical::bytes(&lb_policy));
    assert!(policy.iter().any(|v| v.to_string() == "lb_policy: must be a defined value, is 99"));

    let direction = json!({"common_config": {}, "uncompressible_response_codes": [204, 206, 204]});
    let library = json!({"name": "g", "typed_config":
        {"@type": "type.googleapis.com/google.protobuf.Empty", "value": {}}});
    let twice = found(
        "envoy.extensions.filters.http.compressor.v3.Compressor",
        json!({"compressor_library": library, "response_direction_config": direction}),
    );
    let at = "response_direction_config.uncompressible_response_codes";
    assert_eq!(twice, [format!("{at}: must not have the same item twice")]);

    let bucket =
        found("envoy.service.rate_limit_quota.v3.BucketId", json!({"bucket": {"k": "", "": "v"}}));
    assert_eq!(bucket, ["bucket[]: must not be empty", "bucket[k]: must not be empty"]);
}

#[test]
fn broken_bytes_are_a_violation_not_a_panic() {
    let whole = message_bytes(
        CLUSTER,
        &json!({"name": "cluster", "connect_timeout": "1.5s", "lb_policy": "RANDOM"}),
    )
    .expect("a message");
    for cut in 1..whole.len() {
        check(CLUSTER, &whole[..cut]);
    }
    let violations = check(CLUSTER, &[0x0a, 0x05, b'x']);
    assert_eq!(violations[0].to_string(), "is not a valid encoding");
}

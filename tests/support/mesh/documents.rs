//! Strategies for documents of every kind.

use super::{Document, NAMES, NAMESPACES};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

/// A certificate and its key.
pub const CERTIFICATE: &str = include_str!("../../../src/kinds/secret/testdata/rsa.crt");
/// The key of [`CERTIFICATE`].
pub const KEY: &str = include_str!("../../../src/kinds/secret/testdata/rsa-pkcs8.key");

/// A kind and the fields beside kind and metadata.
type Body = (&'static str, Value);

/// Documents; of every second mesh nothing is private, so that namespaces see the same.
pub fn documents(some: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Document>> {
    (vec(document(), some), any::<bool>()).prop_map(|(mut documents, is_public)| {
        if is_public {
            documents.retain(|document| document.kind != "Sidecar");
            for document in &mut documents {
                if let Some(spec) = document.body["spec"].as_object_mut() {
                    spec.remove("exportTo");
                }
            }
        }
        documents
    })
}

/// Any document.
pub fn document() -> impl Strategy<Value = Document> {
    let body = prop_oneof![
        10 => service_entry(),
        3 => workload_entry(),
        5 => virtual_service(),
        1 => delegate(),
        5 => destination_rule(),
        3 => gateway(),
        3 => sidecar(),
        1 => secret(),
    ];
    let name = select(&NAMES[..]);
    let namespace = prop_oneof![1 => select(&NAMESPACES[..]), 2 => Just("default"), 1 => Just("a")];
    let created = option::weighted(0.3, 1u8..4);
    (body, namespace, name, created).prop_map(|((kind, body), namespace, name, day)| {
        let name = match kind {
            // VirtualServices name this one, WorkloadEntries are named after workloads.
            "Gateway" if name != "d0" => "edge",
            "Secret" => "cred",
            _ => name,
        };
        Document { kind, namespace, name, created: day, body }
    })
}

fn host() -> impl Strategy<Value = &'static str> {
    select(vec!["a.example", "b.example", "c.default.svc.cluster.local", "*.d.example"])
}

fn export_to() -> impl Strategy<Value = Option<Value>> {
    let lists = [json!(["."]), json!(["*"]), json!(["a"]), json!(["b", "default"])];
    option::weighted(0.5, select(lists.to_vec()))
}

/// Labels that proxies have, or could have.
fn labels() -> impl Strategy<Value = Value> {
    select(vec![
        json!({"app": "a"}),
        json!({"tier": "front"}),
        json!({"app": "b", "tier": "front"}),
    ])
}

fn with(mut spec: Value, fields: impl IntoIterator<Item = (&'static str, Option<Value>)>) -> Value {
    for (name, value) in fields {
        if let Some(value) = value {
            spec[name] = value;
        }
    }
    spec
}

fn destination() -> impl Strategy<Value = Value> {
    let subset = option::of(select(vec![json!("v1"), json!("v2")]));
    let port = option::weighted(0.3, select(vec![json!({"number": 80}), json!({"number": 18000})]));
    let named = select(vec!["a.example", "b.example", "c", "nowhere.example"]);
    (named, subset, port).prop_map(|(host, subset, port)| {
        with(json!({"host": host}), [("subset", subset), ("port", port)])
    })
}

/// Ports with different numbers.
fn ports() -> impl Strategy<Value = Vec<Value>> {
    let protocols = select(vec!["HTTP", "TCP", "TLS", "GRPC", "HTTPS", ""]);
    let port = (select(vec![80, 443, 18000, 18001]), protocols);
    vec(port, 1..4).prop_map(|mut ports| {
        ports.sort();
        ports.dedup_by_key(|(number, _)| *number);
        let port = |(number, protocol): (u16, &str)| match protocol {
            "" => json!({"number": number, "name": format!("any-{number}")}),
            // Where routers listen for it.
            "HTTP" => json!({"number": number, "name": format!("p-{number}"), "protocol": protocol,
                "targetPort": 9000 + number % 1000}),
            _ => json!({"number": number, "name": format!("p-{number}"), "protocol": protocol}),
        };
        ports.into_iter().map(port).collect()
    })
}

/// An endpoint that is told apart by a number.
pub fn endpoint(n: u8) -> Value {
    let app = if (n / 4).is_multiple_of(2) { "a" } else { "b" };
    let mut endpoint = json!({
        "address": format!("127.1.{}.{}", n % 2, n % 4 + 1),
        "labels": {"app": app, "version": format!("v{}", n % 2 + 1)},
        "locality": format!("region-{}/zone-{}", n % 3, n / 2 % 2),
    });
    if n.is_multiple_of(5) {
        endpoint["weight"] = 3.into();
    }
    if n.is_multiple_of(2) {
        endpoint["serviceAccount"] = "robot".into();
    }
    if n.is_multiple_of(3) {
        endpoint["network"] = "far".into();
    }
    endpoint
}

fn service_entry() -> impl Strategy<Value = Body> {
    let address = option::of(select(vec!["10.0.0.1", "10.0.0.2", "10.0.1.0/24"]));
    let resolution = select(vec!["STATIC", "STATIC", "STATIC", "DNS", "NONE", "select", "select"]);
    let location = select(vec!["MESH_INTERNAL", "MESH_EXTERNAL"]);
    let endpoints = vec(0u8..24, 0..4);
    // Only services may be for nobody.
    let export_to = prop_oneof![5 => export_to(), 1 => Just(Some(json!(["~"])))];
    (host(), ports(), resolution, address, location, endpoints, export_to).prop_map(
        |(host, ports, resolution, address, location, endpoints, export_to)| {
            let spec = json!({"hosts": [host], "ports": ports, "location": location});
            let mut spec = with(spec, [("exportTo", export_to)]);
            let resolution = match resolution {
                "DNS" if host.starts_with('*') => "NONE",
                other => other,
            };
            // Networks need endpoints that are addresses.
            if let Some(address) = address.filter(|a| !(a.contains('/') && resolution == "DNS")) {
                spec["addresses"] = json!([address]);
            }
            spec["resolution"] = resolution.into();
            match resolution {
                "select" => {
                    spec["resolution"] = "STATIC".into();
                    spec["workloadSelector"] = json!({"labels": {"app": "a"}});
                }
                "NONE" => {}
                _ => spec["endpoints"] = endpoints.into_iter().map(endpoint).collect(),
            }
            ("ServiceEntry", json!({"spec": spec}))
        },
    )
}

fn workload_entry() -> impl Strategy<Value = Body> {
    (0u8..24).prop_map(|n| ("WorkloadEntry", json!({"spec": endpoint(n)})))
}

/// What a rule asks of the client.
fn source() -> impl Strategy<Value = [(&'static str, Option<Value>); 2]> {
    let namespace = option::weighted(0.3, select(vec![json!("a"), json!("default")]));
    (option::weighted(0.4, labels()), namespace)
        .prop_map(|(labels, namespace)| [("sourceLabels", labels), ("sourceNamespace", namespace)])
}

fn http_rule() -> impl Strategy<Value = Value> {
    let prefix = select(vec!["/", "/x", "/x/y"]);
    let delegate = option::weighted(0.1, select(&NAMES[..]));
    (prefix, source(), vec(destination(), 1..3), delegate).prop_map(
        |(prefix, source, destinations, delegate)| {
            let one = with(json!({"uri": {"prefix": prefix}}), source);
            if let Some(name) = delegate {
                return json!({"match": [one], "delegate": {"name": name}});
            }
            let weighted = destinations.into_iter();
            let weighted = weighted.map(|to| json!({"destination": to, "weight": 1}));
            json!({"match": [one], "route": weighted.collect::<Value>()})
        },
    )
}

fn virtual_service() -> impl Strategy<Value = Body> {
    let gateways = subsequence(vec!["mesh", "default/edge", "a/edge", "nowhere"], 0..3);
    let http = vec(http_rule(), 1..4);
    let l4 = option::weighted(0.5, (source(), source(), destination()));
    (host(), gateways, http, l4, export_to()).prop_map(|(host, gateways, http, l4, export_to)| {
        let mut spec = with(json!({"hosts": [host], "http": http}), [("exportTo", export_to)]);
        if !gateways.is_empty() {
            spec["gateways"] = json!(gateways);
        }
        if let Some((of_tls, of_tcp, to)) = l4 {
            let route = json!([{"destination": to}]);
            let of_tls = with(json!({"sniHosts": [host]}), of_tls);
            spec["tls"] = json!([{"match": [of_tls], "route": route}]);
            let of_tcp = with(json!({"port": 18000}), of_tcp);
            spec["tcp"] = json!([{"match": [of_tcp], "route": route}]);
        }
        ("VirtualService", json!({"spec": spec}))
    })
}

/// Rules that others delegate to.
fn delegate() -> impl Strategy<Value = Body> {
    (vec(destination(), 1..2), source()).prop_map(|(destinations, source)| {
        let one = with(json!({"uri": {"prefix": "/x/y/z"}}), source);
        let route: Value = destinations.iter().map(|to| json!({"destination": to})).collect();
        let spec = json!({"http": [{"match": [one], "route": route}]});
        ("VirtualService", json!({"spec": spec}))
    })
}

/// Every way in which a rule prefers endpoints by where or what the proxy is.
fn preference() -> impl Strategy<Value = Option<(&'static str, Value)>> {
    let priority = json!(["app", "tier", "topology.istio.io/network"]);
    let failover = json!([{"from": "region-0", "to": "region-1"}]);
    let distribute = json!([
        {"from": "region-0/*", "to": {"region-0/*": 80, "region-1/*": 20}},
        {"from": "region-1/*", "to": {"region-2/*": 100}},
    ]);
    select(vec![
        None,
        Some(("localityLbSetting", json!({"failoverPriority": priority}))),
        Some(("localityLbSetting", json!({"failoverPriority": ["version=v1", "app"]}))),
        Some(("localityLbSetting", json!({"failover": failover}))),
        Some(("localityLbSetting", json!({"distribute": distribute}))),
        Some(("localityLbSetting", json!({"enabled": false}))),
        Some(("zoneAwareLbSetting", json!({"failoverPriority": priority}))),
        Some(("zoneAwareLbSetting", json!({"failover": failover}))),
        Some(("zoneAwareLbSetting", json!({"minClusterSize": 2}))),
    ])
}

fn destination_rule() -> impl Strategy<Value = Body> {
    let balancer = select(vec!["ROUND_ROBIN", "RANDOM", "LEAST_REQUEST", "PASSTHROUGH"]);
    let subsets = subsequence(vec!["v1", "v2"], 0..=2);
    let tls =
        option::weighted(0.4, select(vec!["DISABLE", "SIMPLE", "credential", "ISTIO_MUTUAL"]));
    // Selected rules are seen from their namespace only.
    let reach = prop_oneof![
        export_to().prop_map(|list| ("exportTo", list)),
        labels().prop_map(|l| ("workloadSelector", Some(json!({"matchLabels": l})))),
    ];
    (host(), balancer, preference(), subsets, tls, any::<bool>(), reach).prop_map(
        |(host, balancer, preference, subsets, tls, outliers, reach)| {
            let mut policy = json!({"loadBalancer": {"simple": balancer}});
            if let Some((name, setting)) = preference {
                policy["loadBalancer"][name] = setting;
            }
            if outliers {
                policy["outlierDetection"] = json!({"consecutive5xxErrors": 3});
            }
            match tls {
                // Only rules that select workloads may name one for sidecars too.
                Some("credential") => {
                    policy["tls"] = json!({"mode": "SIMPLE", "credentialName": "cred"});
                }
                Some(mode) => policy["tls"] = json!({"mode": mode}),
                None => {}
            }
            let subset = |name: &str| json!({"name": name, "labels": {"version": name}});
            let subsets: Value = subsets.into_iter().map(subset).collect();
            let spec = json!({"host": host, "trafficPolicy": policy, "subsets": subsets});
            ("DestinationRule", json!({"spec": with(spec, [reach])}))
        },
    )
}

fn gateway() -> impl Strategy<Value = Body> {
    let protocol = select(vec!["HTTP", "TCP", "TLS", "HTTPS", "terminated"]);
    let hosts = subsequence(vec!["a.example", "b.example", "./*", "*"], 1..3);
    let server = (select(vec![80, 443, 18443]), protocol, hosts);
    let server = server.prop_map(|(number, protocol, hosts)| {
        let spoken = if protocol == "terminated" { "HTTPS" } else { protocol };
        let port = json!({"number": number, "protocol": spoken});
        let mut server = json!({"port": port, "hosts": hosts});
        match protocol {
            "terminated" => server["tls"] = json!({"mode": "SIMPLE", "credentialName": "cred"}),
            "TLS" | "HTTPS" => server["tls"] = json!({"mode": "PASSTHROUGH"}),
            _ => {}
        }
        server
    });
    (vec(server, 1..3), option::of(labels())).prop_map(|(mut servers, selector)| {
        for (i, server) in servers.iter_mut().enumerate() {
            server["port"]["name"] = format!("p-{i}").into();
        }
        let spec = with(json!({"servers": servers}), [("selector", selector)]);
        ("Gateway", json!({"spec": spec}))
    })
}

fn sidecar() -> impl Strategy<Value = Body> {
    let hosts = subsequence(vec!["*/a.example", "./*", "default/*", "~/*", "*/*"], 1..3);
    let listener = option::weighted(0.3, select(vec![80, 18000]));
    let selector = option::of(labels());
    (hosts, listener, selector, any::<bool>(), any::<bool>()).prop_map(
        |(hosts, listener, selector, registry_only, ingress)| {
            let mut egress = json!([{"hosts": hosts}]);
            if let Some(number) = listener {
                let port = json!({"number": number, "protocol": "HTTP", "name": "out"});
                egress = json!([{"port": port, "hosts": ["*/*"]}, {"hosts": hosts}]);
            }
            let mut spec = json!({"egress": egress});
            if let Some(labels) = selector {
                spec["workloadSelector"] = json!({"labels": labels});
            }
            if registry_only {
                spec["outboundTrafficPolicy"] = json!({"mode": "REGISTRY_ONLY"});
            }
            if ingress {
                let port = json!({"number": 18001, "protocol": "HTTP", "name": "in"});
                spec["ingress"] = json!([{"port": port, "defaultEndpoint": "127.0.0.1:8080"}]);
            }
            ("Sidecar", json!({"spec": spec}))
        },
    )
}

fn secret() -> impl Strategy<Value = Body> {
    any::<bool>().prop_map(|with_ca| {
        let mut data = json!({"tls.crt": CERTIFICATE, "tls.key": KEY});
        if with_ca {
            data["ca.crt"] = CERTIFICATE.into();
        }
        ("Secret", json!({"type": "kubernetes.io/tls", "stringData": data}))
    })
}

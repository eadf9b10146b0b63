//! What must hold for any mix of documents: order does not matter, two runs are the same, and what
//! comes out belongs together and breaks none of Envoy's rules.
//!
//! Documents are made of few names, so that they meet: they claim the same hosts and ports, select
//! the same workloads, and refer to each other and to nothing.

#[path = "properties/planted.rs"]
mod planted;
mod support;

use pilotfish::config::SourceFile;
use pilotfish::diag::{self, Severity};
use pilotfish::generate::Generated;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};
use support::case::ProxySpec;
use support::compiled::{self, Input};
use support::consistency;
use support::shuffle::{self, Random};

/// A spec in the making, with its kind.
type Document = (&'static str, Value);

fn host() -> impl Strategy<Value = &'static str> {
    select(vec!["a.example", "b.example", "c.default.svc.cluster.local", "*.d.example"])
}

fn destination() -> impl Strategy<Value = Value> {
    let subset = prop::option::of(select(vec!["v1", "v2"]));
    let port = prop::option::of(select(vec![80, 18000]));
    let named = select(vec!["a.example", "b.example", "c", "nowhere.example"]);
    (named, subset, port).prop_map(|(host, subset, port)| {
        let mut destination = json!({"host": host});
        if let Some(subset) = subset {
            destination["subset"] = subset.into();
        }
        if let Some(port) = port {
            destination["port"] = json!({"number": port});
        }
        destination
    })
}

fn port() -> impl Strategy<Value = Value> {
    let protocols = select(vec!["HTTP", "TCP", "TLS", "GRPC", "HTTPS", ""]);
    (select(vec![80, 443, 18000, 18001]), protocols).prop_map(|(number, protocol)| {
        let name = format!("{}-{number}", if protocol.is_empty() { "any" } else { protocol });
        let mut port = json!({"number": number, "name": name.to_lowercase()});
        if !protocol.is_empty() {
            port["protocol"] = protocol.into();
        }
        port
    })
}

/// Ports with different numbers.
fn ports() -> impl Strategy<Value = Vec<Value>> {
    vec(port(), 1..4).prop_map(|mut ports| {
        ports.sort_by_key(|port| port["number"].as_u64());
        ports.dedup_by_key(|port| port["number"].clone());
        ports
    })
}

fn service_entry() -> impl Strategy<Value = Document> {
    let address = prop::option::of(select(vec!["10.0.0.1", "10.0.0.2", "10.0.1.0/24"]));
    let resolution = select(vec!["STATIC", "DNS", "NONE", "select"]);
    (host(), ports(), resolution, address, 0u8..4).prop_map(
        |(host, ports, resolution, address, n_endpoints)| {
            let mut spec = json!({"hosts": [host], "ports": ports, "resolution": resolution});
            // Networks need endpoints that are addresses.
            if let Some(address) = address.filter(|a| !(a.contains('/') && resolution == "DNS")) {
                spec["addresses"] = json!([address]);
            }
            match resolution {
                "select" => {
                    spec["resolution"] = "STATIC".into();
                    spec["workloadSelector"] = json!({"labels": {"app": "a"}});
                }
                "NONE" => {}
                _ if resolution == "DNS" && host.starts_with('*') => {
                    spec["resolution"] = "NONE".into();
                }
                _ => {
                    let endpoint = |n| {
                        json!({
                            "address": format!("127.1.0.{}", n + 1),
                            "labels": {"version": format!("v{}", n % 2 + 1)},
                            "locality": format!("region-{}", n % 3),
                        })
                    };
                    spec["endpoints"] = (0..n_endpoints).map(endpoint).collect();
                }
            }
            ("ServiceEntry", spec)
        },
    )
}

fn workload_entry() -> impl Strategy<Value = Document> {
    (1u8..5, select(vec!["a", "b"]), select(vec!["v1", "v2"])).prop_map(|(n, app, version)| {
        let labels = json!({"app": app, "version": version});
        ("WorkloadEntry", json!({"address": format!("127.1.1.{n}"), "labels": labels}))
    })
}

fn virtual_service() -> impl Strategy<Value = Document> {
    let prefix = select(vec!["/", "/x", "/x/y"]);
    let rule = (prefix, vec(destination(), 1..3)).prop_map(|(prefix, destinations)| {
        let weighted = destinations.into_iter();
        let weighted = weighted.map(|to| json!({"destination": to, "weight": 1}));
        json!({"match": [{"uri": {"prefix": prefix}}], "route": weighted.collect::<Value>()})
    });
    let gateways = subsequence(vec!["mesh", "default/edge", "a/edge", "nowhere"], 0..3);
    (host(), gateways, vec(rule, 1..4), destination(), any::<bool>()).prop_map(
        |(host, gateways, http, to, tcp)| {
            let mut spec = json!({"hosts": [host], "http": http});
            if !gateways.is_empty() {
                spec["gateways"] = json!(gateways);
            }
            if tcp {
                spec["tcp"] = json!([{"route": [{"destination": to}]}]);
                let matches = json!([{"sniHosts": [host]}]);
                spec["tls"] = json!([{"match": matches, "route": [{"destination": to}]}]);
            }
            ("VirtualService", spec)
        },
    )
}

fn destination_rule() -> impl Strategy<Value = Document> {
    let balancer = select(vec!["ROUND_ROBIN", "RANDOM", "LEAST_REQUEST", "PASSTHROUGH"]);
    let subsets = subsequence(vec!["v1", "v2"], 0..=2);
    let tls = select(vec!["DISABLE", "SIMPLE"]);
    (host(), balancer, subsets, tls).prop_map(|(host, balancer, subsets, tls)| {
        let subset = |name: &str| json!({"name": name, "labels": {"version": name}});
        let policy = json!({
            "loadBalancer": {"simple": balancer},
            "outlierDetection": {"consecutive5xxErrors": 3},
            "tls": {"mode": tls},
        });
        let subsets: Value = subsets.into_iter().map(subset).collect();
        ("DestinationRule", json!({"host": host, "trafficPolicy": policy, "subsets": subsets}))
    })
}

fn gateway() -> impl Strategy<Value = Document> {
    let protocol = select(vec!["HTTP", "TCP", "TLS", "HTTPS"]);
    let hosts = subsequence(vec!["a.example", "b.example", "*.d.example", "*"], 1..3);
    let server = (select(vec![18080, 18443]), protocol, hosts);
    let server = server.prop_map(|(number, protocol, hosts)| {
        let port = json!({"number": number, "protocol": protocol});
        let mut server = json!({"port": port, "hosts": hosts});
        if matches!(protocol, "TLS" | "HTTPS") {
            server["tls"] = json!({"mode": "PASSTHROUGH"});
        }
        server
    });
    vec(server, 1..4).prop_map(|mut servers| {
        for (i, server) in servers.iter_mut().enumerate() {
            server["port"]["name"] = format!("p-{i}").into();
        }
        ("Gateway", json!({"servers": servers}))
    })
}

fn sidecar() -> impl Strategy<Value = Document> {
    let hosts = subsequence(vec!["*/a.example", "./*", "default/*", "~/*"], 1..3);
    let selects = prop::option::of(select(vec!["a", "b"]));
    (hosts, selects, any::<bool>()).prop_map(|(hosts, selects, registry_only)| {
        let mut spec = json!({"egress": [{"hosts": hosts}]});
        if let Some(app) = selects {
            spec["workloadSelector"] = json!({"labels": {"app": app}});
        }
        if registry_only {
            spec["outboundTrafficPolicy"] = json!({"mode": "REGISTRY_ONLY"});
        }
        ("Sidecar", spec)
    })
}

/// Documents as text. Gateways have few names, because others refer to them.
fn documents() -> impl Strategy<Value = Vec<String>> {
    let spec = prop_oneof![
        5 => service_entry(),
        2 => workload_entry(),
        4 => virtual_service(),
        2 => destination_rule(),
        2 => gateway(),
        1 => sidecar(),
    ];
    let created = prop::option::of(1u8..4);
    let one = (spec, select(vec!["default", "a"]), created);
    vec(one, 1..14).prop_map(|documents| {
        let mut has_gateway = std::collections::BTreeSet::new();
        let named = documents.into_iter().enumerate();
        named
            .map(|(i, ((kind, spec), namespace, created))| {
                let mut metadata = json!({"name": format!("d{i}"), "namespace": namespace});
                if kind == "Gateway" && has_gateway.insert(namespace) {
                    metadata["name"] = "edge".into();
                }
                if let Some(day) = created {
                    let stamp = format!("2024-01-0{day}T00:00:00Z");
                    metadata["creationTimestamp"] = stamp.into();
                }
                json!({
                    "apiVersion": "networking.istio.io/v1", "kind": kind,
                    "metadata": metadata, "spec": spec,
                })
                .to_string()
            })
            .collect()
    })
}

fn proxies() -> Vec<ProxySpec> {
    let proxy = |name: &str, id: &str, metadata: Value| ProxySpec {
        name: name.to_owned(),
        id: id.to_owned(),
        cluster: "a".to_owned(),
        metadata: metadata.as_object().cloned().unwrap_or_default(),
        locality: "region-1".to_owned(),
    };
    let labels = json!({"LABELS": {"app": "a"}});
    vec![
        proxy("edge", "edge", json!({})),
        proxy("bound", "bound", json!({"TYPE": "sidecar"})),
        proxy("intercepted", "sidecar~127.1.1.1~x.default~default.svc.cluster.local", labels),
        proxy("elsewhere", "sidecar~127.1.1.9~y.a~a.svc.cluster.local", json!({})),
    ]
}

fn everything(input: &Input) -> Vec<Generated> {
    let compiled = input.compile();
    let each = proxies().into_iter().map(|proxy| compiled::generate(&compiled, &proxy));
    each.map(|generated| generated.expect("the nodes are good")).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn order_and_repetition_change_no_byte(documents in documents(), seed in any::<u64>()) {
        let file = SourceFile::new("all.yaml", documents.join("\n---\n"));
        let input = Input { files: vec![file], ..Input::default() };
        let first = everything(&input);
        let again = everything(&input);
        let shuffled = everything(&shuffle::documents(&input, &mut Random(seed)));
        for (i, proxy) in proxies().iter().enumerate() {
            prop_assert_eq!(&first[i].set, &again[i].set, "{}, a second time", proxy.name);
            prop_assert_eq!(&first[i].set, &shuffled[i].set, "{}, shuffled", proxy.name);
        }
    }

    #[test]
    fn what_comes_out_belongs_together(documents in documents()) {
        let file = SourceFile::new("all.yaml", documents.join("\n---\n"));
        let compiled = Input { files: vec![file], ..Input::default() }.compile();
        // Refused documents would make the rest true for nothing.
        let refused = compiled.diagnostics.iter().find(|finding| {
            finding.severity == Severity::Error && finding.code.info().id.starts_with("PF02")
        });
        prop_assert!(refused.is_none(), "{}", diag::concise(&compiled.diagnostics));
        for proxy in proxies() {
            let generated = compiled::generate(&compiled, &proxy).expect("the nodes are good");
            let mut findings = compiled.diagnostics.clone();
            findings.extend(generated.diagnostics);
            let problems = consistency::check(&generated.set, &findings);
            prop_assert!(problems.is_empty(), "{}: {:#?}", proxy.name, problems);
        }
    }
}

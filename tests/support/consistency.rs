//! What must hold for the resources of any proxy: each breaks none of Envoy's rules, and they
//! belong together.
//!
//! It works on the JSON form of the resources, so that it shares nothing with the generators.

use pilotfish::diag::{Code, Diagnostic};
use pilotfish::xds::{ResourceSet, TypeUrl, constraints, json};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is wrong with a set. `findings` are the diagnostics about it: a cluster that a
/// rule names may be missing only when a diagnostic says so.
///
/// A resource that Envoy would refuse is left out before it gets here, with a finding. That finding
/// is what is wrong then: kinds have to refuse, with a place, whatever leads to such a resource.
pub fn check(set: &ResourceSet, findings: &[Diagnostic]) -> Vec<String> {
    let refused = findings.iter().filter(|finding| finding.code == Code::InvalidResource);
    let mut problems: Vec<String> = refused.map(ToString::to_string).collect();
    // And none slips past whoever leaves them out.
    for type_url in TypeUrl::ALL {
        for resource in set.of_type(type_url) {
            for violation in constraints::check_resource(type_url, resource) {
                problems.push(format!("{} {}: {violation}", type_url.short_name(), resource.name));
            }
        }
    }
    let document = json::set_json(set);
    let names = |key: &str, field: &str| -> BTreeSet<String> {
        items(&document, key).filter_map(|r| r[field].as_str()).map(str::to_owned).collect()
    };
    let clusters = names("clusters", "name");
    same(
        &eds_names(&document),
        &names("endpoints", "cluster_name"),
        "an EDS cluster without endpoints resource",
        "an endpoints resource that no cluster asks for",
        &mut problems,
    );
    let mut named = Named::default();
    items(&document, "listeners").for_each(|listener| named.walk(listener));
    items(&document, "routes").for_each(|route| named.walk(route));
    let mut by_clusters = Named::default();
    items(&document, "clusters").for_each(|cluster| by_clusters.walk(cluster));
    named.secrets.extend(by_clusters.secrets);
    same(
        &named.routes,
        &names("routes", "name"),
        "a route configuration that a listener names is missing",
        "a route configuration that no listener names",
        &mut problems,
    );
    same(
        &named.secrets,
        &names("secrets", "name"),
        "a secret that is referred to is missing",
        "a secret that nothing refers to",
        &mut problems,
    );
    for missing in named.clusters.difference(&clusters) {
        if !explained(missing, findings) {
            problems.push(format!("cluster {missing} is used, missing, and no diagnostic says so"));
        }
    }
    problems.extend(shared_addresses(&document));
    problems
}

fn items<'d>(document: &'d Value, key: &str) -> impl Iterator<Item = &'d Value> {
    document[key].as_array().into_iter().flatten()
}

/// Under which names the clusters ask for endpoints.
fn eds_names(document: &Value) -> BTreeSet<String> {
    items(document, "clusters")
        .filter(|cluster| cluster["type"] == "EDS")
        .filter_map(|cluster| {
            cluster["eds_cluster_config"]["service_name"].as_str().or(cluster["name"].as_str())
        })
        .map(str::to_owned)
        .collect()
}

/// The names that resources use.
#[derive(Default)]
struct Named {
    clusters: BTreeSet<String>,
    routes: BTreeSet<String>,
    secrets: BTreeSet<String>,
}

impl Named {
    fn walk(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                if let (Some(name), true) =
                    (fields.get("name").and_then(Value::as_str), fields.contains_key("sds_config"))
                {
                    self.secrets.insert(name.to_owned());
                }
                let of_tcp = fields.get("@type").and_then(Value::as_str);
                if of_tcp.is_some_and(|name| name.ends_with(".TcpProxy")) {
                    // Destinations of `tcp` and `tls` rules that a proxy has no cluster for are not
                    // told at generation, unlike those of `http` rules; Envoy resets the
                    // connections.
                    return;
                }
                for (key, value) in fields {
                    match (key.as_str(), value) {
                        // Free for anyone's use.
                        ("metadata" | "filter_metadata", _) => {}
                        ("route_config_name", Value::String(name)) => {
                            self.routes.insert(name.clone());
                        }
                        ("cluster", Value::String(name)) => {
                            self.clusters.insert(name.clone());
                        }
                        ("weighted_clusters", value) => {
                            let parts = value["clusters"].as_array().into_iter().flatten();
                            let names = parts.filter_map(|part| part["name"].as_str());
                            self.clusters.extend(names.map(str::to_owned));
                            self.walk(value);
                        }
                        (_, value) => self.walk(value),
                    }
                }
            }
            Value::Array(values) => values.iter().for_each(|value| self.walk(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn same(
    wanted: &BTreeSet<String>,
    there: &BTreeSet<String>,
    missing: &str,
    superfluous: &str,
    problems: &mut Vec<String>,
) {
    problems.extend(wanted.difference(there).map(|name| format!("{missing}: {name}")));
    problems.extend(there.difference(wanted).map(|name| format!("{superfluous}: {name}")));
}

/// Whether a finding tells the user about the destination of this cluster.
fn explained(cluster: &str, findings: &[Diagnostic]) -> bool {
    let host = cluster.rsplit('|').next().unwrap_or(cluster);
    let quoted = format!("'{host}'");
    findings.iter().any(|finding| finding.message.contains(&quoted))
}

/// Two listeners on one address.
fn shared_addresses(document: &Value) -> Vec<String> {
    let mut seen: BTreeMap<String, &str> = BTreeMap::new();
    let mut problems = Vec::new();
    for listener in items(document, "listeners") {
        let name = listener["name"].as_str().unwrap_or_default();
        let more = listener["additional_addresses"].as_array().into_iter().flatten();
        let addresses = std::iter::once(&listener["address"]).chain(more.map(|a| &a["address"]));
        for address in addresses {
            if let Some(other) = seen.insert(address.to_string(), name) {
                problems.push(format!("listeners {other} and {name} share the address {address}"));
            }
        }
    }
    problems
}

//! What a cluster says about itself: statistics names and metadata, as Istio writes them.

use super::outbound::Upstream;
use crate::generate::names;
use crate::model::{ClientTlsMode, Location, MeshSettings, Service, ServicePort};
use crate::xds::pb;
use std::collections::HashMap;

/// Statistics name of an outbound cluster.
pub(super) fn outbound_stat_name(mesh: &MeshSettings, upstream: &Upstream<'_>) -> String {
    let pattern = &mesh.outbound_cluster_stat_name;
    if pattern.is_empty() {
        return names::alt_stat_name(&upstream.name);
    }
    let subset = upstream.subset.map_or("", |s| &*s.name);
    // Outbound clusters have no one target port; Istio writes 0.
    expand(pattern, upstream.service, upstream.port, subset, 0)
}

/// Statistics name of an inbound cluster.
pub(super) fn inbound_stat_name(
    mesh: &MeshSettings,
    cluster: &str,
    target: Option<(&Service, &ServicePort, u16)>,
) -> String {
    match (&*mesh.inbound_cluster_stat_name, target) {
        ("", _) | (_, None) => names::alt_stat_name(cluster),
        (pattern, Some((service, port, target_port))) => {
            expand(pattern, service, port, "", target_port)
        }
    }
}

fn expand(
    pattern: &str,
    service: &Service,
    port: &ServicePort,
    subset: &str,
    target_port: u16,
) -> String {
    let expanded = pattern
        // `%SERVICE%` is no part of the longer names because of its closing sign.
        .replace("%SERVICE%", &service.hostname)
        .replace("%SERVICE_NAME%", &service.hostname)
        .replace("%SERVICE_FQDN%", &service.hostname)
        .replace("%SERVICE_PORT%", &port.number.to_string())
        .replace("%SERVICE_PORT_NAME%", &port.name)
        .replace("%SUBSET_NAME%", subset)
        .replace("%TARGET_PORT%", &target_port.to_string());
    names::alt_stat_name(&expanded)
}

/// Metadata of an outbound cluster.
pub(super) fn outbound_metadata(upstream: &Upstream<'_>) -> pb::core::Metadata {
    let mut fields = vec![("services", services([upstream.service]))];
    if upstream.service.location == Location::MeshExternal && upstream.subset.is_none() {
        fields.push(("external", pb::boolean(true)));
    }
    if let Some(rule) = upstream.rule {
        let name = &rule.origin.name;
        let path = names::config_path("destination-rule", &name.namespace, &name.name);
        fields.push(("config", pb::string(path)));
    }
    if let Some(subset) = upstream.subset {
        fields.push(("subset", pb::string(&*subset.name)));
    }
    match upstream.policy.tls.map(|tls| tls.mode) {
        Some(ClientTlsMode::Simple | ClientTlsMode::Mutual) => {
            fields.push(("alpn_override", pb::string("false")));
        }
        Some(ClientTlsMode::Disable | ClientTlsMode::IstioMutual) | None => {}
    }
    istio(fields)
}

/// Metadata of an inbound cluster.
pub(super) fn inbound_metadata<'a>(
    of: impl IntoIterator<Item = &'a Service>,
) -> pb::core::Metadata {
    istio(vec![("services", services(of))])
}

fn services<'a>(services: impl IntoIterator<Item = &'a Service>) -> pb::Value {
    pb::list(services.into_iter().map(|service| {
        pb::nested(pb::object([
            ("host", pb::string(service.hostname.as_str())),
            ("name", pb::string(service.hostname.as_str())),
            ("namespace", pb::string(service.namespace.as_str())),
        ]))
    }))
}

fn istio(fields: Vec<(&str, pb::Value)>) -> pb::core::Metadata {
    pb::core::Metadata {
        filter_metadata: HashMap::from([("istio".to_owned(), pb::object(fields))]),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::service;
    use crate::model::Protocol;

    #[test]
    fn a_pattern_is_expanded_and_closed() {
        let service = service("a.b.c", &[(80, Protocol::Http)]);
        let pattern = "%SERVICE%_%SERVICE_PORT%_%SERVICE_PORT_NAME%_%SUBSET_NAME%_%TARGET_PORT%";
        let name = expand(pattern, &service, &service.ports[0], "v1", 8080);
        assert_eq!(name, "a.b.c_80_p80_v1_8080;");
    }
}

//! What a cluster says about itself: statistics names and the facts of its metadata, as Istio
//! writes them.

use super::Policy;
use crate::generate::names;
use crate::model::{
    ClientTlsMode, DestinationRule, Hostname, Location, MeshSettings, Namespace, Service,
    ServicePort, Subset,
};
use std::sync::Arc;

/// The facts of a cluster's metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// The services behind it.
    pub services: Vec<(Hostname, Namespace)>,
    /// Whether it stands for a service outside the mesh.
    pub is_external: bool,
    /// The path of the DestinationRule that shaped it.
    pub config: Option<String>,
    /// The subset that it stands for.
    pub subset: Option<Arc<str>>,
    /// Whether TLS is the user's own, so that nobody may put Istio's protocols into it.
    pub keeps_alpn: bool,
}

impl About {
    /// The facts of an outbound cluster.
    pub(super) fn outbound(
        service: &Service,
        rule: Option<&DestinationRule>,
        subset: Option<&Subset>,
        policy: &Policy<'_>,
    ) -> About {
        let config = rule.map(|rule| {
            let name = &rule.origin.name;
            names::config_path("destination-rule", &name.namespace, &name.name)
        });
        About {
            services: vec![identity(service)],
            is_external: service.location == Location::MeshExternal && subset.is_none(),
            config,
            subset: subset.map(|subset| subset.name.clone()),
            keeps_alpn: match policy.tls.map(|tls| tls.mode) {
                Some(ClientTlsMode::Simple | ClientTlsMode::Mutual) => true,
                Some(ClientTlsMode::Disable | ClientTlsMode::IstioMutual) | None => false,
            },
        }
    }

    /// The facts of an inbound cluster.
    pub(super) fn inbound<'a>(services: impl Iterator<Item = &'a Service>) -> About {
        About { services: services.map(identity).collect(), ..Default::default() }
    }
}

fn identity(service: &Service) -> (Hostname, Namespace) {
    (service.hostname.clone(), service.namespace.clone())
}

/// Statistics name of an outbound cluster.
pub(super) fn outbound_stat_name(
    mesh: &MeshSettings,
    cluster: &str,
    service: &Service,
    port: &ServicePort,
    subset: &str,
) -> String {
    match &*mesh.outbound_cluster_stat_name {
        "" => names::alt_stat_name(cluster),
        // Outbound clusters have no one target port; Istio writes 0.
        pattern => expand(pattern, service, port, subset, 0),
    }
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

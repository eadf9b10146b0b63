//! Kinds of Istio, the Gateway API and Kubernetes that mean something to a mesh and nothing to
//! pilotfish yet: a document of one gives a warning, so that nobody believes it to be in force.

use crate::config::{Field, Findings};
use crate::diag::Code;

/// A kind that exists, but is not read.
#[derive(Debug, Clone, Copy)]
pub(super) struct NotYet {
    pub group: &'static str,
    /// The version that a correction suggests; documents of any version are meant.
    pub version: &'static str,
    pub kind: &'static str,
    without: Without,
}

/// What is missing where such a document counts for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    /// A setting or a route.
    Effect,
    /// Protection that somebody may rely on.
    Protection,
}

const fn effect(group: &'static str, version: &'static str, kind: &'static str) -> NotYet {
    NotYet { group, version, kind, without: Without::Effect }
}

const fn protection(group: &'static str, version: &'static str, kind: &'static str) -> NotYet {
    NotYet { group, version, kind, without: Without::Protection }
}

const GATEWAY_API: &str = "gateway.networking.k8s.io";

/// Every such kind.
pub(super) const NOT_YET: &[NotYet] = &[
    protection("security.istio.io", "v1", "AuthorizationPolicy"),
    protection("security.istio.io", "v1", "PeerAuthentication"),
    protection("security.istio.io", "v1", "RequestAuthentication"),
    effect("networking.istio.io", "v1alpha3", "EnvoyFilter"),
    effect("networking.istio.io", "v1", "WorkloadGroup"),
    effect("networking.istio.io", "v1beta1", "ProxyConfig"),
    effect("telemetry.istio.io", "v1", "Telemetry"),
    effect("extensions.istio.io", "v1alpha1", "WasmPlugin"),
    effect(GATEWAY_API, "v1", "Gateway"),
    effect(GATEWAY_API, "v1", "GatewayClass"),
    effect(GATEWAY_API, "v1", "HTTPRoute"),
    effect(GATEWAY_API, "v1", "GRPCRoute"),
    effect(GATEWAY_API, "v1", "TLSRoute"),
    effect(GATEWAY_API, "v1alpha2", "TCPRoute"),
    effect(GATEWAY_API, "v1alpha2", "UDPRoute"),
    effect(GATEWAY_API, "v1", "ListenerSet"),
    effect(GATEWAY_API, "v1beta1", "ReferenceGrant"),
    effect(GATEWAY_API, "v1", "BackendTLSPolicy"),
    effect("", "v1", "Service"),
    effect("discovery.k8s.io", "v1", "EndpointSlice"),
];

/// Says that the document counts for nothing.
pub(super) fn warn(row: &NotYet, f: &mut Findings<'_>) {
    let kind = row.kind;
    let message = match row.without {
        Without::Effect => format!("{kind} is not supported yet; it has no effect"),
        Without::Protection => {
            format!(
                "{kind} is not supported yet; it has no effect: nothing that it demands is enforced"
            )
        }
    };
    f.warn(&Field::root("kind"), Code::NotSupported, message);
}

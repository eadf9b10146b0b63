//! The xDS types that we serve.

use std::fmt;

/// An xDS resource type. The order of the variants is the push order (make before break):
/// clusters before their endpoints, listeners before their routes, secrets last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TypeUrl {
    /// CDS.
    Cluster,
    /// EDS.
    Endpoint,
    /// LDS.
    Listener,
    /// RDS.
    Route,
    /// SDS.
    Secret,
}

impl TypeUrl {
    /// Every type, in push order.
    pub const ALL: [TypeUrl; 5] =
        [TypeUrl::Cluster, TypeUrl::Endpoint, TypeUrl::Listener, TypeUrl::Route, TypeUrl::Secret];

    /// The type URL as it stands in requests and responses.
    pub fn as_str(self) -> &'static str {
        match self {
            TypeUrl::Cluster => "type.googleapis.com/envoy.config.cluster.v3.Cluster",
            TypeUrl::Endpoint => {
                "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
            }
            TypeUrl::Listener => "type.googleapis.com/envoy.config.listener.v3.Listener",
            TypeUrl::Route => "type.googleapis.com/envoy.config.route.v3.RouteConfiguration",
            TypeUrl::Secret => {
                "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
            }
        }
    }

    /// The type with this URL, if we serve it.
    pub fn parse(url: &str) -> Option<TypeUrl> {
        TypeUrl::ALL.into_iter().find(|t| t.as_str() == url)
    }

    /// istiod's short name, as used in metrics, flags and logs: `cds`, `eds`, …
    pub fn short_name(self) -> &'static str {
        match self {
            TypeUrl::Cluster => "cds",
            TypeUrl::Endpoint => "eds",
            TypeUrl::Listener => "lds",
            TypeUrl::Route => "rds",
            TypeUrl::Secret => "sds",
        }
    }

    /// The plural noun used as a key in dumps: `clusters`, `endpoints`, …
    pub fn plural(self) -> &'static str {
        match self {
            TypeUrl::Cluster => "clusters",
            TypeUrl::Endpoint => "endpoints",
            TypeUrl::Listener => "listeners",
            TypeUrl::Route => "routes",
            TypeUrl::Secret => "secrets",
        }
    }

    /// Whether a client may ask for "all of them": true for CDS and LDS only
    /// (xDS protocol, "How the client specifies what resources to return").
    pub fn supports_wildcard(self) -> bool {
        match self {
            TypeUrl::Cluster | TypeUrl::Listener => true,
            TypeUrl::Endpoint | TypeUrl::Route | TypeUrl::Secret => false,
        }
    }
}

impl fmt::Display for TypeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::TypeUrl;

    #[test]
    fn every_url_parses_back() {
        for t in TypeUrl::ALL {
            assert_eq!(TypeUrl::parse(t.as_str()), Some(t));
        }
        assert_eq!(TypeUrl::parse("type.googleapis.com/x"), None);
    }
}

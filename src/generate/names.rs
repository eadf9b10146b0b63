//! The one place that makes and reads resource names. They are Istio's, so that dashboards, habits
//! and EnvoyFilters carry over.

use crate::model::Namespace;

/// The cluster that swallows what must not go on.
pub const BLACK_HOLE: &str = "BlackHoleCluster";
/// The cluster that dials the original destination of outbound traffic.
pub const PASSTHROUGH: &str = "PassthroughCluster";
/// The cluster that dials the original destination of inbound traffic.
pub const INBOUND_PASSTHROUGH: &str = "InboundPassthroughCluster";
/// The route configuration of the HTTP forward proxy listener.
pub const HTTP_PROXY_ROUTE: &str = "http_proxy";

/// Which way traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// To the workload.
    Inbound,
    /// From the workload, or through a gateway.
    Outbound,
}

/// `outbound|80|v1|reviews.default.svc.cluster.local`.
pub fn outbound_cluster(port: u16, subset: &str, host: &str) -> String {
    format!("outbound|{port}|{subset}|{host}")
}

/// `inbound|8080||`.
pub fn inbound_cluster(target_port: u16) -> String {
    format!("inbound|{target_port}||")
}

/// Takes a cluster name apart into direction, port, subset and host.
pub fn parse_cluster(name: &str) -> Option<(Direction, u16, &str, &str)> {
    let mut parts = name.splitn(4, '|');
    let direction = match parts.next()? {
        "outbound" => Direction::Outbound,
        "inbound" => Direction::Inbound,
        _ => return None,
    };
    let port = parts.next()?.parse().ok()?;
    Some((direction, port, parts.next()?, parts.next()?))
}

/// `0.0.0.0_8080`; a Unix socket is `unix:///path_0`.
pub fn listener(bind: &str, port: u16) -> String {
    format!("{bind}_{port}")
}

/// `http.8080`, with the bind address when there is one.
pub fn gateway_http_route(resolved_port: u16, bind: Option<&str>) -> String {
    match bind {
        None => format!("http.{resolved_port}"),
        Some(bind) => format!("http.{resolved_port}.{bind}"),
    }
}

/// `https.443.https.gateway.default`, with the bind address when there is one. The port is the
/// declared one.
pub fn gateway_https_route(
    port: u16,
    port_name: &str,
    gateway: &str,
    namespace: &str,
    bind: Option<&str>,
) -> String {
    match bind {
        None => format!("https.{port}.{port_name}.{gateway}.{namespace}"),
        Some(bind) => format!("https.{port}.{port_name}.{gateway}.{namespace}.{bind}"),
    }
}

/// `reviews.default.svc.cluster.local:80`; IPv6 hosts are bracketed.
pub fn virtual_host(host: &str, port: u16) -> String {
    format!("{}:{port}", domain(host))
}

/// The host as a domain of a virtual host: IPv6 addresses get brackets.
pub fn domain(host: &str) -> String {
    if host.parse::<std::net::Ipv6Addr>().is_ok() { format!("[{host}]") } else { host.to_owned() }
}

/// The name of a secret: `kubernetes://<name>` for one of the proxy's own namespace,
/// `kubernetes-gateway://<namespace>/<name>` for that of another.
pub fn secret(proxy: &Namespace, owner: &Namespace, name: &str) -> String {
    if proxy == owner {
        format!("kubernetes://{name}")
    } else {
        format!("kubernetes-gateway://{owner}/{name}")
    }
}

/// The name of the CA part of a secret.
pub fn secret_ca(proxy: &Namespace, owner: &Namespace, name: &str) -> String {
    format!("{}-cacert", secret(proxy, owner, name))
}

/// The metadata that tells which document a route or cluster comes from, as istioctl reads it.
pub fn config_path(kind: &str, namespace: &str, name: &str) -> String {
    format!("/apis/networking.istio.io/v1/namespaces/{namespace}/{kind}/{name}")
}

/// Statistics name of a cluster: Istio's default ends with `;` so that the name cannot be split.
pub fn alt_stat_name(cluster: &str) -> String {
    format!("{cluster};")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cluster_names_parse_back() {
        let name = outbound_cluster(80, "v1", "reviews.default");
        assert_eq!(parse_cluster(&name), Some((Direction::Outbound, 80, "v1", "reviews.default")));
        assert_eq!(parse_cluster(&inbound_cluster(8080)), Some((Direction::Inbound, 8080, "", "")));
        assert_eq!(parse_cluster(PASSTHROUGH), None);
        assert_eq!(parse_cluster("outbound|x||h"), None);
    }

    #[test]
    fn ipv6_hosts_are_bracketed() {
        assert_eq!(virtual_host("fd00::1", 80), "[fd00::1]:80");
        assert_eq!(virtual_host("a.b", 80), "a.b:80");
    }
}

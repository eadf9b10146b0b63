//! The names by which a virtual host is asked for.

use crate::generate::{Viewer, names};
use crate::model::{Address, Service};

/// One domain of a virtual host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// As Envoy compares it.
    pub text: String,
    /// The short form of a longer name. A service that really has this name comes first.
    pub is_short: bool,
}

/// Whether clients write the port after the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PortForm {
    /// It is ignored: the route configuration is that of one port.
    Ignored,
    /// It tells services apart; it may be left out because it is HTTP's own.
    Optional(u16),
    /// It tells services apart and must be there.
    Required(u16),
}

impl PortForm {
    /// The form for a port of a route configuration that serves many.
    pub fn of_shared(port: u16) -> PortForm {
        match port {
            80 => PortForm::Optional(80),
            port => PortForm::Required(port),
        }
    }

    fn spell(self, host: &Domain) -> Vec<Domain> {
        let with = |port| Domain { text: format!("{}:{port}", host.text), ..host.clone() };
        match self {
            PortForm::Ignored => vec![host.clone()],
            PortForm::Optional(port) => vec![host.clone(), with(port)],
            PortForm::Required(port) => vec![with(port)],
        }
    }
}

/// The domains of a service for a proxy of some DNS domain: its name with and without final dot,
/// its short names, its addresses.
pub fn of_service(service: &Service, view: &Viewer<'_>, form: PortForm) -> Vec<Domain> {
    let host = &*service.hostname;
    let full = |text: String| Domain { text, is_short: false };
    let mut domains = vec![full(names::domain(host))];
    if host.parse::<std::net::IpAddr>().is_err() && host != "*" {
        domains.push(full(format!("{host}.")));
    }
    let short = short_names(host, view);
    domains.extend(short.into_iter().map(|text| Domain { text, is_short: true }));
    domains.extend(service.addresses.iter().filter_map(|address| match address {
        Address::Ip(ip) if ip.is_unspecified() => None,
        Address::Ip(ip) => Some(full(names::domain(&ip.to_string()))),
        Address::Cidr(_) => None,
    }));
    domains.iter().flat_map(|domain| form.spell(domain)).collect()
}

/// The domains of a host that only a VirtualService knows: just the host.
pub fn of_host(host: &str, form: PortForm) -> Vec<Domain> {
    form.spell(&Domain { text: names::domain(host), is_short: false })
}

/// How applications beside this proxy may shorten a host. In a domain like Kubernetes' the
/// namespace may be left out inside it; elsewhere what both have in common may.
fn short_names(host: &str, view: &Viewer<'_>) -> Vec<String> {
    if let Some(cluster) = view.cluster_domain() {
        let Some(short) = host.strip_suffix(cluster) else { return Vec::new() };
        let Some((name, namespace)) = short.split_once('.') else { return Vec::new() };
        let with_svc = format!("{short}.svc");
        // Only now the proxy's namespace matters, so that hosts of other forms are shared by all.
        let own_namespace = view.domain().strip_suffix(cluster);
        return if Some(namespace) == own_namespace {
            vec![name.to_owned(), with_svc, short.to_owned()]
        } else {
            vec![short.to_owned(), with_svc]
        };
    }
    let labels: Vec<&str> = host.split('.').collect();
    let shared = labels
        .iter()
        .rev()
        .zip(view.domain().rsplit('.'))
        .take_while(|(host, proxy)| *host == proxy)
        .count();
    let (unique, common) = labels.split_at(labels.len() - shared);
    match (unique, common) {
        (_, []) | ([], _) => Vec::new(),
        ([_, _], [first, ..]) => {
            let unique = unique.join(".");
            let longer = format!("{unique}.{first}");
            vec![unique, longer]
        }
        (unique, _) => vec![unique.join(".")],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::{in_domain, service};

    #[test]
    fn short_names_follow_the_proxys_domain() {
        let kube = "default.svc.cluster.local";
        for (host, domain, expected) in [
            ("a.default.svc.cluster.local", kube, vec!["a", "a.default.svc", "a.default"]),
            ("a.other.svc.cluster.local", kube, vec!["a.other", "a.other.svc"]),
            ("a.default.svc.other.local", kube, vec![]),
            ("example.com", kube, vec![]),
            ("svc.cluster.local", kube, vec![]),
            ("a.b.local.net", "local.net", vec!["a.b", "a.b.local"]),
            ("a.local.net", "local.net", vec!["a"]),
            ("a.b.c.local.net", "x.net", vec!["a.b.c.local"]),
            ("local.net", "local.net", vec![]),
            ("example.com", "local.net", vec![]),
        ] {
            let view = in_domain(domain);
            assert_eq!(short_names(host, &Viewer::new(&view)), expected, "{host} for {domain}");
        }
    }

    #[test]
    fn addresses_are_domains_too() {
        let mut service = service("a.com", &[]);
        service.addresses = ["10.0.0.1", "fd00::1", "0.0.0.0"]
            .iter()
            .map(|ip| Address::Ip(ip.parse().unwrap()))
            .collect();
        let view = in_domain("x.net");
        let texts = |form| -> Vec<String> {
            of_service(&service, &Viewer::new(&view), form).into_iter().map(|d| d.text).collect()
        };
        assert_eq!(texts(PortForm::Ignored), ["a.com", "a.com.", "10.0.0.1", "[fd00::1]"]);
        assert_eq!(
            texts(PortForm::of_shared(8080)),
            ["a.com:8080", "a.com.:8080", "10.0.0.1:8080", "[fd00::1]:8080"]
        );
        assert_eq!(texts(PortForm::of_shared(80)).len(), 8);
    }

    #[test]
    fn an_address_as_host_has_no_final_dot() {
        let view = in_domain("x.net");
        let service = service("10.0.0.1", &[]);
        let texts: Vec<_> = of_service(&service, &Viewer::new(&view), PortForm::Ignored);
        assert_eq!(texts, of_host("10.0.0.1", PortForm::Ignored));
        assert_eq!(of_host("fd00::1", PortForm::Ignored)[0].text, "[fd00::1]");
    }
}

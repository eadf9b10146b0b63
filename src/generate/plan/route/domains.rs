//! The names by which a virtual host is asked for.

use crate::generate::{Viewer, names};
use crate::model::{Address, Service};
use std::sync::Arc;

/// One domain of a virtual host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    /// As Envoy compares it, in lower case.
    pub text: Arc<str>,
    /// The short form of a longer name. A service that really has this name comes first.
    pub is_short: bool,
}

impl Domain {
    pub(super) fn full(text: &str) -> Domain {
        Domain { text: text.to_ascii_lowercase().into(), is_short: false }
    }

    /// The name without the port that may follow it.
    pub(super) fn host(&self) -> &str {
        self.text.split_once(':').map_or(&self.text, |(host, _)| host)
    }
}

/// Whether clients write the port after the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum PortForm {
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
        let with = |port| Domain { text: format!("{}:{port}", host.text).into(), ..host.clone() };
        match self {
            PortForm::Ignored => vec![host.clone()],
            PortForm::Optional(port) => vec![host.clone(), with(port)],
            PortForm::Required(port) => vec![with(port)],
        }
    }
}

/// How applications beside a proxy may shorten a host, as far as it matters: proxies of many
/// namespaces agree in it for almost every host, and so share what is made of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum ShortForm {
    /// Not at all.
    None,
    /// The host ends with a domain like Kubernetes' of this length. Inside the own namespace that
    /// may be left out too.
    Cluster { length: usize, own_namespace: bool },
    /// The last labels, that many, are the proxy's own and may be left out.
    Labels(usize),
}

impl ShortForm {
    /// How a host may be shortened beside this proxy.
    pub fn of(host: &str, view: &Viewer<'_>) -> ShortForm {
        if let Some(cluster) = view.cluster_domain() {
            let short = host.strip_suffix(cluster);
            let Some((_, namespace)) = short.and_then(|short| short.split_once('.')) else {
                return ShortForm::None;
            };
            // Only now the proxy's namespace matters, so that hosts of other forms are shared by
            // all.
            let own_namespace = view.domain().strip_suffix(cluster) == Some(namespace);
            return ShortForm::Cluster { length: cluster.len(), own_namespace };
        }
        let labels = host.rsplit('.').zip(view.domain().rsplit('.'));
        match labels.take_while(|(host, proxy)| host == proxy).count() {
            0 => ShortForm::None,
            shared => ShortForm::Labels(shared),
        }
    }

    fn names(self, host: &str) -> Vec<String> {
        match self {
            ShortForm::None => Vec::new(),
            ShortForm::Cluster { length, own_namespace } => {
                let short = host.get(..host.len().saturating_sub(length)).unwrap_or_default();
                let with_svc = format!("{short}.svc");
                match short.split_once('.') {
                    Some((name, _)) if own_namespace => {
                        vec![name.to_owned(), with_svc, short.to_owned()]
                    }
                    _ => vec![short.to_owned(), with_svc],
                }
            }
            ShortForm::Labels(shared) => {
                let labels: Vec<&str> = host.split('.').collect();
                let (unique, common) = labels.split_at(labels.len().saturating_sub(shared));
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
        }
    }
}

/// The domains of a service: its name with and without final dot, its short names, its addresses.
pub(super) fn of_service(service: &Service, short: ShortForm, form: PortForm) -> Vec<Domain> {
    let host = &*service.hostname;
    let mut domains = vec![Domain::full(&names::domain(host))];
    if host.parse::<std::net::IpAddr>().is_err() && host != "*" {
        domains.push(Domain::full(&format!("{host}.")));
    }
    let short = short.names(host).into_iter();
    domains.extend(short.map(|text| Domain { is_short: true, ..Domain::full(&text) }));
    domains.extend(service.addresses.iter().filter_map(|address| match address {
        Address::Ip(ip) if ip.is_unspecified() => None,
        Address::Ip(ip) => Some(Domain::full(&names::domain(&ip.to_string()))),
        Address::Cidr(_) => None,
    }));
    domains.iter().flat_map(|domain| form.spell(domain)).collect()
}

/// The domains of a host that only a VirtualService knows: just the host.
pub(super) fn of_host(host: &str, form: PortForm) -> Vec<Domain> {
    form.spell(&Domain::full(&names::domain(host)))
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
            let short = ShortForm::of(host, &Viewer::new(&view));
            assert_eq!(short.names(host), expected, "{host} for {domain}");
        }
    }

    #[test]
    fn proxies_of_other_namespaces_agree_in_how_a_host_is_shortened() {
        let of = |domain: &str| {
            ShortForm::of("a.ns.svc.cluster.local", &Viewer::new(&in_domain(domain)))
        };
        assert_eq!(of("x.svc.cluster.local"), of("y.svc.cluster.local"));
        assert_ne!(of("x.svc.cluster.local"), of("ns.svc.cluster.local"));
    }

    #[test]
    fn addresses_are_domains_too() {
        let mut service = service("a.com", &[]);
        service.addresses = ["10.0.0.1", "fd00::1", "0.0.0.0"]
            .iter()
            .map(|ip| Address::Ip(ip.parse().unwrap()))
            .collect();
        let texts = |form| -> Vec<String> {
            let domains = of_service(&service, ShortForm::None, form);
            domains.into_iter().map(|d| d.text.to_string()).collect()
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
        let service = service("10.0.0.1", &[]);
        let domains = of_service(&service, ShortForm::None, PortForm::Ignored);
        assert_eq!(domains, of_host("10.0.0.1", PortForm::Ignored));
        assert_eq!(&*of_host("fd00::1", PortForm::Ignored)[0].text, "[fd00::1]");
    }
}

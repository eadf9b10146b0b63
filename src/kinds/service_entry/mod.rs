//! ServiceEntry: hosts, their ports, and where their endpoints are.

#[cfg(test)]
mod tests;

use super::kind::About;
use super::workload_entry::{Addresses, WorkloadSpec};
use super::{Draft, Kind, KindSpec, ServiceEntryDraft, Unsupported, rules, values};
use crate::config::{Field, Findings, RawDocument};
use crate::diag::{Code, Diagnostic};
use crate::model::{
    Address, Hostname, Labels, Location, MeshSettings, Namespace, Protocol, Resolution,
    ServicePort, Visibility,
};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

/// With this label set to `false` Istio gives the service no virtual address of its own accord.
const AUTO_ALLOCATE: &str = "networking.istio.io/enable-autoallocate-ip";

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

/// Services that are not in any registry.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ServiceEntry")]
pub struct Spec {
    /// DNS names of the service; `*` may stand for the first labels.
    pub hosts: Vec<String>,
    /// Virtual IP addresses or networks of the service.
    #[serde(default)]
    pub addresses: Vec<String>,
    /// Ports that clients use.
    #[serde(default)]
    pub ports: Vec<Port>,
    /// Whether the service is part of the mesh.
    #[serde(default)]
    pub location: LocationName,
    /// How the addresses of endpoints are found.
    #[serde(default)]
    pub resolution: ResolutionName,
    /// Endpoints of the service.
    #[serde(default)]
    pub endpoints: Vec<WorkloadSpec>,
    /// WorkloadEntries of the same namespace that are its endpoints.
    pub workload_selector: Option<values::WorkloadSelector>,
    /// Namespaces that see the service: names, `.`, `*` or `~`.
    #[serde(default)]
    pub export_to: Vec<String>,
    /// Names of which the servers' certificates must have one.
    #[serde(default)]
    pub subject_alt_names: Vec<String>,
}

/// One port of a service.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Port {
    /// The number that clients use.
    #[schemars(range(min = 1))]
    pub number: u16,
    /// What is spoken, such as HTTP, GRPC, TLS or TCP; sniffed when unset.
    #[serde(default)]
    pub protocol: String,
    /// Name of the port.
    pub name: String,
    /// Port of the endpoints, when it is another one.
    #[serde(default)]
    pub target_port: u16,
}

/// Whether a service is part of the mesh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum LocationName {
    /// Outside of the mesh.
    #[default]
    MeshExternal,
    /// Part of the mesh.
    MeshInternal,
}

/// How the addresses of endpoints are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ResolutionName {
    /// Connections go where the client wanted to go.
    #[default]
    None,
    /// The addresses written in the endpoints.
    Static,
    /// DNS; all addresses of a name are used.
    Dns,
    /// DNS; one address of a name is used at a time.
    DnsRoundRobin,
    /// DNS of the name that each request asks for.
    DynamicDns,
}

impl ResolutionName {
    fn as_str(self) -> &'static str {
        match self {
            ResolutionName::None => "NONE",
            ResolutionName::Static => "STATIC",
            ResolutionName::Dns => "DNS",
            ResolutionName::DnsRoundRobin => "DNS_ROUND_ROBIN",
            ResolutionName::DynamicDns => "DYNAMIC_DNS",
        }
    }

    fn lower(self) -> Resolution {
        match self {
            ResolutionName::None => Resolution::None,
            ResolutionName::Static => Resolution::Static,
            ResolutionName::Dns => Resolution::Dns,
            ResolutionName::DnsRoundRobin => Resolution::DnsRoundRobin,
            ResolutionName::DynamicDns => Resolution::DynamicDns,
        }
    }
}

/// All that can be said without the mesh's settings.
#[derive(Debug)]
pub(super) struct Share {
    meaning: ServiceEntryDraft,
    /// `None` is the default of the mesh.
    visibility: Option<Visibility>,
}

impl KindSpec for Spec {
    const ABOUT: About = About { unsupported: UNSUPPORTED, ..About::networking("ServiceEntry") };

    type Share = Share;

    fn check(&self, f: &mut Findings<'_>) {
        let at = Field::root("spec");
        self.check_hosts(&at.key("hosts"), f);
        self.check_addresses(&at.key("addresses"), f);
        self.check_ports(&at.key("ports"), f);
        self.check_selector(&at, f);
        match self.resolution {
            ResolutionName::None => self.check_none(&at, f),
            ResolutionName::Static => self.check_endpoints(&at, Addresses::NoNames, f),
            ResolutionName::Dns | ResolutionName::DnsRoundRobin => self.check_dns(&at, f),
            ResolutionName::DynamicDns => self.check_dynamic(&at, f),
        }
        self.check_hosts_can_be_told_apart(&at, f);
        rules::export_to(f, &at.key("exportTo"), &self.export_to, rules::Tilde::Allowed);
    }

    fn lower(&self, document: &RawDocument) -> Option<Share> {
        let header = &document.header;
        let own = Namespace::from(&*header.namespace);
        let at = Field::root("spec");
        let ports = at.key("ports");
        let port = |(index, port): (usize, &Port)| ServicePort {
            number: port.number,
            name: Arc::from(port.name.as_str()),
            protocol: Protocol::parse(&port.protocol),
            target_port: (port.target_port > 0).then_some(port.target_port),
            span: document.span(&ports.index(index)),
        };
        let endpoint =
            |endpoint: &WorkloadSpec| endpoint.lower_endpoint(Labels(endpoint.labels.clone()));
        let meaning = ServiceEntryDraft {
            origin: Self::ABOUT.origin(header),
            labels: Labels(header.labels.clone()),
            hosts: self.hosts.iter().map(|host| Hostname::from(host.as_str())).collect(),
            addresses: self.addresses.iter().filter_map(|text| address(text)).collect(),
            ports: self.ports.iter().enumerate().map(port).collect(),
            location: match self.location {
                LocationName::MeshExternal => Location::MeshExternal,
                LocationName::MeshInternal => Location::MeshInternal,
            },
            resolution: self.resolution.lower(),
            endpoints: self.endpoints.iter().map(endpoint).collect(),
            workload_selector: self.workload_selector.as_ref().map(|s| Labels(s.labels.clone())),
            visibility: Visibility::Public,
            subject_alt_names: self.subject_alt_names.clone(),
            span: document.span(&at),
        };
        Some(Share { meaning, visibility: Visibility::from_export_to(&self.export_to, &own) })
    }

    fn add(share: &Share, mesh: &MeshSettings, draft: &mut Draft) {
        let own = &share.meaning.origin.name.namespace;
        let visibility = share.visibility.clone().unwrap_or_else(|| {
            MeshSettings::default_visibility(&mesh.default_service_visibility, own)
        });
        draft.service_entries.push(ServiceEntryDraft { visibility, ..share.meaning.clone() });
    }
}

impl Spec {
    fn check_hosts(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.hosts.is_empty() {
            f.error(at, Code::MissingField, "at least one host is needed");
        }
        for (index, host) in self.hosts.iter().enumerate() {
            let at = at.index(index);
            if host == "*" {
                let message = "`*` alone is no host of a service";
                let help = "name the domain, as in `*.example.com`";
                f.report(&at, Diagnostic::new(Code::InvalidValue, message).help(help));
                continue;
            }
            rules::wildcard_host(f, &at, host);
            let partial = host.strip_prefix('*').is_some_and(|rest| !rest.starts_with('.'));
            if partial && self.resolution != ResolutionName::DynamicDns {
                let message = format!(
                    "`{host}` covers part of a label, which clients and certificates do not \
                     understand; use a form like `*.example.com`"
                );
                f.warn(&at, Code::Doubtful, message);
            }
        }
    }

    fn check_addresses(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let networks_allowed =
            matches!(self.resolution, ResolutionName::None | ResolutionName::Static);
        for (index, text) in self.addresses.iter().enumerate() {
            let at = at.index(index);
            if address(text).is_none() {
                let message =
                    format!("`{text}` is neither an IP address nor a network like 10.0.0.0/8");
                f.error(&at, Code::InvalidValue, message);
            } else if text.contains('/') && !networks_allowed {
                let message = format!(
                    "a network needs `resolution: NONE` or `STATIC`, not {}",
                    self.resolution.as_str()
                );
                f.error(&at, Code::ConflictingFields, message);
            }
        }
    }

    fn check_ports(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
        for (index, port) in self.ports.iter().enumerate() {
            let at = at.index(index);
            rules::port(f, &at.key("number"), port.number);
            rules::dns_label(f, &at.key("name"), "a port name", &port.name);
            if !numbers.insert(port.number) {
                let message = format!("port {} is defined twice; remove one", port.number);
                f.error(&at.key("number"), Code::InvalidValue, message);
            }
            if !names.insert(&port.name) {
                let message = format!("two ports are named `{}`; rename one", port.name);
                f.error(&at.key("name"), Code::InvalidValue, message);
            }
            if !port.protocol.is_empty() {
                rules::protocol(f, &at.key("protocol"), &port.protocol);
            }
        }
        self.check_virtual_address(at, f);
    }

    /// Plain TCP can only be told apart by address, and here the document says that it wants none.
    fn check_virtual_address(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let labels = &f.document().header.labels;
        let opted_out =
            labels.get(AUTO_ALLOCATE).is_some_and(|value| value.eq_ignore_ascii_case("false"));
        if !opted_out || !self.addresses.is_empty() {
            return;
        }
        for (index, port) in self.ports.iter().enumerate() {
            if port.protocol.is_empty() || port.protocol.eq_ignore_ascii_case("tcp") {
                let message = "without `addresses` all TCP traffic to this port is taken, whatever \
                               its destination";
                f.warn(&at.index(index), Code::Doubtful, message);
            }
        }
    }

    fn check_selector(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let Some(selector) = &self.workload_selector else { return };
        rules::workload_selector(f, &at.key("workloadSelector"), selector);
        if !self.endpoints.is_empty() {
            let message = "`endpoints` and `workloadSelector` exclude each other; keep one";
            f.error(&at.key("endpoints"), Code::ConflictingFields, message);
        }
    }

    fn check_none(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if !self.endpoints.is_empty() {
            let message = "with `resolution: NONE` connections go where the client wanted to go";
            let help = "remove the endpoints, or use `resolution: STATIC` or `DNS`";
            let diagnostic = Diagnostic::new(Code::ConflictingFields, message).help(help);
            f.report(&at.key("endpoints"), diagnostic);
        }
        if self.workload_selector.is_some() {
            let message = "with `resolution: NONE` sidecars send connections where the client \
                           wanted to go, whatever is selected";
            f.warn(&at.key("workloadSelector"), Code::NoEffect, message);
        }
    }

    fn check_dns(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.endpoints.is_empty() {
            let hosts = at.key("hosts");
            for (index, host) in self.hosts.iter().enumerate().filter(|(_, h)| h.starts_with('*')) {
                let message = format!(
                    "`{host}` cannot be looked up; with `resolution: {}` and no endpoints every \
                     host must be a full name",
                    self.resolution.as_str()
                );
                let help = "name endpoints to send the traffic to, or use `resolution: NONE`";
                let diagnostic = Diagnostic::new(Code::ConflictingFields, message).help(help);
                f.report(&hosts.index(index), diagnostic);
            }
        }
        let endpoints = at.key("endpoints");
        if self.resolution == ResolutionName::DnsRoundRobin && self.endpoints.len() > 1 {
            let message = "`resolution: DNS_ROUND_ROBIN` takes at most one endpoint";
            let help = "remove the others, or use `resolution: DNS`";
            let diagnostic = Diagnostic::new(Code::ConflictingFields, message).help(help);
            f.report(&endpoints.index(1), diagnostic);
        }
        self.check_endpoints(at, Addresses::NoSockets, f);
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            if endpoint.address.is_empty() && !endpoint.network.is_empty() {
                let message = format!(
                    "an endpoint of a service with `resolution: {}` needs an address",
                    self.resolution.as_str()
                );
                f.error(&endpoints.index(index), Code::MissingField, message);
            }
        }
        if !self.addresses.is_empty() && self.hosts.len() > 1 {
            let ports = at.key("ports");
            for (index, port) in self.ports.iter().enumerate() {
                if Protocol::parse(&port.protocol).is_tcp() {
                    let message = "several hosts share these addresses, and on this port nothing \
                                   tells them apart; use one ServiceEntry a host";
                    f.warn(&ports.index(index), Code::Doubtful, message);
                }
            }
        }
    }

    fn check_dynamic(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let conflict = |f: &mut Findings<'_>, at: &Field<'_>, message: String| {
            f.error(
                at,
                Code::ConflictingFields,
                format!("{message} with `resolution: DYNAMIC_DNS`"),
            );
        };
        let hosts = at.key("hosts");
        for (index, host) in self.hosts.iter().enumerate().filter(|(_, h)| !h.starts_with('*')) {
            let message = format!("`{host}` must be a wildcard such as `*.example.com`");
            conflict(f, &hosts.index(index), message);
        }
        if !self.addresses.is_empty() {
            conflict(f, &at.key("addresses"), "addresses cannot be used".to_owned());
        }
        if !self.endpoints.is_empty() {
            conflict(f, &at.key("endpoints"), "endpoints cannot be used".to_owned());
        }
        let ports = at.key("ports");
        for (index, port) in self.ports.iter().enumerate() {
            match Protocol::parse(&port.protocol) {
                Protocol::Http | Protocol::Http2 | Protocol::Grpc | Protocol::Tls => {}
                _ => {
                    let message = "the protocol must be HTTP, HTTP2, GRPC or TLS".to_owned();
                    conflict(f, &ports.index(index).key("protocol"), message);
                }
            }
        }
    }

    fn check_endpoints(&self, at: &Field<'_>, allowed: Addresses, f: &mut Findings<'_>) {
        let knows_ports = f.is_whole(&at.key("ports"));
        let at = at.key("endpoints");
        for (index, endpoint) in self.endpoints.iter().enumerate() {
            let at = at.index(index);
            endpoint.check_endpoint(&at, allowed, f);
            if !knows_ports {
                continue;
            }
            if endpoint.is_socket() && self.ports.len() != 1 {
                let message = format!(
                    "a Unix socket serves one port, and the service has {}",
                    self.ports.len()
                );
                f.error(&at.key("address"), Code::ConflictingFields, message);
            }
            let ports = at.key("ports");
            for name in endpoint.ports.keys() {
                if self.ports.iter().all(|port| port.name != *name) {
                    let message = format!("the service has no port named `{name}`");
                    let names = self.ports.iter().map(|p| format!("`{}`", p.name));
                    let names = names.collect::<Vec<_>>().join(", ");
                    let mut diagnostic = Diagnostic::new(Code::InvalidValue, message);
                    if !names.is_empty() {
                        diagnostic = diagnostic.help(format!("its ports are {names}"));
                    }
                    f.report(&ports.key(name), diagnostic);
                }
            }
        }
    }

    fn check_hosts_can_be_told_apart(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.resolution == ResolutionName::None || self.hosts.len() < 2 {
            return;
        }
        let ports = at.key("ports");
        for (index, port) in self.ports.iter().enumerate() {
            let protocol = Protocol::parse(&port.protocol);
            if !protocol.is_http() && !protocol.is_tls() {
                let message = "several hosts need a protocol that names the host on every port: \
                               HTTP, HTTP2, GRPC, HTTPS or TLS";
                let help = "use one ServiceEntry a host, or set the protocol";
                let diagnostic = Diagnostic::new(Code::ConflictingFields, message).help(help);
                f.report(&ports.index(index), diagnostic);
            }
        }
    }
}

/// An address or a network; networks of one address are that address.
fn address(text: &str) -> Option<Address> {
    if !text.contains('/') {
        return text.parse::<IpAddr>().ok().map(Address::Ip);
    }
    let network: ipnet::IpNet = text.parse().ok()?;
    if network.prefix_len() == network.max_prefix_len() {
        return Some(Address::Ip(network.addr()));
    }
    Some(Address::Cidr(network))
}

const UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        path: "spec.resolution",
        value: Some("DYNAMIC_DNS"),
        instead: "proxies get no cluster for its hosts, so requests to them get 503",
    },
    Unsupported {
        path: "metadata.annotations.{networking.istio.io/traffic-distribution*}",
        value: None,
        instead: "endpoints are not chosen by distance",
    },
    Unsupported {
        path: "metadata.annotations.{istio.io/connect-strategy*}",
        value: None,
        instead: "addresses are tried one after another",
    },
];

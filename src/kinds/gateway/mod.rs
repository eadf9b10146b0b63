//! Gateway: what edge proxies listen on.

#[cfg(test)]
mod tests;

use super::kind::About;
use super::server_tls::{Mode, ServerTlsSettings};
use super::{Draft, Kind, KindSpec, Unsupported, rules};
use crate::config::{Field, Findings, RawDocument};
use crate::diag::{Code, Diagnostic};
use crate::model::{self, Hostname, MeshSettings, Namespace, Protocol, Selector, ServerHost};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

const UNSUPPORTED: &[Unsupported] = &[
    Unsupported {
        path: "spec.servers[].tls.mode",
        value: Some("ISTIO_MUTUAL"),
        instead: "there is no certificate authority, so the server is left out",
    },
    Unsupported {
        path: "spec.servers[].tls.mode",
        value: Some("AUTO_PASSTHROUGH"),
        instead: "the server is left out",
    },
];

/// What edge proxies listen on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "Gateway")]
pub struct Spec {
    /// Ports, what is spoken on them and for which hosts.
    #[schemars(required)]
    pub servers: Vec<Server>,
    /// Labels of the proxies that listen; all gateways when there are none.
    pub selector: BTreeMap<String, String>,
}

/// One port for some hosts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Server {
    /// Where the proxy listens.
    pub port: Port,
    /// Address to bind, or `unix://` and a path; all addresses when unset.
    #[serde(default)]
    pub bind: String,
    /// Hosts that are served: `host` or `namespace/host`, `*.` in front allowed.
    #[serde(default)]
    #[schemars(required)]
    pub hosts: Vec<String>,
    /// TLS settings.
    pub tls: Option<ServerTlsSettings>,
    /// Not used, in Istio neither.
    #[serde(default)]
    pub default_endpoint: String,
    /// Name of the server, for statistics.
    #[serde(default)]
    pub name: String,
}

/// A port of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(rename = "ServerPort")]
pub struct Port {
    /// Its number.
    #[schemars(required)]
    pub number: u16,
    /// What is spoken: HTTP, HTTPS, HTTP2, GRPC, TLS, TCP and others.
    #[schemars(required)]
    pub protocol: String,
    /// Its name, unique in the Gateway.
    #[schemars(required)]
    pub name: String,
    /// Not allowed on Gateways.
    #[schemars(extend("deprecated" = true))]
    pub target_port: u32,
}

impl KindSpec for Spec {
    const ABOUT: About = About { unsupported: UNSUPPORTED, ..About::networking("Gateway") };

    type Share = model::Gateway;

    fn check(&self, f: &mut Findings<'_>) {
        let name = f.document().header.name.clone();
        if !rules::is_dns_label(&name) {
            let message = format!(
                "`{name}` cannot be the name of a Gateway: use letters, digits and inner hyphens, \
                 at most 63 characters"
            );
            f.error(&Field::root("metadata").key("name"), Code::InvalidValue, message);
        }
        let at = Field::root("spec");
        rules::labels(f, &at.key("selector"), &self.selector);
        if self.servers.is_empty() {
            f.error(&at, Code::MissingField, "a Gateway needs at least one server");
        }
        let at = at.key("servers");
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, server) in self.servers.iter().enumerate() {
            server.check(&at.index(index), f);
            let name = server.port.name.as_str();
            if name.is_empty() {
                continue;
            }
            if let Some(first) = names.get(name) {
                let first = f.span(&at.index(*first).key("port").key("name"));
                let message = format!("the port name `{name}` is used twice; give each its own");
                let diagnostic = Diagnostic::new(Code::ConflictingFields, message)
                    .related(first, "first used here");
                f.report(&at.index(index).key("port").key("name"), diagnostic);
            } else {
                names.insert(name, index);
            }
        }
    }

    fn lower(&self, document: &RawDocument) -> Option<model::Gateway> {
        let namespace = Namespace::from(&*document.header.namespace);
        let at = Field::root("spec");
        let at = at.key("servers");
        let servers = self.servers.iter().enumerate().map(|(index, server)| {
            let at = at.index(index);
            model::Server {
                name: server.name.clone(),
                port: server.port.number,
                port_name: server.port.name.as_str().into(),
                protocol: Protocol::parse(&server.port.protocol),
                bind: (!server.bind.is_empty()).then(|| server.bind.as_str().into()),
                hosts: server.hosts.iter().map(|host| server_host(host, &namespace)).collect(),
                tls: server.tls.as_ref().map(|tls| tls.lower(&at.key("tls"), document)),
                span: document.span(&at),
            }
        });
        Some(model::Gateway {
            origin: Self::ABOUT.origin(&document.header),
            selector: (!self.selector.is_empty()).then(|| Selector::from(self.selector.clone())),
            servers: servers.collect(),
        })
    }

    fn add(share: &model::Gateway, _: &MeshSettings, draft: &mut Draft) {
        draft.gateways.push(share.clone());
    }
}

fn server_host(text: &str, own: &Namespace) -> ServerHost {
    let (namespace, host) = match text.split_once('/') {
        None | Some(("*", _)) => (None, text.split_once('/').map_or(text, |(_, host)| host)),
        Some((".", host)) => (Some(own.clone()), host),
        Some((namespace, host)) => (Some(Namespace::from(namespace)), host),
    };
    ServerHost { namespace, host: Hostname::from(host) }
}

impl Server {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.hosts.is_empty() {
            let message = "the server needs at least one host; `*` serves all";
            f.error(at, Code::MissingField, message);
        }
        for (index, host) in self.hosts.iter().enumerate() {
            host_entry(host, &at.key("hosts").index(index), f);
        }
        self.check_port(&at.key("port"), f);
        if !self.bind.is_empty() {
            rules::bind(f, &at.key("bind"), &self.bind);
        }
        if !self.default_endpoint.is_empty() {
            let message = "`defaultEndpoint` of a server is never used, in Istio neither; route with \
                           a VirtualService";
            f.warn(&at.key("defaultEndpoint"), Code::NoEffect, message);
        }
        self.check_tls(at, f);
    }

    fn check_port(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let Port { number, protocol, name, target_port } = &self.port;
        if protocol.is_empty() {
            let message = "the port has no `protocol`; say what is spoken, such as HTTP or HTTPS";
            f.error(at, Code::MissingField, message);
        } else {
            rules::protocol(f, &at.key("protocol"), protocol);
        }
        if !self.bind.starts_with("unix://") {
            rules::port(f, &at.key("number"), *number);
        }
        if name.is_empty() {
            f.error(at, Code::MissingField, "the port has no `name`; give it one");
        }
        if *target_port != 0 {
            let message = "`targetPort` has no effect on Gateways; remove it";
            f.error(&at.key("targetPort"), Code::InvalidValue, message);
        }
    }

    fn check_tls(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let protocol = Protocol::parse(&self.port.protocol);
        let name = &self.port.protocol;
        let Some(tls) = &self.tls else {
            if protocol.is_tls() {
                let message = format!("a server for {name} needs `tls`");
                f.error(at, Code::MissingField, message);
            }
            return;
        };
        let at = at.key("tls");
        tls.check(&at, f);
        if tls.https_redirect && !protocol.is_http() {
            let message = "only a server for HTTP can redirect to HTTPS";
            f.warn(&at.key("httpsRedirect"), Code::NoEffect, message);
        }
        if protocol.is_tls() || protocol == Protocol::Auto {
            return;
        }
        let message = if protocol.is_http() {
            if tls.mode == Mode::Passthrough && tls.certificate_fields().iter().all(|(_, set)| !set)
            {
                return;
            }
            format!(
                "a server for {name} speaks plain text, so its `tls` can only hold \
                 `httpsRedirect`; for TLS use the protocol HTTPS"
            )
        } else {
            format!("a server for {name} has no `tls`; for TLS use the protocol TLS")
        };
        let span = f.key_span(&at);
        f.report(&at, Diagnostic::new(Code::ConflictingFields, message).at(span));
    }
}

/// `[namespace/]host`.
fn host_entry(text: &str, at: &Field<'_>, f: &mut Findings<'_>) {
    let host = match text.split_once('/') {
        None => text,
        Some((namespace, host)) => {
            if !matches!(namespace, "*" | ".") && !rules::is_dns_label(namespace) {
                let message = format!(
                    "`{namespace}` is no namespace; write `NAMESPACE/HOST`, `./HOST` for this one or \
                     `*/HOST` for all"
                );
                f.error(at, Code::InvalidValue, message);
                return;
            }
            host
        }
    };
    if host == "*" || host.parse::<IpAddr>().is_ok() {
        return;
    }
    rules::qualified_host(f, at, host);
}

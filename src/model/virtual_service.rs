//! The routes of a document: which rules apply to which hosts, where, and what decides between them.

use super::{Hostname, HttpRule, ObjectName, Origin, TcpRule, TlsRule, Visibility};
use crate::diag::Span;
use std::fmt;
use std::sync::Arc;

/// Where a rule applies.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GatewayRef {
    /// On sidecars (`mesh`).
    Mesh,
    /// On proxies that run this Gateway.
    Gateway(ListenerRef),
}

/// The listeners of a Gateway, as far as a rule wants them. A VirtualService binds to all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerRef {
    /// The Gateway.
    pub gateway: ObjectName,
    /// Only the listener of this name.
    pub section: Option<Arc<str>>,
    /// Only listeners of this port.
    pub port: Option<u16>,
}

/// What rules may be bound to: sidecars, or one listener of a Gateway.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Attachment {
    /// Sidecars.
    Mesh,
    /// A listener.
    Listener {
        /// Its Gateway.
        gateway: ObjectName,
        /// Its name, empty when it has none.
        section: Arc<str>,
        /// The port that its Gateway declares.
        port: u16,
    },
}

/// What decides which rule a request gets when several could take it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RuleOrder {
    /// The order in which rules are written. Rules of several documents follow each other by the
    /// documents' age, but a rule for everything waits behind those of the others. (VirtualService)
    AsWritten,
    /// The more specific match first, whatever document it stands in; of equals the older
    /// document's. (Gateway API)
    MostSpecific,
}

impl ListenerRef {
    /// All listeners of a Gateway.
    pub fn whole(gateway: ObjectName) -> ListenerRef {
        ListenerRef { gateway, section: None, port: None }
    }
}

impl GatewayRef {
    /// All of a Gateway.
    pub fn whole(gateway: ObjectName) -> GatewayRef {
        GatewayRef::Gateway(ListenerRef::whole(gateway))
    }

    /// Whether it names some listener of this Gateway.
    pub fn is_of(&self, gateway: &ObjectName) -> bool {
        match self {
            GatewayRef::Mesh => false,
            GatewayRef::Gateway(listener) => listener.gateway == *gateway,
        }
    }

    /// Whether it names this.
    pub fn covers(&self, attachment: &Attachment) -> bool {
        match (self, attachment) {
            (GatewayRef::Mesh, Attachment::Mesh) => true,
            (GatewayRef::Gateway(wanted), Attachment::Listener { gateway, section, port }) => {
                wanted.gateway == *gateway
                    && wanted.section.as_ref().is_none_or(|name| name == section)
                    && wanted.port.is_none_or(|number| number == *port)
            }
            (GatewayRef::Mesh, Attachment::Listener { .. })
            | (GatewayRef::Gateway(_), Attachment::Mesh) => false,
        }
    }
}

impl fmt::Display for GatewayRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let GatewayRef::Gateway(ListenerRef { gateway, section, port }) = self else {
            return f.write_str("mesh");
        };
        gateway.fmt(f)?;
        if let Some(section) = section {
            write!(f, " listener {section}")?;
        }
        match port {
            Some(port) => write!(f, " port {port}"),
            None => Ok(()),
        }
    }
}

/// The routes of one document. Each says itself what it does: where documents delegate to each
/// other, that is settled before.
#[derive(Debug, Clone, PartialEq)]
pub struct VirtualService {
    /// The document, whose age decides between its rules and those of others.
    pub origin: Origin,
    /// Hosts, at least one, short names expanded.
    pub hosts: Vec<Hostname>,
    /// Where it applies; an empty list in YAML is `[mesh]` here.
    pub gateways: Vec<GatewayRef>,
    /// Where each of them is named; empty when none is.
    pub gateway_spans: Vec<Span>,
    /// Who may see it.
    pub visibility: Visibility,
    /// What decides between its HTTP rules, and between them and those of others.
    pub order: RuleOrder,
    /// HTTP rules as they are written.
    pub http: Vec<HttpRule>,
    /// TLS rules in order.
    pub tls: Vec<TlsRule>,
    /// TCP rules in order.
    pub tcp: Vec<TcpRule>,
}

impl VirtualService {
    /// Whether its rules are bound to this.
    pub fn is_bound_to(&self, attachment: &Attachment) -> bool {
        self.gateways.iter().any(|gateway| gateway.covers(attachment))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_covers_what_it_does_not_exclude() {
        let name = || ObjectName::new("n", "g");
        let listener = |section: &str, port| Attachment::Listener {
            gateway: name(),
            section: section.into(),
            port,
        };
        let wanted = |section: Option<&str>, port| {
            let section = section.map(Arc::from);
            GatewayRef::Gateway(ListenerRef { gateway: name(), section, port })
        };
        for (wanted, expected) in [
            (wanted(None, None), [true, true]),
            (wanted(Some("web"), None), [true, false]),
            (wanted(None, Some(443)), [false, true]),
            (wanted(Some("web"), Some(443)), [false, false]),
            (GatewayRef::whole(ObjectName::new("n", "other")), [false, false]),
            (GatewayRef::Mesh, [false, false]),
        ] {
            let covered = [listener("web", 80), listener("", 443)].map(|l| wanted.covers(&l));
            assert_eq!(covered, expected, "{wanted}");
        }
        assert!(GatewayRef::Mesh.covers(&Attachment::Mesh));
        assert!(!wanted(None, None).covers(&Attachment::Mesh));
    }
}

//! Gateways: what edge proxies listen on.

use super::{Attachment, Hostname, Namespace, Origin, Protocol, Selector};
use crate::diag::Span;
use std::sync::Arc;

/// One Gateway document.
#[derive(Debug, Clone, PartialEq)]
pub struct Gateway {
    /// The document.
    pub origin: Origin,
    /// Labels that a proxy must have; `None` selects every router.
    pub selector: Option<Selector>,
    /// Servers in document order.
    pub servers: Vec<Server>,
}

impl Gateway {
    /// What rules name when they are for this server of it.
    pub fn attachment(&self, server: &Server) -> Attachment {
        Attachment::Listener {
            gateway: self.origin.name.clone(),
            section: server.name.as_str().into(),
            port: server.port,
        }
    }
}

/// One server of a Gateway.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Its name, empty when it has none; names statistics of HTTPS servers.
    pub name: String,
    /// Declared port number.
    pub port: u16,
    /// Port name, unique in its Gateway; part of HTTPS route names.
    pub port_name: Arc<str>,
    /// What is spoken.
    pub protocol: Protocol,
    /// Address to bind, `None` for the wildcard.
    pub bind: Option<Arc<str>>,
    /// Hosts it serves, in order.
    pub hosts: Vec<ServerHost>,
    /// TLS settings.
    pub tls: Option<ServerTls>,
    /// Where the server stands.
    pub span: Span,
}

/// A host of a server. `*/h` and plain `h` have no namespace, `./h` has the Gateway's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerHost {
    /// The namespace that VirtualServices must be in; `None` is any.
    pub namespace: Option<Namespace>,
    /// The host.
    pub host: Hostname,
}

/// `server.tls`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTls {
    /// Answers plain HTTP with a redirect to HTTPS.
    pub https_redirect: bool,
    /// What is done with TLS.
    pub mode: ServerTlsMode,
    /// The server's own certificates.
    pub certificates: CertificateSource,
    /// What client certificates are verified with (MUTUAL and OPTIONAL_MUTUAL).
    pub ca: CaSource,
    /// Certificate revocation list file.
    pub crl_file: Option<Arc<str>>,
    /// Names a client certificate must have one of.
    pub subject_alt_names: Vec<String>,
    /// SPKI hashes of accepted client certificates (base64).
    pub verify_certificate_spki: Vec<String>,
    /// Hashes of accepted client certificates (hex).
    pub verify_certificate_hash: Vec<String>,
    /// Lowest version, `None` for Envoy's default.
    pub min_version: Option<TlsVersion>,
    /// Highest version, `None` for Envoy's default.
    pub max_version: Option<TlsVersion>,
    /// Cipher suites: known names only, in order, without repeats.
    pub cipher_suites: Vec<String>,
    /// ECDH curves.
    pub ecdh_curves: Vec<String>,
    /// Accepts client certificates that nobody vouches for.
    pub insecure_skip_verify: bool,
    /// Where the settings stand.
    pub span: Span,
}

/// `server.tls.mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ServerTlsMode {
    /// Passed through by SNI.
    Passthrough,
    /// Terminated; no client certificate.
    Simple,
    /// Terminated; client certificate required.
    Mutual,
    /// Passed through by Istio's SNI scheme between clusters.
    AutoPassthrough,
    /// Terminated with the mesh's own certificates.
    IstioMutual,
    /// Terminated; a client certificate is verified when one is sent.
    OptionalMutual,
}

impl ServerTlsMode {
    /// Whether this server ends the TLS connection.
    pub fn terminates(self) -> bool {
        match self {
            ServerTlsMode::Passthrough | ServerTlsMode::AutoPassthrough => false,
            ServerTlsMode::Simple
            | ServerTlsMode::Mutual
            | ServerTlsMode::IstioMutual
            | ServerTlsMode::OptionalMutual => true,
        }
    }

    /// Whether client certificates are asked for.
    pub fn verifies_clients(self) -> bool {
        match self {
            ServerTlsMode::Mutual | ServerTlsMode::OptionalMutual | ServerTlsMode::IstioMutual => {
                true
            }
            ServerTlsMode::Passthrough | ServerTlsMode::Simple | ServerTlsMode::AutoPassthrough => {
                false
            }
        }
    }
}

/// Where a server's certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// None are named.
    None,
    /// Secrets by name, served by SDS (several: RSA and ECDSA).
    Credentials(Vec<Arc<str>>),
    /// Files on the proxy's machine: certificate and key each.
    Files(Vec<(Arc<str>, Arc<str>)>),
}

/// Where the certificate authorities for client certificates come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaSource {
    /// None is named.
    None,
    /// A secret's `ca.crt`/`cacert`, served by SDS: `<name>-cacert` or the secret itself.
    Credential(Arc<str>),
    /// A file on the proxy's machine.
    File(Arc<str>),
}

/// TLS protocol versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TlsVersion {
    /// TLS 1.0.
    V1_0,
    /// TLS 1.1.
    V1_1,
    /// TLS 1.2.
    V1_2,
    /// TLS 1.3.
    V1_3,
}

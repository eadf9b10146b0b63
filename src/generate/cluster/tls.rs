//! TLS to upstreams.
//!
//! A cluster is never emitted without the TLS that its policy asks for. Where that cannot be had
//! (a missing secret, Istio's own mutual TLS on a proxy without workload certificates) the whole
//! cluster is left out, and requests to it get 503 instead of being sent in plain text.

use super::Site;
use super::protocol::HostTls;
use super::san;
use crate::diag::{Code, Severity};
use crate::generate::credentials::{self, CredentialFault, SecretUse};
use crate::model::{
    ClientTls, ClientTlsMode, DestinationRule, Location, MeshSettings, ProxyProtocolVersion,
    Service, TlsVersion,
};
use crate::proxy::Role;
use crate::xds::pb;
use pb::tls::common_tls_context::{CombinedCertificateValidationContext, ValidationContextType};

/// The certificate authorities of the operating system, where `caCertificates` is not set: the
/// path of Debian, Alpine and Envoy's own images. (Envoy's `system_root_certs` is for gRPC only.)
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// What a cluster does about TLS.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum UpstreamTls<'a> {
    /// Plain text.
    Plain,
    /// TLS with these settings.
    Tls(Box<TlsSettings<'a>>),
}

/// TLS settings, with everything found that they refer to.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TlsSettings<'a> {
    sni: &'a str,
    /// Names that the policy wants; empty for those of the service.
    names: &'a [String],
    identity: Identity<'a>,
    trust: Trust<'a>,
    min_version: TlsVersion,
}

/// Who we are.
#[derive(Debug, Clone, PartialEq)]
enum Identity<'a> {
    Nobody,
    Files { chain: &'a str, key: &'a str },
    Secret(SecretUse<'a>),
}

/// Whom we believe.
#[derive(Debug, Clone, PartialEq)]
enum Trust<'a> {
    Anybody,
    File { ca: &'a str, crl: &'a str },
    Secret(SecretUse<'a>),
}

/// Why a cluster cannot have the TLS that it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) code: Code,
    pub(super) severity: Severity,
    /// A clause that goes on with what follows from it.
    pub(super) reason: String,
    pub(super) help: &'static str,
}

impl Refusal {
    fn new(code: Code, reason: impl Into<String>, help: &'static str) -> Refusal {
        Refusal { code, severity: code.info().severity, reason: reason.into(), help }
    }
}

/// Finds what the settings refer to.
pub(super) fn resolve<'a>(
    site: &Site<'a>,
    service: &Service,
    rule: Option<&DestinationRule>,
    tls: Option<&'a ClientTls>,
) -> Result<UpstreamTls<'a>, Refusal> {
    let Some(tls) = tls else { return Ok(UpstreamTls::Plain) };
    let settings = match tls.mode {
        ClientTlsMode::Disable => return Ok(UpstreamTls::Plain),
        ClientTlsMode::Simple => TlsSettings {
            identity: Identity::Nobody,
            trust: trust(site, rule, tls)?,
            ..common(tls)
        },
        ClientTlsMode::Mutual => match own_certificates(site, service, tls) {
            Some(settings) => settings,
            None => TlsSettings {
                identity: identity(site, rule, tls)?,
                trust: trust(site, rule, tls)?,
                ..common(tls)
            },
        },
        ClientTlsMode::IstioMutual => own_certificates(site, service, tls).ok_or_else(|| {
            Refusal::new(
                Code::NotSupported,
                "ISTIO_MUTUAL needs workload certificates, which pilotfish does not issue yet",
                "use MUTUAL with files or a credentialName, or give the proxy \
                 TLS_CLIENT_CERT_CHAIN, TLS_CLIENT_KEY and TLS_CLIENT_ROOT_CERT in its metadata",
            )
        })?,
    };
    Ok(UpstreamTls::Tls(Box::new(settings)))
}

fn common(tls: &ClientTls) -> TlsSettings<'_> {
    TlsSettings {
        sni: &tls.sni,
        names: &tls.subject_alt_names,
        identity: Identity::Nobody,
        trust: Trust::Anybody,
        min_version: tls.min_version.unwrap_or(TlsVersion::V1_2),
    }
}

/// The certificate files that the proxy's metadata names; they replace those of the policy, except
/// towards services outside the mesh.
fn own_certificates<'a>(
    site: &Site<'a>,
    service: &Service,
    tls: &'a ClientTls,
) -> Option<TlsSettings<'a>> {
    let own = site.view.options().client_certificates.as_ref()?;
    match service.location {
        Location::MeshExternal => None,
        Location::MeshInternal => Some(TlsSettings {
            identity: Identity::Files { chain: &own.chain, key: &own.key },
            trust: Trust::File { ca: file_or_system(&own.root), crl: "" },
            ..common(tls)
        }),
    }
}

fn file_or_system(file: &str) -> &str {
    if file.is_empty() { SYSTEM_ROOTS } else { file }
}

fn identity<'a>(
    site: &Site<'a>,
    rule: Option<&DestinationRule>,
    tls: &'a ClientTls,
) -> Result<Identity<'a>, Refusal> {
    if let Some(name) = &tls.credential_name {
        may_use_credentials(site, rule, name)?;
        let owner = &site.view.namespace();
        let found = credentials::certificate(site.secrets, owner, owner, name);
        return found.map(Identity::Secret).map_err(|fault| unusable(site, name, fault));
    }
    if tls.client_certificate.is_empty() || tls.private_key.is_empty() {
        return Err(Refusal::new(
            Code::MissingField,
            "mode MUTUAL has no client certificate or no key",
            "set clientCertificate and privateKey, or credentialName",
        ));
    }
    Ok(Identity::Files { chain: &tls.client_certificate, key: &tls.private_key })
}

fn trust<'a>(
    site: &Site<'a>,
    rule: Option<&DestinationRule>,
    tls: &'a ClientTls,
) -> Result<Trust<'a>, Refusal> {
    if tls.insecure_skip_verify {
        return Ok(Trust::Anybody);
    }
    let Some(name) = &tls.credential_name else {
        return Ok(Trust::File { ca: file_or_system(&tls.ca_certificates), crl: &tls.ca_crl });
    };
    may_use_credentials(site, rule, name)?;
    let owner = &site.view.namespace();
    let found = credentials::validation(site.secrets, owner, owner, name);
    found.map(Trust::Secret).map_err(|fault| unusable(site, name, fault))
}

/// As in Istio, a sidecar uses credentials only of a rule that selects it.
fn may_use_credentials(
    site: &Site<'_>,
    rule: Option<&DestinationRule>,
    name: &str,
) -> Result<(), Refusal> {
    let selected = rule.is_some_and(|rule| rule.selector.is_some());
    if site.view.role() == Role::Router || selected {
        return Ok(());
    }
    Err(Refusal {
        // Such rules are written for gateways; what sidecars lack is rarely missed.
        severity: Severity::Info,
        ..Refusal::new(
            Code::NoEffect,
            format!(
                "credentialName '{name}' is for gateways only, because the rule has no workloadSelector"
            ),
            "add a workloadSelector that selects the sidecars, or name files instead",
        )
    })
}

fn unusable(site: &Site<'_>, name: &str, fault: CredentialFault) -> Refusal {
    Refusal::new(
        fault.code(),
        format!(
            "credentialName '{name}' cannot be used in namespace '{}': {fault}",
            site.view.namespace()
        ),
        "add a Secret document or a directory below --secrets-dir of that name",
    )
}

impl<'a> TlsSettings<'a> {
    /// The secrets that the context refers to.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &SecretUse<'a>> {
        let identity = match &self.identity {
            Identity::Secret(secret) => Some(secret),
            Identity::Nobody | Identity::Files { .. } => None,
        };
        let trust = match &self.trust {
            Trust::Secret(secret) => Some(secret),
            Trust::Anybody | Trust::File { .. } => None,
        };
        identity.into_iter().chain(trust)
    }

    /// What the server's certificate must say: the names of the policy, else all that the service
    /// and its workloads may be called.
    pub(super) fn accepted(
        &self,
        service: &Service,
        mesh: &MeshSettings,
    ) -> Vec<pb::tls::SubjectAltNameMatcher> {
        if !self.names.is_empty() {
            return self.names.iter().map(|name| san::matcher(name)).collect();
        }
        san::of_service(service, mesh).iter().map(|name| san::matcher(name)).collect()
    }

    /// What is done with the host of a request. It is verified where no other name is accepted.
    /// (Istio verifies it although the service has names; Envoy then wants both in a certificate,
    /// which is not what `subjectAltNames` of a ServiceEntry is documented to mean.)
    pub(super) fn host(&self, accepted: &[pb::tls::SubjectAltNameMatcher]) -> HostTls {
        if !self.sni.is_empty() {
            return HostTls::Unused;
        }
        match self.trust {
            Trust::File { .. } | Trust::Secret(_) if accepted.is_empty() => HostTls::SniVerified,
            Trust::Anybody | Trust::File { .. } | Trust::Secret(_) => HostTls::Sni,
        }
    }

    /// The transport socket. ALPN is for clusters that are fixed to HTTP/2.
    pub(super) fn socket(
        &self,
        accepted: Vec<pb::tls::SubjectAltNameMatcher>,
        mesh: &MeshSettings,
        alpn: &[&str],
    ) -> pb::core::TransportSocket {
        let identity = match &self.identity {
            Identity::Nobody => None,
            Identity::Files { chain, key } => Some(pb::tls::TlsCertificate {
                certificate_chain: Some(file(chain)),
                private_key: Some(file(key)),
                ..Default::default()
            }),
            Identity::Secret(_) => None,
        };
        let identity_secret = match &self.identity {
            Identity::Secret(secret) => Some(secret.reference()),
            Identity::Nobody | Identity::Files { .. } => None,
        };
        let context = pb::tls::CommonTlsContext {
            tls_params: Some(pb::tls::TlsParameters {
                tls_minimum_protocol_version: version(self.min_version).into(),
                tls_maximum_protocol_version: version(TlsVersion::V1_3).into(),
                cipher_suites: mesh.tls_defaults.cipher_suites.clone(),
                ecdh_curves: mesh.tls_defaults.ecdh_curves.clone(),
                ..Default::default()
            }),
            tls_certificates: identity.into_iter().collect(),
            tls_certificate_sds_secret_configs: identity_secret.into_iter().collect(),
            alpn_protocols: alpn.iter().map(|&protocol| protocol.to_owned()).collect(),
            validation_context_type: Some(self.validation(accepted)),
            ..Default::default()
        };
        let context = pb::tls::UpstreamTlsContext {
            common_tls_context: Some(context),
            sni: self.sni.to_owned(),
            ..Default::default()
        };
        pb::transport_socket("envoy.transport_sockets.tls", &context)
    }

    fn validation(&self, accepted: Vec<pb::tls::SubjectAltNameMatcher>) -> ValidationContextType {
        let with_names = |context| pb::tls::CertificateValidationContext {
            match_typed_subject_alt_names: accepted,
            ..context
        };
        match &self.trust {
            Trust::Anybody => ValidationContextType::ValidationContext(Default::default()),
            Trust::File { ca, crl } => ValidationContextType::ValidationContext(with_names(
                pb::tls::CertificateValidationContext {
                    trusted_ca: Some(file(ca)),
                    crl: (!crl.is_empty()).then(|| file(crl)),
                    ..Default::default()
                },
            )),
            Trust::Secret(secret) => ValidationContextType::CombinedValidationContext(
                CombinedCertificateValidationContext {
                    default_validation_context: Some(with_names(Default::default())),
                    validation_context_sds_secret_config: Some(secret.reference()),
                    ..Default::default()
                },
            ),
        }
    }
}

fn version(version: TlsVersion) -> pb::tls::tls_parameters::TlsProtocol {
    use pb::tls::tls_parameters::TlsProtocol;
    match version {
        TlsVersion::V1_0 => TlsProtocol::TlSv10,
        TlsVersion::V1_1 => TlsProtocol::TlSv11,
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}

fn file(path: &str) -> pb::core::DataSource {
    pb::core::DataSource {
        specifier: Some(pb::core::data_source::Specifier::Filename(path.to_owned())),
        ..Default::default()
    }
}

/// Sends a PROXY protocol header before what the socket sends.
pub(super) fn behind_proxy_protocol(
    socket: Option<pb::core::TransportSocket>,
    version: ProxyProtocolVersion,
) -> pb::core::TransportSocket {
    use pb::core::proxy_protocol_config::Version;
    let version = match version {
        ProxyProtocolVersion::V1 => Version::V1,
        ProxyProtocolVersion::V2 => Version::V2,
    };
    let inner = socket.unwrap_or_else(|| {
        let plain = pb::raw_buffer::RawBuffer {};
        pb::transport_socket("envoy.transport_sockets.raw_buffer", &plain)
    });
    let wrapper = pb::proxy_protocol_upstream::ProxyProtocolUpstreamTransport {
        config: Some(pb::core::ProxyProtocolConfig {
            version: version.into(),
            ..Default::default()
        }),
        transport_socket: Some(inner),
        ..Default::default()
    };
    pb::transport_socket("envoy.transport_sockets.upstream_proxy_protocol", &wrapper)
}

//! TLS to upstreams.
//!
//! A cluster is never planned without the TLS that its policy asks for. Where that cannot be had
//! (a missing secret, Istio's own mutual TLS on a proxy without workload certificates) the whole
//! cluster is left out, and requests to it get 503 instead of being sent in plain text.

use super::Site;
use super::http::{HostTls, HttpOptions};
use crate::diag::{Code, Severity};
use crate::generate::plan::secret::{self, CredentialFault, Secret};
use crate::model::{
    ClientTls, ClientTlsMode, DestinationRule, Location, MeshSettings, Service, TlsDefaults,
    TlsVersion,
};
use crate::proxy::Role;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The certificate authorities of the operating system, where `caCertificates` is not set: the
/// path of Debian, Alpine and Envoy's own images. (Envoy's `system_root_certs` is for gRPC only.)
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// TLS to the hosts of a cluster, with everything found that it refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamTls {
    /// The server name to send, empty for none or the host of each request.
    pub sni: String,
    /// The names of which the certificate must have one; empty for any.
    pub names: Vec<String>,
    /// Who we are.
    pub identity: Identity,
    /// Whom we believe.
    pub trust: Trust,
    /// Lowest version.
    pub min_version: TlsVersion,
    /// What the mesh says about the rest.
    pub defaults: TlsDefaults,
    /// Whether HTTP/2 is offered: only by clusters that are fixed to it.
    pub offers_http2: bool,
}

/// Who we are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Nobody.
    Nobody,
    /// Files on the proxy's machine.
    Files {
        /// Certificate chain.
        chain: Arc<str>,
        /// Private key.
        key: Arc<str>,
    },
    /// A secret.
    Secret(Secret),
}

/// Whom we believe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// Anybody.
    Anybody,
    /// Those whom the authorities in a file on the proxy's machine vouch for.
    File {
        /// Certificate authorities.
        ca: Arc<str>,
        /// Revocation list.
        crl: Option<Arc<str>>,
    },
    /// The same with a secret.
    Secret(Secret),
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

/// Decides TLS for a cluster of a service, and adds to `http` what it does with hosts of requests.
/// `None` is plain text.
pub(super) fn resolve(
    site: &Site<'_>,
    service: &Service,
    rule: Option<&DestinationRule>,
    wanted: Option<&ClientTls>,
    http: &mut HttpOptions,
) -> Result<Option<Box<UpstreamTls>>, Refusal> {
    let Some(wanted) = wanted else { return Ok(None) };
    let (identity, trust) = match wanted.mode {
        ClientTlsMode::Disable => return Ok(None),
        ClientTlsMode::Simple => (Identity::Nobody, trust(site, rule, wanted)?),
        ClientTlsMode::Mutual => match own_certificates(site, service) {
            Some(own) => own,
            None => (identity(site, rule, wanted)?, trust(site, rule, wanted)?),
        },
        ClientTlsMode::IstioMutual => own_certificates(site, service).ok_or_else(|| {
            Refusal::new(
                Code::NotSupported,
                "ISTIO_MUTUAL needs workload certificates, which pilotfish does not issue yet",
                "use MUTUAL with files or a credentialName, or give the proxy \
                 TLS_CLIENT_CERT_CHAIN, TLS_CLIENT_KEY and TLS_CLIENT_ROOT_CERT in its metadata",
            )
        })?,
    };
    let names = match trust {
        Trust::Anybody => Vec::new(),
        Trust::File { .. } | Trust::Secret(_) => accepted(wanted, service, site.mesh),
    };
    http.host_tls = host_tls(&wanted.sni, &trust, &names);
    Ok(Some(Box::new(UpstreamTls {
        sni: wanted.sni.clone(),
        names,
        identity,
        trust,
        min_version: wanted.min_version.unwrap_or(TlsVersion::V1_2),
        defaults: site.mesh.tls_defaults.clone(),
        offers_http2: http.is_http2(),
    })))
}

/// The certificate files that the proxy's metadata names; they replace those of the policy, except
/// towards services outside the mesh.
fn own_certificates(site: &Site<'_>, service: &Service) -> Option<(Identity, Trust)> {
    let own = site.view.options().client_certificates.as_ref()?;
    match service.location {
        Location::MeshExternal => None,
        Location::MeshInternal => Some((
            Identity::Files { chain: own.chain.clone(), key: own.key.clone() },
            Trust::File { ca: file_or_system(&own.root), crl: None },
        )),
    }
}

fn file_or_system(file: &str) -> Arc<str> {
    if file.is_empty() { SYSTEM_ROOTS.into() } else { file.into() }
}

fn identity(
    site: &Site<'_>,
    rule: Option<&DestinationRule>,
    tls: &ClientTls,
) -> Result<Identity, Refusal> {
    if let Some(name) = &tls.credential_name {
        may_use_credentials(site, rule, name)?;
        let owner = site.view.namespace();
        let found = secret::certificate(site.secrets, owner, owner, name);
        return found.map(Identity::Secret).map_err(|fault| unusable(site, name, fault));
    }
    if tls.client_certificate.is_empty() || tls.private_key.is_empty() {
        return Err(Refusal::new(
            Code::MissingField,
            "mode MUTUAL has no client certificate or no key",
            "set clientCertificate and privateKey, or credentialName",
        ));
    }
    let (chain, key) = (tls.client_certificate.as_str(), tls.private_key.as_str());
    Ok(Identity::Files { chain: chain.into(), key: key.into() })
}

fn trust(
    site: &Site<'_>,
    rule: Option<&DestinationRule>,
    tls: &ClientTls,
) -> Result<Trust, Refusal> {
    if tls.insecure_skip_verify {
        return Ok(Trust::Anybody);
    }
    let Some(name) = &tls.credential_name else {
        let crl = Some(tls.ca_crl.as_str()).filter(|file| !file.is_empty());
        let ca = file_or_system(&tls.ca_certificates);
        return Ok(Trust::File { ca, crl: crl.map(Arc::from) });
    };
    may_use_credentials(site, rule, name)?;
    let owner = site.view.namespace();
    let found = secret::validation(site.secrets, owner, owner, name);
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

/// What the server's certificate must say: the names of the policy, else all that the service and
/// its workloads may be called.
fn accepted(tls: &ClientTls, service: &Service, mesh: &MeshSettings) -> Vec<String> {
    if !tls.subject_alt_names.is_empty() {
        return tls.subject_alt_names.clone();
    }
    names_of(service, mesh).into_iter().collect()
}

/// The names in the certificates of a service (`compile` has added the identities of its
/// workloads), in every trust domain that counts as ours.
fn names_of(service: &Service, mesh: &MeshSettings) -> BTreeSet<String> {
    let domains = || std::iter::once(&mesh.trust_domain).chain(mesh.trust_domain_aliases.iter());
    let mut names = BTreeSet::new();
    for name in &service.subject_alt_names {
        match name.strip_prefix("spiffe://").and_then(|rest| rest.split_once('/')) {
            Some((domain, path)) if domains().any(|d| **d == *domain) => {
                names.extend(domains().map(|d| format!("spiffe://{d}/{path}")));
            }
            Some(_) | None => {
                names.insert(name.clone());
            }
        }
    }
    names
}

/// What is done with the host of a request. It is verified where no other name is accepted. (Istio
/// verifies it although the service has names; Envoy then wants both in a certificate, which is not
/// what `subjectAltNames` of a ServiceEntry is documented to mean.)
fn host_tls(sni: &str, trust: &Trust, names: &[String]) -> HostTls {
    if !sni.is_empty() {
        return HostTls::Unused;
    }
    match trust {
        Trust::File { .. } | Trust::Secret(_) if names.is_empty() => HostTls::SniVerified,
        Trust::Anybody | Trust::File { .. } | Trust::Secret(_) => HostTls::Sni,
    }
}

impl UpstreamTls {
    /// The secrets that the context refers to.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
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

    /// TLS to this server, whose certificate must have its name and come from one of the
    /// authorities that the proxy's machine trusts.
    pub fn to_server(name: &str, mesh: &MeshSettings) -> UpstreamTls {
        UpstreamTls {
            sni: name.to_owned(),
            names: vec![name.to_owned()],
            identity: Identity::Nobody,
            trust: Trust::File { ca: SYSTEM_ROOTS.into(), crl: None },
            min_version: TlsVersion::V1_2,
            defaults: mesh.tls_defaults.clone(),
            offers_http2: false,
        }
    }
}

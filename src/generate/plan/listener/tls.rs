//! TLS that ends at the proxy: what it speaks, whom it asks for certificates, and the secrets that it
//! names.

use crate::diag::{Code, Diagnostic};
use crate::generate::plan::secret::{self, CredentialFault, Secret};
use crate::model::{
    CaSource, CertificateSource, Namespace, Origin, Secrets, ServerTls, ServerTlsMode, TlsDefaults,
    TlsVersion,
};
use std::sync::Arc;

/// TLS that ends at a filter chain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TlsTermination {
    /// Versions and algorithms.
    pub parameters: TlsParameters,
    /// The server's own certificates.
    pub certificates: Certificates,
    /// Whether a client without a certificate is turned away.
    pub requires_client_certificate: bool,
    /// How certificates of clients are checked, when they are asked for.
    pub clients: Option<ClientCheck>,
}

/// Versions and algorithms; what is empty is left to Envoy.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TlsParameters {
    /// Lowest version.
    pub min_version: Option<TlsVersion>,
    /// Highest version.
    pub max_version: Option<TlsVersion>,
    /// Cipher suites.
    pub cipher_suites: Vec<String>,
    /// ECDH curves.
    pub ecdh_curves: Vec<String>,
}

/// Where certificates and their keys come from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Certificates {
    /// Secrets of these names, by SDS.
    Secrets(Vec<Arc<str>>),
    /// Files on the proxy's machine: certificate and key each.
    Files(Vec<(Arc<str>, Arc<str>)>),
}

/// How certificates of clients are checked.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ClientCheck {
    /// Who must have signed them.
    pub authorities: Authorities,
    /// Names of which one must stand in them; empty is any.
    pub subject_alt_names: Vec<String>,
    /// SPKI hashes of those that are accepted (base64).
    pub spki_hashes: Vec<String>,
    /// Hashes of those that are accepted (hex).
    pub hashes: Vec<String>,
    /// Whether those are accepted that nobody vouches for.
    pub accepts_unverified: bool,
}

/// Who vouches for certificates.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Authorities {
    /// Nobody is named.
    Nobody,
    /// Those of the secret with this name, by SDS.
    Secret(Arc<str>),
    /// Those in a file on the proxy's machine.
    File {
        /// The file.
        ca: Arc<str>,
        /// A file with a revocation list.
        crl: Option<Arc<str>>,
    },
}

/// Why a server cannot end TLS connections.
#[derive(Debug)]
pub enum Unusable {
    /// A secret is missing or incomplete. `compile` says so as soon as the documents are read, so it
    /// is not said again for each proxy.
    Credential,
    /// The settings do not suffice.
    Settings(Box<Diagnostic>),
}

impl TlsTermination {
    /// What the settings of a document mean, and the secrets that they name.
    ///
    /// # Errors
    ///
    /// When a secret is missing or incomplete. The filter chain must then be left out: Envoy would
    /// wait for the secret, at boot with every listener closed, and over state-of-the-world there
    /// is no answer that says "no such secret".
    pub fn of(
        secrets: &Secrets,
        proxy: &Namespace,
        owner: &Origin,
        settings: &ServerTls,
        defaults: &TlsDefaults,
    ) -> Result<(TlsTermination, Vec<Secret>), Unusable> {
        let namespace = &owner.name.namespace;
        let refused = |code, message: &str| {
            let finding = owner.diagnostic_at(&settings.span, code, message);
            Err(Unusable::Settings(Box::new(finding)))
        };
        let fault = |_: CredentialFault| Unusable::Credential;
        let mut used = Vec::new();
        let certificates = match &settings.certificates {
            CertificateSource::Credentials(names) => {
                for name in names {
                    let found = secret::certificate(secrets, proxy, namespace, name);
                    used.push(found.map_err(fault)?);
                }
                Certificates::Secrets(used.iter().map(|secret| secret.name.clone()).collect())
            }
            CertificateSource::Files(files) => Certificates::Files(files.clone()),
            CertificateSource::None => {
                let message = "the server gets no listener: its TLS settings name no certificate";
                return refused(Code::MissingField, message);
            }
        };
        let authorities = match (ca_name(settings), &settings.ca) {
            (Some(name), _) => {
                let found = secret::validation(secrets, proxy, namespace, name);
                let found = found.map_err(fault)?;
                let authorities = Authorities::Secret(found.name.clone());
                used.push(found);
                authorities
            }
            (None, CaSource::File(path)) => {
                Authorities::File { ca: path.clone(), crl: settings.crl_file.clone() }
            }
            (None, CaSource::None | CaSource::Credential(_)) => Authorities::Nobody,
        };
        let verifies = settings.mode.verifies_clients();
        if verifies && authorities == Authorities::Nobody && !settings.insecure_skip_verify {
            let message = "the server gets no listener: nothing is named to verify clients with";
            return refused(Code::MissingField, message);
        }
        let termination = TlsTermination {
            parameters: TlsParameters::of(settings, defaults),
            certificates,
            requires_client_certificate: settings.mode == ServerTlsMode::Mutual,
            clients: verifies.then(|| ClientCheck::of(settings, authorities)),
        };
        Ok((termination, used))
    }
}

impl ClientCheck {
    fn of(settings: &ServerTls, authorities: Authorities) -> ClientCheck {
        ClientCheck {
            subject_alt_names: match authorities {
                // Names that nobody vouches for prove nothing, and Envoy refuses to compare them.
                Authorities::Nobody => Vec::new(),
                Authorities::Secret(_) | Authorities::File { .. } => {
                    settings.subject_alt_names.clone()
                }
            },
            authorities,
            spki_hashes: settings.verify_certificate_spki.clone(),
            hashes: settings.verify_certificate_hash.clone(),
            accepts_unverified: settings.insecure_skip_verify,
        }
    }
}

impl TlsParameters {
    /// What the server says, over what the mesh says.
    fn of(settings: &ServerTls, defaults: &TlsDefaults) -> TlsParameters {
        let either = |own: &Vec<String>, mesh: &Vec<String>| {
            if own.is_empty() { mesh.clone() } else { own.clone() }
        };
        TlsParameters {
            min_version: settings.min_version.or(defaults.min_version),
            max_version: settings.max_version,
            cipher_suites: either(&settings.cipher_suites, &defaults.cipher_suites),
            ecdh_curves: either(&settings.ecdh_curves, &defaults.ecdh_curves),
        }
    }
}

/// The credential whose CA verifies clients: the one named for it, else the server's own.
fn ca_name(settings: &ServerTls) -> Option<&Arc<str>> {
    if !settings.mode.verifies_clients() {
        return None;
    }
    match (&settings.ca, &settings.certificates) {
        (CaSource::Credential(name), _) => Some(name),
        (CaSource::None, CertificateSource::Credentials(names)) => names.first(),
        (CaSource::File(_), _)
        | (CaSource::None, CertificateSource::None | CertificateSource::Files(_)) => None,
    }
}

//! TLS at the proxy: the contexts of servers, and the secrets that they name.

use crate::diag::{Code, Diagnostic};
use crate::generate::cluster::subject_alt_name;
use crate::generate::credentials::{self, CredentialFault, SecretUse};
use crate::model::{
    CaSource, CertificateSource, Namespace, Origin, Secrets, ServerTls, ServerTlsMode, TlsDefaults,
    TlsVersion,
};
use crate::xds::pb::{self, core, tls};
use std::sync::Arc;

/// The TLS settings of a server, with the secrets that they name found.
pub(super) struct ServerContext<'a> {
    settings: &'a ServerTls,
    certificates: Vec<SecretUse<'a>>,
    ca: Option<SecretUse<'a>>,
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

impl<'a> ServerContext<'a> {
    /// Finds what the settings of a document name.
    ///
    /// # Errors
    ///
    /// When a secret is missing or incomplete. The filter chain must then be left out: Envoy would
    /// wait for the secret, at boot with every listener closed, and over state-of-the-world there
    /// is no answer that says "no such secret".
    pub fn new(
        secrets: &'a Secrets,
        proxy: &Namespace,
        owner: &Origin,
        settings: &'a ServerTls,
    ) -> Result<ServerContext<'a>, Unusable> {
        let namespace = &owner.name.namespace;
        let refused = |code, message: &str| {
            let finding = owner.diagnostic_at(&settings.span, code, message);
            Err(Unusable::Settings(Box::new(finding)))
        };
        let fault = |_: CredentialFault| Unusable::Credential;
        let mut certificates = Vec::new();
        match &settings.certificates {
            CertificateSource::Credentials(names) => {
                for name in names {
                    let found = credentials::certificate(secrets, proxy, namespace, name);
                    certificates.push(found.map_err(fault)?);
                }
            }
            CertificateSource::Files(_) => {}
            CertificateSource::None => {
                let message = "the server gets no listener: its TLS settings name no certificate";
                return refused(Code::MissingField, message);
            }
        }
        let ca = match ca_name(settings) {
            Some(name) => {
                let found = credentials::validation(secrets, proxy, namespace, name);
                Some(found.map_err(fault)?)
            }
            None => None,
        };
        let has_ca = ca.is_some() || matches!(settings.ca, CaSource::File(_));
        if settings.mode.verifies_clients() && !has_ca && !settings.insecure_skip_verify {
            let message = "the server gets no listener: nothing is named to verify clients with";
            return refused(Code::MissingField, message);
        }
        Ok(ServerContext { settings, certificates, ca })
    }

    /// The secrets that a proxy with this context asks for.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretUse<'a>> {
        self.certificates.iter().chain(&self.ca)
    }

    /// The transport socket of the server's filter chains.
    pub fn transport_socket(&self, defaults: &TlsDefaults) -> core::TransportSocket {
        let context = tls::DownstreamTlsContext {
            require_client_certificate: Some(pb::bool_value(
                self.settings.mode == ServerTlsMode::Mutual,
            )),
            common_tls_context: Some(self.common(defaults)),
            ..Default::default()
        };
        pb::transport_socket("envoy.transport_sockets.tls", &context)
    }

    fn common(&self, defaults: &TlsDefaults) -> tls::CommonTlsContext {
        let files = match &self.settings.certificates {
            CertificateSource::Files(files) => files.as_slice(),
            CertificateSource::None | CertificateSource::Credentials(_) => &[],
        };
        tls::CommonTlsContext {
            tls_params: parameters(self.settings, defaults),
            tls_certificates: files.iter().map(certificate_files).collect(),
            tls_certificate_sds_secret_configs: self
                .certificates
                .iter()
                .map(SecretUse::reference)
                .collect(),
            alpn_protocols: vec!["h2".to_owned(), "http/1.1".to_owned()],
            validation_context_type: self.validation(),
            ..Default::default()
        }
    }

    fn validation(&self) -> Option<tls::common_tls_context::ValidationContextType> {
        use tls::common_tls_context::{
            CombinedCertificateValidationContext, ValidationContextType,
        };
        let settings = self.settings;
        if !settings.mode.verifies_clients() {
            return None;
        }
        let mut context = tls::CertificateValidationContext {
            match_typed_subject_alt_names: settings
                .subject_alt_names
                .iter()
                .map(|name| subject_alt_name(name))
                .collect(),
            verify_certificate_spki: settings.verify_certificate_spki.clone(),
            verify_certificate_hash: settings.verify_certificate_hash.clone(),
            ..Default::default()
        };
        if settings.insecure_skip_verify {
            context.set_trust_chain_verification(
                tls::certificate_validation_context::TrustChainVerification::AcceptUntrusted,
            );
        }
        match (&self.ca, &settings.ca) {
            (Some(ca), _) => Some(ValidationContextType::CombinedValidationContext(
                CombinedCertificateValidationContext {
                    default_validation_context: Some(context),
                    validation_context_sds_secret_config: Some(ca.reference()),
                    ..Default::default()
                },
            )),
            (None, CaSource::File(path)) => {
                context.trusted_ca = Some(file(path));
                context.crl = settings.crl_file.as_ref().map(file);
                Some(ValidationContextType::ValidationContext(context))
            }
            (None, CaSource::None | CaSource::Credential(_)) => {
                // Names that nobody vouches for prove nothing, and Envoy refuses to compare them.
                context.match_typed_subject_alt_names.clear();
                Some(ValidationContextType::ValidationContext(context))
            }
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

/// What the server says, over what the mesh says.
fn parameters(settings: &ServerTls, defaults: &TlsDefaults) -> Option<tls::TlsParameters> {
    let either = |own: &Vec<String>, mesh: &Vec<String>| {
        if own.is_empty() { mesh.clone() } else { own.clone() }
    };
    let mut parameters = tls::TlsParameters {
        cipher_suites: either(&settings.cipher_suites, &defaults.cipher_suites),
        ecdh_curves: either(&settings.ecdh_curves, &defaults.ecdh_curves),
        ..Default::default()
    };
    if let Some(version) = settings.min_version.or(defaults.min_version) {
        parameters.set_tls_minimum_protocol_version(protocol_version(version));
    }
    if let Some(version) = settings.max_version {
        parameters.set_tls_maximum_protocol_version(protocol_version(version));
    }
    (parameters != tls::TlsParameters::default()).then_some(parameters)
}

fn protocol_version(version: TlsVersion) -> tls::tls_parameters::TlsProtocol {
    use tls::tls_parameters::TlsProtocol;
    match version {
        TlsVersion::V1_0 => TlsProtocol::TlSv10,
        TlsVersion::V1_1 => TlsProtocol::TlSv11,
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}

fn certificate_files((chain, key): &(Arc<str>, Arc<str>)) -> tls::TlsCertificate {
    tls::TlsCertificate {
        certificate_chain: Some(file(chain)),
        private_key: Some(file(key)),
        ..Default::default()
    }
}

/// A file as the proxy sees it.
fn file(path: &Arc<str>) -> core::DataSource {
    core::DataSource {
        specifier: Some(core::data_source::Specifier::Filename(path.to_string())),
        ..Default::default()
    }
}

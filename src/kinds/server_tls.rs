//! `ServerTLSSettings`: the TLS of Gateway servers and of Sidecar ingress listeners.

use super::rules;
use super::values::TlsProtocol;
use crate::config::{Field, Findings, RawDocument};
use crate::diag::{Code, Diagnostic};
use crate::model::{CaSource, CertificateSource, ServerTls, ServerTlsMode};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// TLS settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServerTlsSettings {
    /// Answers plain HTTP with a redirect to HTTPS.
    pub https_redirect: bool,
    /// What is done with TLS.
    pub mode: Mode,
    /// File with the server's certificate.
    pub server_certificate: String,
    /// File with its private key.
    pub private_key: String,
    /// File with the authorities that vouch for clients.
    pub ca_certificates: String,
    /// File with revoked certificates.
    pub ca_crl: String,
    /// Secret with the certificate and key.
    pub credential_name: String,
    /// Secrets with certificates of different kinds (RSA and ECDSA).
    pub credential_names: Vec<String>,
    /// Secret with the authorities that vouch for clients.
    pub ca_cert_credential_name: String,
    /// Files with certificates of different kinds.
    pub tls_certificates: Vec<TlsCertificate>,
    /// Names of which a client's certificate must have one.
    pub subject_alt_names: Vec<String>,
    /// Accepted client certificates by their key's hash (SHA-256 of the SPKI, base64).
    pub verify_certificate_spki: Vec<String>,
    /// Accepted client certificates by their hash (SHA-256, hexadecimal).
    pub verify_certificate_hash: Vec<String>,
    /// Lowest TLS version.
    pub min_protocol_version: TlsProtocol,
    /// Highest TLS version.
    pub max_protocol_version: TlsProtocol,
    /// Cipher suites up to TLS 1.2.
    pub cipher_suites: Vec<String>,
    /// Accepts client certificates that nobody vouches for.
    pub insecure_skip_verify: Option<bool>,
}

/// Files with a certificate and its key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TlsCertificate {
    /// File with the server's certificate.
    pub server_certificate: String,
    /// File with its private key.
    pub private_key: String,
    /// Not used, in Istio neither.
    pub ca_certificates: String,
}

/// What is done with TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Mode {
    /// Passed through by server name.
    #[default]
    Passthrough,
    /// Terminated; clients show no certificate.
    Simple,
    /// Terminated; clients must show a certificate.
    Mutual,
    /// Passed through by Istio's naming scheme between clusters.
    AutoPassthrough,
    /// Terminated with the mesh's own certificates.
    IstioMutual,
    /// Terminated; clients may show a certificate.
    OptionalMutual,
}

impl Mode {
    fn as_str(self) -> &'static str {
        match self {
            Mode::Passthrough => "PASSTHROUGH",
            Mode::Simple => "SIMPLE",
            Mode::Mutual => "MUTUAL",
            Mode::AutoPassthrough => "AUTO_PASSTHROUGH",
            Mode::IstioMutual => "ISTIO_MUTUAL",
            Mode::OptionalMutual => "OPTIONAL_MUTUAL",
        }
    }

    fn lower(self) -> ServerTlsMode {
        match self {
            Mode::Passthrough => ServerTlsMode::Passthrough,
            Mode::Simple => ServerTlsMode::Simple,
            Mode::Mutual => ServerTlsMode::Mutual,
            Mode::AutoPassthrough => ServerTlsMode::AutoPassthrough,
            Mode::IstioMutual => ServerTlsMode::IstioMutual,
            Mode::OptionalMutual => ServerTlsMode::OptionalMutual,
        }
    }
}

/// Forms of a `credentialName` that are not the name of a secret.
const SCHEMES: [&str; 5] =
    ["kubernetes-gateway://", "configmap://", "builtin://", "invalid://", "sds://"];

impl ServerTlsSettings {
    /// The fields that name certificates, with whether they are set.
    pub fn certificate_fields(&self) -> [(&'static str, bool); 8] {
        [
            ("serverCertificate", !self.server_certificate.is_empty()),
            ("privateKey", !self.private_key.is_empty()),
            ("caCertificates", !self.ca_certificates.is_empty()),
            ("caCrl", !self.ca_crl.is_empty()),
            ("credentialName", !self.credential_name.is_empty()),
            ("credentialNames", !self.credential_names.is_empty()),
            ("caCertCredentialName", !self.ca_cert_credential_name.is_empty()),
            ("tlsCertificates", !self.tls_certificates.is_empty()),
        ]
    }

    /// Checks the settings on their own.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        self.check_versions(at, f);
        self.check_hashes(at, f);
        self.check_names(at, f);
        match self.mode {
            Mode::IstioMutual => {
                self.each_certificate_field(|name| {
                    let message =
                        format!("ISTIO_MUTUAL uses the mesh's certificates; remove `{name}`");
                    refuse(&at.key(name), message, f);
                });
                return;
            }
            Mode::Passthrough | Mode::AutoPassthrough => {
                let mode = self.mode.as_str();
                self.each_certificate_field(|name| {
                    let message = format!("{mode} does not end TLS, so `{name}` is not used");
                    f.warn(&at.key(name), Code::NoEffect, message);
                });
                return;
            }
            Mode::Simple | Mode::Mutual | Mode::OptionalMutual => {}
        }
        self.check_source(at, f);
        if self.mode == Mode::Simple {
            let unused = [
                ("subjectAltNames", !self.subject_alt_names.is_empty()),
                ("verifyCertificateSpki", !self.verify_certificate_spki.is_empty()),
                ("verifyCertificateHash", !self.verify_certificate_hash.is_empty()),
                ("caCertCredentialName", !self.ca_cert_credential_name.is_empty()),
            ];
            for (name, _) in unused.into_iter().filter(|(_, set)| *set) {
                let message =
                    format!("SIMPLE asks for no client certificate, so `{name}` is not used");
                f.warn(&at.key(name), Code::NoEffect, message);
            }
        }
    }

    fn each_certificate_field(&self, mut found: impl FnMut(&'static str)) {
        let fields = self.certificate_fields();
        fields.into_iter().filter(|(_, set)| *set).for_each(|(name, _)| found(name));
    }

    fn check_versions(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::cipher_suites(f, &at.key("cipherSuites"), &self.cipher_suites);
        let (min, max) = (self.min_protocol_version, self.max_protocol_version);
        if max != TlsProtocol::Auto && min > max {
            let message = "the lowest version is above the highest, so no client could connect";
            refuse(&at.key("minProtocolVersion"), message.to_owned(), f);
        }
        let old = matches!(min, TlsProtocol::V1_0 | TlsProtocol::V1_1);
        if old && self.cipher_suites.is_empty() {
            let message = "Envoy's default cipher suites do not work below TLS 1.2; name older ones \
                           in `cipherSuites`";
            f.warn(&at.key("minProtocolVersion"), Code::NoEffect, message);
        }
    }

    /// Envoy refuses hashes of another length.
    fn check_hashes(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        for (index, hash) in self.verify_certificate_spki.iter().enumerate() {
            if hash.len() != 44 {
                let at = at.key("verifyCertificateSpki");
                let message = "a SHA-256 hash in base64 has 44 characters";
                f.error(&at.index(index), Code::InvalidValue, message);
            }
        }
        for (index, hash) in self.verify_certificate_hash.iter().enumerate() {
            let digits = hash.bytes().filter(u8::is_ascii_hexdigit).count();
            let plain = hash.len() == 64 && digits == 64;
            let colons = hash.len() == 95
                && hash.split(':').count() == 32
                && hash
                    .split(':')
                    .all(|b| b.len() == 2 && b.bytes().all(|b| b.is_ascii_hexdigit()));
            if !plain && !colons {
                let at = at.key("verifyCertificateHash");
                let message = "a SHA-256 hash has 64 hexadecimal digits, with or without colons \
                               between the bytes";
                f.error(&at.index(index), Code::InvalidValue, message);
            }
        }
        for (index, name) in self.subject_alt_names.iter().enumerate() {
            if name.is_empty() {
                let at = at.key("subjectAltNames");
                f.error(&at.index(index), Code::InvalidValue, "the name is empty");
            }
        }
    }

    fn check_names(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let check = |name: &str, at: &Field<'_>, f: &mut Findings<'_>| {
            if let Some(scheme) = SCHEMES.iter().find(|scheme| name.starts_with(**scheme)) {
                let message = format!(
                    "`{scheme}` is not supported yet: the text is taken for the name of a secret"
                );
                f.warn(at, Code::NotSupported, message);
            }
        };
        check(&self.credential_name, &at.key("credentialName"), f);
        check(&self.ca_cert_credential_name, &at.key("caCertCredentialName"), f);
        for (index, name) in self.credential_names.iter().enumerate() {
            let at = at.key("credentialNames");
            if name.is_empty() {
                f.error(&at.index(index), Code::InvalidValue, "the name is empty");
            }
            check(name, &at.index(index), f);
        }
    }

    /// Exactly one source of certificates, and all parts of it.
    fn check_source(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let sources = [
            ("credentialName", !self.credential_name.is_empty()),
            ("credentialNames", !self.credential_names.is_empty()),
            ("tlsCertificates", !self.tls_certificates.is_empty()),
            ("serverCertificate", !self.server_certificate.is_empty()),
        ];
        let mut named = sources.into_iter().filter(|(_, set)| *set).map(|(name, _)| name);
        let first = named.next();
        if let (Some(first), Some(second)) = (first, named.next()) {
            let message =
                format!("`{first}` and `{second}` exclude each other; name the certificates once");
            refuse(&at.key(second), message, f);
            return;
        }
        let mode = self.mode.as_str();
        let verifies = self.mode != Mode::Simple;
        if matches!(first, Some("credentialName" | "credentialNames")) {
            if !self.ca_crl.is_empty() {
                let message = "with secrets the revocation list comes from the secret, so `caCrl` \
                               is not used";
                f.warn(&at.key("caCrl"), Code::NoEffect, message);
            }
            if !self.ca_certificates.is_empty() {
                let message = "with secrets the authorities come from the secret, so \
                               `caCertificates` is not used";
                f.warn(&at.key("caCertificates"), Code::NoEffect, message);
            }
            return;
        }
        if first == Some("tlsCertificates") {
            self.check_certificates(at, f);
        } else {
            let missing = match (self.server_certificate.as_str(), self.private_key.as_str()) {
                ("", "") => Some("there is none"),
                ("", _) => Some("`serverCertificate` is missing"),
                (_, "") => Some("`privateKey` is missing"),
                _ => None,
            };
            if let Some(missing) = missing {
                let message = format!(
                    "{mode} needs a certificate, and {missing}; give `credentialName`, or both \
                     `serverCertificate` and `privateKey`"
                );
                f.error(at, Code::MissingField, message);
            }
        }
        let ca = !self.ca_certificates.is_empty() || !self.ca_cert_credential_name.is_empty();
        if verifies && !ca {
            let message = format!("{mode} needs `caCertificates` to verify clients with");
            f.error(at, Code::MissingField, message);
        }
        if !verifies && !self.ca_crl.is_empty() {
            let message = "SIMPLE asks for no client certificate; remove `caCrl`";
            refuse(&at.key("caCrl"), message.to_owned(), f);
        }
    }

    fn check_certificates(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let at = at.key("tlsCertificates");
        if self.tls_certificates.len() > 2 {
            let message = "Istio reads two certificates at most, one for RSA and one for ECDSA";
            f.warn(&at, Code::NoEffect, message);
        }
        for (index, certificate) in self.tls_certificates.iter().enumerate() {
            let at = at.index(index);
            for (name, text) in [
                ("serverCertificate", &certificate.server_certificate),
                ("privateKey", &certificate.private_key),
            ] {
                if text.is_empty() {
                    f.error(&at, Code::MissingField, format!("`{name}` is missing"));
                }
            }
            if !certificate.ca_certificates.is_empty() {
                let message = "not used here; set `caCertificates` of the whole `tls`";
                f.warn(&at.key("caCertificates"), Code::NoEffect, message);
            }
        }
    }

    /// What the settings at this field mean. Findings about them point at the credential, where
    /// there is one: that is what can be missing.
    pub fn lower(&self, at: &Field<'_>, document: &RawDocument) -> ServerTls {
        let span = match (self.credential_names.is_empty(), self.credential_name.is_empty()) {
            (false, _) => document.span(&at.key("credentialNames")),
            (true, false) => document.span(&at.key("credentialName")),
            (true, true) => document.span(at),
        };
        let name = |text: &str| Arc::from(text.strip_prefix("kubernetes://").unwrap_or(text));
        let file = |text: &String| (!text.is_empty()).then(|| Arc::from(text.as_str()));
        let certificates = if !self.credential_names.is_empty() {
            CertificateSource::Credentials(self.credential_names.iter().map(|n| name(n)).collect())
        } else if !self.credential_name.is_empty() {
            CertificateSource::Credentials(vec![name(&self.credential_name)])
        } else if !self.tls_certificates.is_empty() {
            let pair = |c: &TlsCertificate| {
                (c.server_certificate.as_str().into(), c.private_key.as_str().into())
            };
            CertificateSource::Files(self.tls_certificates.iter().map(pair).collect())
        } else if !self.server_certificate.is_empty() {
            let pair = (self.server_certificate.as_str().into(), self.private_key.as_str().into());
            CertificateSource::Files(vec![pair])
        } else {
            CertificateSource::None
        };
        let ca = if !self.mode.lower().verifies_clients() {
            CaSource::None
        } else if !self.ca_cert_credential_name.is_empty() {
            CaSource::Credential(name(&self.ca_cert_credential_name))
        } else {
            match (&certificates, file(&self.ca_certificates)) {
                (CertificateSource::Credentials(names), _) => match names.first() {
                    Some(first) => CaSource::Credential(first.clone()),
                    None => CaSource::None,
                },
                (_, Some(path)) => CaSource::File(path),
                (_, None) => CaSource::None,
            }
        };
        let mut cipher_suites: Vec<String> = Vec::new();
        for suite in self.cipher_suites.iter().filter(|suite| rules::is_cipher_suite(suite)) {
            if !cipher_suites.contains(suite) {
                cipher_suites.push(suite.clone());
            }
        }
        ServerTls {
            https_redirect: self.https_redirect,
            mode: self.mode.lower(),
            certificates,
            ca,
            crl_file: file(&self.ca_crl),
            subject_alt_names: self.subject_alt_names.clone(),
            verify_certificate_spki: self.verify_certificate_spki.clone(),
            verify_certificate_hash: self.verify_certificate_hash.clone(),
            min_version: self.min_protocol_version.lower(),
            max_version: self.max_protocol_version.lower(),
            cipher_suites,
            ecdh_curves: Vec::new(),
            insecure_skip_verify: self.insecure_skip_verify.unwrap_or(false),
            span,
        }
    }
}

/// The field must not stand here; points at its key.
fn refuse(at: &Field<'_>, message: String, f: &mut Findings<'_>) {
    let span = f.key_span(at);
    f.report(at, Diagnostic::new(Code::ConflictingFields, message).at(span));
}

//! `tls`: how the proxy secures its connections to the upstream.

use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;

/// How credentials that are ConfigMaps are named: `configmap://namespace/name`.
pub const CONFIG_MAP: &str = "configmap://";

/// How the proxy secures its connections to the upstream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClientTls {
    /// What is done.
    #[serde(default)]
    pub mode: TlsMode,
    /// File with the client's certificate, on the proxy's machine.
    #[serde(default)]
    pub client_certificate: String,
    /// File with the client's private key, on the proxy's machine.
    #[serde(default)]
    pub private_key: String,
    /// File with the authorities that servers are verified with; unset is the system's.
    #[serde(default)]
    pub ca_certificates: String,
    /// Secret with certificates, instead of files.
    #[serde(default)]
    pub credential_name: String,
    /// Names of which the server's certificate must have one.
    #[serde(default)]
    pub subject_alt_names: Vec<String>,
    /// Server name to ask for; unset is the request's host.
    #[serde(default)]
    pub sni: String,
    /// Accepts any certificate of the server.
    pub insecure_skip_verify: Option<bool>,
    /// File with revoked certificates, on the proxy's machine.
    #[serde(default)]
    pub ca_crl: String,
}

/// What is done to secure a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum TlsMode {
    /// Plain text.
    #[default]
    Disable,
    /// TLS; the server shows a certificate.
    Simple,
    /// TLS; both sides show a certificate.
    Mutual,
    /// TLS; both sides show certificates of the mesh.
    IstioMutual,
}

impl ClientTls {
    /// Istio's rules.
    pub fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        self.check_verification(at, f);
        let explicit = matches!(self.mode, TlsMode::Simple | TlsMode::Mutual);
        if explicit && !self.credential_name.is_empty() {
            for (name, value) in [
                ("clientCertificate", &self.client_certificate),
                ("privateKey", &self.private_key),
                ("caCertificates", &self.ca_certificates),
                ("caCrl", &self.ca_crl),
            ] {
                if !value.is_empty() {
                    let message = "files and `credentialName` exclude each other; keep one";
                    f.error(&at.key(name), Code::ConflictingFields, message);
                }
            }
        } else if self.mode == TlsMode::Mutual {
            for (name, value) in
                [("clientCertificate", &self.client_certificate), ("privateKey", &self.private_key)]
            {
                if value.is_empty() {
                    let message = format!("`mode: MUTUAL` needs `{name}`, or `credentialName`");
                    f.error(at, Code::MissingField, message);
                }
            }
        }
        self.check_config_map(&at.key("credentialName"), f);
    }

    fn check_verification(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.insecure_skip_verify != Some(true) {
            return;
        }
        let credential = match self.mode {
            TlsMode::Simple => !self.credential_name.is_empty(),
            TlsMode::Mutual => false,
            TlsMode::Disable | TlsMode::IstioMutual => return,
        };
        for (name, set) in [
            ("caCertificates", !self.ca_certificates.is_empty()),
            ("credentialName", credential),
            ("subjectAltNames", !self.subject_alt_names.is_empty()),
        ] {
            if set {
                let message = "the server is not verified with `insecureSkipVerify: true`";
                let diagnostic = Diagnostic::new(Code::ConflictingFields, message)
                    .help(format!("remove `{name}` or `insecureSkipVerify`"));
                f.report(&at.key(name), diagnostic);
            }
        }
    }

    /// A ConfigMap of another namespace is out of reach.
    fn check_config_map(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let Some(name) = self.credential_name.strip_prefix(CONFIG_MAP) else { return };
        let own = &f.document().header.namespace;
        if name
            .split_once('/')
            .is_none_or(|(namespace, name)| *namespace != **own || name.is_empty())
        {
            let message =
                format!("a ConfigMap must be of this namespace: `{CONFIG_MAP}{own}/NAME`");
            f.error(at, Code::InvalidValue, message);
        } else {
            let message = "certificates from ConfigMaps are not supported yet; use a Secret";
            f.warn(at, Code::NotSupported, message);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::ClientTls {
        model::ClientTls {
            mode: match self.mode {
                TlsMode::Disable => model::ClientTlsMode::Disable,
                TlsMode::Simple => model::ClientTlsMode::Simple,
                TlsMode::Mutual => model::ClientTlsMode::Mutual,
                TlsMode::IstioMutual => model::ClientTlsMode::IstioMutual,
            },
            client_certificate: self.client_certificate.clone(),
            private_key: self.private_key.clone(),
            ca_certificates: self.ca_certificates.clone(),
            credential_name: (!self.credential_name.is_empty())
                .then(|| Arc::from(self.credential_name.as_str())),
            subject_alt_names: self.subject_alt_names.clone(),
            sni: self.sni.clone(),
            insecure_skip_verify: self.insecure_skip_verify.unwrap_or_default(),
            ca_crl: self.ca_crl.clone(),
            min_version: None,
        }
    }
}

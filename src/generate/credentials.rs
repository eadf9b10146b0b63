//! Credentials: from a `credentialName` to the secret that SDS serves. Everything that refers to a
//! secret (TLS contexts of listeners and clusters) and SDS itself go through here, so that a proxy
//! gets exactly the secrets that its configuration names.
//!
//! A context whose secret cannot be served must not be emitted: Envoy would wait for it, and a
//! state-of-the-world stream has no way to say that there is none.

use super::names;
use crate::diag::Code;
use crate::model::{Namespace, PrivateBytes, Secret, Secrets};
use crate::xds::pb;
use std::fmt;
use std::sync::Arc;

/// A part of a credential as one SDS resource.
#[derive(Debug, Clone, PartialEq)]
pub struct SecretUse<'a> {
    /// The name of the resource.
    pub name: String,
    /// What it holds.
    pub material: Material<'a>,
}

/// What an SDS resource holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Material<'a> {
    /// A certificate chain and its key.
    Certificate {
        /// The chain, PEM.
        chain: &'a Arc<[u8]>,
        /// The key, PEM.
        key: &'a PrivateBytes,
    },
    /// What peers are verified with.
    Validation {
        /// Certificate authorities, PEM.
        ca: &'a Arc<[u8]>,
        /// Revocation list, PEM.
        crl: Option<&'a Arc<[u8]>>,
    },
}

/// Why a credential cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialFault {
    /// There is none of that name.
    Missing,
    /// It has no certificate or no key.
    NoCertificate,
    /// It has no certificate authority.
    NoCa,
}

impl CredentialFault {
    /// The code of the finding.
    pub fn code(self) -> Code {
        match self {
            CredentialFault::Missing => Code::UnknownSecret,
            CredentialFault::NoCertificate | CredentialFault::NoCa => Code::BadSecret,
        }
    }
}

impl fmt::Display for CredentialFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CredentialFault::Missing => "there is no such secret",
            CredentialFault::NoCertificate => "the secret has no certificate and key",
            CredentialFault::NoCa => "the secret has no ca.crt",
        })
    }
}

/// The certificate and key of a credential.
///
/// # Errors
///
/// When there is no such secret or it lacks one of the two.
pub fn certificate<'a>(
    secrets: &'a Secrets,
    proxy: &Namespace,
    owner: &Namespace,
    name: &str,
) -> Result<SecretUse<'a>, CredentialFault> {
    let secret = secrets.get(owner, name).ok_or(CredentialFault::Missing)?;
    let (Some(chain), Some(key)) = (&secret.certificate_chain, &secret.private_key) else {
        return Err(CredentialFault::NoCertificate);
    };
    let material = Material::Certificate { chain, key };
    Ok(SecretUse { name: names::secret(proxy, owner, name), material })
}

/// The certificate authorities of a credential: those of the secret `<name>-cacert` when there is
/// one, else those of the secret itself (Istio's order).
///
/// # Errors
///
/// When there is neither, or no certificate authority in it.
pub fn validation<'a>(
    secrets: &'a Secrets,
    proxy: &Namespace,
    owner: &Namespace,
    name: &str,
) -> Result<SecretUse<'a>, CredentialFault> {
    let of = |name: &str| secrets.get(owner, name).map(|secret| &**secret);
    let has_ca = |secret: &&Secret| secret.ca.is_some();
    let separate = of(&format!("{name}-cacert"));
    let found = separate.filter(has_ca).or(of(name).filter(has_ca));
    let Some((secret, ca)) = found.and_then(|s| s.ca.as_ref().map(|ca| (s, ca))) else {
        let exists = separate.is_some() || of(name).is_some();
        return Err(if exists { CredentialFault::NoCa } else { CredentialFault::Missing });
    };
    let material = Material::Validation { ca, crl: secret.crl.as_ref() };
    Ok(SecretUse { name: names::secret_ca(proxy, owner, name), material })
}

impl SecretUse<'_> {
    /// The reference that a TLS context holds. The fetch timeout is Envoy's default: with none, one
    /// secret that cannot be served would keep every listener closed at boot.
    pub fn reference(&self) -> pb::tls::SdsSecretConfig {
        pb::tls::SdsSecretConfig { name: self.name.clone(), sds_config: Some(ads()) }
    }

    /// The resource.
    pub fn resource(&self) -> pb::tls::Secret {
        use pb::tls::secret::Type;
        let content = match self.material {
            Material::Certificate { chain, key } => Type::TlsCertificate(pb::tls::TlsCertificate {
                certificate_chain: Some(inline(chain)),
                private_key: Some(inline(key.expose())),
                ..Default::default()
            }),
            Material::Validation { ca, crl } => {
                Type::ValidationContext(pb::tls::CertificateValidationContext {
                    trusted_ca: Some(inline(ca)),
                    crl: crl.map(|crl| inline(crl)),
                    ..Default::default()
                })
            }
        };
        pb::tls::Secret { name: self.name.clone(), r#type: Some(content) }
    }
}

/// "By the stream that this came from."
pub fn ads() -> pb::core::ConfigSource {
    use pb::core::config_source::ConfigSourceSpecifier;
    pb::core::ConfigSource {
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(
            pb::core::AggregatedConfigSource {},
        )),
        resource_api_version: pb::core::ApiVersion::V3.into(),
        ..Default::default()
    }
}

fn inline(bytes: &[u8]) -> pb::core::DataSource {
    pb::core::DataSource {
        specifier: Some(pb::core::data_source::Specifier::InlineBytes(bytes.to_vec())),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SecretKey;

    fn secrets(secrets: &[(&str, Secret)]) -> Secrets {
        let key = |name: &str| SecretKey { namespace: Some("default".into()), name: name.into() };
        Secrets::new(secrets.iter().map(|(name, secret)| (key(name), Arc::new(secret.clone()))))
    }

    fn secret(certificate: Option<&str>, ca: Option<&str>) -> Secret {
        let bytes = |text: &str| Arc::<[u8]>::from(text.as_bytes());
        Secret {
            origin: None,
            certificate_chain: certificate.map(bytes),
            private_key: certificate.map(|text| PrivateBytes::new(bytes(text))),
            ca: ca.map(bytes),
            crl: None,
        }
    }

    fn ca_of(secrets: &Secrets, name: &str) -> Result<String, CredentialFault> {
        let own = Namespace::from("default");
        validation(secrets, &own, &own, name).map(|found| match found.material {
            Material::Validation { ca, .. } => String::from_utf8_lossy(ca).into_owned(),
            Material::Certificate { .. } => panic!("a validation context was asked for"),
        })
    }

    #[test]
    fn a_separate_ca_secret_wins_over_the_ca_of_the_secret_itself() {
        let both = secrets(&[
            ("x", secret(Some("chain"), Some("own"))),
            ("x-cacert", secret(None, Some("separate"))),
        ]);
        assert_eq!(ca_of(&both, "x"), Ok("separate".to_owned()));
        let one = secrets(&[("x", secret(Some("chain"), Some("own")))]);
        assert_eq!(ca_of(&one, "x"), Ok("own".to_owned()));
    }

    #[test]
    fn faults_say_what_is_missing() {
        let stored = secrets(&[("x", secret(Some("chain"), None)), ("y", secret(None, None))]);
        let own = Namespace::from("default");
        assert_eq!(ca_of(&stored, "x"), Err(CredentialFault::NoCa));
        assert_eq!(ca_of(&stored, "z"), Err(CredentialFault::Missing));
        let fault = certificate(&stored, &own, &own, "y").expect_err("it has no key");
        assert_eq!(fault, CredentialFault::NoCertificate);
    }

    #[test]
    fn the_resource_has_the_name_of_the_reference() {
        let stored = secrets(&[("x", secret(Some("chain"), None))]);
        let own = Namespace::from("default");
        let used = certificate(&stored, &"edge".into(), &own, "x").expect("it is there");
        assert_eq!(used.reference().name, "kubernetes-gateway://default/x");
        assert_eq!(used.resource().name, used.reference().name);
        assert_eq!(used.reference().sds_config.expect("by ADS").initial_fetch_timeout, None);
    }
}

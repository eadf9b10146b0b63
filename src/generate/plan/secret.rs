//! Credentials: from a `credentialName` to the secret that SDS serves. Everything that refers to a
//! secret (TLS contexts of listeners and clusters) and SDS itself go through here, so that a proxy
//! gets exactly the secrets that its configuration names.
//!
//! A context whose secret cannot be served must not be emitted: Envoy would wait for it, and a
//! state-of-the-world stream has no way to say that there is none.

use super::Because;
use crate::diag::Code;
use crate::generate::names;
use crate::model::{self, Namespace, PrivateBytes, Secrets};
use std::fmt;
use std::sync::Arc;

/// A part of a credential, as one SDS resource. Cloning shares the material.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The name of the resource.
    pub name: Arc<str>,
    /// Why a proxy may get it: the document that it is in.
    pub because: Because,
    /// What it holds.
    pub material: Material,
}

/// What an SDS resource holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Material {
    /// A certificate chain and its key.
    Certificate {
        /// The chain, PEM.
        chain: Arc<[u8]>,
        /// The key, PEM.
        key: PrivateBytes,
    },
    /// What peers are verified with.
    Validation {
        /// Certificate authorities, PEM.
        ca: Arc<[u8]>,
        /// Revocation list, PEM.
        crl: Option<Arc<[u8]>>,
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
pub fn certificate(
    secrets: &Secrets,
    proxy: &Namespace,
    owner: &Namespace,
    name: &str,
) -> Result<Secret, CredentialFault> {
    let secret = secrets.get(owner, name).ok_or(CredentialFault::Missing)?;
    let (Some(chain), Some(key)) = (&secret.certificate_chain, &secret.private_key) else {
        return Err(CredentialFault::NoCertificate);
    };
    Ok(Secret {
        name: names::secret(proxy, owner, name).into(),
        because: because(secret),
        material: Material::Certificate { chain: chain.clone(), key: key.clone() },
    })
}

/// The certificate authorities of a credential: those of the secret `<name>-cacert` when there is
/// one, else those of the secret itself (Istio's order).
///
/// # Errors
///
/// When there is neither, or no certificate authority in it.
pub fn validation(
    secrets: &Secrets,
    proxy: &Namespace,
    owner: &Namespace,
    name: &str,
) -> Result<Secret, CredentialFault> {
    let of = |name: &str| secrets.get(owner, name).map(|secret| &**secret);
    let has_ca = |secret: &&model::Secret| secret.ca.is_some();
    let separate = of(&format!("{name}-cacert"));
    let found = separate.filter(has_ca).or(of(name).filter(has_ca));
    let Some((secret, ca)) = found.and_then(|s| s.ca.as_ref().map(|ca| (s, ca))) else {
        let exists = separate.is_some() || of(name).is_some();
        return Err(if exists { CredentialFault::NoCa } else { CredentialFault::Missing });
    };
    Ok(Secret {
        name: names::secret_ca(proxy, owner, name).into(),
        because: because(secret),
        material: Material::Validation { ca: ca.clone(), crl: secret.crl.clone() },
    })
}

fn because(secret: &model::Secret) -> Because {
    match &secret.origin {
        Some(origin) => Because::of("a credential that is named", origin, &origin.span),
        None => Because::always("a credential in the secrets directory that is named"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::SecretKey;

    fn secrets(secrets: &[(&str, model::Secret)]) -> Secrets {
        let key = |name: &str| SecretKey { namespace: Some("default".into()), name: name.into() };
        Secrets::new(secrets.iter().map(|(name, secret)| (key(name), Arc::new(secret.clone()))))
    }

    fn secret(certificate: Option<&str>, ca: Option<&str>) -> model::Secret {
        let bytes = |text: &str| Arc::<[u8]>::from(text.as_bytes());
        model::Secret {
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
            Material::Validation { ca, .. } => String::from_utf8_lossy(&ca).into_owned(),
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
    fn a_secret_is_named_after_its_namespace_unless_that_is_the_proxys() {
        let stored = secrets(&[("x", secret(Some("chain"), None))]);
        let own = Namespace::from("default");
        let name = |proxy: &str| certificate(&stored, &proxy.into(), &own, "x").map(|s| s.name);
        assert_eq!(name("edge").as_deref(), Ok("kubernetes-gateway://default/x"));
        assert_eq!(name("default").as_deref(), Ok("kubernetes://x"));
    }
}

//! Secrets, and the references to them in TLS contexts.

use crate::generate::plan::secret::{Material, Secret};
use crate::xds::pb::{self, core, tls};

/// The SDS resource.
pub fn secret(secret: &Secret) -> tls::Secret {
    use tls::secret::Type;
    let content = match &secret.material {
        Material::Certificate { chain, key } => Type::TlsCertificate(tls::TlsCertificate {
            certificate_chain: Some(inline(chain)),
            private_key: Some(inline(key.expose())),
            ..Default::default()
        }),
        Material::Validation { ca, crl } => {
            Type::ValidationContext(tls::CertificateValidationContext {
                trusted_ca: Some(inline(ca)),
                crl: crl.as_deref().map(inline),
                ..Default::default()
            })
        }
    };
    tls::Secret { name: secret.name.to_string(), r#type: Some(content) }
}

/// What a TLS context holds in place of the secret of this name. The fetch timeout is Envoy's
/// default: with none, one secret that cannot be served would keep every listener closed at boot.
pub fn reference(name: &str) -> tls::SdsSecretConfig {
    tls::SdsSecretConfig { name: name.to_owned(), sds_config: Some(ads()) }
}

/// "By the stream that this came from."
pub fn ads() -> core::ConfigSource {
    use pb::core::config_source::ConfigSourceSpecifier;
    core::ConfigSource {
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(core::AggregatedConfigSource {})),
        resource_api_version: core::ApiVersion::V3.into(),
        ..Default::default()
    }
}

fn inline(bytes: &[u8]) -> core::DataSource {
    core::DataSource {
        specifier: Some(pb::core::data_source::Specifier::InlineBytes(bytes.to_vec())),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::plan::Because;
    use crate::model::PrivateBytes;

    #[test]
    fn the_resource_has_the_name_of_the_reference() {
        let used = Secret {
            name: "kubernetes://x".into(),
            because: Because::always("a test"),
            material: Material::Certificate {
                chain: b"chain"[..].into(),
                key: PrivateBytes::new(*b"key"),
            },
        };
        assert_eq!(secret(&used).name, reference(&used.name).name);
        let by_ads = reference(&used.name).sds_config.expect("by ADS");
        assert_eq!(by_ads.initial_fetch_timeout, None);
    }
}

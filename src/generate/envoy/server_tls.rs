//! TLS that ends at the proxy.

use super::secret::reference;
use super::tls::{certificate_files, file, subject_alt_name, version};
use crate::generate::plan::listener::{
    Authorities, Certificates, ClientCheck, TlsParameters, TlsTermination,
};
use crate::xds::pb::{self, core, tls};
use tls::common_tls_context::{CombinedCertificateValidationContext, ValidationContextType};

/// The transport socket of a filter chain that ends TLS.
pub(super) fn transport_socket(planned: &TlsTermination) -> core::TransportSocket {
    let context = tls::DownstreamTlsContext {
        require_client_certificate: Some(pb::bool_value(planned.requires_client_certificate)),
        common_tls_context: Some(common(planned)),
        ..Default::default()
    };
    pb::transport_socket("envoy.transport_sockets.tls", &context)
}

fn common(planned: &TlsTermination) -> tls::CommonTlsContext {
    let (secrets, files) = match &planned.certificates {
        Certificates::Secrets(names) => {
            (names.iter().map(|name| reference(name)).collect(), Vec::new())
        }
        Certificates::Files(files) => {
            (Vec::new(), files.iter().map(|(chain, key)| certificate_files(chain, key)).collect())
        }
    };
    tls::CommonTlsContext {
        tls_params: parameters(&planned.parameters),
        tls_certificates: files,
        tls_certificate_sds_secret_configs: secrets,
        alpn_protocols: vec!["h2".to_owned(), "http/1.1".to_owned()],
        validation_context_type: planned.clients.as_ref().map(validation),
        ..Default::default()
    }
}

fn validation(clients: &ClientCheck) -> ValidationContextType {
    let mut context = tls::CertificateValidationContext {
        match_typed_subject_alt_names: clients
            .subject_alt_names
            .iter()
            .map(|name| subject_alt_name(name))
            .collect(),
        verify_certificate_spki: clients.spki_hashes.clone(),
        verify_certificate_hash: clients.hashes.clone(),
        ..Default::default()
    };
    if clients.accepts_unverified {
        context.set_trust_chain_verification(
            tls::certificate_validation_context::TrustChainVerification::AcceptUntrusted,
        );
    }
    match &clients.authorities {
        Authorities::Secret(name) => {
            ValidationContextType::CombinedValidationContext(CombinedCertificateValidationContext {
                default_validation_context: Some(context),
                validation_context_sds_secret_config: Some(reference(name)),
                ..Default::default()
            })
        }
        Authorities::File { ca, crl } => {
            context.trusted_ca = Some(file(ca));
            context.crl = crl.as_deref().map(file);
            ValidationContextType::ValidationContext(context)
        }
        Authorities::Nobody => ValidationContextType::ValidationContext(context),
    }
}

/// Versions and algorithms, where any are chosen.
fn parameters(planned: &TlsParameters) -> Option<tls::TlsParameters> {
    let mut parameters = tls::TlsParameters {
        cipher_suites: planned.cipher_suites.clone(),
        ecdh_curves: planned.ecdh_curves.clone(),
        ..Default::default()
    };
    if let Some(chosen) = planned.min_version {
        parameters.set_tls_minimum_protocol_version(version(chosen));
    }
    if let Some(chosen) = planned.max_version {
        parameters.set_tls_maximum_protocol_version(version(chosen));
    }
    (parameters != tls::TlsParameters::default()).then_some(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TlsVersion;

    #[test]
    fn the_authorities_of_a_secret_are_fetched_beside_the_other_checks() {
        let planned = TlsTermination {
            parameters: TlsParameters {
                min_version: Some(TlsVersion::V1_2),
                ..TlsParameters::default()
            },
            certificates: Certificates::Secrets(vec!["kubernetes://cert".into()]),
            requires_client_certificate: true,
            clients: Some(ClientCheck {
                authorities: Authorities::Secret("kubernetes://cert-cacert".into()),
                subject_alt_names: vec!["client.x".into()],
                spki_hashes: Vec::new(),
                hashes: Vec::new(),
                accepts_unverified: false,
            }),
        };
        let common = common(&planned);
        assert_eq!(common.alpn_protocols, ["h2", "http/1.1"]);
        assert_eq!(common.tls_params.expect("parameters").tls_minimum_protocol_version, 3);
        let certificate = &common.tls_certificate_sds_secret_configs[0];
        assert_eq!(certificate.name, "kubernetes://cert");
        let by_ads = certificate.sds_config.as_ref().expect("by ADS");
        assert_eq!(by_ads.initial_fetch_timeout, None);
        match common.validation_context_type {
            Some(ValidationContextType::CombinedValidationContext(context)) => {
                let ca = context.validation_context_sds_secret_config.expect("a CA");
                assert_eq!(ca.name, "kubernetes://cert-cacert");
                let own = context.default_validation_context.expect("the other checks");
                assert_eq!(own.match_typed_subject_alt_names.len(), 1);
            }
            other => panic!("a combined context was expected: {other:?}"),
        }
    }
}

//! TLS to upstreams, and what TLS contexts of both directions have in common.

use super::secret;
use crate::generate::plan::cluster::{Identity, Trust, UpstreamTls};
use crate::model::{ProxyProtocolVersion, TlsVersion};
use crate::xds::pb::{self, core, tls};
use std::net::IpAddr;
use tls::common_tls_context::{CombinedCertificateValidationContext, ValidationContextType};
use tls::tls_parameters::TlsProtocol;

/// The transport socket of a cluster, where it is not plain text without anything before it.
pub(super) fn upstream_socket(
    planned: Option<&UpstreamTls>,
    proxy_protocol: Option<ProxyProtocolVersion>,
) -> Option<core::TransportSocket> {
    let socket = planned.map(|planned| {
        let context = tls::UpstreamTlsContext {
            common_tls_context: Some(common(planned)),
            sni: planned.sni.clone(),
            ..Default::default()
        };
        pb::transport_socket("envoy.transport_sockets.tls", &context)
    });
    match proxy_protocol {
        None => socket,
        Some(version) => Some(behind_proxy_protocol(socket, version)),
    }
}

fn common(planned: &UpstreamTls) -> tls::CommonTlsContext {
    let (files, secret) = match &planned.identity {
        Identity::Nobody => (None, None),
        Identity::Files { chain, key } => (Some(certificate_files(chain, key)), None),
        Identity::Secret(secret) => (None, Some(secret::reference(&secret.name))),
    };
    tls::CommonTlsContext {
        tls_params: Some(tls::TlsParameters {
            tls_minimum_protocol_version: version(planned.min_version).into(),
            tls_maximum_protocol_version: version(TlsVersion::V1_3).into(),
            cipher_suites: planned.defaults.cipher_suites.clone(),
            ecdh_curves: planned.defaults.ecdh_curves.clone(),
            ..Default::default()
        }),
        tls_certificates: files.into_iter().collect(),
        tls_certificate_sds_secret_configs: secret.into_iter().collect(),
        alpn_protocols: if planned.offers_http2 { vec!["h2".to_owned()] } else { Vec::new() },
        validation_context_type: Some(validation(planned)),
        ..Default::default()
    }
}

fn validation(planned: &UpstreamTls) -> ValidationContextType {
    let context = tls::CertificateValidationContext {
        match_typed_subject_alt_names: planned.names.iter().map(|n| subject_alt_name(n)).collect(),
        ..Default::default()
    };
    match &planned.trust {
        Trust::Anybody => ValidationContextType::ValidationContext(context),
        Trust::File { ca, crl } => {
            ValidationContextType::ValidationContext(tls::CertificateValidationContext {
                trusted_ca: Some(file(ca)),
                crl: crl.as_deref().map(file),
                ..context
            })
        }
        Trust::Secret(secret) => {
            ValidationContextType::CombinedValidationContext(CombinedCertificateValidationContext {
                default_validation_context: Some(context),
                validation_context_sds_secret_config: Some(secret::reference(&secret.name)),
                ..Default::default()
            })
        }
    }
}

/// Sends a PROXY protocol header before what the socket sends.
fn behind_proxy_protocol(
    socket: Option<core::TransportSocket>,
    version: ProxyProtocolVersion,
) -> core::TransportSocket {
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
        config: Some(core::ProxyProtocolConfig { version: version.into(), ..Default::default() }),
        transport_socket: Some(inner),
        ..Default::default()
    };
    pb::transport_socket("envoy.transport_sockets.upstream_proxy_protocol", &wrapper)
}

/// Matches one name in a certificate, of the type that it looks like.
pub fn subject_alt_name(name: &str) -> tls::SubjectAltNameMatcher {
    use tls::subject_alt_name_matcher::SanType;
    let san_type = if name.contains("://") {
        SanType::Uri
    } else if name.parse::<IpAddr>().is_ok() {
        SanType::IpAddress
    } else if name.contains('@') {
        SanType::Email
    } else {
        SanType::Dns
    };
    let exact = pb::matcher::string_matcher::MatchPattern::Exact(name.to_owned());
    tls::SubjectAltNameMatcher {
        san_type: san_type.into(),
        matcher: Some(pb::matcher::StringMatcher {
            match_pattern: Some(exact),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// A version.
pub fn version(version: TlsVersion) -> TlsProtocol {
    match version {
        TlsVersion::V1_0 => TlsProtocol::TlSv10,
        TlsVersion::V1_1 => TlsProtocol::TlSv11,
        TlsVersion::V1_2 => TlsProtocol::TlSv12,
        TlsVersion::V1_3 => TlsProtocol::TlSv13,
    }
}

/// A certificate and its key in files.
pub fn certificate_files(chain: &str, key: &str) -> tls::TlsCertificate {
    tls::TlsCertificate {
        certificate_chain: Some(file(chain)),
        private_key: Some(file(key)),
        ..Default::default()
    }
}

/// A file as the proxy sees it.
pub fn file(path: &str) -> core::DataSource {
    core::DataSource {
        specifier: Some(core::data_source::Specifier::Filename(path.to_owned())),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tls::subject_alt_name_matcher::SanType;

    #[test]
    fn a_name_is_matched_as_what_it_looks_like() {
        for (name, expected) in [
            ("spiffe://td/ns/a/sa/b", SanType::Uri),
            ("10.0.0.1", SanType::IpAddress),
            ("fd00::1", SanType::IpAddress),
            ("a@b.example", SanType::Email),
            ("b.example", SanType::Dns),
        ] {
            assert_eq!(subject_alt_name(name).san_type, i32::from(expected), "{name}");
        }
    }
}

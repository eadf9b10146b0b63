//! Istio's MeshConfig, from a file without `apiVersion` and `kind`: settings of the whole mesh.

mod lower;
mod providers;
mod proxy_config;
mod spec;
#[cfg(test)]
mod tests;
mod unsupported;

use super::traffic_policy::OutlierDetection;
use super::virtual_service::check_retry;
use super::{Unsupported, format_string, rules, values};
use crate::config::{Field, Findings, SourceFile, read_nameless};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::model::MeshSettings;
use spec::{AccessLogEncoding, Spec, TlsConfig};
use std::time::Duration;

/// What findings call the file.
const KIND: &str = "MeshConfig";

/// Istio's limit: a proxy that waits longer to connect helps nobody.
const LONGEST_CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Curves that Envoy (BoringSSL) knows.
const CURVES: [&str; 5] = ["P-256", "P-384", "P-521", "X25519", "X25519MLKEM768"];

/// The fields of an object, which this file has not.
const OBJECT_FIELDS: [&str; 2] = ["apiVersion", "kind"];

/// The settings that a mesh configuration file makes, Istio's defaults where it says nothing.
/// `None` when it cannot be used; the reasons are then in `diags`.
pub fn mesh_settings(source: &SourceFile, diags: &mut Diagnostics) -> Option<MeshSettings> {
    let document = match read_nameless(source, KIND) {
        Ok(document) => document,
        Err(found) => {
            diags.extend(found);
            return None;
        }
    };
    if let Some(name) = OBJECT_FIELDS.iter().find(|name| document.root.get(name).is_some()) {
        let root = Field::DOCUMENT;
        let field = root.key(name);
        let mut findings = Findings::new(&document, diags);
        let message = "the mesh configuration is no configuration object";
        let diagnostic =
            Diagnostic::new(Code::MeshConfig, message).at(findings.key_span(&field)).help(
                "name a file that starts with fields such as `trustDomain` and `defaultConfig`; \
                 in an IstioOperator that is the content of `meshConfig`",
            );
        findings.report(&field, diagnostic);
        return None;
    }
    let spec: Spec = crate::config::decode(&document, "", diags)?;
    let mut findings = Findings::new(&document, diags);
    spec.check(&mut findings);
    super::unsupported::warn(unsupported::UNSUPPORTED, &mut findings);
    if findings.has_errors() { None } else { Some(lower::settings(&spec)) }
}

/// The JSON Schema of the mesh configuration.
pub fn mesh_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    generator.subschema_for::<Spec>()
}

/// The fields of the mesh configuration that are read but have no meaning yet.
pub fn mesh_unsupported() -> &'static [Unsupported] {
    unsupported::UNSUPPORTED
}

impl Spec {
    fn check(&self, f: &mut Findings<'_>) {
        let at = Field::DOCUMENT;
        for (name, port) in [
            ("proxyListenPort", self.proxy_listen_port),
            ("proxyInboundListenPort", self.proxy_inbound_listen_port),
        ] {
            if let Some(port) = port {
                rules::port(f, &at.key(name), port);
            }
        }
        self.check_durations(f);
        self.check_names(f);
        self.check_access_log(f);
        for (name, list) in [
            ("defaultServiceExportTo", &self.default_service_export_to),
            ("defaultVirtualServiceExportTo", &self.default_virtual_service_export_to),
            ("defaultDestinationRuleExportTo", &self.default_destination_rule_export_to),
        ] {
            rules::export_to(f, &at.key(name), list, rules::Tilde::Allowed);
        }
        // DestinationRules bring the outlier detection that failover needs.
        let outlier = OutlierDetection::default();
        if let Some(setting) = &self.locality_lb_setting {
            setting.check(&at.key("localityLbSetting"), Some(&outlier), f);
        }
        if let Some(setting) = &self.zone_aware_lb_setting {
            setting.check(&at.key("zoneAwareLbSetting"), Some(&outlier), f);
        }
        if let Some(retry) = &self.default_http_retry_policy {
            check_retry(retry, &at.key("defaultHttpRetryPolicy"), f);
        }
        if let Some(tls) = &self.tls_defaults {
            tls.check(&at.key("tlsDefaults"), f);
        }
        if let Some(policy) = &self.default_traffic_policy {
            let at = at.key("defaultTrafficPolicy");
            if let Some(pool) = &policy.connection_pool {
                pool.check(&at.key("connectionPool"), f);
            }
            if let Some(outlier) = &policy.outlier_detection {
                outlier.check(&at.key("outlierDetection"), f);
            }
        }
    }

    fn check_durations(&self, f: &mut Findings<'_>) {
        let at = Field::DOCUMENT;
        if let Some(timeout) = self.connect_timeout {
            let field = at.key("connectTimeout");
            rules::duration(f, &field, timeout);
            if timeout.0 > LONGEST_CONNECT_TIMEOUT {
                f.error(&field, Code::InvalidValue, "the longest timeout is 30s");
            }
        }
        let no_timeout = |d: &values::Duration| d.0.is_zero();
        if let Some(timeout) = self.protocol_detection_timeout.filter(|t| !no_timeout(t)) {
            rules::duration(f, &at.key("protocolDetectionTimeout"), timeout);
        }
        if let Some(rate) = self.dns_refresh_rate {
            rules::duration(f, &at.key("dnsRefreshRate"), rate);
        }
        if let Some(keepalive) = &self.tcp_keepalive {
            keepalive.check(&at.key("tcpKeepalive"), f);
        }
    }

    fn check_names(&self, f: &mut Findings<'_>) {
        let at = Field::DOCUMENT;
        if let Some(domain) = &self.trust_domain {
            trust_domain(&at.key("trustDomain"), domain, f);
        }
        let aliases = at.key("trustDomainAliases");
        for (index, alias) in self.trust_domain_aliases.iter().enumerate() {
            trust_domain(&aliases.index(index), alias, f);
        }
        if let Some(namespace) = self.root_namespace.as_deref().filter(|n| !n.is_empty()) {
            rules::dns_label(f, &at.key("rootNamespace"), "a namespace", namespace);
        }
    }

    /// Envoy refuses a whole listener for one wrong operator.
    fn check_access_log(&self, f: &mut Findings<'_>) {
        let root = Field::DOCUMENT;
        let at = root.key("accessLogFormat");
        if self.access_log_format.is_empty() {
            return;
        }
        let values = match self.access_log_encoding {
            AccessLogEncoding::Text => vec![self.access_log_format.clone()],
            AccessLogEncoding::Json => match lower::json_format(&self.access_log_format) {
                Ok(format) => {
                    for key in format.others {
                        let message = format!(
                            "`{key}` is left out: values that are not strings are not supported yet"
                        );
                        f.warn(&at, Code::NotSupported, message);
                    }
                    format.fields.into_iter().map(|(_, value)| value).collect()
                }
                Err(message) => {
                    f.error(&at, Code::InvalidValue, message);
                    return;
                }
            },
        };
        for value in values {
            if let Err(problem) = format_string::check(&value) {
                let diagnostic =
                    Diagnostic::new(Code::InvalidValue, problem.message).help(problem.help);
                f.report(&at, diagnostic);
            }
        }
        if self.access_log_file.is_empty() {
            let message = "nothing is logged without `accessLogFile`";
            f.warn(&at, Code::NoEffect, message);
        }
    }
}

fn trust_domain(at: &Field<'_>, domain: &str, f: &mut Findings<'_>) {
    if !domain.split('.').all(rules::is_dns_label) {
        let message = format!("`{domain}` is not a trust domain; write it like a DNS name");
        f.error(at, Code::InvalidValue, message);
    }
}

impl TlsConfig {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::cipher_suites(f, &at.key("cipherSuites"), &self.cipher_suites);
        let curves = at.key("ecdhCurves");
        for (index, curve) in self.ecdh_curves.iter().enumerate() {
            if !CURVES.contains(&curve.as_str()) {
                let message = format!("the curve `{curve}` is unknown and left out");
                let diagnostic = Diagnostic::new(Code::NoEffect, message)
                    .help(format!("expected one of {}", CURVES.join(", ")));
                f.report(&curves.index(index), diagnostic);
            }
        }
    }
}

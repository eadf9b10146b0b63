//! From the mesh configuration to the settings of the model, with Istio's defaults.

use super::CURVES;
use super::spec::{
    AccessLogEncoding, InboundPolicyMode, MeshH2Upgrade, NormalizationType, OutboundPolicy,
    OutboundPolicyMode, PathNormalization, Spec, TlsConfig,
};
use crate::kinds::rules;
use crate::kinds::traffic_policy::{
    ConnectionPool, LocalitySetting, OutlierDetection, TcpKeepalive,
};
use crate::kinds::virtual_service::lower_retry;
use crate::model::{self, AccessLog, AccessLogFormat, MeshSettings, Namespace};
use serde_json::Value;
use std::sync::Arc;

/// The settings; what the file does not say is Istio's default.
pub(super) fn settings(spec: &Spec) -> MeshSettings {
    let default = MeshSettings::default();
    let list = |list: &[String], default: Vec<String>| {
        if list.is_empty() { default } else { list.to_vec() }
    };
    let policy = spec.default_traffic_policy.as_ref();
    let topology = spec.default_config.as_ref().and_then(|c| c.gateway_topology.as_ref());
    MeshSettings {
        root_namespace: text(spec.root_namespace.as_ref())
            .map_or(default.root_namespace, Namespace::from),
        domain_suffix: default.domain_suffix,
        trust_domain: text(spec.trust_domain.as_ref()).map_or(default.trust_domain, Arc::from),
        trust_domain_aliases: aliases(&spec.trust_domain_aliases),
        connect_timeout: spec.connect_timeout.map_or(default.connect_timeout, Into::into),
        dns_refresh_rate: spec.dns_refresh_rate.map_or(default.dns_refresh_rate, Into::into),
        tcp_keepalive: spec.tcp_keepalive.as_ref().map(TcpKeepalive::lower),
        proxy_listen_port: spec.proxy_listen_port.unwrap_or(default.proxy_listen_port),
        proxy_inbound_listen_port: spec
            .proxy_inbound_listen_port
            .unwrap_or(default.proxy_inbound_listen_port),
        proxy_http_port: spec.proxy_http_port.unwrap_or(default.proxy_http_port),
        outbound_traffic_policy: spec
            .outbound_traffic_policy
            .as_ref()
            .map_or(default.outbound_traffic_policy, OutboundPolicy::lower),
        inbound_traffic_policy: match spec.inbound_traffic_policy.as_ref().map(|p| p.mode) {
            None | Some(InboundPolicyMode::Passthrough) => model::InboundTrafficPolicy::Passthrough,
            Some(InboundPolicyMode::Localhost) => model::InboundTrafficPolicy::Localhost,
        },
        protocol_detection_timeout: spec
            .protocol_detection_timeout
            .map_or(default.protocol_detection_timeout, Into::into),
        access_log: access_log(spec),
        default_service_visibility: list(
            &spec.default_service_export_to,
            default.default_service_visibility,
        ),
        default_virtual_service_visibility: list(
            &spec.default_virtual_service_export_to,
            default.default_virtual_service_visibility,
        ),
        default_destination_rule_visibility: list(
            &spec.default_destination_rule_export_to,
            default.default_destination_rule_visibility,
        ),
        path_normalization: spec
            .path_normalization
            .as_ref()
            .map_or(default.path_normalization, PathNormalization::lower),
        default_http_retry: spec.default_http_retry_policy.as_ref().map(lower_retry),
        h2_upgrade: match spec.h2_upgrade_policy {
            MeshH2Upgrade::DoNotUpgrade => model::H2Upgrade::DoNotUpgrade,
            MeshH2Upgrade::Upgrade => model::H2Upgrade::Upgrade,
        },
        locality_lb: spec
            .locality_lb_setting
            .as_ref()
            .map_or(default.locality_lb, |setting| Some(LocalitySetting::lower(setting))),
        default_connection_pool: policy
            .and_then(|p| p.connection_pool.as_ref())
            .map(ConnectionPool::lower),
        default_outlier_detection: policy
            .and_then(|p| p.outlier_detection.as_ref())
            .map(OutlierDetection::lower),
        tls_defaults: spec.tls_defaults.as_ref().map(TlsConfig::lower).unwrap_or_default(),
        num_trusted_proxies: topology.map_or(0, |t| t.num_trusted_proxies),
        outbound_cluster_stat_name: spec.outbound_cluster_stat_name.clone(),
        inbound_cluster_stat_name: spec.inbound_cluster_stat_name.clone(),
    }
}

fn text(text: Option<&String>) -> Option<&str> {
    text.map(String::as_str).filter(|text| !text.is_empty())
}

/// Sorted and without repeats (Istio).
fn aliases(aliases: &[String]) -> Vec<Arc<str>> {
    let unique: std::collections::BTreeSet<&str> = aliases.iter().map(String::as_str).collect();
    unique.into_iter().map(Arc::from).collect()
}

fn access_log(spec: &Spec) -> Option<AccessLog> {
    if spec.access_log_file.is_empty() {
        return None;
    }
    let written = Some(spec.access_log_format.as_str()).filter(|format| !format.is_empty());
    Some(AccessLog {
        path: Arc::from(spec.access_log_file.as_str()),
        format: match spec.access_log_encoding {
            AccessLogEncoding::Text => AccessLogFormat::Text(written.map(Arc::from)),
            AccessLogEncoding::Json => AccessLogFormat::Json(
                written.and_then(|format| json_format(format).ok()).map(|format| format.fields),
            ),
        },
    })
}

/// A JSON log format.
pub(super) struct JsonFormat {
    /// Keys and values.
    pub fields: Vec<(String, String)>,
    /// Keys whose value is no text; they are left out.
    pub others: Vec<String>,
}

/// The keys and values of a JSON log format, or why it is none.
pub(super) fn json_format(text: &str) -> Result<JsonFormat, String> {
    let needed = "with `accessLogEncoding: JSON` the format must be a JSON object";
    let value: Value = serde_json::from_str(text).map_err(|error| format!("{needed}: {error}"))?;
    let Value::Object(entries) = value else { return Err(needed.to_owned()) };
    let mut format = JsonFormat { fields: Vec::new(), others: Vec::new() };
    for (key, value) in entries {
        match value {
            Value::String(text) => format.fields.push((key, text)),
            Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::Array(_)
            | Value::Object(_) => format.others.push(key),
        }
    }
    Ok(format)
}

impl OutboundPolicy {
    fn lower(&self) -> model::OutboundTrafficPolicy {
        model::OutboundTrafficPolicy {
            mode: match self.mode {
                OutboundPolicyMode::RegistryOnly => model::OutboundMode::RegistryOnly,
                OutboundPolicyMode::AllowAny | OutboundPolicyMode::AllowAnyDynamicDns => {
                    model::OutboundMode::AllowAny
                }
            },
            egress_proxy: None,
        }
    }
}

impl PathNormalization {
    fn lower(&self) -> model::PathNormalization {
        match self.normalization {
            NormalizationType::Default | NormalizationType::Base => model::PathNormalization::Base,
            NormalizationType::None => model::PathNormalization::None,
            NormalizationType::MergeSlashes => model::PathNormalization::MergeSlashes,
            NormalizationType::DecodeAndMergeSlashes => {
                model::PathNormalization::DecodeAndMergeSlashes
            }
        }
    }
}

impl TlsConfig {
    /// What Envoy does not know is left out: the check has said so.
    fn lower(&self) -> model::TlsDefaults {
        let mut cipher_suites: Vec<String> = Vec::new();
        for suite in self.cipher_suites.iter().filter(|suite| rules::is_cipher_suite(suite)) {
            if !cipher_suites.contains(suite) {
                cipher_suites.push(suite.clone());
            }
        }
        model::TlsDefaults {
            cipher_suites,
            ecdh_curves: self
                .ecdh_curves
                .iter()
                .filter(|curve| CURVES.contains(&curve.as_str()))
                .cloned()
                .collect(),
            min_version: self.min_protocol_version.lower(),
        }
    }
}

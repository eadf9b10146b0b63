//! What a mesh configuration means, what is wrong with others, and what is only said.

use super::*;
use crate::diag::Severity;
use crate::model;

/// The settings, and the findings as lines.
fn read(text: &str) -> (Option<MeshSettings>, Vec<String>) {
    let mut diags = Diagnostics::new();
    let settings = mesh_settings(&SourceFile::new("mesh.yaml", text), &mut diags);
    assert_eq!(settings.is_none(), diags.has_errors(), "it is refused iff it has errors");
    (settings, diags.into_sorted().iter().map(ToString::to_string).collect())
}

fn accepted(text: &str) -> MeshSettings {
    let (settings, found) = read(text);
    assert_eq!(found, Vec::<String>::new(), "{text}");
    settings.expect("it is valid")
}

#[test]
fn an_empty_file_is_istios_defaults() {
    for text in ["", "{}", "# nothing", "defaultConfig: {}", "defaultTrafficPolicy: null"] {
        assert_eq!(accepted(text), MeshSettings::default(), "{text}");
    }
}

#[test]
fn every_field_with_a_meaning_reaches_the_model() {
    let settings = accepted(include_str!("every_field.yaml"));
    let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    let seconds = |s| Some(Duration::from_secs(s));
    let expected = MeshSettings {
        root_namespace: "root".into(),
        domain_suffix: "cluster.local".into(),
        trust_domain: "td.example".into(),
        trust_domain_aliases: vec!["a.example".into(), "b.example".into()],
        connect_timeout: Duration::from_secs(1),
        dns_refresh_rate: Duration::from_secs(2),
        tcp_keepalive: Some(model::TcpKeepalive {
            probes: 3,
            time: seconds(4),
            interval: seconds(5),
        }),
        proxy_listen_port: 1,
        proxy_inbound_listen_port: 2,
        proxy_http_port: 3,
        outbound_traffic_policy: model::OutboundTrafficPolicy {
            mode: model::OutboundMode::RegistryOnly,
            egress_proxy: None,
        },
        inbound_traffic_policy: model::InboundTrafficPolicy::Localhost,
        protocol_detection_timeout: Duration::from_millis(100),
        access_log: Some(model::AccessLog {
            path: "/dev/stdout".into(),
            format: model::AccessLogFormat::Text(Some("%PROTOCOL%\n".into())),
        }),
        default_service_visibility: strings(&["."]),
        default_virtual_service_visibility: strings(&["a", "b"]),
        default_destination_rule_visibility: strings(&["*"]),
        path_normalization: model::PathNormalization::DecodeAndMergeSlashes,
        default_http_retry: Some(model::Retry {
            attempts: 4,
            per_try_timeout: seconds(6),
            retry_on: Some(strings(&["5xx", "reset"])),
            retry_remote_localities: Some(true),
            ignore_previous_hosts: Some(false),
            backoff: seconds(7),
        }),
        h2_upgrade: model::H2Upgrade::Upgrade,
        locality_lb: Some(model::LocalityLb {
            enabled: false,
            distribute: Vec::new(),
            failover: vec![model::Failover { from: "r1".into(), to: "r2".into() }],
            failover_priority: Vec::new(),
        }),
        default_connection_pool: Some(model::ConnectionPool {
            tcp: model::TcpPool { max_connections: 8, ..Default::default() },
            http: model::HttpPool::default(),
        }),
        default_outlier_detection: Some(model::OutlierDetection {
            consecutive_5xx_errors: Some(9),
            ..Default::default()
        }),
        tls_defaults: model::TlsDefaults {
            cipher_suites: strings(&["ECDHE-RSA-AES128-GCM-SHA256"]),
            ecdh_curves: strings(&["P-256", "X25519"]),
            min_version: Some(model::TlsVersion::V1_3),
        },
        num_trusted_proxies: 2,
        outbound_cluster_stat_name: "%SERVICE%".into(),
        inbound_cluster_stat_name: "in".into(),
    };
    assert_eq!(settings, expected);
}

#[test]
fn an_outbound_policy_without_a_mode_refuses_unknown_traffic() {
    let settings = accepted("outboundTrafficPolicy: {}");
    assert_eq!(settings.outbound_traffic_policy.mode, model::OutboundMode::RegistryOnly);
}

#[test]
fn a_log_can_be_json() {
    let log = |text: &str| accepted(text).access_log.expect("there is a log").format;
    let text = "accessLogFile: /x\naccessLogEncoding: JSON\n";
    assert_eq!(log(text), model::AccessLogFormat::Json(None));
    let fields = vec![("p".to_owned(), "%PROTOCOL%".to_owned()), ("x".to_owned(), "y".to_owned())];
    let with_format = format!("{text}accessLogFormat: '{{\"x\": \"y\", \"p\": \"%PROTOCOL%\"}}'");
    assert_eq!(log(&with_format), model::AccessLogFormat::Json(Some(fields)));
    assert_eq!(log("accessLogFile: /x"), model::AccessLogFormat::Text(None));
}

#[test]
fn mistakes_are_refused_where_they_stand() {
    for (text, expected) in [
        ("proxyListenPort: 0", "1:18: error[PF0201]: proxyListenPort: a port from 1"),
        ("connectTimeout: 0s", "1:17: error[PF0201]: connectTimeout: the duration must be"),
        ("connectTimeout: 31s", "1:17: error[PF0201]: connectTimeout: the longest timeout"),
        ("dnsRefreshRate: 5", "1:17: error[PF0201]: dnsRefreshRate: expected a duration"),
        ("trustDomain: a_b", "1:14: error[PF0201]: trustDomain: `a_b` is not a trust domain"),
        ("trustDomainAliases: ['']", "1:22: error[PF0201]: trustDomainAliases[0]: ``"),
        ("rootNamespace: a.b", "1:16: error[PF0201]: rootNamespace: `a.b` is not a namespace"),
        (
            "defaultServiceExportTo: ['*', a]",
            "1:26: error[PF0204]: defaultServiceExportTo[0]: `*` must stand alone",
        ),
        (
            "outboundTrafficPolicy: {mode: ALLOW}",
            "1:31: error[PF0201]: outboundTrafficPolicy.mode: unknown value `ALLOW`",
        ),
        (
            "localityLbSetting: {failover: [{from: a, to: a}]}",
            "1:46: error[PF0201]: localityLbSetting.failover[0].to: a region cannot",
        ),
        (
            "defaultTrafficPolicy: {connectionPool: {}}",
            "1:40: error[PF0203]: defaultTrafficPolicy.connectionPool: an empty",
        ),
        (
            "defaultHttpRetryPolicy: {attempts: -1}",
            "1:36: error[PF0201]: defaultHttpRetryPolicy.attempts: the number of retries",
        ),
        (
            "accessLogFile: /x\naccessLogFormat: '%NOPE%'",
            "2:18: error[PF0201]: accessLogFormat: Envoy knows no operator `%NOPE%`",
        ),
        (
            "accessLogFile: /x\naccessLogEncoding: JSON\naccessLogFormat: x",
            "3:18: error[PF0201]: accessLogFormat: with `accessLogEncoding: JSON`",
        ),
        (
            "apiVersion: install.istio.io/v1alpha1\nkind: IstioOperator",
            "1:1: error[PF0315]: apiVersion: the mesh configuration is no configuration object",
        ),
        ("a: [", "1:"),
        ("- a", "1:1: error[PF0201]: expected a mapping"),
    ] {
        let (settings, found) = read(text);
        assert!(settings.is_none(), "{text}");
        let [line] = found.as_slice() else { panic!("{text}: one error, not {found:#?}") };
        assert!(line.starts_with(&format!("mesh.yaml:{expected}")), "{text}: {line}");
    }
}

#[test]
fn unknown_fields_are_warnings_with_a_suggestion() {
    let (settings, found) = read("defaultConfig: {}\nrootNamespce: a");
    assert_eq!(settings, Some(MeshSettings::default()));
    let expected = "mesh.yaml:2:1: warning[PF0202]: rootNamespce: unknown field (MeshConfig); did \
                    you mean `rootNamespace`?";
    assert_eq!(found, [expected]);
}

#[test]
fn what_has_no_effect_is_said() {
    for (text, expected) in [
        ("accessLogFormat: x", "1:18: warning[PF0207]: accessLogFormat: nothing is logged"),
        (
            "tlsDefaults: {ecdhCurves: [P-256, x]}",
            "1:35: warning[PF0207]: tlsDefaults.ecdhCurves[1]: the curve `x`",
        ),
        (
            "tlsDefaults: {cipherSuites: [x]}",
            "1:30: warning[PF0207]: tlsDefaults.cipherSuites[0]: the cipher suite `x`",
        ),
        (
            "accessLogFile: /x\naccessLogEncoding: JSON\naccessLogFormat: '{\"a\": {}}'",
            "3:18: warning[PF0205]: accessLogFormat: `a` is left out",
        ),
    ] {
        let (settings, found) = read(text);
        assert!(settings.is_some(), "{text}: {found:#?}");
        let [line] = found.as_slice() else { panic!("{text}: one warning, not {found:#?}") };
        assert!(line.starts_with(&format!("mesh.yaml:{expected}")), "{text}: {line}");
    }
}

/// Fields that reach the model, and therefore must not be in the table of the others.
const WITH_MEANING: &[&str] = &[
    "accessLogEncoding",
    "accessLogFile",
    "accessLogFormat",
    "connectTimeout",
    "defaultConfig",
    "defaultDestinationRuleExportTo",
    "defaultHttpRetryPolicy",
    "defaultServiceExportTo",
    "defaultTrafficPolicy",
    "defaultVirtualServiceExportTo",
    "dnsRefreshRate",
    "h2UpgradePolicy",
    "inboundClusterStatName",
    "inboundTrafficPolicy",
    "localityLbSetting",
    "outboundClusterStatName",
    "outboundTrafficPolicy",
    "pathNormalization",
    "protocolDetectionTimeout",
    "proxyHttpPort",
    "proxyInboundListenPort",
    "proxyListenPort",
    "rootNamespace",
    "tcpKeepalive",
    "tlsDefaults",
    "trustDomain",
    "trustDomainAliases",
];

/// The names of the properties of a type in the schema.
fn properties(schema: &serde_json::Value) -> Vec<String> {
    let properties = schema["properties"].as_object().expect("it is a struct");
    properties.keys().cloned().collect()
}

#[test]
fn every_field_has_a_meaning_or_is_said_to_have_none() {
    let mut generator = schemars::SchemaGenerator::default();
    mesh_schema(&mut generator);
    let definitions = generator.take_definitions(true);
    let known = |prefix: &str, name: &str| {
        let path = format!("{prefix}{name}");
        WITH_MEANING.contains(&path.as_str())
            || path == "defaultConfig.gatewayTopology"
            || mesh_unsupported().iter().any(|row| row.path == path)
    };
    for (prefix, definition) in [("", "MeshConfig"), ("defaultConfig.", "ProxyConfig")] {
        for name in properties(&definitions[definition]) {
            assert!(known(prefix, &name), "{prefix}{name} is silently ignored");
        }
    }
}

#[test]
fn every_row_of_the_table_names_a_field_that_is_there() {
    for row in mesh_unsupported() {
        let value = row.value.unwrap_or("{}");
        let parts: Vec<&str> = row.path.split('.').collect();
        let open: String = parts.iter().map(|part| format!("{{{part}: ")).collect();
        let text = format!("{open}{value}{}", "}".repeat(parts.len()));
        let mut diags = Diagnostics::new();
        mesh_settings(&SourceFile::new("mesh.yaml", text.as_str()), &mut diags);
        let found = diags.into_sorted();
        assert!(found.iter().all(|d| d.code != Code::UnknownField), "{}: {found:?}", row.path);
        let refused = found.iter().any(|d| d.severity == Severity::Error);
        let said = found
            .iter()
            .any(|d| d.code == Code::NotSupported && d.field.as_deref() == Some(row.path));
        assert!(refused || said, "{}: {found:?}", row.path);
    }
}

//! TLS of outbound clusters, and the secrets that come with it.

use super::*;

#[test]
fn simple_tls_uses_the_hosts_of_requests_unless_a_server_is_named() {
    let simple = client_tls(ClientTlsMode::Simple);
    let rules = vec![rule(with_tls(simple.clone()))];
    let by_host = generated(&snapshot(vec![two_versions()], rules), &router());
    let by_host = cluster(&by_host, DEFAULT);
    let context = tls_context(&by_host).expect("TLS was asked for");
    assert_eq!(context.sni, "");
    let options = http_options(&by_host).and_then(|o| o.upstream_http_protocol_options);
    let options = options.expect("the host decides");
    assert!(options.auto_sni && options.auto_san_validation);

    let sni = "server.example".to_owned();
    let named = ClientTls { sni, subject_alt_names: vec!["x.example".into()], ..simple };
    let rules = vec![rule(with_tls(named))];
    let named = cluster(&generated(&snapshot(vec![two_versions()], rules), &router()), DEFAULT);
    assert_eq!(tls_context(&named).expect("TLS was asked for").sni, "server.example");
    assert!(http_options(&named).is_none());
}

#[test]
fn the_host_is_not_verified_beside_the_names_of_the_service() {
    let subject_alt_names = vec!["upstream.internal".to_owned()];
    let service = Service { subject_alt_names, ..two_versions() };
    let rules = vec![rule(with_tls(client_tls(ClientTlsMode::Simple)))];
    let cluster = cluster(&generated(&snapshot(vec![service], rules), &router()), DEFAULT);
    let options = http_options(&cluster).and_then(|o| o.upstream_http_protocol_options);
    let options = options.expect("the host is sent");
    assert!(options.auto_sni && !options.auto_san_validation);
    assert_eq!(matched_names(&cluster), ["upstream.internal"]);
}

fn matched_names(cluster: &Cluster) -> Vec<String> {
    use pb::matcher::string_matcher::MatchPattern;
    use pb::tls::common_tls_context::ValidationContextType;
    let context = tls_context(cluster).and_then(|c| c.common_tls_context).expect("it has TLS");
    let validation = match context.validation_context_type {
        Some(ValidationContextType::ValidationContext(validation)) => validation,
        Some(ValidationContextType::CombinedValidationContext(combined)) => {
            combined.default_validation_context.expect("it holds the names")
        }
        other => panic!("no validation is {other:?}"),
    };
    let text = |m: pb::tls::SubjectAltNameMatcher| match m.matcher.and_then(|m| m.match_pattern) {
        Some(MatchPattern::Exact(name)) => name,
        other => panic!("names are exact, not {other:?}"),
    };
    validation.match_typed_subject_alt_names.into_iter().map(text).collect()
}

#[test]
fn names_of_the_service_and_its_workloads_are_accepted_unless_the_rule_names_others() {
    let mut service = two_versions();
    let account = |domain: &str| format!("spiffe://{domain}/ns/default/sa/sa");
    service.subject_alt_names = vec!["se-top".to_owned(), account("cluster.local")];
    let of = |tls: ClientTls| {
        let mut snapshot = snapshot(vec![service.clone()], vec![rule(with_tls(tls))]);
        snapshot.mesh.trust_domain_aliases = vec![Arc::from("old")];
        matched_names(&cluster(&generated(&snapshot, &router()), DEFAULT))
    };
    let simple = client_tls(ClientTlsMode::Simple);
    assert_eq!(of(simple.clone()), ["se-top".to_owned(), account("cluster.local"), account("old")]);
    assert_eq!(of(ClientTls { subject_alt_names: vec!["x".into()], ..simple }), ["x"]);
}

#[test]
fn http2_over_tls_offers_it() {
    let service = Service { ports: vec![port(80, Protocol::Grpc)], ..two_versions() };
    let rules = vec![rule(with_tls(client_tls(ClientTlsMode::Simple)))];
    let cluster = cluster(&generated(&snapshot(vec![service], rules), &router()), DEFAULT);
    let context = tls_context(&cluster).and_then(|c| c.common_tls_context);
    assert_eq!(context.expect("TLS was asked for").alpn_protocols, ["h2"]);
}

#[test]
fn istio_mutual_is_left_out_and_never_sent_in_plain_text() {
    let rules = vec![rule(with_tls(client_tls(ClientTlsMode::IstioMutual)))];
    let generated = generated(&snapshot(vec![two_versions()], rules), &sidecar());
    assert!(!has_cluster(&generated, DEFAULT) && !has_cluster(&generated, V1));
    assert_eq!(assignment(&generated, DEFAULT), None);
    assert_eq!(codes(&generated), [Code::NotSupported], "once for the rule");
}

#[test]
fn certificates_of_the_proxy_replace_those_of_the_rule_inside_the_mesh_only() {
    let files = ClientCertificates { chain: "/c".into(), key: "/k".into(), root: "/r".into() };
    let options = Options { client_certificates: Some(files), ..Default::default() };
    let view = Parts { options, ..sidecar() };
    let tls = ClientTls { sni: "s".into(), ..client_tls(ClientTlsMode::IstioMutual) };
    let rules = vec![rule(with_tls(tls))];
    let inside = generated(&snapshot(vec![two_versions()], rules.clone()), &view);
    let context = tls_context(&cluster(&inside, DEFAULT)).expect("it is mutual TLS");
    assert_eq!(context.sni, "s");
    let common = context.common_tls_context.expect("it is there");
    assert_eq!(common.tls_certificates.len(), 1);

    let external = Service { location: Location::MeshExternal, ..two_versions() };
    let outside = generated(&snapshot(vec![external], rules), &view);
    assert!(!has_cluster(&outside, DEFAULT));
}

fn with_credential(mode: ClientTlsMode) -> ClientTls {
    ClientTls { credential_name: Some(Arc::from("cred")), ..client_tls(mode) }
}

fn add_secret(snapshot: &mut Facts) {
    let bytes = |text: &str| Arc::<[u8]>::from(text.as_bytes());
    let secret = Secret {
        origin: None,
        certificate_chain: Some(bytes("chain")),
        private_key: Some(PrivateBytes::new(bytes("key"))),
        ca: Some(bytes("ca")),
        crl: None,
    };
    let key = SecretKey { namespace: Some("default".into()), name: Arc::from("cred") };
    snapshot.secrets.insert(key, secret);
}

fn secrets(generated: &Generated) -> Vec<String> {
    generated.set.of_type(TypeUrl::Secret).map(|r| r.name.to_string()).collect()
}

#[test]
fn a_credential_is_referred_to_and_served() {
    let rules = vec![rule(with_tls(with_credential(ClientTlsMode::Mutual)))];
    let mut snapshot = snapshot(vec![two_versions()], rules);
    add_secret(&mut snapshot);
    let generated = generated(&snapshot, &router());
    assert_eq!(secrets(&generated), ["kubernetes://cred", "kubernetes://cred-cacert"]);
    let context = tls_context(&cluster(&generated, DEFAULT)).and_then(|c| c.common_tls_context);
    let references = context.expect("it has TLS").tls_certificate_sds_secret_configs;
    assert_eq!(references[0].name, "kubernetes://cred");
}

#[test]
fn simple_tls_needs_the_ca_of_a_credential_only() {
    let rules = vec![rule(with_tls(with_credential(ClientTlsMode::Simple)))];
    let mut snapshot = snapshot(vec![two_versions()], rules);
    add_secret(&mut snapshot);
    assert_eq!(secrets(&generated(&snapshot, &router())), ["kubernetes://cred-cacert"]);
}

#[test]
fn a_missing_credential_leaves_the_cluster_out() {
    let rules = vec![rule(with_tls(with_credential(ClientTlsMode::Simple)))];
    let generated = generated(&snapshot(vec![two_versions()], rules), &router());
    assert!(!has_cluster(&generated, DEFAULT));
    assert!(codes(&generated).contains(&Code::UnknownSecret));
    assert!(secrets(&generated).is_empty());
}

#[test]
fn a_sidecar_uses_credentials_of_rules_that_select_it_only() {
    let policy = with_tls(with_credential(ClientTlsMode::Simple));
    let of = |rule: DestinationRule| {
        let mut snapshot = snapshot(vec![two_versions()], vec![rule]);
        add_secret(&mut snapshot);
        generated(&snapshot, &Parts { labels: [("app", "x")].into_iter().collect(), ..sidecar() })
    };
    let unselected = of(rule(policy.clone()));
    assert!(!has_cluster(&unselected, DEFAULT));
    assert_eq!(codes(&unselected), [Code::NoEffect]);
    let selector = Some([("app", "x")].into_iter().collect());
    let selected = of(DestinationRule { selector, ..rule(policy) });
    assert!(tls_context(&cluster(&selected, DEFAULT)).is_some());
    assert_eq!(secrets(&selected), ["kubernetes://cred-cacert"]);
}

#[test]
fn a_proxy_protocol_header_wraps_any_socket() {
    for tls in [None, Some(client_tls(ClientTlsMode::Simple))] {
        let inner = if tls.is_some() { "tls" } else { "raw_buffer" };
        let proxy_protocol = Some(ProxyProtocolVersion::V2);
        let policy = TrafficPolicy { proxy_protocol, tls, ..Default::default() };
        let generated = generated(&snapshot(vec![two_versions()], vec![rule(policy)]), &router());
        let socket = cluster(&generated, DEFAULT).transport_socket.expect("it is wrapped");
        assert_eq!(socket.name, "envoy.transport_sockets.upstream_proxy_protocol");
        let Some(pb::core::transport_socket::ConfigType::TypedConfig(packed)) = socket.config_type
        else {
            panic!("a socket has settings")
        };
        let wrapper: pb::proxy_protocol_upstream::ProxyProtocolUpstreamTransport = decode(&packed);
        let inside = wrapper.transport_socket.expect("something is inside");
        assert_eq!(inside.name, format!("envoy.transport_sockets.{inner}"));
    }
}

//! One claim a rule of DestinationRule and its policies, and the model of a full document.

use super::*;
use crate::kinds::testing::{accepted, document, expect, read, refused, warned};
use crate::model::{HashAlgorithm, HashKey};
use Code::{ConflictingFields, Deprecated, InvalidValue, MissingField, NoEffect, NotSupported};
use std::time::Duration;

type Case<'c> = (&'c str, (&'c str, Code, &'c str));

/// The cases with the same lines before each.
fn after(before: &str, cases: &[Case<'_>], check: impl Fn(&Kind, &[Case<'_>])) {
    let specs: Vec<String> = cases.iter().map(|(spec, _)| format!("{before}{spec}")).collect();
    let cases: Vec<Case<'_>> =
        specs.iter().zip(cases).map(|(spec, (_, found))| (spec.as_str(), *found)).collect();
    check(&KIND, &cases);
}

/// Policies; their text starts in column 18 of line 6.
fn policies_refused(cases: &[Case<'_>]) {
    after("host: a\ntrafficPolicy: ", cases, refused);
}

fn policies_warned(cases: &[Case<'_>]) {
    after("host: a\ntrafficPolicy: ", cases, warned);
}

fn rule(spec: &str) -> model::DestinationRule {
    accepted(&KIND, spec).destination_rules.remove(0)
}

fn policy(policy: &str) -> model::TrafficPolicy {
    rule(&format!("host: a\ntrafficPolicy: {policy}")).policy.expect("there is a policy")
}

#[test]
fn a_host_is_enough() {
    let rule = rule("host: reviews");
    assert_eq!(&*rule.host, "reviews.ns.svc.cluster.local");
    assert_eq!((rule.visibility, rule.selector, rule.policy), (None, None, None));
    assert!(rule.subsets.is_empty());
}

#[test]
fn every_field_reaches_the_model() {
    let text = include_str!("every_field.yaml");
    let outcome = read(text);
    let lines: Vec<String> = outcome.found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, Vec::<String>::new());
    let draft = outcome.draft.expect("the document is valid");
    let rule = &draft.destination_rules[0];
    assert_eq!(&*rule.host, "*.example.com");
    assert_eq!(rule.visibility, Some(Visibility::Namespaces(["ns".into()].into())));
    assert_eq!(rule.selector.as_ref().and_then(|s| s.get("app")), Some("client"));
    let policy = rule.policy.as_ref().expect("there is a policy");
    let seconds = |s| Some(Duration::from_secs(s));
    let expected = model::TrafficPolicy {
        load_balancer: Some(model::LoadBalancer {
            simple: model::SimpleLb::Unspecified,
            consistent_hash: Some(model::ConsistentHash {
                key: Some(HashKey::Cookie(model::HashCookie {
                    name: "user".into(),
                    path: "/p".into(),
                    ttl: Some(Duration::ZERO),
                    attributes: vec![
                        ("SameSite".into(), "Lax".into()),
                        ("Secure".into(), String::new()),
                    ],
                })),
                algorithm: HashAlgorithm::Maglev(65537),
            }),
            locality: Some(model::LocalityLb {
                enabled: false,
                distribute: vec![model::Distribute {
                    from: "r1/*".into(),
                    to: [("r1/z1/*".into(), 80), ("r2".into(), 20)].into(),
                }],
                failover: Vec::new(),
                failover_priority: vec!["version=v1".into()],
            }),
            zone_aware: None,
            warmup: Some(model::Warmup {
                duration: Duration::from_secs(60),
                minimum_percent: Some(5.5),
                aggression: Some(2.0),
            }),
        }),
        connection_pool: Some(model::ConnectionPool {
            tcp: model::TcpPool {
                max_connections: 1,
                connect_timeout: seconds(2),
                keepalive: Some(model::TcpKeepalive {
                    probes: 3,
                    time: seconds(4),
                    interval: seconds(5),
                }),
                max_connection_duration: seconds(6),
                idle_timeout: seconds(0),
            },
            http: model::HttpPool {
                http1_max_pending_requests: 7,
                http2_max_requests: 8,
                max_requests_per_connection: 9,
                max_retries: 10,
                idle_timeout: seconds(11),
                h2_upgrade: model::H2Upgrade::DoNotUpgrade,
                use_client_protocol: true,
                max_concurrent_streams: 12,
                http2_keepalive: Some(model::Http2KeepAlive {
                    interval: Duration::from_secs(13),
                    timeout: Duration::from_secs(14),
                }),
            },
        }),
        outlier_detection: Some(model::OutlierDetection {
            consecutive_5xx_errors: Some(0),
            consecutive_gateway_errors: Some(15),
            interval: seconds(16),
            base_ejection_time: seconds(17),
            max_ejection_percent: 18,
            min_health_percent: 19,
            split_external_local_origin_errors: true,
            consecutive_local_origin_failures: Some(20),
            http_error_codes: vec![500, 404],
        }),
        tls: Some(model::ClientTls {
            mode: model::ClientTlsMode::Mutual,
            client_certificate: "/c".into(),
            private_key: "/k".into(),
            ca_certificates: "/ca".into(),
            credential_name: None,
            subject_alt_names: vec!["a.example.com".into()],
            sni: "sni.example.com".into(),
            insecure_skip_verify: false,
            ca_crl: "/crl".into(),
            min_version: None,
        }),
        tunnel: Some(model::Tunnel {
            use_post: true,
            target_host: "target.example.com".into(),
            target_port: 443,
        }),
        proxy_protocol: None,
        retry_budget: Some(model::RetryBudget {
            percent: 0.0,
            min_retry_concurrency: 4,
            interval: seconds(21),
        }),
        ports: vec![model::PortPolicy {
            port: 8080,
            load_balancer: Some(model::LoadBalancer {
                simple: model::SimpleLb::LeastRequest,
                warmup: Some(model::Warmup {
                    duration: Duration::from_secs(30),
                    minimum_percent: None,
                    aggression: None,
                }),
                ..model::LoadBalancer::default()
            }),
            connection_pool: Some(model::ConnectionPool::default()),
            outlier_detection: Some(model::OutlierDetection::default()),
            tls: Some(model::ClientTls {
                mode: model::ClientTlsMode::Simple,
                client_certificate: String::new(),
                private_key: String::new(),
                ca_certificates: String::new(),
                credential_name: Some("secret".into()),
                subject_alt_names: Vec::new(),
                sni: String::new(),
                insecure_skip_verify: false,
                ca_crl: String::new(),
                min_version: None,
            }),
        }],
    };
    assert_eq!(*policy, expected);
    let [subset] = rule.subsets.as_slice() else { panic!("one subset") };
    assert_eq!((&*subset.name, subset.labels.get("version")), ("v1", Some("v1")));
    assert_eq!(subset.span.start.line, 98);
    let proxy_protocol = subset.policy.as_ref().and_then(|p| p.proxy_protocol);
    assert_eq!(proxy_protocol, Some(model::ProxyProtocolVersion::V2));
}

#[test]
fn every_hash_key_and_algorithm_is_read() {
    let hash = |text: &str| {
        let policy = policy(&format!("{{loadBalancer: {{consistentHash: {text}}}}}"));
        policy.load_balancer.and_then(|lb| lb.consistent_hash).expect("there is a hash")
    };
    assert_eq!(hash("{httpHeaderName: x}").key, Some(HashKey::Header("x".into())));
    assert_eq!(hash("{useSourceIp: false}").key, Some(HashKey::SourceIp(false)));
    let parameter = Some(HashKey::QueryParameter("q".into()));
    assert_eq!(hash("{httpQueryParameterName: q}").key, parameter);
    assert_eq!(hash("{}").key, None);
    assert_eq!(hash("{}").algorithm, HashAlgorithm::Default(1024));
    assert_eq!(hash("{ringHash: {}}").algorithm, HashAlgorithm::RingHash(0));
    let ring = hash("{ringHash: {minimumRingSize: 5}}");
    assert_eq!(ring.algorithm, HashAlgorithm::RingHash(5));
}

#[test]
fn defaults_of_small_blocks_are_istios() {
    let budget = policy("{retryBudget: {}}").retry_budget.expect("there is a budget");
    assert_eq!((budget.percent, budget.min_retry_concurrency), (20.0, 3));
    let warmup = policy("{loadBalancer: {warmup: {duration: 1s}}}").load_balancer;
    let warmup = warmup.and_then(|lb| lb.warmup).expect("there is a warm-up");
    assert_eq!((warmup.minimum_percent, warmup.aggression), (Some(10.0), Some(1.0)));
    let locality = policy("{loadBalancer: {localityLbSetting: {}}}").load_balancer;
    assert!(locality.and_then(|lb| lb.locality).is_some_and(|l| l.enabled));
    let keepalive = policy("{connectionPool: {tcp: {tcpKeepalive: {}}}}").connection_pool;
    assert_eq!(keepalive.and_then(|p| p.tcp.keepalive), Some(model::TcpKeepalive::default()));
}

#[test]
fn the_document_itself_is_checked() {
    refused(
        &KIND,
        &[
            ("subsets: []", ("5:3", MissingField, "`host` is missing")),
            ("host: ''", ("5:9", InvalidValue, "it is empty")),
            ("host: a_b.com", ("5:9", InvalidValue, "is not a host name")),
            ("host: a\nexportTo: ['~']", ("6:14", InvalidValue, "only for ServiceEntry")),
            ("host: a\nexportTo: ['*', b]", ("6:14", ConflictingFields, "must stand alone")),
            (
                "host: a\nexportTo: [b]\nworkloadSelector: {matchLabels: {a: b}}",
                ("6:14", ConflictingFields, "only for its own namespace"),
            ),
            ("host: a\nworkloadSelector: {matchLabels: {a: 'b*'}}", ("6:39", InvalidValue, "`*`")),
            ("host: a\ntrafficPolicy: {}", ("6:18", MissingField, "an empty policy")),
        ],
    );
    accepted(&KIND, "host: '*.a.com'");
    accepted(&KIND, "host: a\nexportTo: ['.']\nworkloadSelector: {matchLabels: {a: b}}");
    warned(&KIND, &[("host: a\nworkloadSelector: {}", ("6:21", NoEffect, "without labels"))]);
}

#[test]
fn subsets_are_checked() {
    after(
        "host: a\nsubsets:\n",
        &[
            ("- {name: ''}", ("7:12", InvalidValue, "is not a subset name")),
            ("- {name: v.1}", ("7:12", InvalidValue, "is not a subset name")),
            ("- {labels: {a: b}}", ("7:5", MissingField, "`name` is missing")),
            ("- null", ("7:5", InvalidValue, "expected a mapping")),
            ("- {name: a}\n- {name: a}", ("8:12", InvalidValue, "defined twice")),
            ("- {name: a, labels: {b: '-'}}", ("7:27", InvalidValue, "not a label value")),
            ("- {name: a, trafficPolicy: {}}", ("7:30", MissingField, "an empty policy")),
        ],
        refused,
    );
}

#[test]
fn port_settings_are_checked() {
    policies_refused(&[
        (
            "{portLevelSettings: [{tls: {mode: SIMPLE}}]}",
            ("6:39", MissingField, "`port` is missing"),
        ),
        (
            "{portLevelSettings: [{port: {number: 0}, tls: {mode: SIMPLE}}]}",
            ("6:55", InvalidValue, "1 to 65535"),
        ),
        (
            "{portLevelSettings: [{port: {number: 80}}]}",
            ("6:39", MissingField, "need at least one"),
        ),
        ("{portLevelSettings: [null]}", ("6:39", InvalidValue, "expected a mapping")),
        ("{portLevelSettings: []}", ("6:18", MissingField, "an empty policy")),
    ]);
}

#[test]
fn tunnels_and_proxy_protocol_are_checked() {
    let tunnel = |text: &str| format!("{{tunnel: {{{text}}}}}");
    let ok = tunnel("targetHost: a.com, targetPort: 443");
    assert!(!policy(&ok).tunnel.expect("there is a tunnel").use_post);
    policies_refused(&[
        (
            "{tunnel: {targetHost: a.com, targetPort: 1}, proxyProtocol: {version: V1}}",
            ("6:78", ConflictingFields, "exclude each other"),
        ),
        (
            &tunnel("protocol: GET, targetHost: a.com, targetPort: 1"),
            ("6:38", InvalidValue, "`CONNECT` or `POST`"),
        ),
        (
            &tunnel("targetHost: a_b, targetPort: 1"),
            ("6:40", InvalidValue, "neither an IP address nor a host name"),
        ),
        (&tunnel("targetHost: a, targetPort: 0"), ("6:55", InvalidValue, "1 to 65535")),
        ("{proxyProtocol: {version: V3}}", ("6:44", InvalidValue, "unknown value `V3`")),
        ("{retryBudget: {percent: 101}}", ("6:42", InvalidValue, "0 to 100")),
    ]);
}

#[test]
fn connection_pools_are_checked() {
    policies_refused(&[
        ("{connectionPool: {}}", ("6:35", MissingField, "an empty connection pool")),
        (
            "{connectionPool: {tcp: {maxConnections: -1}}}",
            ("6:58", InvalidValue, "found the number -1"),
        ),
        ("{connectionPool: {tcp: {connectTimeout: 0s}}}", ("6:58", InvalidValue, "at least 1ms")),
        (
            "{connectionPool: {tcp: {tcpKeepalive: {time: 1.5ms}}}}",
            ("6:63", InvalidValue, "whole milliseconds"),
        ),
        ("{connectionPool: {http: {idleTimeout: 0s}}}", ("6:56", InvalidValue, "at least 1ms")),
        (
            "{connectionPool: {http: {h2UpgradePolicy: UPGRADE, useClientProtocol: true}}}",
            ("6:88", ConflictingFields, "exclude each other"),
        ),
        (
            "{connectionPool: {http: {http2KeepAlive: {interval: 1s}}}}",
            ("6:59", MissingField, "`timeout` is missing"),
        ),
    ]);
}

#[test]
fn outlier_detection_is_checked() {
    policies_refused(&[
        ("{outlierDetection: {interval: 0s}}", ("6:48", InvalidValue, "at least 1ms")),
        (
            "{outlierDetection: {consecutiveLocalOriginFailures: 1}}",
            ("6:70", ConflictingFields, "splitExternalLocalOriginErrors"),
        ),
        ("{outlierDetection: {maxEjectionPercent: 101}}", ("6:58", InvalidValue, "0 to 100")),
        (
            "{outlierDetection: {outlierDetectionHttpErrorCodes: [500, 600]}}",
            ("6:76", InvalidValue, "100 to 599"),
        ),
    ]);
    policies_warned(&[(
        "{outlierDetection: {consecutiveErrors: 1}}",
        ("6:57", Deprecated, "has no effect"),
    )]);
}

#[test]
fn load_balancers_are_checked() {
    policies_refused(&[
        (
            "{loadBalancer: {simple: RANDOM, consistentHash: {useSourceIp: true}}}",
            ("6:42", ConflictingFields, "exclude each other"),
        ),
        ("{loadBalancer: {simple: RANDM}}", ("6:42", InvalidValue, "did you mean `RANDOM`?")),
        (
            "{loadBalancer: {consistentHash: {httpHeaderName: a, useSourceIp: true}}}",
            ("6:83", ConflictingFields, "`httpHeaderName` is already hashed"),
        ),
        (
            "{loadBalancer: {consistentHash: {ringHash: {}, maglev: {tableSize: 3}}}}",
            ("6:73", ConflictingFields, "exclude each other"),
        ),
        (
            "{loadBalancer: {consistentHash: {ringHash: {}, minimumRingSize: 3}}}",
            ("6:82", ConflictingFields, "remove it"),
        ),
        (
            "{loadBalancer: {consistentHash: {maglev: {}}}}",
            ("6:59", InvalidValue, "must be a prime number"),
        ),
        (
            "{loadBalancer: {consistentHash: {maglev: {tableSize: 5000011}}}}",
            ("6:71", InvalidValue, "must be a prime number"),
        ),
        (
            "{loadBalancer: {consistentHash: {httpCookie: {name: ''}}}}",
            ("6:70", MissingField, "needs a name"),
        ),
        (
            "{loadBalancer: {consistentHash: {httpCookie: {name: a, attributes: [{name: b}, \
             {name: b}]}}}}",
            ("6:104", InvalidValue, "set twice"),
        ),
        (
            "{loadBalancer: {warmup: {aggression: 1}}}",
            ("6:42", MissingField, "`duration` is missing"),
        ),
        (
            "{loadBalancer: {warmup: {duration: 1s, minimumPercent: 101}}}",
            ("6:73", InvalidValue, "0 to 100"),
        ),
        (
            "{loadBalancer: {warmup: {duration: 1s, aggression: 0}}}",
            ("6:69", InvalidValue, "greater than 0"),
        ),
        (
            "{loadBalancer: {warmup: {duration: 1s}, warmupDurationSecs: 1s}}",
            ("6:78", ConflictingFields, "keep `warmup`"),
        ),
    ]);
    policies_warned(&[(
        "{loadBalancer: {consistentHash: {useSourceIp: true, minimumRingSize: 9}}}",
        ("6:87", Deprecated, "ringHash.minimumRingSize"),
    )]);
}

#[test]
fn localities_are_checked() {
    after(
        "host: a\ntrafficPolicy:\n  outlierDetection: {}\n  loadBalancer:\n    localityLbSetting: ",
        &[
            (
                "{distribute: [{from: a, to: {b: 100}}], failover: [{from: a, to: b}]}",
                ("9:76", ConflictingFields, "exclude each other"),
            ),
            ("{distribute: [{from: a, to: {b: 99}}]}", ("9:54", InvalidValue, "not 99")),
            (
                "{distribute: [{from: a, to: {b: 0, c: 100}}]}",
                ("9:58", InvalidValue, "from 1 to 100"),
            ),
            (
                "{distribute: [{from: a, to: {b: 50, b/z: 50}}]}",
                ("9:67", ConflictingFields, "overlap"),
            ),
            (
                "{distribute: [{from: a, to: {b: 100}}, {from: 'a/*', to: {b: 100}}]}",
                ("9:72", ConflictingFields, "overlap"),
            ),
            (
                "{distribute: [{from: '*/a', to: {b: 100}}]}",
                ("9:47", InvalidValue, "only stand at the end"),
            ),
            ("{distribute: [{from: a//b, to: {b: 100}}]}", ("9:47", InvalidValue, "empty part")),
            ("{failover: [{from: a, to: a}]}", ("9:52", InvalidValue, "from itself")),
            ("{failover: [{from: a/b, to: c}]}", ("9:45", InvalidValue, "region alone")),
            ("{failover: [{from: a, to: '*'}]}", ("9:52", InvalidValue, "region alone")),
            (
                "{failover: [{from: a, to: b}], failoverPriority: [topology.kubernetes.io/zone]}",
                ("9:76", ConflictingFields, "places are already compared"),
            ),
        ],
        refused,
    );
    policies_warned(&[
        (
            "{loadBalancer: {localityLbSetting: {failover: [{from: a, to: b}]}}}",
            ("6:53", NoEffect, "nothing fails over"),
        ),
        (
            "{loadBalancer: {localityLbSetting: {failoverPriority: [a]}}}",
            ("6:53", NoEffect, "nothing fails over"),
        ),
    ]);
    policies_refused(&[(
        "{loadBalancer: {localityLbSetting: {enabled: 'no'}}}",
        ("6:63", InvalidValue, "remove the quotes"),
    )]);
}

#[test]
fn upstream_tls_is_checked() {
    policies_refused(&[
        (
            "{tls: {mode: MUTUAL, privateKey: /k}}",
            ("6:24", MissingField, "needs `clientCertificate`"),
        ),
        ("{tls: {mode: MUTUAL, clientCertificate: /c}}", ("6:24", MissingField, "`privateKey`")),
        (
            "{tls: {mode: SIMPLE, insecureSkipVerify: true, caCertificates: /ca}}",
            ("6:81", ConflictingFields, "not verified"),
        ),
        (
            "{tls: {mode: SIMPLE, insecureSkipVerify: true, subjectAltNames: [a]}}",
            ("6:82", ConflictingFields, "not verified"),
        ),
        (
            "{tls: {mode: SIMPLE, credentialName: 'configmap://other/x'}}",
            ("6:55", InvalidValue, "`configmap://ns/NAME`"),
        ),
    ]);
    let both = "host: a\nworkloadSelector: {matchLabels: {a: b}}\ntrafficPolicy:\n  tls:\n    \
                mode: MUTUAL\n    credentialName: x\n    clientCertificate: /c\n    caCrl: /crl";
    expect(
        &KIND,
        both,
        Severity::Error,
        &[
            ("11:26", ConflictingFields, "exclude each other"),
            ("12:14", ConflictingFields, "exclude each other"),
        ],
    );
    accepted(&KIND, "host: a\ntrafficPolicy: {tls: {mode: DISABLE}}");
}

#[test]
fn sidecars_are_told_that_they_get_no_credential() {
    let spec = "host: a\nsubsets:\n- {name: v1, trafficPolicy: {portLevelSettings: [{port: \
                {number: 1}, tls: {mode: SIMPLE, credentialName: x}}]}}";
    let found = [("7:108", NoEffect, "sidecars do not")];
    expect(&KIND, spec, Severity::Info, &found);
    let selected = format!("workloadSelector: {{matchLabels: {{a: b}}}}\n{spec}");
    assert_eq!(read(&document(&KIND, &selected)).found, []);
}

#[test]
fn what_is_not_supported_yet_is_said_where_it_stands() {
    policies_warned(&[
        ("{tls: {mode: ISTIO_MUTUAL}}", ("6:31", NotSupported, "no mesh certificates")),
        (
            "{portLevelSettings: [{port: {number: 1}, tls: {mode: ISTIO_MUTUAL}}]}",
            ("6:71", NotSupported, "no mesh certificates"),
        ),
        ("{loadBalancer: {zoneAwareLbSetting: {}}}", ("6:34", NotSupported, "the caller's zone")),
    ]);
    after(
        "host: a\nsubsets:\n",
        &[(
            "- {name: a, trafficPolicy: {tls: {mode: ISTIO_MUTUAL}}}",
            ("7:43", NotSupported, "no mesh certificates"),
        )],
        warned,
    );
}

//! One claim a rule of Gateway and of server TLS, and the model of a full document.

use super::*;
use crate::diag::Code::{ConflictingFields, InvalidValue, MissingField, NoEffect, NotSupported};
use crate::diag::Severity;
use crate::kinds::testing::{accepted, document, expect, read, refused, warned};
use crate::model::{CaSource, CertificateSource, ServerTlsMode, TlsVersion};

type Case<'c> = (&'c str, (&'c str, Code, &'c str));

fn after(before: &str, cases: &[Case<'_>], check: impl Fn(&Kind, &[Case<'_>])) {
    let specs: Vec<String> = cases.iter().map(|(spec, _)| format!("{before}{spec}")).collect();
    let cases: Vec<Case<'_>> =
        specs.iter().zip(cases).map(|(spec, (_, found))| (spec.as_str(), *found)).collect();
    check(&KIND, &cases);
}

/// A server for HTTPS; the text of its `tls` starts in line 8, column 10.
const HTTPS: &str =
    "servers:\n- port: {number: 443, protocol: HTTPS, name: https}\n  hosts: [\"*\"]\n  tls: ";

/// The same, with a certificate; the case's lines follow below it, from line 10, column 7.
const SECURED: &str = "servers:\n- port: {number: 443, protocol: HTTPS, name: https}\n  \
                       hosts: [\"*\"]\n  tls:\n    credentialName: c\n    ";

fn gateway(spec: &str) -> model::Gateway {
    accepted(&KIND, spec).gateways.remove(0)
}

#[test]
fn one_server_is_enough() {
    let gateway =
        gateway("servers:\n- port: {number: 80, protocol: HTTP, name: http}\n  hosts: [\"*\"]");
    assert_eq!(gateway.selector, None);
    let server = &gateway.servers[0];
    assert_eq!((server.port, &*server.port_name, server.protocol), (80, "http", Protocol::Http));
    assert_eq!(server.hosts, [ServerHost { namespace: None, host: "*".into() }]);
    assert_eq!((&server.bind, &server.tls), (&None, &None));
    assert_eq!(server.span.to_string(), "a.yaml:6:5");
}

#[test]
fn every_field_reaches_the_model() {
    let outcome = read(include_str!("every_field.yaml"));
    let lines: Vec<String> = outcome.found.iter().map(ToString::to_string).collect();
    assert_eq!(lines, Vec::<String>::new());
    let gateway = outcome.draft.expect("the document is valid").gateways.remove(0);
    assert_eq!(gateway.selector.as_ref().and_then(|s| s.get("app")), Some("edge"));

    let web = &gateway.servers[0];
    assert_eq!((web.name.as_str(), web.bind.as_deref()), ("web", Some("10.0.0.1")));
    assert_eq!(web.protocol, Protocol::Https);
    let hosts: Vec<(Option<&str>, &str)> =
        web.hosts.iter().map(|h| (h.namespace.as_deref(), &*h.host)).collect();
    let expected = [
        (None, "a.example.com"),
        (None, "*.b.example.com"),
        (Some("ns"), "c.example.com"),
        (Some("other"), "d.example.com"),
        (None, "*"),
    ];
    assert_eq!(hosts, expected);
    let tls = web.tls.as_ref().expect("it has TLS");
    assert_eq!(tls.mode, ServerTlsMode::OptionalMutual);
    assert_eq!(
        tls.certificates,
        CertificateSource::Credentials(vec!["rsa".into(), "ecdsa".into()])
    );
    assert_eq!(tls.ca, CaSource::Credential("authorities".into()));
    assert_eq!(tls.subject_alt_names, ["spiffe://x/client"]);
    assert_eq!((tls.verify_certificate_spki.len(), tls.verify_certificate_hash.len()), (1, 1));
    assert_eq!(
        (tls.min_version, tls.max_version),
        (Some(TlsVersion::V1_2), Some(TlsVersion::V1_3))
    );
    assert_eq!(tls.cipher_suites, ["ECDHE-RSA-AES256-GCM-SHA384"]);
    assert!(tls.insecure_skip_verify);

    let files = gateway.servers[1].tls.as_ref().expect("it has TLS");
    let pair = vec![("/certs/tls.crt".into(), "/certs/tls.key".into())];
    assert_eq!(files.certificates, CertificateSource::Files(pair));
    assert_eq!(files.ca, CaSource::File("/certs/ca.crt".into()));
    assert_eq!(files.crl_file.as_deref(), Some("/certs/crl.pem"));
    let two = gateway.servers[2].tls.as_ref().expect("it has TLS");
    let CertificateSource::Files(pairs) = &two.certificates else { panic!("{two:?}") };
    assert_eq!(pairs.len(), 2);
    assert_eq!(two.ca, CaSource::None);

    assert!(gateway.servers[3].tls.as_ref().is_some_and(|tls| tls.https_redirect));
    let socket = &gateway.servers[4];
    assert_eq!((socket.port, socket.bind.as_deref()), (0, Some("unix:///run/edge.sock")));
    assert_eq!(socket.protocol, Protocol::GrpcWeb);
    let through = gateway.servers[5].tls.as_ref().expect("it has TLS");
    assert_eq!(through.mode, ServerTlsMode::Passthrough);
}

#[test]
fn a_gateway_has_a_name_that_others_can_use() {
    let text = document(
        &KIND,
        "servers: [{port: {number: 80, protocol: HTTP, name: http}, hosts: [\"*\"]}]",
    );
    let found = read(&text.replace("name: x,", "name: a.b,")).found;
    let [error] = found.as_slice() else { panic!("{found:?}") };
    assert!(error.to_string().starts_with("a.yaml:3:18: error[PF0201]: metadata.name: `a.b`"));
}

#[test]
fn servers_are_complete() {
    refused(
        &KIND,
        &[
            ("selector: {a: b}", ("5:3", MissingField, "at least one server")),
            ("servers: [{hosts: [\"*\"]}]", ("5:13", MissingField, "`port` is missing")),
            (
                "servers: [{port: {number: 80, protocol: HTTP, name: a}}]",
                ("5:13", MissingField, "at least one host"),
            ),
            (
                "servers: [{port: {protocol: HTTP, name: a}, hosts: [\"*\"]}]",
                ("5:20", InvalidValue, "1 to 65535"),
            ),
            (
                "servers: [{port: {number: 80, name: a}, hosts: [\"*\"]}]",
                ("5:20", MissingField, "no `protocol`"),
            ),
            (
                "servers: [{port: {number: 80, protocol: SPDY, name: a}, hosts: [\"*\"]}]",
                ("5:43", InvalidValue, "unknown protocol `SPDY`"),
            ),
            (
                "servers: [{port: {number: 80, protocol: HTTP}, hosts: [\"*\"]}]",
                ("5:20", MissingField, "no `name`"),
            ),
            (
                "servers: [{port: {number: 80, protocol: HTTP, name: a, targetPort: 81}, hosts: [\"*\"]}]",
                ("5:70", InvalidValue, "no effect on Gateways"),
            ),
            (
                "servers: [{port: {number: 80, protocol: HTTP, name: a}, hosts: [\"*\"], bind: here}]",
                ("5:79", InvalidValue, "not an IP address"),
            ),
            (
                "servers: [{port: {number: 0, protocol: HTTP, name: a}, hosts: [\"*\"], bind: \"unix://x\"}]",
                ("5:78", InvalidValue, "absolute path"),
            ),
            (
                "servers:\n- {port: {number: 80, protocol: HTTP, name: a}, hosts: [\"*\"]}\n\
                 - {port: {number: 81, protocol: HTTP, name: a}, hosts: [\"*\"]}",
                ("7:47", ConflictingFields, "used twice"),
            ),
        ],
    );
    warned(
        &KIND,
        &[(
            "servers: [{port: {number: 80, protocol: HTTP, name: a}, hosts: [\"*\"], defaultEndpoint: x}]",
            ("5:90", NoEffect, "never used"),
        )],
    );
}

#[test]
fn hosts_are_whole_names() {
    let before = "servers:\n- port: {number: 80, protocol: HTTP, name: a}\n  hosts: ";
    let cases = [
        ("[short]", ("7:13", InvalidValue, "short name")),
        ("[\"*foo.com\"]", ("7:13", InvalidValue, "partial wildcard")),
        ("[\"a.*.com\"]", ("7:13", InvalidValue, "start of the name")),
        ("[a_b/foo.com]", ("7:13", InvalidValue, "`a_b` is no namespace")),
        ("[\"~/foo.com\"]", ("7:13", InvalidValue, "no namespace")),
        ("[ns/]", ("7:13", InvalidValue, "host is empty")),
    ];
    after(before, &cases, refused);
    gateway(&format!("{before}[\"*\", \"*.a.com\", 10.0.0.1, ns/b.com]"));
}

#[test]
fn tls_is_where_tls_is_spoken() {
    refused(
        &KIND,
        &[
            (
                "servers: [{port: {number: 443, protocol: TLS, name: a}, hosts: [\"*\"]}]",
                ("5:13", MissingField, "needs `tls`"),
            ),
            (
                "servers:\n- port: {number: 80, protocol: HTTP, name: a}\n  hosts: [\"*\"]\n  \
                 tls: {mode: SIMPLE, credentialName: c}",
                ("8:5", ConflictingFields, "use the protocol HTTPS"),
            ),
            (
                "servers:\n- port: {number: 80, protocol: TCP, name: a}\n  hosts: [\"*\"]\n  \
                 tls: {mode: SIMPLE, credentialName: c}",
                ("8:5", ConflictingFields, "use the protocol TLS"),
            ),
        ],
    );
}

#[test]
fn certificates_are_named_once_and_whole() {
    let cases = [
        ("{mode: SIMPLE}", ("8:10", MissingField, "needs a certificate")),
        ("{mode: SIMPLE, serverCertificate: a}", ("8:10", MissingField, "`privateKey` is missing")),
        (
            "{mode: SIMPLE, credentialName: a, credentialNames: [b]}",
            ("8:44", ConflictingFields, "exclude each other"),
        ),
        (
            "{mode: SIMPLE, credentialName: a, serverCertificate: b, privateKey: c}",
            ("8:44", ConflictingFields, "exclude each other"),
        ),
        (
            "{mode: MUTUAL, serverCertificate: a, privateKey: b}",
            ("8:10", MissingField, "`caCertificates`"),
        ),
        (
            "{mode: SIMPLE, serverCertificate: a, privateKey: b, caCrl: c}",
            ("8:62", ConflictingFields, "remove `caCrl`"),
        ),
        (
            "{mode: SIMPLE, tlsCertificates: [{privateKey: b}]}",
            ("8:43", MissingField, "`serverCertificate` is missing"),
        ),
        ("{mode: SECURE}", ("8:17", InvalidValue, "`OPTIONAL_MUTUAL`")),
    ];
    after(HTTPS, &cases, refused);
}

#[test]
fn tls_details_are_ones_that_envoy_takes() {
    let cases = [
        (
            "mode: MUTUAL\n    verifyCertificateSpki: [abc]",
            ("11:31", InvalidValue, "44 characters"),
        ),
        (
            "mode: MUTUAL\n    verifyCertificateHash: [abc]",
            ("11:31", InvalidValue, "64 hexadecimal"),
        ),
        (
            "mode: SIMPLE\n    minProtocolVersion: TLSV1_3\n    maxProtocolVersion: TLSV1_2",
            ("11:7", ConflictingFields, "above the highest"),
        ),
        ("mode: SIMPLE\n    minProtocolVersion: TLSV1_4", ("11:27", InvalidValue, "`TLSV1_3`")),
    ];
    after(SECURED, &cases, refused);
    let cases = [
        ("mode: SIMPLE\n    cipherSuites: [NOPE]", ("11:22", NoEffect, "left out")),
        (
            "mode: SIMPLE\n    cipherSuites: [AES128-SHA, AES128-SHA]",
            ("11:34", NoEffect, "named twice"),
        ),
        ("mode: SIMPLE\n    minProtocolVersion: TLSV1_0", ("11:27", NoEffect, "below TLS 1.2")),
        ("mode: SIMPLE\n    subjectAltNames: [a]", ("11:24", NoEffect, "no client certificate")),
        ("mode: MUTUAL\n    caCrl: /crl", ("11:14", NoEffect, "comes from the secret")),
        ("mode: PASSTHROUGH", ("9:23", NoEffect, "`credentialName` is not used")),
    ];
    after(SECURED, &cases, warned);
    let cases =
        [("{mode: SIMPLE, credentialName: \"sds://x\"}", ("8:41", NotSupported, "`sds://`"))];
    after(HTTPS, &cases, warned);
}

#[test]
fn known_cipher_suites_are_kept_once() {
    let text = document(
        &KIND,
        &format!("{SECURED}mode: SIMPLE\n    cipherSuites: [AES128-SHA, NOPE, AES128-SHA]"),
    );
    let draft = read(&text).draft.expect("warnings do not refuse");
    let tls = draft.gateways[0].servers[0].tls.as_ref().expect("it has TLS");
    assert_eq!(tls.cipher_suites, ["AES128-SHA"]);
}

#[test]
fn redirects_need_http() {
    let spec = format!("{SECURED}mode: SIMPLE\n    httpsRedirect: true");
    warned(&KIND, &[(&spec, ("11:22", NoEffect, "only a server for HTTP"))]);
}

#[test]
fn modes_that_need_a_mesh_are_not_supported_yet() {
    let spec = format!("{HTTPS}{{mode: ISTIO_MUTUAL}}");
    warned(&KIND, &[(&spec, ("8:17", NotSupported, "certificate authority"))]);
    let spec = format!("{HTTPS}{{mode: AUTO_PASSTHROUGH}}");
    warned(&KIND, &[(&spec, ("8:17", NotSupported, "left out"))]);
    let spec = format!("{HTTPS}{{mode: ISTIO_MUTUAL, credentialName: c}}");
    let text = read(&document(&KIND, &spec)).found;
    assert!(text.iter().any(|d| d.severity == Severity::Error && d.code == ConflictingFields));
}

#[test]
fn all_errors_come_out_in_one_run() {
    expect(
        &KIND,
        "servers:\n- port: {number: 80, protocol: X, name: a}\n  hosts: [short]\n- hosts: [a.com]\n  \
         port: {number: 0, protocol: HTTP, name: b}",
        Severity::Error,
        &[
            ("6:34", InvalidValue, "`X`"),
            ("7:13", InvalidValue, "`short`"),
            ("9:20", InvalidValue, "1 to 65535"),
        ],
    );
}

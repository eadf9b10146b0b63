//! What makes a credential, what is wrong with others, and that no content is ever told.

use super::*;
use crate::config::SourceFile;
use crate::kinds::testing::{Outcome, read as read_text};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

const RSA_CERTIFICATE: &str = include_str!("testdata/rsa.crt");
const RSA_PKCS8: &str = include_str!("testdata/rsa-pkcs8.key");
const RSA_PKCS1: &str = include_str!("testdata/rsa-pkcs1.key");

/// A certificate and its key, of the kind that rcgen makes by default (EC).
fn pair() -> (String, String) {
    pair_of(KeyPair::generate().expect("a key can be made"), CertificateParams::default())
}

fn pair_of(key: KeyPair, params: CertificateParams) -> (String, String) {
    let certificate = params.self_signed(&key).expect("a certificate can be made");
    (certificate.pem(), key.serialize_pem())
}

/// A Secret document; contents are given as they are and written in base64.
fn document(kind: &str, data: &[(&str, &str)]) -> String {
    let mut text = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: x, namespace: ns}}\ntype: {kind}\ndata:\n"
    );
    for (name, content) in data {
        text.push_str(&format!("  {name}: {}\n", STANDARD.encode(content)));
    }
    text
}

fn lines(outcome: &Outcome) -> Vec<String> {
    outcome.found.iter().map(ToString::to_string).collect()
}

fn accepted(text: &str) -> model::Secret {
    let outcome = read_text(text);
    assert_eq!(lines(&outcome), Vec::<String>::new());
    let (key, secret) = outcome.draft.expect("it is valid").secrets.remove(0);
    assert_eq!(key, SecretKey { namespace: Some("ns".into()), name: "x".into() });
    assert_eq!(secret.origin.as_ref().map(|o| o.name.to_string()), Some("ns/x".into()));
    secret
}

/// The document is refused with one error, at this place, that says this.
fn refused(text: &str, place: &str, code: Code, fragment: &str) {
    let outcome = read_text(text);
    let lines = lines(&outcome);
    assert!(outcome.draft.is_none(), "{lines:?}");
    let [line] = lines.as_slice() else { panic!("one error, not {lines:#?}") };
    assert!(line.starts_with(&format!("a.yaml:{place}: error[{code}]")), "{line}");
    assert!(line.contains(fragment), "{line}");
    let span = outcome.found[0].span.as_ref().expect("it has a place");
    assert_eq!(span.excerpt, Excerpt::Withheld);
}

#[test]
fn a_tls_secret_reaches_the_model() {
    let (certificate, key) = pair();
    let secret = accepted(&document(
        TLS_TYPE,
        &[("tls.crt", &certificate), ("tls.key", &key), ("ca.crt", RSA_CERTIFICATE)],
    ));
    assert_eq!(secret.certificate_chain.as_deref(), Some(certificate.as_bytes()));
    assert_eq!(secret.private_key.as_ref().map(PrivateBytes::expose), Some(key.as_bytes()));
    assert_eq!(secret.ca.as_deref(), Some(RSA_CERTIFICATE.as_bytes()));
    assert_eq!(secret.crl, None);
}

#[test]
fn a_generic_secret_has_istios_names() {
    let (certificate, key) = pair();
    let secret = accepted(&document(
        "Opaque",
        &[("cert", &certificate), ("key", &key), ("cacert", RSA_CERTIFICATE)],
    ));
    assert!(secret.certificate_chain.is_some() && secret.private_key.is_some());
    assert!(secret.ca.is_some());
}

#[test]
fn authorities_alone_are_a_credential() {
    let secret = accepted(&document("generic", &[("cacert", RSA_CERTIFICATE)]));
    assert!(secret.ca.is_some() && secret.certificate_chain.is_none());
}

#[test]
fn string_data_wins_over_data() {
    let (certificate, key) = pair();
    let mut text = document("Opaque", &[("cert", "old"), ("key", &key)]);
    text.push_str("stringData:\n  cert: |\n");
    for line in certificate.lines() {
        text.push_str(&format!("    {line}\n"));
    }
    let secret = accepted(&text);
    assert_eq!(
        secret.certificate_chain.as_deref().map(|bytes| bytes.trim_ascii_end()),
        Some(certificate.trim_end().as_bytes())
    );
}

#[test]
fn keys_of_every_common_form_are_recognised() {
    for key in [RSA_PKCS8, RSA_PKCS1] {
        accepted(&document(TLS_TYPE, &[("tls.crt", RSA_CERTIFICATE), ("tls.key", key)]));
    }
    let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key can be made");
    let (certificate, key) = pair_of(key, CertificateParams::default());
    accepted(&document(TLS_TYPE, &[("tls.crt", &certificate), ("tls.key", &key)]));
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let ((certificate, key), (_, other)) = (pair(), pair());
    let fragment = "not the key of the certificate `tls.crt`";
    for (certificate, key) in [(&*certificate, &*other), (RSA_CERTIFICATE, &*key)] {
        let text = document(TLS_TYPE, &[("tls.crt", certificate), ("tls.key", key)]);
        refused(&text, "7:12", Code::BadSecret, fragment);
    }
    // The key belongs to the second certificate of the chain, which is not the one it is for.
    let chain = format!("{certificate}{RSA_CERTIFICATE}");
    let text = document("Opaque", &[("cert", &chain), ("key", RSA_PKCS1)]);
    refused(&text, "7:8", Code::BadSecret, "not the key of the certificate `cert`");
}

#[test]
fn what_is_missing_is_said() {
    let (certificate, key) = pair();
    for (text, place, fragment) in [
        (document(TLS_TYPE, &[("tls.crt", "x")]), "6:3", "needs `tls.key`"),
        (document("Opaque", &[("cert", &certificate)]), "6:9", "private key `key`"),
        (document("Opaque", &[("key", &key)]), "6:8", "certificate `cert`"),
    ] {
        let outcome = read_text(&text);
        let lines = lines(&outcome);
        assert!(outcome.draft.is_none());
        let is_there = |l: &String| l.contains(&format!("a.yaml:{place}:")) && l.contains(fragment);
        assert!(lines.iter().any(is_there), "{lines:#?}");
    }
}

#[test]
fn a_misspelt_name_is_recognised() {
    let (certificate, key) = pair();
    let text = document(TLS_TYPE, &[("tls.cert", &certificate), ("tls.key", &key)]);
    let lines = lines(&read_text(&text));
    assert!(lines.iter().any(|line| line.ends_with("; rename `tls.cert`")), "{lines:#?}");
}

#[test]
fn what_is_not_pem_is_refused_without_being_told() {
    let (certificate, key) = pair();
    let encrypted = include_str!("testdata/rsa-encrypted.key");
    let damaged = certificate.replace("-----END", "-----EN");
    let halved = certificate.replacen("MII", "AAA", 1);
    for (certificate, key, place, fragment) in [
        ("hunter2", &*key, "6:12", "`-----BEGIN CERTIFICATE-----`"),
        (&*key, &*key, "6:12", "holds `PRIVATE KEY`, expected `CERTIFICATE`"),
        (&*damaged, &*key, "6:12", "damaged"),
        (&*halved, &*key, "6:12", "certificate 1 of the PEM text cannot be read"),
        (&*certificate, "hunter2", "7:12", "`-----BEGIN PRIVATE KEY-----`"),
        (&*certificate, &*certificate, "7:12", "expected `PRIVATE KEY`"),
        (&*certificate, encrypted, "7:12", "encrypted"),
    ] {
        let text = document(TLS_TYPE, &[("tls.crt", certificate), ("tls.key", key)]);
        refused(&text, place, Code::BadSecret, fragment);
        let told = format!("{:?}", read_text(&text).found);
        assert!(!told.contains("hunter2") && !told.contains(&STANDARD.encode("hunter2")));
    }
    let text = document("Opaque", &[("cacert", RSA_CERTIFICATE), ("crl", "x")]);
    refused(&text, "7:8", Code::BadSecret, "X509 CRL");
}

#[test]
fn data_is_base64() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\ndata: {cert: hunter2!}\n";
    refused(text, "4:14", Code::InvalidValue, "not base64");
    assert!(!format!("{:?}", read_text(text).found).contains("hunter2"));
}

#[test]
fn values_of_the_wrong_type_are_not_told() {
    let text = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\nstringData: {cert: 271828}\n";
    refused(text, "4:20", Code::InvalidValue, "expected a string, found a number");
    assert!(!format!("{:?}", read_text(text).found).contains("271828"));
}

#[test]
fn a_secret_without_certificates_is_no_mistake() {
    let outcome = read_text(&document("Opaque", &[("password", "hunter2")]));
    assert!(outcome.draft.is_some());
    let [found] = outcome.found.as_slice() else { panic!("one remark") };
    assert_eq!((found.severity, found.code), (Severity::Info, Code::NoEffect));
}

#[test]
fn debug_output_of_a_decoded_secret_has_no_key() {
    let (certificate, key) = pair();
    let text = document(TLS_TYPE, &[("tls.crt", &certificate), ("tls.key", &key)]);
    let reading = crate::config::read(&SourceFile::new("a.yaml", text));
    let decoded = KIND.decode(&reading.documents[0], &mut Diagnostics::new());
    assert!(format!("{:?}", decoded.expect("it is valid")).contains("[redacted]"));
}

fn files(parts: &[(&str, &str)]) -> SecretFiles {
    let parts = parts.iter().map(|(name, text)| ((*name).to_owned(), Arc::from(text.as_bytes())));
    SecretFiles { name: "edge".into(), path: "secrets/edge".into(), parts: parts.collect() }
}

#[test]
fn a_directory_is_a_credential_for_every_namespace() {
    let (certificate, key) = pair();
    let mut diags = Diagnostics::new();
    let files = files(&[("tls.crt", &certificate), ("tls.key", &key)]);
    let (name, secret) = secret_of_files(&files, &mut diags).expect("it is valid");
    assert_eq!(name, SecretKey { namespace: None, name: "edge".into() });
    assert!(secret.origin.is_none() && secret.private_key.is_some());
    assert!(!diags.has_errors());
}

#[test]
fn what_is_wrong_in_a_directory_is_told_by_file() {
    let (certificate, _) = pair();
    for (parts, expected) in [
        (vec![], "secrets/edge:1:1: error[PF0313]: there are neither `tls.crt`"),
        (
            vec![("tls.crt", &*certificate)],
            "secrets/edge/tls.crt:1:1: error[PF0313]: the private key `tls.key`",
        ),
        (vec![("ca.crt", "x")], "secrets/edge/ca.crt:1:1: error[PF0313]: expected PEM"),
    ] {
        let mut diags = Diagnostics::new();
        assert!(secret_of_files(&files(&parts), &mut diags).is_none());
        let found = diags.into_sorted();
        let [diagnostic] = found.as_slice() else { panic!("one error, not {found:?}") };
        assert!(diagnostic.to_string().starts_with(expected), "{diagnostic}");
    }
}

#[test]
fn expiry_is_judged_by_the_callers_clock() {
    let mut params = CertificateParams::default();
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = rcgen::date_time_ymd(2021, 1, 1);
    let key = KeyPair::generate().expect("a key can be made");
    let (certificate, key) = pair_of(key, params);
    let secret = accepted(&document(TLS_TYPE, &[("tls.crt", &certificate), ("tls.key", &key)]));
    let name = SecretKey { namespace: None, name: "x".into() };
    let at = |text: &str| text.parse::<jiff::Timestamp>().expect("it is a time");
    assert_eq!(expired(&name, &secret, at("2020-06-01T00:00:00Z")), None);
    let warning = expired(&name, &secret, at("2021-06-01T00:00:00Z")).expect("it has expired");
    assert_eq!((warning.code, warning.severity), (Code::ExpiredCertificate, Severity::Warning));
    assert!(warning.to_string().starts_with("a.yaml:3:18: "), "{warning}");
    assert!(warning.message.contains("2021-01-01"), "{warning}");
}

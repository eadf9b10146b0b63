//! Secret (Kubernetes' core/v1) and directories of certificate files: both hold what proxies get
//! by SDS. No message of this file ever repeats a content.

mod pem;
#[cfg(test)]
mod tests;

use super::kind::About;
use super::{Draft, Kind, KindSpec};
use crate::config::{Field, Findings, RawDocument, SecretFiles, nearest};
use crate::diag::{Code, Diagnostic, Diagnostics, Excerpt, Severity, Span};
use crate::model::{self, MeshSettings, PrivateBytes, SecretKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The type that promises `tls.crt` and `tls.key`.
const TLS_TYPE: &str = "kubernetes.io/tls";

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

/// Everything beside the header. It has no `Debug`, so that no content can be printed.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Secret")]
struct Spec {
    /// `kubernetes.io/tls`, or `Opaque` for any other.
    #[serde(rename = "type", default)]
    kind: String,
    /// Contents by name, in base64.
    #[serde(default)]
    data: BTreeMap<String, String>,
    /// Contents by name, as they are.
    #[serde(default)]
    string_data: BTreeMap<String, String>,
    /// Kept for Kubernetes; without effect.
    // Only the API server looks at it.
    #[schemars(with = "bool")]
    #[allow(dead_code, reason = "the field is known, but says nothing to us")]
    immutable: Option<bool>,
}

/// The names under which one part may be found: Istio's own first, then Kubernetes'.
struct Part {
    names: [&'static str; 2],
}

const CERTIFICATE: Part = Part { names: ["cert", "tls.crt"] };
const KEY: Part = Part { names: ["key", "tls.key"] };
const CA: Part = Part { names: ["cacert", "ca.crt"] };
const CRL: Part = Part { names: ["crl", "ca.crl"] };

/// The names that Kubernetes has for a pair.
const PARTS: [&str; 2] = ["tls.crt", "tls.key"];

/// The parts of a credential by name, as bytes.
type Parts = BTreeMap<String, Vec<u8>>;

impl Part {
    fn of<'p>(&self, parts: &'p Parts) -> Option<(&'static str, &'p [u8])> {
        self.names.iter().find_map(|name| {
            parts.get(*name).filter(|bytes| !bytes.is_empty()).map(|bytes| (*name, &**bytes))
        })
    }
}

/// Something that is wrong with one part; without a name, with the whole.
struct Trouble {
    part: Option<&'static str>,
    message: String,
    help: Option<&'static str>,
}

impl Trouble {
    fn new(part: Option<&'static str>, message: impl Into<String>) -> Trouble {
        Trouble { part, message: message.into(), help: None }
    }
}

/// Puts a credential together; `Err` says everything that is wrong with it.
fn assemble(parts: &Parts) -> Result<model::Secret, Vec<Trouble>> {
    let mut troubles = Vec::new();
    let (certificate, key) = pair(parts, &mut troubles);
    let (ca, crl) = (CA.of(parts), CRL.of(parts));
    if let Some((name, bytes)) = ca
        && let Err(message) = pem::certificates(bytes)
    {
        troubles.push(Trouble::new(Some(name), message));
    }
    if let Some((name, bytes)) = crl
        && let Err(message) = pem::revocation_lists(bytes)
    {
        troubles.push(Trouble::new(Some(name), message));
    }
    if !troubles.is_empty() {
        return Err(troubles);
    }
    let shared = |part: Option<(&str, &[u8])>| part.map(|(_, bytes)| Arc::from(bytes));
    Ok(model::Secret {
        origin: None,
        certificate_chain: shared(certificate),
        private_key: key.map(|(_, bytes)| PrivateBytes::new(bytes)),
        ca: shared(ca),
        crl: shared(crl),
    })
}

type NamedBytes<'p> = Option<(&'static str, &'p [u8])>;

fn pair<'p>(parts: &'p Parts, troubles: &mut Vec<Trouble>) -> (NamedBytes<'p>, NamedBytes<'p>) {
    let (certificate, key) = (CERTIFICATE.of(parts), KEY.of(parts));
    let chain = certificate.and_then(|(name, bytes)| {
        pem::certificates(bytes).map_err(|m| troubles.push(Trouble::new(Some(name), m))).ok()
    });
    let private = key.and_then(|(name, bytes)| {
        pem::private_key(bytes).map_err(|m| troubles.push(Trouble::new(Some(name), m))).ok()
    });
    match (certificate, key) {
        (Some((name, _)), None) => {
            let key = if name == "cert" { "key" } else { "tls.key" };
            let message = format!("the private key `{key}` of this certificate is missing");
            troubles.push(Trouble::new(Some(name), message));
        }
        (None, Some((name, _))) => {
            let certificate = if name == "key" { "cert" } else { "tls.crt" };
            let message = format!("the certificate `{certificate}` of this key is missing");
            troubles.push(Trouble::new(Some(name), message));
        }
        (Some((name, _)), Some((key_name, _))) => {
            if let (Some(chain), Some(private)) = (chain, private)
                && !pem::may_belong_together(&chain, &private)
            {
                troubles.push(Trouble {
                    part: Some(key_name),
                    message: format!("the key is not the key of the certificate `{name}`"),
                    help: Some(
                        "the first certificate of the chain must be the one that the key was \
                         made for",
                    ),
                });
            }
        }
        (None, None) => {}
    }
    (certificate, key)
}

impl KindSpec for Spec {
    const ABOUT: About =
        About { group: "", kind: "Secret", versions: &["v1"], section: "", unsupported: &[] };

    type Share = model::Secret;

    fn check(&self, f: &mut Findings<'_>) {
        // A pair without its half tells nothing when the other could not be read.
        if f.is_whole(&Field::DOCUMENT) {
            check(self, f);
        }
    }

    fn lower(&self, document: &RawDocument) -> Option<model::Secret> {
        let parts = self.parts().ok()?;
        let secret = assemble(&parts).ok()?;
        Some(model::Secret { origin: Some(Self::ABOUT.origin(&document.header)), ..secret })
    }

    fn add(share: &model::Secret, _: &MeshSettings, draft: &mut Draft) {
        let name = share.origin.as_ref().map(|origin| &origin.name);
        draft.secrets.extend(name.map(|name| {
            let key =
                SecretKey { namespace: Some(name.namespace.clone()), name: name.name.clone() };
            (key, share.clone())
        }));
    }
}

impl Spec {
    /// The parts as bytes, or the names of those that are not base64.
    fn parts(&self) -> Result<Parts, Vec<&str>> {
        let mut parts = Parts::new();
        let mut wrong = Vec::new();
        for (name, text) in &self.data {
            // Line breaks are no part of base64, and everybody reads over them.
            let text: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
            match STANDARD.decode(&text) {
                Ok(bytes) => {
                    parts.insert(name.clone(), bytes);
                }
                Err(_) => wrong.push(name.as_str()),
            }
        }
        let texts = self.string_data.iter();
        parts.extend(texts.map(|(name, text)| (name.clone(), text.clone().into_bytes())));
        if wrong.is_empty() { Ok(parts) } else { Err(wrong) }
    }
}

/// Says everything that is wrong with the credential in a document.
fn check(spec: &Spec, f: &mut Findings<'_>) {
    let data = Field::root("data");
    let parts = match spec.parts() {
        Ok(parts) => parts,
        Err(wrong) => {
            for name in wrong {
                let diagnostic = Diagnostic::new(Code::InvalidValue, "the value is not base64")
                    .help("put text as it is under `stringData`");
                f.report(&data.key(name), diagnostic);
            }
            return;
        }
    };
    if spec.kind == TLS_TYPE {
        for name in PARTS {
            if parts.get(name).is_none_or(Vec::is_empty) {
                let message = format!("a Secret of type `{TLS_TYPE}` needs `{name}`");
                let mut diagnostic = Diagnostic::new(Code::BadSecret, message);
                let others = parts.keys().map(String::as_str).filter(|key| !PARTS.contains(key));
                if let Some(other) = nearest(name, others) {
                    diagnostic = diagnostic.help(format!("rename `{other}`"));
                }
                f.report(&data, diagnostic);
            }
        }
    }
    if [CERTIFICATE, KEY, CA, CRL].iter().all(|part| part.of(&parts).is_none()) {
        if f.has_errors() {
            return;
        }
        let message = "there is no certificate in it, so no proxy can use it";
        let diagnostic = Diagnostic {
            severity: Severity::Info,
            ..Diagnostic::new(Code::NoEffect, message)
                .help("certificates are `tls.crt` with `tls.key`, `cert` with `key`, `ca.crt` or `cacert`")
        };
        f.report(&Field::DOCUMENT, diagnostic);
    }
    let secret = assemble(&parts);
    let string_data = Field::root("stringData");
    for trouble in secret.as_ref().err().into_iter().flatten() {
        let mut diagnostic = Diagnostic::new(Code::BadSecret, &*trouble.message);
        diagnostic.help = trouble.help.map(str::to_owned);
        match trouble.part {
            Some(name) if spec.string_data.contains_key(name) => {
                f.report(&string_data.key(name), diagnostic);
            }
            Some(name) => f.report(&data.key(name), diagnostic),
            None => f.report(&data, diagnostic),
        }
    }
}

/// The credential in a directory below `--secrets-dir`, when nothing is wrong with it.
pub fn secret_of_files(
    files: &SecretFiles,
    diags: &mut Diagnostics,
) -> Option<(SecretKey, model::Secret)> {
    let parts: Parts =
        files.parts.iter().map(|(name, bytes)| (name.clone(), bytes.to_vec())).collect();
    let place = |part: Option<&str>| {
        let path = match part {
            Some(part) => Arc::from(format!("{}/{part}", files.path)),
            None => files.path.clone(),
        };
        Span { excerpt: Excerpt::Withheld, ..Span::point(path, 1, 1) }
    };
    let mut troubles = Vec::new();
    if [CERTIFICATE, KEY, CA].iter().all(|part| part.of(&parts).is_none()) {
        let message = "there are neither `tls.crt` and `tls.key` nor `ca.crt` in the directory";
        troubles.push(Trouble::new(None, message));
    }
    match assemble(&parts) {
        Ok(secret) if troubles.is_empty() => {
            return Some((SecretKey { namespace: None, name: files.name.clone() }, secret));
        }
        Ok(_) => {}
        Err(more) => troubles.extend(more),
    }
    for trouble in troubles {
        let mut diagnostic = Diagnostic::new(Code::BadSecret, trouble.message)
            .at(place(trouble.part))
            .on(format!("secret {}", files.name));
        diagnostic.help = trouble.help.map(str::to_owned);
        diags.push(diagnostic);
    }
    None
}

/// Warns when a certificate of the credential has expired at that time. The core has no clock, so
/// the caller says what time it is.
pub fn expired(
    key: &SecretKey,
    secret: &model::Secret,
    now: jiff::Timestamp,
) -> Option<Diagnostic> {
    let certificates = [&secret.certificate_chain, &secret.ca]
        .into_iter()
        .flatten()
        .filter_map(|bytes| pem::certificates(bytes).ok())
        .flatten();
    let first = certificates.filter_map(|c| c.not_after()).filter(|end| *end < now).min()?;
    let message = format!("a certificate has expired on {first}; it is served as it is");
    Some(match &secret.origin {
        Some(origin) => origin.diagnostic(Code::ExpiredCertificate, message),
        None => {
            Diagnostic::new(Code::ExpiredCertificate, message).on(format!("secret {}", key.name))
        }
    })
}

//! From a document to a decoded kind, the same way for all: find the kind, decode, check, warn
//! about what is not supported.

use super::kind::Decoded;
use super::{find, stranger, unsupported};
use crate::config::{Field, Findings, RawDocument};
use crate::diag::{Code, Diagnostic, Diagnostics};

/// Decodes and checks a document of any kind.
pub fn decode(document: &RawDocument, diags: &mut Diagnostics) -> Decoded {
    let header = &document.header;
    let kind = match find(&header.api_version, &header.kind) {
        Ok(None) => return stranger::judge(document, diags),
        Ok(Some(kind)) => kind,
        Err(versions) => {
            let message = format!("`{}` has no version `{}`", header.kind, header.version());
            let help = format!("the versions that are read are {}", versions.join(", "));
            let diagnostic = Diagnostic::new(Code::UnsupportedVersion, message).help(help);
            Findings::new(document, diags).report(&Field::root("apiVersion"), diagnostic);
            return Decoded::Refused;
        }
    };
    let lower = kind.decode(document, diags);
    let mut findings = Findings::new(document, diags);
    unsupported::warn(kind.about.unsupported, &mut findings);
    annotations(&mut findings);
    match lower {
        Some(lower) if !findings.has_errors() => Decoded::Accepted(lower),
        _ => Decoded::Refused,
    }
}

/// Annotations of Istio's own machinery. Istio refuses them in what users write; documents that were
/// taken out of a running Istio carry them, and then they mean nothing.
const INTERNAL_ANNOTATIONS: [&str; 2] =
    ["internal.istio.io/parents", "internal.istio.io/parent-namespace"];

/// Annotations that ask not to be served.
const REFUSED_ANNOTATIONS: [&str; 2] =
    ["internal.istio.io/webhook-always-reject", "istio.io/dry-run"];

fn annotations(f: &mut Findings<'_>) {
    let metadata = Field::root("metadata");
    let at = metadata.key("annotations");
    for name in REFUSED_ANNOTATIONS {
        if f.document().header.annotations.contains_key(name) {
            let message = "the annotation must not be used here; remove it";
            let span = f.key_span(&at.key(name));
            f.report(&at.key(name), Diagnostic::new(Code::InvalidValue, message).at(span));
        }
    }
    for name in INTERNAL_ANNOTATIONS {
        if f.document().header.annotations.contains_key(name) {
            let message = "the annotation is Istio's own and has no effect here";
            let span = f.key_span(&at.key(name));
            f.report(&at.key(name), Diagnostic::new(Code::NoEffect, message).at(span));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SourceFile, read};

    fn found(text: &str) -> (Decoded, Vec<String>) {
        let reading = read(&SourceFile::new("a.yaml", text));
        let mut diags = Diagnostics::new();
        let decoded = decode(&reading.documents[0], &mut diags);
        (decoded, diags.into_sorted().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn every_version_of_a_kind_is_read_and_no_other() {
        let text = |version: &str| {
            format!(
                "apiVersion: networking.istio.io/{version}\nkind: Sidecar\nmetadata: {{name: x}}\n\
                 spec: {{egress: [hosts: [\"./*\"]]}}"
            )
        };
        for version in super::super::sidecar::KIND.about.versions {
            assert!(
                matches!(found(&text(version)), (Decoded::Accepted(_), none) if none.is_empty())
            );
        }
        let (decoded, told) = found(&text("v2"));
        assert!(matches!(decoded, Decoded::Refused));
        let expected = "a.yaml:1:13: error[PF0210]: apiVersion: `Sidecar` has no version `v2`";
        assert!(told[0].starts_with(expected), "{told:?}");
    }

    #[test]
    fn kinds_of_other_groups_are_not_ours() {
        let text = "apiVersion: gateway.example.com/v1\nkind: Gateway\nmetadata: {name: x}";
        assert!(matches!(found(text), (Decoded::Foreign, none) if none.is_empty()));
    }

    #[test]
    fn annotations_that_ask_not_to_be_served_are_refused_and_istios_own_are_warned_of() {
        let with = |annotation: &str| {
            found(&format!(
                "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata:\n  name: x\n  \
                 annotations: {{{annotation}: a}}\nspec: {{egress: [hosts: [\"./*\"]]}}",
            ))
        };
        let (decoded, told) = with("istio.io/dry-run");
        assert!(matches!(decoded, Decoded::Refused));
        assert!(told[0].starts_with("a.yaml:5:17: error[PF0201]"), "{told:?}");
        let (decoded, told) = with("internal.istio.io/parents");
        assert!(matches!(decoded, Decoded::Accepted(_)));
        assert!(told[0].starts_with("a.yaml:5:17: warning[PF0207]"), "{told:?}");
    }
}

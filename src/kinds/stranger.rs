//! Documents of no kind that is read: a kind that is not supported yet, a slip of the pen, or
//! something that was never meant for pilotfish.

use super::KINDS;
use super::kind::Decoded;
use super::not_yet::{self, NOT_YET};
use crate::config::{Field, Findings, RawDocument, nearest};
use crate::diag::{Code, Diagnostic, Diagnostics, Excerpt};

/// A kind that somebody may have meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Known {
    group: &'static str,
    versions: &'static [&'static str],
    kind: &'static str,
}

/// The kinds that are read come first: of two groups with one kind, theirs is meant.
fn known() -> impl Iterator<Item = Known> {
    let ours = KINDS.iter().map(|kind| Known {
        group: kind.about.group,
        versions: kind.about.versions,
        kind: kind.about.kind,
    });
    let others = NOT_YET.iter().map(|row| Known {
        group: row.group,
        versions: std::slice::from_ref(&row.version),
        kind: row.kind,
    });
    ours.chain(others)
}

/// Says what is to be said about a document whose kind is not read.
pub(super) fn judge(document: &RawDocument, diags: &mut Diagnostics) -> Decoded {
    let (group, kind) = (document.header.group(), &*document.header.kind);
    let mut findings = Findings::new(document, diags);
    if let Some(row) = NOT_YET.iter().find(|row| row.group == group && row.kind == kind) {
        not_yet::warn(row, &mut findings);
        return Decoded::NotYet;
    }
    match meant(group, kind) {
        Meant::Kind(known) => {
            misspelt(known, &mut findings);
            Decoded::Refused
        }
        Meant::Group(group) => {
            let message = format!("{group} has no kind {kind} that is known; it has no effect");
            findings.warn(&Field::root("kind"), Code::NotSupported, message);
            Decoded::NotYet
        }
        Meant::Other => Decoded::Foreign,
    }
}

/// What a document that is of no known kind was meant to be.
#[derive(Debug, PartialEq, Eq)]
enum Meant {
    /// Most likely this kind.
    Kind(Known),
    /// Some kind of this group of Istio or the Gateway API.
    Group(&'static str),
    /// Nothing of pilotfish's.
    Other,
}

fn meant(group: &str, kind: &str) -> Meant {
    let is_core = group.is_empty();
    let own = known().find(|known| known.group == group).map(|known| known.group);
    let same = |known: &Known| known.kind == kind;
    // Names like `Service` and `Gateway` are used in many groups, so the group has to be one of
    // ours, or as good as none, before a kind tells anything.
    let near_kind = |candidates: &mut dyn Iterator<Item = Known>| {
        let candidates: Vec<Known> = candidates.collect();
        let name = nearest(kind, candidates.iter().map(|known| known.kind))?;
        candidates.into_iter().find(|known| known.kind == name)
    };
    let found = match own {
        Some(own) => known()
            .find(same)
            .or_else(|| near_kind(&mut known().filter(|known| known.group == own)))
            .or_else(|| near_kind(&mut known().filter(|known| is_core && !known.group.is_empty()))),
        None => nearest(group, known().map(|known| known.group).filter(|name| !name.is_empty()))
            .and_then(|near| near_kind(&mut known().filter(|known| known.group == near))),
    };
    match (found, own) {
        (Some(known), _) => Meant::Kind(known),
        (None, Some(own)) if !is_core && own != "discovery.k8s.io" => Meant::Group(own),
        (None, _) => Meant::Other,
    }
}

fn misspelt(known: Known, f: &mut Findings<'_>) {
    let header = &f.document().header;
    let is_secret = known.kind == "Secret";
    let mut report = |field: &Field<'_>, message: String, right: String| {
        let mut span = f.span(field);
        if is_secret {
            span.excerpt = Excerpt::Withheld;
        }
        let help = format!("did you mean `{right}`?");
        f.report(field, Diagnostic::new(Code::UnknownKind, message).at(span).help(help));
    };
    if header.group() != known.group {
        let version = known.versions.iter().find(|version| **version == header.version());
        let version = version.or(known.versions.first()).copied().unwrap_or_default();
        let right = match known.group {
            "" => version.to_owned(),
            group => format!("{group}/{version}"),
        };
        let message = format!("`{}` has no kind `{}`", header.api_version, header.kind);
        report(&Field::root("apiVersion"), message, right);
    }
    if *header.kind != *known.kind {
        let message = format!("there is no kind `{}`", header.kind);
        report(&Field::root("kind"), message, known.kind.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{self, SourceFile};
    use crate::diag::Diagnostics;
    use crate::kinds::{Decoded, KINDS, decode};

    /// What becomes of a document with that head, and what is said about it.
    fn judged(api_version: &str, kind: &str) -> (&'static str, Vec<String>) {
        let text = format!("apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: x}}\n");
        let reading = config::read(&SourceFile::new("f", text));
        let mut diags = Diagnostics::new();
        let fate = match decode(&reading.documents[0], &mut diags) {
            Decoded::Accepted(_) => "good",
            Decoded::Refused => "refused",
            Decoded::NotYet => "not yet",
            Decoded::Foreign => "not ours",
        };
        (fate, diags.into_sorted().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn kinds_that_are_not_supported_yet_are_warnings() {
        for (api_version, kind) in [
            ("networking.istio.io/v1alpha3", "EnvoyFilter"),
            ("telemetry.istio.io/v1", "Telemetry"),
            ("gateway.networking.k8s.io/v1beta1", "Gateway"),
            ("v1", "Service"),
            ("discovery.k8s.io/v1", "EndpointSlice"),
        ] {
            let expected = format!(
                "f:2:7: warning[PF0205]: kind: {kind} is not supported yet; it has no effect \
                 ({kind} default/x)"
            );
            assert_eq!(judged(api_version, kind), ("not yet", vec![expected]));
        }
        for kind in ["AuthorizationPolicy", "PeerAuthentication", "RequestAuthentication"] {
            let (fate, found) = judged("security.istio.io/v1beta1", kind);
            assert_eq!((fate, found.len()), ("not yet", 1));
            assert!(found[0].contains("nothing that it demands is enforced"), "{found:?}");
        }
        let (fate, found) = judged("networking.istio.io/v1", "SomethingNewer");
        assert_eq!((fate, found.len()), ("not yet", 1));
        assert!(found[0].starts_with("f:2:7: warning[PF0205]: kind: networking.istio.io has no"));
    }

    #[test]
    fn slips_in_kind_and_group_are_errors_where_they_are() {
        let vs = "VirtualService";
        let api = "networking.istio.io/v1";
        for (api_version, kind, expected) in [
            (api, "VirtualServcie", &[("2:7", vs)][..]),
            (api, "virtualservice", &[("2:7", vs)]),
            (api, "DestinationRules", &[("2:7", "DestinationRule")]),
            ("security.istio.io/v1", "AuthorisationPolicy", &[("2:7", "AuthorizationPolicy")]),
            ("v1", "secret", &[("2:7", "Secret")]),
            ("networking.isto.io/v1", vs, &[("1:13", api)]),
            ("networking.isto.io/v1beta1", vs, &[("1:13", "networking.istio.io/v1beta1")]),
            ("networking.isto.io/v2", vs, &[("1:13", api)]),
            ("v1", vs, &[("1:13", api)]),
            ("v1", "Gateway", &[("1:13", api)]),
            ("networking.istio.io", vs, &[("1:13", api)]),
            (api, "HTTPRoute", &[("1:13", "gateway.networking.k8s.io/v1")]),
            ("gateway.networking.k8s.io/v1", vs, &[("1:13", api)]),
            ("networking.isto.io/v1", "VirtualServcie", &[("1:13", api), ("2:7", vs)]),
            ("v1", "VirtualServcie", &[("1:13", api), ("2:7", vs)]),
        ] {
            let (fate, found) = judged(api_version, kind);
            assert_eq!((fate, found.len()), ("refused", expected.len()), "{found:#?}");
            for (found, (place, right)) in found.iter().zip(expected) {
                let start = format!("f:{place}: error[PF0212]: ");
                let end = format!("; did you mean `{right}`?");
                assert!(found.starts_with(&start) && found.ends_with(&end), "{found}");
            }
        }
    }

    #[test]
    fn foreign_kinds_are_left_alone() {
        for (api_version, kind) in [
            ("apps/v1", "Deployment"),
            ("v1", "ConfigMap"),
            ("v1", "Endpoints"),
            ("v1", "ServiceAccount"),
            ("v1", "Namespace"),
            ("v1", "Pod"),
            ("networking.k8s.io/v1", "Ingress"),
            ("networking.k8s.io/v1", "NetworkPolicy"),
            ("networking.gke.io/v1", "ManagedCertificate"),
            ("serving.knative.dev/v1", "Service"),
            ("example.com/v1", "Gateway"),
            ("cert-manager.io/v1", "Certificate"),
            ("install.istio.io/v1alpha1", "IstioOperator"),
        ] {
            assert_eq!(judged(api_version, kind), ("not ours", vec![]), "{api_version} {kind}");
        }
    }

    #[test]
    fn no_kind_is_in_both_tables() {
        for row in super::NOT_YET {
            let is_read =
                KINDS.iter().any(|k| k.about.group == row.group && k.about.kind == row.kind);
            assert!(!is_read, "{row:?}");
        }
    }

    #[test]
    fn text_of_what_may_be_a_secret_is_withheld() {
        let text = "{apiVersion: v1, kind: Secrets, metadata: {name: x}, stringData: {k: hush}}\n";
        let reading = config::read(&SourceFile::new("f", text));
        let mut diags = Diagnostics::new();
        decode(&reading.documents[0], &mut diags);
        let found = diags.into_sorted();
        let span = found[0].span.as_ref().expect("it has a place");
        assert_eq!(span.excerpt, crate::diag::Excerpt::Withheld);
    }
}

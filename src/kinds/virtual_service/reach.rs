//! Warnings about rules and matches that no request can reach, because earlier ones take all.

use super::spec::{HttpMatchRequest, Spec};
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic, Span};
use crate::kinds::values::StringMatch;
use std::collections::BTreeMap;

/// Looks at all lists of rules.
pub(super) fn spec(spec: &Spec, f: &mut Findings<'_>) {
    let at = Field::root("spec");
    let anything = [HttpMatchRequest::default()];
    let http: Vec<&[HttpMatchRequest]> = spec
        .http
        .iter()
        .map(|rule| if rule.r#match.is_empty() { &anything } else { rule.r#match.as_slice() })
        .collect();
    list(&http, covers, &at.key("http"), f);
    let tls: Vec<_> = spec.tls.iter().map(|rule| rule.r#match.as_slice()).collect();
    list(&tls, |a, b| a == b, &at.key("tls"), f);
    let nothing = [Default::default()];
    let tcp: Vec<_> = spec
        .tcp
        .iter()
        .map(|rule| if rule.r#match.is_empty() { &nothing } else { rule.r#match.as_slice() })
        .collect();
    list(&tcp, |a, b| *a == nothing[0] || a == b, &at.key("tcp"), f);
}

/// Warns about what is covered in a list of rules with alternatives.
fn list<M>(rules: &[&[M]], covers: impl Fn(&M, &M) -> bool, at: &Field<'_>, f: &mut Findings<'_>) {
    let mut earlier: Vec<(usize, usize, &M)> = Vec::new();
    for (index, matches) in rules.iter().enumerate() {
        let rule_at = at.index(index);
        let mut covered = Vec::new();
        let mut own = Vec::new();
        for (number, m) in matches.iter().enumerate() {
            let all = earlier.iter().chain(&own);
            match all.copied().find(|(_, _, other)| covers(other, m)) {
                Some((rule, other, _)) => covered.push((number, rule, other)),
                None => own.push((index, number, m)),
            }
        }
        let by_earlier = covered.iter().all(|(_, rule, _)| *rule < index);
        match covered.first() {
            Some(&(_, rule, _)) if covered.len() == matches.len() && by_earlier => {
                let earlier = at.index(rule);
                let message = format!(
                    "the rule is never reached: `{earlier}` takes all of its requests before"
                );
                warn(&rule_at, message, f.span(&at.index(rule)), f);
            }
            _ => {
                for (number, rule, other) in covered {
                    let earlier = at.index(rule);
                    let list = earlier.key("match");
                    let message = format!(
                        "the match is never reached: `{}` takes all of its requests before",
                        list.index(other)
                    );
                    let related = f.span(&at.index(rule));
                    warn(&rule_at.key("match").index(number), message, related, f);
                }
            }
        }
        earlier.extend(own);
    }
}

fn warn(at: &Field<'_>, message: String, earlier: Span, f: &mut Findings<'_>) {
    let diagnostic = Diagnostic::new(Code::Unreachable, message)
        .help("put the more special rule first, or remove it")
        .related(earlier, "the earlier rule");
    f.report(at, diagnostic);
}

/// Whether every request that fulfils `b` fulfils `a`. When in doubt, no.
fn covers(a: &HttpMatchRequest, b: &HttpMatchRequest) -> bool {
    let same_source = a.gateways == b.gateways
        && a.source_labels.iter().all(|(key, value)| b.source_labels.get(key) == Some(value))
        && (a.source_namespace.is_empty() || a.source_namespace == b.source_namespace);
    // Conditions on the caller are not looked at in a match that names gateways.
    let any_source = a.gateways.is_empty()
        && b.gateways.is_empty()
        && a.source_labels.is_empty()
        && a.source_namespace.is_empty();
    (same_source || any_source)
        && (a.port == 0 || a.port == b.port)
        && uri_covers(a, b)
        && text_covers(a.scheme.as_ref(), b.scheme.as_ref())
        && text_covers(a.method.as_ref(), b.method.as_ref())
        && text_covers(a.authority.as_ref(), b.authority.as_ref())
        && all_in(&a.headers, &b.headers)
        && all_in(&a.without_headers, &b.without_headers)
        && all_in(&a.query_params, &b.query_params)
}

fn all_in(a: &BTreeMap<String, StringMatch>, b: &BTreeMap<String, StringMatch>) -> bool {
    a.iter().all(|(name, condition)| b.get(name) == Some(condition))
}

fn text_covers(a: Option<&StringMatch>, b: Option<&StringMatch>) -> bool {
    matches!(a, None | Some(StringMatch::Present)) || a == b
}

fn uri_covers(a: &HttpMatchRequest, b: &HttpMatchRequest) -> bool {
    let (first, second) = match (&a.uri, &b.uri) {
        (None | Some(StringMatch::Present), _) => return true,
        (Some(StringMatch::Prefix(prefix)), _) if prefix.is_empty() || prefix == "/" => {
            return true;
        }
        (Some(StringMatch::Regex(regex)), _) if regex == ".*" => return true,
        (Some(_), None) => return false,
        (Some(first), Some(second)) => (first, second),
    };
    if let (StringMatch::Regex(first), StringMatch::Regex(second)) = (first, second) {
        return first == second;
    }
    if a.ignore_uri_case != b.ignore_uri_case {
        return false;
    }
    match (first, second) {
        (StringMatch::Prefix(first), StringMatch::Prefix(second) | StringMatch::Exact(second)) => {
            second.starts_with(first.as_str())
        }
        (StringMatch::Exact(first), StringMatch::Exact(second)) => first == second,
        _ => false,
    }
}

//! Merging delegate VirtualServices into their roots, as Istio does
//! (`pilot/pkg/model/virtualservice.go`, described in its documentation of `delegate`).

use crate::diag::{Code, Diagnostics};
use crate::kinds::{DelegateDraft, DelegateRef, DraftAction, VirtualServiceDraft};
use crate::model::{
    HeaderOperations, Headers, HttpMatch, HttpRule, ObjectName, PathMatch, StringMatch,
    VirtualService,
};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The VirtualServices in the order of their drafts: those that delegate have the rules of their
/// delegates, and delegates are no more. A rule whose delegate is missing, hidden or contradictory
/// is dropped with a warning; its neighbours stay. What comes out as it was `before` is the same
/// `Arc`.
pub fn merge(
    drafts: &[Arc<VirtualServiceDraft>],
    before: &[Arc<VirtualService>],
    diags: &mut Diagnostics,
) -> Arc<[Arc<VirtualService>]> {
    let delegates = || {
        drafts.iter().filter_map(|draft| match &**draft {
            VirtualServiceDraft::Delegate(delegate) => Some(delegate),
            VirtualServiceDraft::Complete(_) | VirtualServiceDraft::Delegating { .. } => None,
        })
    };
    let by_name: HashMap<&ObjectName, &DelegateDraft> =
        delegates().map(|d| (&d.origin.name, d)).collect();
    let mut used: HashSet<&ObjectName> = HashSet::new();
    let mut merged = Vec::with_capacity(drafts.len());
    for draft in drafts {
        match &**draft {
            VirtualServiceDraft::Complete(service) => merged.push(service.clone()),
            VirtualServiceDraft::Delegate(_) => {}
            VirtualServiceDraft::Delegating { service, http } => {
                let mut rules = Vec::new();
                for rule in http {
                    match &rule.action {
                        DraftAction::Own(action) => {
                            rules.push(rule.clone().with_action(action.clone()));
                        }
                        DraftAction::Delegate(delegate) => {
                            used.insert(&delegate.name);
                            let target = by_name.get(&delegate.name).copied();
                            rules.extend(expand(service, rule, delegate, target, diags));
                        }
                    }
                }
                let made = VirtualService { http: rules, ..service.clone() };
                let known = before.iter().find(|v| v.origin == made.origin && ***v == made);
                merged.push(known.cloned().unwrap_or_else(|| Arc::new(made)));
            }
        }
    }
    for delegate in delegates().filter(|d| !used.contains(&d.origin.name)) {
        diags.push(delegate.origin.diagnostic(
            Code::UnusedDocument,
            "a VirtualService without hosts is a delegate, and no other VirtualService delegates \
             to it",
        ));
    }
    merged.into()
}

fn expand(
    root: &VirtualService,
    rule: &HttpRule<DraftAction>,
    delegate: &DelegateRef,
    target: Option<&DelegateDraft>,
    diags: &mut Diagnostics,
) -> Vec<HttpRule> {
    let Some(target) = target else {
        diags.push(root.origin.diagnostic_at(
            &delegate.span,
            Code::UnknownDelegate,
            format!(
                "no VirtualService {} without hosts exists; this rule is left out",
                delegate.name
            ),
        ));
        return Vec::new();
    };
    if !target.visibility.includes(&root.origin.name.namespace) {
        let finding = root.origin.diagnostic_at(
            &delegate.span,
            Code::UnknownDelegate,
            format!(
                "VirtualService {} is not exported to namespace '{}'; this rule is left out",
                delegate.name, root.origin.name.namespace
            ),
        );
        diags.push(finding.related(target.origin.span.clone(), "set its exportTo"));
        return Vec::new();
    }
    let mut merged = Vec::new();
    for leaf in &target.http {
        match merge_matches(&rule.matches, &leaf.matches) {
            Some(matches) => merged.push(merge_rule(rule, leaf, matches)),
            None => {
                let finding = target.origin.diagnostic_at(
                    &leaf.span,
                    Code::ConflictingDelegate,
                    format!(
                        "no match of this rule can hold together with the matches of the rule of \
                         {} that delegates to it; the rule is left out there",
                        root.origin.name
                    ),
                );
                diags.push(finding.related(rule.span.clone(), "delegated here"));
            }
        }
    }
    merged
}

/// `None` when some match of the leaf fits no match of the root.
fn merge_matches(root: &[HttpMatch], leaf: &[HttpMatch]) -> Option<Vec<HttpMatch>> {
    if root.is_empty() {
        return Some(leaf.to_vec());
    }
    if leaf.is_empty() {
        return Some(root.to_vec());
    }
    let mut merged = Vec::new();
    for own in leaf {
        let before = merged.len();
        let fitting = root.iter().filter(|r| !conflict(r, own));
        merged.extend(fitting.map(|r| merge_match(r, own)));
        if merged.len() == before {
            return None;
        }
    }
    Some(merged)
}

fn merge_rule(root: &HttpRule<DraftAction>, leaf: &HttpRule, matches: Vec<HttpMatch>) -> HttpRule {
    let no_headers =
        Headers { request: HeaderOperations::default(), response: HeaderOperations::default() };
    HttpRule {
        name: join(&root.name, &leaf.name),
        matches,
        action: leaf.action.clone(),
        rewrite: leaf.rewrite.clone().or_else(|| root.rewrite.clone()),
        timeout: leaf.timeout.or(root.timeout),
        retries: leaf.retries.clone().or_else(|| root.retries.clone()),
        fault: leaf.fault.clone().or_else(|| root.fault.clone()),
        mirrors: if leaf.mirrors.is_empty() { &root.mirrors } else { &leaf.mirrors }.clone(),
        cors: leaf.cors.clone().or_else(|| root.cors.clone()),
        headers: if leaf.headers == no_headers { &root.headers } else { &leaf.headers }.clone(),
        span: leaf.span.clone(),
    }
}

fn join(root: &str, leaf: &str) -> String {
    match (root.is_empty(), leaf.is_empty()) {
        (false, false) => format!("{root}-{leaf}"),
        (true, _) => leaf.to_owned(),
        (false, true) => root.to_owned(),
    }
}

fn merge_match(root: &HttpMatch, leaf: &HttpMatch) -> HttpMatch {
    let path = leaf.path.clone().or_else(|| root.path.clone());
    let pick = |own: &Option<StringMatch>, theirs: &Option<StringMatch>| {
        own.clone().or_else(|| theirs.clone())
    };
    let unite = |theirs: &BTreeMap<String, Option<StringMatch>>,
                 own: &BTreeMap<String, Option<StringMatch>>| {
        let mut all = theirs.clone();
        all.extend(own.clone());
        all
    };
    let mut source_labels = root.source_labels.clone();
    source_labels.extend(&leaf.source_labels);
    HttpMatch {
        name: join(&root.name, &leaf.name),
        path,
        ignore_path_case: leaf.ignore_path_case || root.ignore_path_case,
        scheme: pick(&leaf.scheme, &root.scheme),
        method: pick(&leaf.method, &root.method),
        authority: pick(&leaf.authority, &root.authority),
        headers: unite(&root.headers, &leaf.headers),
        without_headers: unite(&root.without_headers, &leaf.without_headers),
        query_params: unite(&root.query_params, &leaf.query_params),
        port: leaf.port.or(root.port),
        source_labels,
        source_namespace: leaf.source_namespace.clone().or_else(|| root.source_namespace.clone()),
        gateways: if leaf.gateways.is_empty() { &root.gateways } else { &leaf.gateways }.clone(),
        stat_prefix: if leaf.stat_prefix.is_empty() {
            &root.stat_prefix
        } else {
            &leaf.stat_prefix
        }
        .clone(),
        span: leaf.span.clone(),
    }
}

/// Whether the two can never hold together (or cannot be known to).
fn conflict(root: &HttpMatch, leaf: &HttpMatch) -> bool {
    let texts = [
        (&root.scheme, &leaf.scheme),
        (&root.method, &leaf.method),
        (&root.authority, &leaf.authority),
    ];
    let maps = [
        (&root.headers, &leaf.headers),
        (&root.without_headers, &leaf.without_headers),
        (&root.query_params, &leaf.query_params),
    ];
    let ports = root.port.is_some() && leaf.port.is_some() && root.port != leaf.port;
    let namespaces =
        root.source_namespace.is_some() && root.source_namespace != leaf.source_namespace;
    let labels = root
        .source_labels
        .iter()
        .any(|(key, value)| leaf.source_labels.get(key).is_some_and(|own| own != value));
    let gateways = !root.gateways.is_empty()
        && !leaf.gateways.is_empty()
        && !leaf.gateways.iter().all(|g| root.gateways.contains(g));
    root.ignore_path_case != leaf.ignore_path_case
        || paths_conflict(root.path.as_ref(), leaf.path.as_ref())
        || ports
        || namespaces
        || labels
        || gateways
        || texts.into_iter().any(|(r, l)| texts_conflict(r.as_ref(), l.as_ref()))
        || maps.into_iter().any(|(r, l)| {
            r.iter().any(|(key, root)| {
                l.get(key).is_some_and(|leaf| texts_conflict(root.as_ref(), leaf.as_ref()))
            })
        })
}

fn paths_conflict(root: Option<&PathMatch>, leaf: Option<&PathMatch>) -> bool {
    use PathMatch::{Exact, Prefix, Regex, SegmentPrefix};
    let is_below = |path: &str, prefix: &str| {
        let prefix = prefix.trim_end_matches('/');
        path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match (root, leaf) {
        (None, _) | (_, None) => false,
        // Whether two regular expressions can hold together is not looked into (Istio).
        (Some(Regex(_)), Some(_)) | (Some(_), Some(Regex(_))) => true,
        (Some(Exact(root)), Some(Exact(leaf))) => root != leaf,
        (Some(Exact(_)), Some(Prefix(_) | SegmentPrefix(_))) => true,
        (Some(Prefix(root)), Some(Exact(leaf) | Prefix(leaf) | SegmentPrefix(leaf))) => {
            !leaf.starts_with(root.as_str())
        }
        (Some(SegmentPrefix(root)), Some(Exact(leaf) | SegmentPrefix(leaf))) => {
            !is_below(leaf, root)
        }
        // Of the paths below a plain prefix, some may be outside the segment.
        (Some(SegmentPrefix(root)), Some(Prefix(leaf))) => {
            !is_below(leaf, root) || *leaf == root.trim_end_matches('/')
        }
    }
}

fn texts_conflict(root: Option<&StringMatch>, leaf: Option<&StringMatch>) -> bool {
    use StringMatch::{Exact, Prefix, Regex};
    match (root, leaf) {
        (None, _) | (_, None) => false,
        // Whether two regular expressions can hold together is not looked into (Istio).
        (Some(Regex(_)), Some(_)) | (Some(_), Some(Regex(_))) => true,
        (Some(Exact(root)), Some(Exact(leaf))) => root != leaf,
        (Some(Exact(_)), Some(Prefix(_))) => true,
        (Some(Prefix(root)), Some(Exact(leaf) | Prefix(leaf))) => !leaf.starts_with(root.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use PathMatch::{Exact, Prefix, SegmentPrefix};

    #[test]
    fn a_delegates_path_must_lie_within_that_of_its_root() {
        let conflict = |root: PathMatch, leaf: PathMatch| paths_conflict(Some(&root), Some(&leaf));
        let path = |path: &str| path.to_owned();
        for (root, leaf, expected) in [
            (Prefix(path("/a")), Exact(path("/ab")), false),
            (Prefix(path("/a")), SegmentPrefix(path("/ab")), false),
            (Prefix(path("/a/b")), SegmentPrefix(path("/a")), true),
            (SegmentPrefix(path("/a")), Exact(path("/a")), false),
            (SegmentPrefix(path("/a")), Exact(path("/a/b")), false),
            (SegmentPrefix(path("/a")), Exact(path("/ab")), true),
            (SegmentPrefix(path("/a/")), SegmentPrefix(path("/a")), false),
            (SegmentPrefix(path("/a")), SegmentPrefix(path("/ab")), true),
            // `/a` as a plain prefix also takes `/ab`, which the root does not have.
            (SegmentPrefix(path("/a")), Prefix(path("/a")), true),
            (SegmentPrefix(path("/a")), Prefix(path("/a/b")), false),
            (Exact(path("/a")), SegmentPrefix(path("/a")), true),
        ] {
            assert_eq!(conflict(root.clone(), leaf.clone()), expected, "{root:?} {leaf:?}");
        }
    }
}

//! Merging delegate VirtualServices into their roots, as Istio does
//! (`pilot/pkg/model/virtualservice.go`, described in its documentation of `delegate`).

use crate::diag::{Code, Diagnostics};
use crate::model::{
    Delegate, HeaderOperations, Headers, HttpAction, HttpMatch, HttpRule, ObjectName, StringMatch,
    VirtualService,
};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Replaces delegating rules by the merged rules of their delegates; delegates themselves are
/// taken out. A rule whose delegate is missing, hidden or contradictory is dropped with a warning;
/// its neighbours stay.
pub fn merge(rules: Vec<VirtualService>, diags: &mut Diagnostics) -> Vec<VirtualService> {
    let (delegates, roots): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(VirtualService::is_delegate);
    let by_name: HashMap<ObjectName, &VirtualService> =
        delegates.iter().map(|d| (d.origin.name.clone(), d)).collect();
    let mut used: HashSet<ObjectName> = HashSet::new();
    let roots = roots
        .into_iter()
        .map(|mut root| {
            let rules = std::mem::take(&mut root.http);
            for rule in rules {
                match &rule.action {
                    HttpAction::Delegate(delegate) => {
                        used.insert(delegate.name.clone());
                        let target = by_name.get(&delegate.name).copied();
                        let merged = expand(&root, &rule, delegate, target, diags);
                        root.http.extend(merged);
                    }
                    HttpAction::Route(_)
                    | HttpAction::Redirect(_)
                    | HttpAction::DirectResponse(_) => root.http.push(rule),
                }
            }
            root
        })
        .collect();
    for delegate in delegates.iter().filter(|d| !used.contains(&d.origin.name)) {
        diags.push(delegate.origin.diagnostic(
            Code::UnusedDocument,
            "a VirtualService without hosts is a delegate, and no other VirtualService delegates \
             to it",
        ));
    }
    roots
}

fn expand(
    root: &VirtualService,
    rule: &HttpRule,
    delegate: &Delegate,
    target: Option<&VirtualService>,
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
        if matches!(leaf.action, HttpAction::Delegate(_)) {
            continue;
        }
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

fn merge_rule(root: &HttpRule, leaf: &HttpRule, matches: Vec<HttpMatch>) -> HttpRule {
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
        uri: pick(&leaf.uri, &root.uri),
        ignore_uri_case: leaf.ignore_uri_case || root.ignore_uri_case,
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
        (&root.uri, &leaf.uri),
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
    root.ignore_uri_case != leaf.ignore_uri_case
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

//! DestinationRules, and the lookup that decides which one applies.

use super::{Hostname, Labels, Namespace, Origin, Selector, TrafficPolicy, Visibility};
use crate::diag::Span;
use std::collections::BTreeMap;
use std::sync::Arc;

/// One DestinationRule, or several of one namespace and host merged by `compile`.
#[derive(Debug, Clone, PartialEq)]
pub struct DestinationRule {
    /// The (oldest) document.
    pub origin: Origin,
    /// The host, short names expanded.
    pub host: Hostname,
    /// Where the host is named.
    pub host_span: Span,
    /// Who may see it; `None` when nothing was written (the mesh's default then decides whether it
    /// is private to its namespace).
    pub visibility: Option<Visibility>,
    /// Labels of the proxies it is for; `None` is all.
    pub selector: Option<Selector>,
    /// The policy of the whole host.
    pub policy: Option<TrafficPolicy>,
    /// Subsets; names are unique.
    pub subsets: Vec<Subset>,
}

impl DestinationRule {
    /// Whether some TLS settings of the rule name a credential.
    pub fn names_credentials(&self) -> bool {
        let subsets = self.subsets.iter().filter_map(|s| s.policy.as_ref());
        let policies = self.policy.iter().chain(subsets);
        let mut tls = policies
            .flat_map(|p| p.tls.iter().chain(p.ports.iter().filter_map(|port| port.tls.as_ref())));
        tls.any(|tls| tls.credential_name.is_some())
    }

    /// The subset of this name.
    pub fn subset(&self, name: &str) -> Option<&Subset> {
        self.subsets.iter().find(|s| &*s.name == name)
    }
}

/// One subset.
#[derive(Debug, Clone, PartialEq)]
pub struct Subset {
    /// Its name.
    pub name: Arc<str>,
    /// Labels of its endpoints; empty is all.
    pub labels: Labels,
    /// What it changes.
    pub policy: Option<TrafficPolicy>,
    /// Where it stands.
    pub span: Span,
}

/// All DestinationRules, found by namespace and host.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DestinationRules {
    namespaces: BTreeMap<Namespace, NamespaceRules>,
    root: Option<Namespace>,
    default_is_private: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct NamespaceRules {
    exact: BTreeMap<Hostname, Vec<Arc<DestinationRule>>>,
    /// Longest first, then alphabetical.
    wildcards: Vec<(Hostname, Vec<Arc<DestinationRule>>)>,
}

impl NamespaceRules {
    /// The rules of the most specific host that covers `host`.
    fn matching(&self, host: &Hostname) -> &[Arc<DestinationRule>] {
        if let Some(rules) = self.exact.get(host) {
            return rules;
        }
        self.wildcards
            .iter()
            .find(|(pattern, _)| host.is_subset_of(pattern))
            .map_or(&[], |(_, rules)| rules)
    }
}

/// Which step of the lookup a rule is judged in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Rules in the client's namespace.
    Client,
    /// Rules in the service's or the root namespace.
    Elsewhere,
}

impl DestinationRules {
    /// Builds the index. `rules` are merged and in precedence order; `default_is_private` says
    /// whether an unset `exportTo` means the own namespace only (the mesh default contains `.`).
    pub fn new(
        rules: impl IntoIterator<Item = Arc<DestinationRule>>,
        root: Namespace,
        default_is_private: bool,
    ) -> DestinationRules {
        let mut namespaces: BTreeMap<Namespace, NamespaceRules> = BTreeMap::new();
        let mut wild: BTreeMap<(Namespace, Hostname), Vec<Arc<DestinationRule>>> = BTreeMap::new();
        for rule in rules {
            let namespace = rule.origin.name.namespace.clone();
            let host = rule.host.clone();
            let of_namespace = namespaces.entry(namespace.clone()).or_default();
            if host.is_wildcard() {
                wild.entry((namespace, host)).or_default().push(rule);
            } else {
                of_namespace.exact.entry(host).or_default().push(rule);
            }
        }
        for ((namespace, host), rules) in wild {
            namespaces.entry(namespace).or_default().wildcards.push((host, rules));
        }
        for rules in namespaces.values_mut() {
            rules.wildcards.sort_by(|(a, _), (b, _)| Hostname::by_specificity(a, b));
        }
        DestinationRules { namespaces, root: Some(root), default_is_private }
    }

    /// The rule that applies to `host` (a service of namespace `service`) for a proxy of namespace
    /// `client` whose labels fit the selectors that `selects` says. Istio's order: the client's namespace, then the service's, then
    /// the root namespace; the first that has a rule for the most specific host decides, without
    /// falling back to a less specific host of that namespace.
    pub fn find(
        &self,
        client: &Namespace,
        service: &Namespace,
        host: &Hostname,
        selects: impl Fn(&Selector) -> bool,
    ) -> Option<&Arc<DestinationRule>> {
        let root = self.root.as_ref();
        if let Some(rules) = self.namespaces.get(client) {
            let candidates = rules.matching(host);
            let usable = |rule: &&Arc<DestinationRule>| {
                if Some(client) == root {
                    self.is_private(rule)
                } else {
                    self.visible(rule, client, Step::Client)
                }
            };
            if let Some(rule) = choose(candidates, usable, Some(&selects)) {
                return Some(rule);
            }
        }
        for namespace in [Some(service), root].into_iter().flatten() {
            let Some(rules) = self.namespaces.get(namespace) else { continue };
            let usable = |rule: &&Arc<DestinationRule>| {
                rule.selector.is_none()
                    && !self.is_private(rule)
                    && self.visible(rule, client, Step::Elsewhere)
            };
            if let Some(rule) = choose(rules.matching(host), usable, None::<&fn(&Selector) -> bool>)
            {
                return Some(rule);
            }
        }
        None
    }

    /// The hosts that rules of a namespace are for, wildcards included.
    pub fn hosts_of(&self, namespace: &Namespace) -> impl Iterator<Item = &Hostname> {
        self.namespaces.get(namespace).into_iter().flat_map(|rules| {
            rules.exact.keys().chain(rules.wildcards.iter().map(|(host, _)| host))
        })
    }

    /// Whether clients of different namespaces may get different rules of the service's and the
    /// root namespace for a host: some of them name the namespaces that may see them.
    pub fn depends_on_client(&self, service: &Namespace, host: &Hostname) -> bool {
        let restricted = |rule: &Arc<DestinationRule>| {
            matches!(rule.visibility, Some(Visibility::Namespaces(_)))
        };
        [Some(service), self.root.as_ref()]
            .into_iter()
            .flatten()
            .filter_map(|namespace| self.namespaces.get(namespace))
            .any(|rules| rules.matching(host).iter().any(restricted))
    }

    /// Every rule, by namespace and host.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<DestinationRule>> {
        self.namespaces.values().flat_map(|rules| {
            rules.exact.values().chain(rules.wildcards.iter().map(|(_, r)| r)).flatten()
        })
    }

    /// Whether the rule is for its own namespace only.
    fn is_private(&self, rule: &DestinationRule) -> bool {
        if rule.selector.is_some() {
            return true;
        }
        match &rule.visibility {
            None => self.default_is_private,
            Some(Visibility::Namespaces(list)) => {
                list.len() == 1 && list.contains(&rule.origin.name.namespace)
            }
            Some(Visibility::Public | Visibility::Nobody) => false,
        }
    }

    fn visible(&self, rule: &DestinationRule, client: &Namespace, step: Step) -> bool {
        if rule.selector.is_some() {
            return step == Step::Client;
        }
        rule.visibility.as_ref().is_none_or(|v| v.includes(client))
    }
}

/// The oldest rule whose selector fits, else the newest without a selector (Istio uses the last
/// of several selector-less entries that differ in `exportTo`).
fn choose<'a>(
    rules: &'a [Arc<DestinationRule>],
    usable: impl Fn(&&Arc<DestinationRule>) -> bool,
    selects: Option<&impl Fn(&Selector) -> bool>,
) -> Option<&'a Arc<DestinationRule>> {
    let selected = selects.and_then(|selects| {
        rules.iter().filter(&usable).find(|rule| rule.selector.as_ref().is_some_and(selects))
    });
    selected.or_else(|| rules.iter().filter(&usable).rfind(|rule| rule.selector.is_none()))
}

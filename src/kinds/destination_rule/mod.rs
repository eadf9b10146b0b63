//! DestinationRule: what happens to traffic after it was routed to a host, and the host's subsets.

#[cfg(test)]
mod tests;

use super::kind::About;
use super::traffic_policy::{CONFIG_MAP, ClientTls, TlsMode, TrafficPolicy};
use super::{Draft, Kind, KindSpec, Unsupported, rules};
use crate::config::{Field, Findings, RawDocument};
use crate::diag::{Code, Diagnostic, Severity};
use crate::model::{self, Hostname, Labels, MeshSettings, Namespace, Selector, Visibility};
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Its line in the table of kinds.
pub(super) const KIND: Kind = Kind::of::<Spec>();

/// What happens to traffic after it was routed to a host.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DestinationRule")]
pub struct Spec {
    /// The service's host; a name without dots is in this document's namespace.
    pub host: String,
    /// Policy of the whole host.
    pub traffic_policy: Option<TrafficPolicy>,
    /// Named parts of the host's endpoints, such as versions.
    #[serde(default)]
    pub subsets: Vec<Subset>,
    /// Namespaces whose clients it is for: names, `.` or `*`.
    #[serde(default)]
    pub export_to: Vec<String>,
    /// Clients of this namespace that it is for.
    pub workload_selector: Option<WorkloadSelector>,
}

/// A named part of a host's endpoints.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Subset {
    /// Name of the subset; routes refer to it.
    pub name: String,
    /// Labels that its endpoints have.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// What is different from the policy of the host.
    pub traffic_policy: Option<TrafficPolicy>,
}

/// Workloads by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSelector {
    /// Labels that a workload must have, all of them.
    #[serde(default)]
    pub match_labels: BTreeMap<String, String>,
}

impl KindSpec for Spec {
    const ABOUT: About = About { unsupported: UNSUPPORTED, ..About::networking("DestinationRule") };

    /// With the host as it was written.
    type Share = model::DestinationRule;

    fn check(&self, f: &mut Findings<'_>) {
        let at = Field::root("spec");
        rules::wildcard_host(f, &at.key("host"), &self.host);
        if let Some(policy) = &self.traffic_policy {
            policy.check(&at.key("trafficPolicy"), f);
        }
        let subsets = at.key("subsets");
        let mut names = BTreeSet::new();
        for (index, subset) in self.subsets.iter().enumerate() {
            let at = subsets.index(index);
            subset.check(&at, f);
            if !subset.name.is_empty() && !names.insert(&subset.name) {
                let message = format!("the subset `{}` is defined twice; rename one", subset.name);
                f.error(&at.key("name"), Code::InvalidValue, message);
            }
        }
        let export_to = at.key("exportTo");
        rules::export_to(f, &export_to, &self.export_to, rules::Tilde::Refused);
        match &self.workload_selector {
            Some(selector) => {
                selector.check(&at.key("workloadSelector"), f);
                self.check_selected_visibility(&export_to, f);
            }
            None => self.check_credentials(&at, f),
        }
    }

    fn lower(&self, document: &RawDocument) -> Option<model::DestinationRule> {
        let own = Namespace::from(&*document.header.namespace);
        let selector =
            self.workload_selector.as_ref().map(|s| Selector::from(s.match_labels.clone()));
        // A rule for some workloads is private to its namespace, whatever it says (Istio).
        let visibility = match selector {
            Some(_) => Some(Visibility::Namespaces([own.clone()].into())),
            None => Visibility::from_export_to(&self.export_to, &own),
        };
        let at = Field::root("spec");
        let subsets = at.key("subsets");
        let lower = |(index, subset): (usize, &Subset)| model::Subset {
            name: Arc::from(subset.name.as_str()),
            labels: Labels(subset.labels.clone()),
            policy: subset.traffic_policy.as_ref().map(TrafficPolicy::lower),
            span: document.span(&subsets.index(index)),
        };
        Some(model::DestinationRule {
            origin: Self::ABOUT.origin(&document.header),
            host: Hostname::from(self.host.as_str()),
            host_span: document.span(&at.key("host")),
            visibility,
            selector,
            policy: self.traffic_policy.as_ref().map(TrafficPolicy::lower),
            subsets: self.subsets.iter().enumerate().map(lower).collect(),
        })
    }

    fn add(share: &model::DestinationRule, mesh: &MeshSettings, draft: &mut Draft) {
        let host = mesh.expand_short_name(&share.host, &share.origin.name.namespace);
        draft.destination_rules.push(model::DestinationRule { host, ..share.clone() });
    }
}

impl Spec {
    /// A rule for some workloads is never seen from outside of its namespace.
    fn check_selected_visibility(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let own = f.document().header.namespace.clone();
        for (index, entry) in self.export_to.iter().enumerate() {
            if entry != "." && **entry != *own {
                let message = format!(
                    "a rule with `workloadSelector` is only for its own namespace, not for `{entry}`"
                );
                let diagnostic = Diagnostic::new(Code::ConflictingFields, message)
                    .help("remove the entry or the selector");
                f.report(&at.index(index), diagnostic);
            }
        }
    }

    /// Istio's sidecars use Secrets only by rules that select them.
    fn check_credentials(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if let Some(policy) = &self.traffic_policy {
            check_policy_credentials(&at.key("trafficPolicy"), policy, f);
        }
        let subsets = at.key("subsets");
        for (index, subset) in self.subsets.iter().enumerate() {
            if let Some(policy) = &subset.traffic_policy {
                let subset = subsets.index(index);
                check_policy_credentials(&subset.key("trafficPolicy"), policy, f);
            }
        }
    }
}

fn check_policy_credentials(at: &Field<'_>, policy: &TrafficPolicy, f: &mut Findings<'_>) {
    if let Some(tls) = &policy.tls {
        check_tls_credential(&at.key("tls"), tls, f);
    }
    let ports = at.key("portLevelSettings");
    for (index, port) in policy.port_level_settings.iter().enumerate() {
        if let Some(tls) = &port.tls {
            check_tls_credential(&ports.index(index).key("tls"), tls, f);
        }
    }
}

fn check_tls_credential(at: &Field<'_>, tls: &ClientTls, f: &mut Findings<'_>) {
    // ConfigMaps are for everybody.
    if tls.credential_name.is_empty() || tls.credential_name.starts_with(CONFIG_MAP) {
        return;
    }
    let field = at.key("credentialName");
    match tls.mode {
        TlsMode::Simple | TlsMode::Mutual => {
            let message = "gateways use this credential; sidecars do not, because the rule has no \
                           `workloadSelector`, and get no cluster for it";
            let diagnostic =
                Diagnostic { severity: Severity::Info, ..Diagnostic::new(Code::NoEffect, message) };
            f.report(&field, diagnostic);
        }
        TlsMode::Disable | TlsMode::IstioMutual => {}
    }
}

impl Subset {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::dns_label(f, &at.key("name"), "a subset name", &self.name);
        rules::labels(f, &at.key("labels"), &self.labels);
        if let Some(policy) = &self.traffic_policy {
            policy.check(&at.key("trafficPolicy"), f);
        }
    }
}

impl WorkloadSelector {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::selector_labels(f, &at.key("matchLabels"), &self.match_labels);
        if self.match_labels.is_empty() {
            let message = "a selector without labels selects everything in its namespace";
            f.warn(at, Code::NoEffect, message);
        }
    }
}

macro_rules! in_every_policy {
    ($field:literal, $value:expr, $instead:literal) => {
        in_every_policy!(@ $field, $value, $instead,
            "spec.trafficPolicy.", "spec.trafficPolicy.portLevelSettings[].",
            "spec.subsets[].trafficPolicy.", "spec.subsets[].trafficPolicy.portLevelSettings[].")
    };
    (@ $field:literal, $value:expr, $instead:literal, $($path:literal),*) => {
        [$(Unsupported { path: concat!($path, $field), value: $value, instead: $instead }),*]
    };
}

const ISTIO_MUTUAL: [Unsupported; 4] = in_every_policy!(
    "tls.mode",
    Some("ISTIO_MUTUAL"),
    "there are no mesh certificates yet: proxies without certificates of their own get no cluster \
     for it, and requests get 503"
);

const ZONE_AWARE: [Unsupported; 4] = in_every_policy!(
    "loadBalancer.zoneAwareLbSetting",
    None,
    "requests do not prefer the caller's zone, for which proxies would have to know their own \
     cluster"
);

const UNSUPPORTED: &[Unsupported] = {
    let [a, b, c, d] = ISTIO_MUTUAL;
    let [e, g, h, i] = ZONE_AWARE;
    &[a, b, c, d, e, g, h, i]
};

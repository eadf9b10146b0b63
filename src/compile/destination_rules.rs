//! Merging DestinationRules of one namespace and host.

use crate::diag::{Code, Diagnostics};
use crate::model::{DestinationRule, DestinationRules, Hostname, MeshSettings, Namespace};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Merges and indexes. The rules come in order of precedence.
///
/// Rules of one namespace and host are merged when they agree in `exportTo` and selector: subsets
/// are united (the older of a name counts) and the oldest traffic policy counts. Others stand side
/// by side. Istio also folds some rules with a wider `exportTo` into narrower ones, which takes
/// the rule away from namespaces that it names; we keep both.
pub fn merge(
    rules: &[Arc<DestinationRule>],
    mesh: &MeshSettings,
    diags: &mut Diagnostics,
) -> DestinationRules {
    let mut merged: BTreeMap<(Namespace, Hostname), Vec<Arc<DestinationRule>>> = BTreeMap::new();
    for rule in rules {
        let key = (rule.origin.name.namespace.clone(), rule.host.clone());
        let of_host = merged.entry(key).or_default();
        let same = |e: &&mut Arc<DestinationRule>| {
            e.visibility == rule.visibility && e.selector == rule.selector
        };
        match of_host.iter_mut().find(same) {
            Some(older) => fold(Arc::make_mut(older), rule, diags),
            None => of_host.push(rule.clone()),
        }
    }
    let private = mesh.default_destination_rule_visibility.iter().any(|v| v == ".");
    DestinationRules::new(merged.into_values().flatten(), mesh.root_namespace.clone(), private)
}

fn fold(older: &mut DestinationRule, newer: &DestinationRule, diags: &mut Diagnostics) {
    for subset in &newer.subsets {
        match older.subset(&subset.name) {
            Some(existing) => {
                let finding = newer.origin.diagnostic_at(
                    &subset.span,
                    Code::DuplicateSubset,
                    format!(
                        "subset '{}' of host '{}' is already defined by {}; this one has no effect",
                        subset.name, older.host, older.origin.name
                    ),
                );
                diags.push(finding.related(existing.span.clone(), "this one counts"));
            }
            None => older.subsets.push(subset.clone()),
        }
    }
    match (&older.policy, &newer.policy) {
        (None, policy) => older.policy = policy.clone(),
        (Some(_), None) => {}
        (Some(_), Some(_)) => {
            let finding = newer.origin.diagnostic(
                Code::OverlappingHost,
                format!(
                    "{} already has a trafficPolicy for host '{}'; the one of this document has \
                     no effect",
                    older.origin.name, older.host
                ),
            );
            diags.push(finding.related(older.origin.span.clone(), "this one counts"));
        }
    }
}

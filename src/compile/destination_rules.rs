//! Merging DestinationRules of one namespace and host.

use crate::diag::{Code, Diagnostics};
use crate::model::{DestinationRule, DestinationRules, Hostname, MeshSettings, Namespace, Origin};
use std::collections::BTreeMap;

/// Merges and indexes.
///
/// Rules of one namespace and host are merged when they agree in `exportTo` and selector: subsets
/// are united (the older of a name counts) and the oldest traffic policy counts. Others stand side
/// by side. Istio also folds some rules with a wider `exportTo` into narrower ones, which takes
/// the rule away from namespaces that it names; we keep both.
pub fn merge(
    mut rules: Vec<DestinationRule>,
    mesh: &MeshSettings,
    diags: &mut Diagnostics,
) -> DestinationRules {
    rules.sort_by(|a, b| Origin::precedence(&a.origin, &b.origin));
    let mut merged: BTreeMap<(Namespace, Hostname), Vec<DestinationRule>> = BTreeMap::new();
    for rule in rules {
        let key = (rule.origin.name.namespace.clone(), rule.host.clone());
        let of_host = merged.entry(key).or_default();
        let same = |e: &&mut DestinationRule| {
            e.visibility == rule.visibility && e.selector == rule.selector
        };
        match of_host.iter_mut().find(same) {
            Some(older) => fold(older, rule, diags),
            None => of_host.push(rule),
        }
    }
    let private = mesh.default_destination_rule_visibility.iter().any(|v| v == ".");
    DestinationRules::new(merged.into_values().flatten(), mesh.root_namespace.clone(), private)
}

fn fold(older: &mut DestinationRule, newer: DestinationRule, diags: &mut Diagnostics) {
    for subset in newer.subsets {
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
            None => older.subsets.push(subset),
        }
    }
    match (&older.policy, newer.policy) {
        (None, policy) => older.policy = policy,
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

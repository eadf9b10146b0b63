//! The inbound part of a sidecar: what leads to its own workload.

use super::filters::Filters;
use super::plan::listener::inbound;
use super::seal::Output;
use super::targets::{InboundSite, Workload};
use super::view::Viewer;
use super::{cluster, envoy};
use crate::diag::Diagnostic;
use crate::xds::{Resource, TypeUrl};

/// Clusters and listeners that lead to a workload.
#[derive(Debug, Default)]
pub struct Inbound {
    /// The resources.
    pub resources: Vec<(TypeUrl, Resource)>,
    /// What is to be said about them.
    pub findings: Vec<Diagnostic>,
}

/// The inbound part of the sidecars of this workload.
pub fn inbound(workload: &Workload, view: &Viewer<'_>, filters: Filters) -> Inbound {
    let site = InboundSite { workload, view, filters };
    let mut output = Output::default();
    for cluster in cluster::inbound_clusters(&site) {
        output.of(TypeUrl::Cluster).emit(&cluster.name, &cluster);
    }
    let plan = inbound::plan(&site);
    for listener in &plan.listeners {
        output.of(TypeUrl::Listener).emit(&listener.name, &envoy::listener(listener));
    }
    for secret in &plan.secrets {
        output.of(TypeUrl::Secret).emit(&secret.name, &secret.resource());
    }
    for finding in plan.findings.into_iter().chain(plan.extra.findings()) {
        output.report(finding);
    }
    let (resources, findings) = output.into_parts();
    Inbound { resources, findings }
}

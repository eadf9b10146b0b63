//! The inbound part of a sidecar: what leads to its own workload.

use super::filters::Filters;
use super::listeners::seal_extra;
use super::plan::cluster::{self, Cluster};
use super::plan::listener::inbound;
use super::seal::Output;
use super::targets::{InboundSite, Workload};
use super::view::Viewer;
use super::{clusters, envoy};
use crate::diag::Diagnostic;
use crate::xds::{Resource, TypeUrl};

/// Clusters and listeners that lead to a workload.
#[derive(Debug, Default)]
pub struct Inbound {
    /// The clusters as they were decided.
    pub clusters: Vec<Cluster>,
    /// What was sealed.
    pub resources: Vec<(TypeUrl, Resource)>,
    /// What is to be said about them.
    pub findings: Vec<Diagnostic>,
}

/// The inbound part of the sidecars of this workload.
pub fn inbound(workload: &Workload, view: &Viewer<'_>, filters: Filters) -> Inbound {
    let site = InboundSite { workload, view, filters };
    let mut output = Output::default();
    let planned = cluster::inbound_clusters(&site);
    for cluster in &planned {
        clusters::seal(cluster, &mut output);
    }
    let plan = inbound::plan(&site);
    for listener in &plan.listeners {
        let message = envoy::listener(listener);
        output.seal(TypeUrl::Listener, &listener.name, &listener.because, message);
    }
    for secret in &plan.secrets {
        clusters::seal_secret(secret, &mut output);
    }
    for finding in plan.findings {
        output.report(finding);
    }
    seal_extra(&plan.extra, &mut output);
    let (resources, findings) = output.into_parts();
    Inbound { clusters: planned, resources, findings }
}

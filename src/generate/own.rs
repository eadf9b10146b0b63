//! The inbound part of a sidecar: what leads to its own workload.

use super::output::Output;
use super::targets::{InboundSite, Workload};
use super::view::Viewer;
use super::{cluster, listener};
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
pub fn inbound(workload: &Workload, view: &Viewer<'_>) -> Inbound {
    let site = InboundSite { workload, view };
    let mut output = Output::default();
    for cluster in cluster::inbound_clusters(&site) {
        output.of(TypeUrl::Cluster).emit(&cluster.name, &cluster);
    }
    let (listeners, findings) = listener::inbound_listeners(&site);
    for listener in listeners {
        output.of(TypeUrl::Listener).emit(&listener.name, &listener);
    }
    for finding in findings {
        output.report(finding);
    }
    let (resources, findings) = output.into_parts();
    Inbound { resources, findings }
}

//! The listeners that proxies share, sealed one by one: a listener whose plan is the same is not
//! spelled and encoded again.

use super::plan::listener::Listener;
use super::seal::Output;
use super::{Plan, clusters, envoy};
use crate::diag::Diagnostic;
use crate::xds::{Resource, TypeUrl};
use std::sync::Arc;

/// A listener as it is sent.
#[derive(Debug)]
pub struct SealedListener {
    /// The resource, unless Envoy would refuse it.
    pub resources: Vec<(TypeUrl, Resource)>,
    /// Why it is missing.
    pub findings: Vec<Diagnostic>,
}

impl SealedListener {
    /// Spells and seals a listener.
    pub fn of(planned: &Listener) -> SealedListener {
        let mut output = Output::default();
        let message = envoy::listener(planned);
        output.seal(TypeUrl::Listener, &planned.name, &planned.because, message);
        let (resources, findings) = output.into_parts();
        SealedListener { resources, findings }
    }
}

impl Plan<'_> {
    /// The listeners that proxies with one view share: a router's all, a sidecar's egress.
    pub(super) fn listeners(&self) -> impl Iterator<Item = &Arc<Listener>> {
        self.edge.listeners.iter().chain(&self.egress.listeners)
    }
}

/// What is to be said about listeners, and what their filters need.
pub(super) fn extras(plan: &Plan<'_>, output: &mut Output) {
    for finding in plan.edge.findings.iter().chain(&plan.egress.findings) {
        output.report(finding.clone());
    }
    for extra in [&plan.edge.extra, &plan.egress.extra] {
        extra.findings().for_each(|finding| output.report(finding));
    }
}

/// The secrets that a router's listeners name.
pub(super) fn secrets(plan: &Plan<'_>, output: &mut Output) {
    for secret in plan.edge.secrets.values() {
        clusters::seal_secret(secret, output);
    }
}

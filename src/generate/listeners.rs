//! The listeners that proxies share, sealed one by one: a listener whose plan is the same is not
//! spelled and encoded again.

use super::filters::Extra;
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
        seal_extra(extra, output);
    }
}

/// What filters brought beside their settings.
pub(super) fn seal_extra(extra: &Extra, output: &mut Output) {
    extra.clusters().for_each(|cluster| clusters::seal(cluster, output));
    extra.secrets().for_each(|secret| clusters::seal_secret(secret, output));
    extra.findings().for_each(|finding| output.report(finding));
}

/// The secrets that a router's listeners name.
pub(super) fn secrets(plan: &Plan<'_>, output: &mut Output) {
    for secret in plan.edge.secrets.values() {
        clusters::seal_secret(secret, output);
    }
}

#[cfg(test)]
mod tests {
    use crate::generate::Engine;
    use crate::generate::test_support::{
        http_rule, proxy_at, service, snapshot, virtual_service, weighted,
    };
    use crate::model::{HttpAction, HttpRule, Protocol, Snapshot};
    use crate::xds::TypeUrl;

    /// Two services, and a rule that sends this share to the second.
    fn split(weight: u32) -> Snapshot {
        let to = vec![weighted("a.x", 100 - weight), weighted("b.x", weight)];
        let rule = HttpRule { action: HttpAction::Route(to), ..http_rule() };
        let services =
            ["a.x", "b.x"].map(|host| service(host, &[(80, Protocol::Http), (90, Protocol::Tcp)]));
        snapshot(services.into(), vec![virtual_service("v", &["a.x"], vec![rule])]).snapshot()
    }

    #[test]
    fn a_changed_weight_makes_no_listener_again() {
        let engine = Engine::default();
        let proxy = proxy_at("10.0.0.9");
        let before = engine.generate(&split(10), &proxy);
        let after = engine.generate(&split(20), &proxy);
        let bytes = |of: &crate::generate::Generated, name: &str| {
            of.set.get(TypeUrl::Listener, name).map(|resource| resource.body.as_ptr())
        };
        for name in ["virtualOutbound", "0.0.0.0_80", "0.0.0.0_90"] {
            assert!(bytes(&before, name).is_some());
            assert_eq!(bytes(&before, name), bytes(&after, name), "{name} was encoded again");
        }
        let routes = |of: &crate::generate::Generated| {
            of.set.get(TypeUrl::Route, "80").map(|resource| resource.version)
        };
        assert_ne!(routes(&before), routes(&after));
    }
}

//! Listeners, and the secrets that they name.

use super::{Output, Plan, Scope, listener};
use crate::diag::{Code, Diagnostic};
use crate::proxy::Role;

/// The listeners that proxies with one view share: a router's all, a sidecar's outbound ones.
pub(super) fn listeners(plan: &Plan<'_>, output: &mut Output) {
    let scope = &plan.scope;
    let (listeners, findings) = match scope.view.role() {
        Role::Router => {
            if scope.gateways().next().is_none() {
                output.report(nothing_selected(scope));
            }
            listener::gateway_listeners(scope)
        }
        Role::Sidecar => {
            let listeners = listener::outbound_listeners(scope, &plan.outbound);
            (listeners, plan.outbound.findings.clone())
        }
    };
    for listener in &listeners {
        output.emit(&listener.name, listener);
    }
    for finding in findings {
        output.report(finding);
    }
}

/// The secrets that a router's listeners name.
pub(super) fn secrets(plan: &Plan<'_>, output: &mut Output) {
    for secret in listener::gateway_secrets(&plan.scope) {
        output.emit(&secret.name, &secret);
    }
}

fn nothing_selected(scope: &Scope<'_>) -> Diagnostic {
    let (message, help) = match scope.world.routing.gateways.is_empty() {
        true => (
            "there is no Gateway, so this proxy gets no listeners",
            "write a Gateway, or set the node's metadata TYPE to `sidecar`",
        ),
        false => (
            "no Gateway selects this proxy, so it gets no listeners",
            "compare the Gateways' spec.selector with the proxy's labels",
        ),
    };
    Diagnostic::new(Code::NothingSelected, message).help(help)
}

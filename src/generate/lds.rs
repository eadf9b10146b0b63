//! Listeners, and the secrets that they name.

use super::{Output, Scope, listener};
use crate::diag::{Code, Diagnostic};
use crate::proxy::{Proxy, Role};
use crate::xds::pb;

/// The listeners that proxies with one view share: a router's all, a sidecar's outbound ones.
pub(super) fn shared(scope: &Scope<'_>, output: &mut Output) {
    let (listeners, findings) = match scope.view.role {
        Role::Router => {
            if scope.gateways().next().is_none() {
                output.report(nothing_selected(scope));
            }
            listener::gateway_listeners(scope)
        }
        Role::Sidecar => listener::outbound_listeners(scope),
    };
    emit(listeners, findings, output);
}

/// The inbound listeners of a sidecar.
pub(super) fn inbound(scope: &Scope<'_>, proxy: &Proxy, output: &mut Output) {
    match scope.view.role {
        Role::Router => {}
        Role::Sidecar => {
            let (listeners, findings) = listener::inbound_listeners(scope, proxy);
            emit(listeners, findings, output);
        }
    }
}

/// The secrets that a router's listeners name.
pub(super) fn secrets(scope: &Scope<'_>, output: &mut Output) {
    for secret in listener::gateway_secrets(scope) {
        output.emit(&secret.name, &secret);
    }
}

fn emit(listeners: Vec<pb::listener::Listener>, findings: Vec<Diagnostic>, output: &mut Output) {
    for listener in &listeners {
        output.emit(&listener.name, listener);
    }
    for finding in findings {
        output.report(finding);
    }
}

fn nothing_selected(scope: &Scope<'_>) -> Diagnostic {
    let (message, help) = match scope.snapshot.gateways.is_empty() {
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

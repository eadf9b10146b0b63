//! Everything that is to be said just now: about documents, about what connected proxies get, and
//! what they refused. It feeds the debug page, the metrics and the log.
//!
//! Secrets do not get here: a finding says where a secret is and never what it is, and `ads` cuts
//! keys out of what proxies say.

mod allowance;
mod store;

use crate::admin;
use crate::diag::{Diagnostic, Severity};
use crate::server::Connection;
use crate::xds::TypeUrl;
use allowance::{Allowance, Spent};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use store::{News, Store};
use tracing::{error, info, warn};

/// Findings about documents that are logged for one change; the rest is counted.
const LOGGED_FOR_CHANGE: usize = 100;

/// The findings, shared by the task of the workspace, the streams and the pages.
#[derive(Debug, Default)]
pub(super) struct Findings {
    told: Mutex<Told>,
}

#[derive(Debug, Default)]
struct Told {
    store: Store,
    allowance: Allowance,
}

impl Findings {
    /// This is to be said about files and documents, and nothing else any more.
    pub(super) fn documents(&self, findings: Vec<Diagnostic>) {
        let News { new, over } = self.lock().store.documents(findings);
        log_over(over.iter().take(LOGGED_FOR_CHANGE));
        for finding in new.iter().take(LOGGED_FOR_CHANGE) {
            log(finding);
        }
        if new.len() > LOGGED_FOR_CHANGE {
            warn!(more = new.len() - LOGGED_FOR_CHANGE, "further findings; see /debug/findings");
        }
    }

    /// This is to be said about what a proxy gets, and nothing else any more.
    pub(super) fn generated(&self, connection: &Connection, findings: &[Diagnostic]) {
        let node = &connection.node.id;
        self.about_proxy(node, |store| store.generated(connection.id, node, findings));
    }

    /// Whether something is said about what a proxy gets.
    pub(super) fn are_about(&self, connection: &Connection) -> bool {
        self.lock().store.is_about(connection.id)
    }

    /// A proxy refused a response of this type.
    pub(super) fn refused(
        &self,
        connection: &Connection,
        type_url: TypeUrl,
        diagnostic: &Diagnostic,
    ) {
        let node = &connection.node.id;
        self.about_proxy(node, |store| store.refused(connection.id, node, type_url, diagnostic));
    }

    /// A proxy has accepted a response of this type after a refusal.
    pub(super) fn accepted(&self, connection: &Connection, type_url: TypeUrl) {
        let node = &connection.node.id;
        self.about_proxy(node, |store| store.accepted(connection.id, type_url));
    }

    /// A proxy is gone.
    pub(super) fn disconnected(&self, connection: &Connection) {
        self.lock().store.disconnected(connection.id);
    }

    /// Everything.
    pub(super) fn all(&self) -> admin::Findings {
        self.lock().store.all()
    }

    /// How much that is.
    pub(super) fn counts(&self) -> Vec<admin::Count> {
        self.lock().store.counts()
    }

    /// Takes in something about a proxy and logs what is new. A thousand proxies can each bring
    /// something new, and a hostile one as much as it likes, so there is an allowance.
    fn about_proxy(&self, node: &str, change: impl FnOnce(&mut Store) -> News) {
        let (News { mut new, mut over }, spent) = {
            let mut told = self.lock();
            let news = change(&mut told.store);
            let lines = news.new.len() + news.over.len();
            let spent = match lines {
                0 => return,
                _ => told.allowance.spend(lines, Instant::now()),
            };
            (news, spent)
        };
        let Spent { allowed, exhausted } = spent;
        over.truncate(allowed);
        new.truncate(allowed - over.len());
        tracing::info_span!("proxy", id = %node).in_scope(|| {
            log_over(over.iter());
            new.iter().for_each(log);
        });
        if exhausted {
            warn!("many findings about proxies; for a while see /debug/findings");
        }
    }

    fn lock(&self) -> MutexGuard<'_, Told> {
        // A panic in the middle of a change leaves at worst a finding that is said too long.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_over<'a>(findings: impl Iterator<Item = &'a Diagnostic>) {
    for finding in findings {
        info!(code = %finding.code, "no longer: {finding}");
    }
}

fn log(finding: &Diagnostic) {
    match finding.severity {
        Severity::Error => error!(code = %finding.code, "{finding}"),
        Severity::Warning => warn!(code = %finding.code, "{finding}"),
        Severity::Info => info!(code = %finding.code, "{finding}"),
    }
}

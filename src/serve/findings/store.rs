//! What is to be said just now, as a value: it is told what became of documents and proxies, and says
//! what is new and what is over.
//!
//! Its size has bounds. A proxy counts with at most [`MAX_PER_PROXY`] findings, and equal lists are
//! kept once, however many proxies they are about. A refusal is one text (which `ads` keeps short)
//! for each connection and type; equal ones are kept once, and no more than [`MAX_REFUSALS`]
//! different ones.

use crate::admin::{AboutProxies, Count, Findings, Refused, Source};
use crate::diag::{Code, Diagnostic, Severity};
use crate::push::ConnectionId;
use crate::xds::TypeUrl;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Arc;

/// The findings that are kept about one proxy, errors first; the rest is counted.
pub(super) const MAX_PER_PROXY: usize = 100;
/// The different refusals that are kept.
pub(super) const MAX_REFUSALS: usize = 1000;

/// What is to be said.
#[derive(Debug, Default)]
pub(super) struct Store {
    documents: Arc<[Diagnostic]>,
    proxies: BTreeMap<ConnectionId, About>,
    /// The lists in `proxies`, each once.
    lists: Bag<Arc<[Diagnostic]>>,
    /// The findings in `lists`.
    about_proxies: Bag<Diagnostic>,
    refusals: BTreeMap<(ConnectionId, TypeUrl), Refusal>,
    /// The findings in `refusals`, by type.
    refused: Bag<Arc<(TypeUrl, Diagnostic)>>,
}

/// What there is to say about one connection.
#[derive(Debug)]
struct About {
    node: String,
    list: Arc<[Diagnostic]>,
    more: usize,
}

/// What one connection refused last of a type.
#[derive(Debug)]
struct Refusal {
    node: String,
    finding: Arc<(TypeUrl, Diagnostic)>,
}

/// What follows from something that was told.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// Findings that were not there before.
    pub(super) new: Vec<Diagnostic>,
    /// Errors that are no longer there.
    pub(super) over: Vec<Diagnostic>,
}

impl Store {
    /// This is to be said about files and documents, and nothing else any more.
    pub(super) fn documents(&mut self, findings: Vec<Diagnostic>) -> News {
        let before = std::mem::replace(&mut self.documents, findings.into());
        let mut news = News::default();
        let known: HashSet<&Diagnostic> = before.iter().collect();
        news.new.extend(self.documents.iter().filter(|f| !known.contains(f)).cloned());
        let current: HashSet<&Diagnostic> = self.documents.iter().collect();
        news.over.extend(before.iter().filter(|f| is_error(f) && !current.contains(f)).cloned());
        news
    }

    /// This is to be said about what a proxy gets, and nothing else any more.
    pub(super) fn generated(
        &mut self,
        connection: ConnectionId,
        node: &str,
        findings: &[Diagnostic],
    ) -> News {
        let mut news = News::default();
        let same = |about: &About| about.more == 0 && *about.list == *findings;
        if self.proxies.get(&connection).is_some_and(same) {
            return news;
        }
        // The new list comes before the old one goes, so what is in both is neither new nor over.
        let about = (!findings.is_empty()).then(|| self.take_list(node, findings, &mut news));
        let before = match about {
            Some(about) => self.proxies.insert(connection, about),
            None => self.proxies.remove(&connection),
        };
        if let Some(About { list, .. }) = before {
            news.over = self.drop_list(&list);
        }
        news
    }

    /// Whether something is said about what a proxy gets.
    pub(super) fn is_about(&self, connection: ConnectionId) -> bool {
        self.proxies.contains_key(&connection)
    }

    /// A proxy refused a response of this type.
    pub(super) fn refused(
        &mut self,
        connection: ConnectionId,
        node: &str,
        type_url: TypeUrl,
        diagnostic: &Diagnostic,
    ) -> News {
        // Without its proxy the finding is the same for all who refuse alike.
        let mut finding = Arc::new((type_url, Diagnostic { object: None, ..diagnostic.clone() }));
        if self.refused.len() >= MAX_REFUSALS && !self.refused.contains(&finding) {
            let message = format!(
                "the proxy refused its {}; proxies refuse too much for all the reasons to be kept",
                type_url.plural()
            );
            finding = Arc::new((type_url, Diagnostic::new(Code::RejectedByProxy, message)));
        }
        let finding = self.refused.share(finding);
        let mut news = News::default();
        if self.refused.add(finding.clone()) {
            news.new.push(diagnostic.clone());
        }
        let refusal = Refusal { node: node.to_owned(), finding };
        if let Some(before) = self.refusals.insert((connection, type_url), refusal) {
            news.over.extend(self.drop_refusal(&before));
        }
        news
    }

    /// A proxy has accepted a response of this type after a refusal.
    pub(super) fn accepted(&mut self, connection: ConnectionId, type_url: TypeUrl) -> News {
        let refusal = self.refusals.remove(&(connection, type_url));
        let over = refusal.and_then(|refusal| self.drop_refusal(&refusal));
        News { over: over.into_iter().collect(), ..News::default() }
    }

    /// A proxy is gone, and with it what was to be said about it. That it is over is no news: the
    /// cause may still be there.
    pub(super) fn disconnected(&mut self, connection: ConnectionId) {
        if let Some(About { list, .. }) = self.proxies.remove(&connection) {
            self.drop_list(&list);
        }
        for type_url in TypeUrl::ALL {
            if let Some(refusal) = self.refusals.remove(&(connection, type_url)) {
                self.drop_refusal(&refusal);
            }
        }
    }

    /// Everything, in an order that depends on nothing but what is to be said.
    pub(super) fn all(&self) -> Findings {
        let mut proxies: HashMap<(&Arc<[Diagnostic]>, usize), BTreeSet<String>> = HashMap::new();
        for about in self.proxies.values() {
            let same = proxies.entry((&about.list, about.more)).or_default();
            same.insert(about.node.clone());
        }
        let mut proxies: Vec<AboutProxies> = proxies
            .into_iter()
            .map(|((list, more), proxies)| AboutProxies { proxies, findings: list.clone(), more })
            .collect();
        proxies.sort_by(|a, b| a.proxies.cmp(&b.proxies));
        let mut refusals: HashMap<&(TypeUrl, Diagnostic), BTreeSet<String>> = HashMap::new();
        for refusal in self.refusals.values() {
            refusals.entry(&*refusal.finding).or_default().insert(refusal.node.clone());
        }
        let mut refusals: Vec<Refused> = refusals
            .into_iter()
            .map(|((type_url, finding), proxies)| Refused {
                proxies,
                type_url: *type_url,
                finding: finding.clone(),
            })
            .collect();
        refusals.sort_by(|a, b| {
            (a.type_url, &a.finding.message).cmp(&(b.type_url, &b.finding.message))
        });
        Findings { documents: self.documents.clone(), proxies, refusals }
    }

    /// How many different findings there are, for each source and severity.
    pub(super) fn counts(&self) -> Vec<Count> {
        let severities = [Severity::Info, Severity::Warning, Severity::Error];
        let count = |source| {
            severities.map(|severity| {
                let bad = |finding: &&Diagnostic| finding.severity == severity;
                let findings = match source {
                    Source::Documents => self.documents.iter().filter(bad).count(),
                    Source::Proxies => self.about_proxies.iter().filter(bad).count(),
                    Source::Refusals => self.refused.iter().map(|r| &r.1).filter(bad).count(),
                };
                Count { source, severity, findings }
            })
        };
        [Source::Documents, Source::Proxies, Source::Refusals].into_iter().flat_map(count).collect()
    }

    fn take_list(&mut self, node: &str, findings: &[Diagnostic], news: &mut News) -> About {
        let more = findings.len().saturating_sub(MAX_PER_PROXY);
        let cut: Vec<Diagnostic>;
        let kept: &[Diagnostic] = match more {
            0 => findings,
            _ => {
                let mut worst_first: Vec<&Diagnostic> = findings.iter().collect();
                worst_first.sort_by_key(|finding| Reverse(finding.severity));
                cut = worst_first.into_iter().take(MAX_PER_PROXY).cloned().collect();
                &cut
            }
        };
        let list = self.lists.find(kept).unwrap_or_else(|| kept.into());
        if self.lists.add(list.clone()) {
            for finding in list.iter() {
                if self.about_proxies.add(finding.clone()) {
                    news.new.push(finding.clone());
                }
            }
        }
        About { node: node.to_owned(), list, more }
    }

    /// One connection less has this list. Gives the errors that are in no list any more.
    fn drop_list(&mut self, list: &Arc<[Diagnostic]>) -> Vec<Diagnostic> {
        if !self.lists.remove(list) {
            return Vec::new();
        }
        let findings = list.iter();
        let gone = findings.filter(|finding| self.about_proxies.remove(*finding));
        gone.filter(|finding| is_error(finding)).cloned().collect()
    }

    /// One connection less has this refusal. Gives its finding if it was the last.
    fn drop_refusal(&mut self, refusal: &Refusal) -> Option<Diagnostic> {
        self.refused.remove(&refusal.finding).then(|| refusal.finding.1.clone())
    }
}

fn is_error(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error
}

/// Values and how often each is there.
#[derive(Debug)]
struct Bag<T>(HashMap<T, usize>);

impl<T> Default for Bag<T> {
    fn default() -> Bag<T> {
        Bag(HashMap::new())
    }
}

impl<T: Eq + Hash> Bag<T> {
    /// Adds it once; says whether it is new.
    fn add(&mut self, value: T) -> bool {
        let count = self.0.entry(value).or_default();
        *count += 1;
        *count == 1
    }

    /// Takes it out once; says whether it was the last.
    fn remove(&mut self, value: &T) -> bool {
        match self.0.get_mut(value) {
            Some(1) => self.0.remove(value).is_some(),
            Some(count) => {
                *count -= 1;
                false
            }
            None => false,
        }
    }

    /// How many different values there are.
    fn len(&self) -> usize {
        self.0.len()
    }

    fn contains(&self, value: &T) -> bool {
        self.0.contains_key(value)
    }

    /// Each value once, in no order.
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.keys()
    }
}

impl<T: Eq + Hash> Bag<Arc<T>> {
    /// The one that is there already, if it is.
    fn share(&self, value: Arc<T>) -> Arc<T> {
        self.0.get_key_value(&value).map_or(value, |(known, _)| known.clone())
    }
}

impl<T: Eq + Hash> Bag<Arc<[T]>> {
    /// The list that holds these.
    fn find(&self, values: &[T]) -> Option<Arc<[T]>> {
        self.0.get_key_value(values).map(|(known, _)| known.clone())
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;

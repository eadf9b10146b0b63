//! What filters need beside their configuration.

use super::Filter;
use crate::diag::{Code, Diagnostic};
use crate::generate::plan::Because;
use crate::generate::plan::cluster::Cluster;
use crate::generate::plan::secret::Secret;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a filter hands back beside its settings. Many chains and routes may ask for the same; the
/// first of a name counts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extra {
    clusters: BTreeMap<Arc<str>, Cluster>,
    secrets: BTreeMap<Arc<str>, Secret>,
    /// Extension configurations that chains refer to by name.
    pub extension_configs: Vec<ExtensionConfig>,
    /// What is to be said.
    pub findings: Vec<Diagnostic>,
}

/// A filter's configuration that is served by itself, under a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExtensionConfig {
    /// The name that chains refer to.
    pub name: String,
    /// The filter and its settings.
    pub filter: Filter,
    /// Why it is there.
    pub because: Because,
}

impl Extra {
    /// Asks for a cluster, and for the secrets that it names.
    pub fn add_cluster(&mut self, cluster: Cluster) {
        for secret in cluster.secrets() {
            self.add_secret(secret.clone());
        }
        self.clusters.entry(cluster.name.clone()).or_insert(cluster);
    }

    /// Asks for a secret.
    pub fn add_secret(&mut self, secret: Secret) {
        self.secrets.entry(secret.name.clone()).or_insert(secret);
    }

    /// The clusters, by name.
    pub fn clusters(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.values()
    }

    /// The secrets, by name.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        self.secrets.values()
    }

    /// Takes over what another one holds.
    pub fn append(&mut self, other: &Extra) {
        other.clusters().for_each(|cluster| self.add_cluster(cluster.clone()));
        other.secrets().for_each(|secret| self.add_secret(secret.clone()));
        self.extension_configs.extend(other.extension_configs.iter().cloned());
        self.findings.extend(other.findings.iter().cloned());
    }

    /// What is to be said, also about what cannot be served.
    pub fn findings(&self) -> impl Iterator<Item = Diagnostic> {
        let unserved = self.extension_configs.iter().map(ExtensionConfig::unserved);
        self.findings.iter().cloned().chain(unserved)
    }
}

impl ExtensionConfig {
    /// Extension configurations are not served yet, and a chain that waits for one takes no
    /// connection.
    fn unserved(&self) -> Diagnostic {
        let message = format!(
            "the configuration '{}' of filter {} is not served: extension discovery is not \
             supported yet",
            self.name, self.filter.name
        );
        let finding = Diagnostic::new(Code::NotSupported, message);
        match self.because.sources.first() {
            Some(source) => {
                finding.at(source.span.clone()).on(format!("{} {}", source.kind, source.name))
            }
            None => finding,
        }
    }
}

//! How plans of routes get at parts that were made before.

use super::{EgressIndex, HostInput, HostPort, RouteList, RouteTable, RulesInput, VirtualHost};
use crate::generate::memo::Same;
use crate::generate::plan::Because;
use crate::generate::{EgressScope, Viewer};
use std::sync::Arc;

/// Makes parts of route tables of their inputs. Equal inputs give the very same part, also for other
/// proxies and for later snapshots.
pub trait Parts {
    /// What an egress listener imports, arranged by who asks.
    fn index(&self, egress: &Arc<EgressScope>, view: &Viewer<'_>) -> Arc<EgressIndex>;

    /// The routes of a document.
    fn routes(&self, input: RulesInput, view: &Viewer<'_>) -> Arc<RouteList>;

    /// A virtual host.
    fn host(&self, input: &HostInput, view: &Viewer<'_>) -> Arc<VirtualHost>;

    /// A table.
    fn table(&self, input: TableInput, because: Because, view: &Viewer<'_>) -> Arc<RouteTable>;
}

/// All that decides what a table is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableInput {
    /// Its name.
    pub name: Arc<str>,
    /// What is made of a port in the `Host` header.
    pub host_port: HostPort,
    /// Its virtual hosts.
    pub hosts: Vec<Same<VirtualHost>>,
}

impl TableInput {
    /// The table.
    pub fn table(&self, because: Because) -> RouteTable {
        RouteTable {
            name: self.name.clone(),
            host_port: self.host_port,
            hosts: self.hosts.iter().map(|host| host.0.clone()).collect(),
            because,
        }
    }
}

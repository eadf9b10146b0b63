//! Route tables: planned, spelled and sealed part by part, and each part only once for everybody who
//! would get the same, as long as nothing that it is made of differs.
//!
//! A table of ten thousand virtual hosts is the bytes of ten thousand fragments. A change of one
//! service or one VirtualService makes the virtual hosts that it touches again, and copies the rest.

use super::listeners::seal_extra;
use super::memo::{Memo, Same};
use super::plan::Because;
use super::plan::route::{
    EgressIndex, HostInput, Parts, Route, RouteList, RouteTable, RulesInput, TableInput,
    VirtualHost,
};
use super::seal::{Fragment, Subject, What};
use super::view::Viewer;
use super::{EgressScope, Output, Plan, envoy};
use crate::diag::Diagnostic;
use crate::xds::pb::route as proto;
use crate::xds::{Resource, TypeUrl};
use std::sync::Arc;

/// What was made of routes, by what it was made of: planned parts by their inputs, sealed ones by
/// the planned thing that they spell.
#[derive(Debug, Default)]
pub struct RouteParts {
    indexes: Memo<Same<EgressScope>, EgressIndex>,
    lists: Memo<RulesInput, RouteList>,
    hosts: Memo<HostInput, VirtualHost>,
    tables: Memo<TableInput, RouteTable>,
    sealed_routes: Memo<Same<Route>, Fragment<proto::Route>>,
    sealed_hosts: Memo<Same<VirtualHost>, Fragment<proto::VirtualHost>>,
    sealed_tables: Memo<Same<RouteTable>, Result<Resource, Box<Diagnostic>>>,
}

impl Parts for RouteParts {
    fn index(&self, egress: &Arc<EgressScope>, view: &Viewer<'_>) -> Arc<EgressIndex> {
        self.indexes.get(Same(egress.clone()), view, |_| EgressIndex::new(egress))
    }

    fn routes(&self, input: RulesInput, view: &Viewer<'_>) -> Arc<RouteList> {
        let refusal = |route: &Arc<Route>| {
            let violations = self.sealed_route(route, view).violations();
            violations.first().map(ToString::to_string)
        };
        self.lists.get(input.clone(), view, |view| input.routes(view, refusal))
    }

    fn host(&self, input: &HostInput, view: &Viewer<'_>) -> Arc<VirtualHost> {
        self.hosts.get(input.clone(), view, |_| input.virtual_host())
    }

    fn table(&self, input: TableInput, because: Because, view: &Viewer<'_>) -> Arc<RouteTable> {
        self.tables.get(input.clone(), view, |_| input.table(because))
    }
}

impl RouteParts {
    /// A table as a resource.
    ///
    /// # Errors
    ///
    /// The finding to report when Envoy would refuse it.
    fn sealed(
        &self,
        table: &Arc<RouteTable>,
        view: &Viewer<'_>,
    ) -> Arc<Result<Resource, Box<Diagnostic>>> {
        self.sealed_tables.get(Same(table.clone()), view, |view| {
            let hosts: Vec<Arc<Fragment<proto::VirtualHost>>> =
                table.hosts.iter().map(|host| self.sealed_host(host, view)).collect();
            let what = What::Resource(TypeUrl::Route);
            let subject = Subject { what, name: &table.name, because: &table.because };
            let outer = envoy::route::configuration(table);
            let whole = Fragment::around(&subject, outer, hosts.iter().map(|host| &**host));
            whole.into_resource(TypeUrl::Route, &table.name)
        })
    }

    fn sealed_host(
        &self,
        host: &Arc<VirtualHost>,
        view: &Viewer<'_>,
    ) -> Arc<Fragment<proto::VirtualHost>> {
        self.sealed_hosts.get(Same(host.clone()), view, |view| {
            let routes: Vec<Arc<Fragment<proto::Route>>> =
                host.routes.iter().map(|route| self.sealed_route(route, view)).collect();
            let subject =
                Subject { what: What::VirtualHost, name: &host.name, because: &host.because };
            let outer = envoy::route::virtual_host(host);
            Fragment::around(&subject, outer, routes.iter().map(|route| &**route))
        })
    }

    fn sealed_route(&self, route: &Arc<Route>, view: &Viewer<'_>) -> Arc<Fragment<proto::Route>> {
        self.sealed_routes.get(Same(route.clone()), view, |_| {
            let subject = Subject { what: What::Route, name: &route.name, because: &route.because };
            Fragment::of(&subject, envoy::route::route(route))
        })
    }

    /// Forgets what no table in use has any more, from the outside in: what is kept holds what it is
    /// made of.
    pub fn sweep(&self) {
        // A planned part is held by the key of its sealed form, and by the memo that it comes from.
        self.sealed_tables.retain(|table, _| Arc::strong_count(&table.0) > 2);
        self.tables.sweep();
        self.sealed_hosts.retain(|host, _| Arc::strong_count(&host.0) > 2);
        self.hosts.sweep();
        self.lists.sweep();
        // Routes come from no memo of their own.
        self.sealed_routes.retain(|route, _| Arc::strong_count(&route.0) > 1);
        self.indexes.retain(|egress, _| Arc::strong_count(&egress.0) > 1);
    }
}

/// The route tables of a plan.
pub(super) fn generate(plan: &Plan<'_>, output: &mut Output) {
    for table in &plan.tables {
        let sealed = plan.parts.sealed(table, plan.scope.view);
        output.add_sealed(TypeUrl::Route, (*sealed).clone());
    }
    seal_extra(&plan.route_extra, output);
}

#[cfg(test)]
mod tests;

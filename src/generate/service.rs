//! The clusters of one service, and the endpoints of those: the unit in which both are made and
//! made again. A change of one service costs that service.

use super::cluster::{self, Site, Upstream, for_each_upstream};
use super::memo::Same;
use super::scope::{ScopedService, World};
use super::seal::Output;
use super::view::Viewer;
use crate::diag::Diagnostic;
use crate::model::{DestinationRule, Endpoint, MeshSettings, Secrets, Service};
use crate::xds::{Resource, TypeUrl};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// All that the clusters of a service are made of, beside the view.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ServiceInput {
    service: Same<Service>,
    only_ports: Option<BTreeSet<u16>>,
    rule: Option<Same<DestinationRule>>,
    mesh: Same<MeshSettings>,
    /// Only where the rule names a credential: nothing else can see them then.
    secrets: Option<Same<Secrets>>,
}

/// The clusters of a service.
#[derive(Debug)]
pub struct ServiceClusters {
    input: ServiceInput,
    /// The clusters, and the secrets that they name.
    pub resources: Vec<(TypeUrl, Resource)>,
    /// Why some are missing.
    pub findings: Vec<Diagnostic>,
    /// Whether some of them get their endpoints by EDS.
    pub has_endpoints: bool,
}

/// The endpoints of a service, for each cluster that gets them by EDS. An empty assignment is there
/// too: it is the only way to take endpoints away from Envoy.
#[derive(Debug)]
pub struct ServiceEndpoints {
    /// The assignments.
    pub resources: Vec<Resource>,
    /// What Envoy would refuse.
    pub findings: Vec<Diagnostic>,
}

impl ServiceInput {
    /// The input for a service of a world and the rule that applies to it.
    pub fn of(
        world: &World,
        scoped: &ScopedService,
        rule: Option<&Arc<DestinationRule>>,
    ) -> ServiceInput {
        let routing = &world.routing;
        ServiceInput {
            service: Same(scoped.service.clone()),
            only_ports: scoped.only_ports.clone(),
            rule: rule.cloned().map(Same),
            mesh: Same(routing.mesh.clone()),
            secrets: rule
                .filter(|rule| rule.names_credentials())
                .map(|_| Same(routing.secrets.clone())),
        }
    }

    /// The clusters.
    pub fn clusters(&self, view: &Viewer<'_>) -> ServiceClusters {
        let mut output = Output::default();
        let mut secrets = BTreeMap::new();
        let mut has_endpoints = false;
        self.each_upstream(view, |site, upstream| match upstream {
            Ok(upstream) => {
                has_endpoints |= upstream.is_eds();
                let cluster = cluster::cluster(site, &upstream);
                output.of(TypeUrl::Cluster).emit(upstream.name(), &cluster);
                for secret in upstream.secrets() {
                    secrets.entry(secret.name.clone()).or_insert_with(|| secret.resource());
                }
            }
            Err(finding) => output.report(finding),
        });
        for (name, secret) in &secrets {
            output.of(TypeUrl::Secret).emit(name, secret);
        }
        let (resources, findings) = output.into_parts();
        ServiceClusters { input: self.clone(), resources, findings, has_endpoints }
    }

    fn each_upstream(
        &self,
        view: &Viewer<'_>,
        mut visit: impl FnMut(&Site<'_>, Result<Upstream<'_>, Diagnostic>),
    ) {
        let none = Secrets::default();
        let secrets = self.secrets.as_ref().map_or(&none, |secrets| &*secrets.0);
        let site = Site { mesh: &self.mesh.0, view, secrets };
        let rule = self.rule.as_ref().map(|rule| &*rule.0);
        let visit = |upstream: Result<Upstream<'_>, Diagnostic>| visit(&site, upstream);
        for_each_upstream(&site, &self.service.0, self.only_ports.as_ref(), rule, visit);
    }
}

impl ServiceClusters {
    /// What they are made of.
    pub fn input(&self) -> &ServiceInput {
        &self.input
    }

    /// The assignments of those clusters that get endpoints by EDS.
    pub fn endpoints(&self, endpoints: &[Endpoint], view: &Viewer<'_>) -> ServiceEndpoints {
        let mut output = Output::default();
        self.input.each_upstream(view, |site, upstream| {
            // What had to be left out was said with the clusters.
            if let Ok(upstream) = upstream
                && upstream.is_eds()
            {
                let assignment = cluster::assignment(site, &upstream, endpoints);
                output.of(TypeUrl::Endpoint).emit(upstream.name(), &assignment);
            }
        });
        let (resources, findings) = output.into_parts();
        let resources = resources.into_iter().map(|(_, resource)| resource).collect();
        ServiceEndpoints { resources, findings }
    }
}

//! The clusters of one service, and the endpoints of those: the unit in which both are made and
//! made again. A change of one service costs that service, a change of endpoints only those.

use super::clusters::{seal, seal_assignment, seal_secret};
use super::memo::Same;
use super::plan::assignment::Assignment;
use super::plan::cluster::{self, Cluster, Site};
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
    /// The clusters as they were decided. Beside endpoints and the view, all that assignments are
    /// made of.
    pub planned: Vec<Cluster>,
    /// What was sealed of them: the clusters, and the secrets that they name.
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
    /// The assignments as they were decided.
    pub planned: Vec<Assignment>,
    /// What was sealed of them.
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
        let none = Secrets::default();
        let secrets = self.secrets.as_ref().map_or(&none, |secrets| &*secrets.0);
        let site = Site { mesh: &self.mesh.0, view, secrets };
        let rule = self.rule.as_ref().map(|rule| &*rule.0);
        let mut output = Output::default();
        let mut planned = Vec::new();
        let service = &self.service.0;
        for decided in cluster::service_clusters(&site, service, self.only_ports.as_ref(), rule) {
            match decided {
                Ok(cluster) => {
                    seal(&cluster, &mut output);
                    planned.push(cluster);
                }
                Err(finding) => output.report(finding),
            }
        }
        let mut secrets = BTreeMap::new();
        for secret in planned.iter().flat_map(Cluster::secrets) {
            secrets.entry(&secret.name).or_insert(secret);
        }
        for secret in secrets.into_values() {
            seal_secret(secret, &mut output);
        }
        let has_endpoints = planned.iter().any(|cluster| cluster.recipe().is_some());
        let (resources, findings) = output.into_parts();
        ServiceClusters { planned, resources, findings, has_endpoints }
    }
}

impl ServiceClusters {
    /// The assignments of those clusters that get endpoints by EDS.
    pub fn endpoints(&self, endpoints: &[Endpoint], view: &Viewer<'_>) -> ServiceEndpoints {
        let mut output = Output::default();
        let mut planned = Vec::new();
        for cluster in &self.planned {
            if let Some(recipe) = cluster.recipe() {
                let assignment = recipe.assignment(&cluster.name, endpoints, view);
                seal_assignment(&assignment, &cluster.because, &mut output);
                planned.push(assignment);
            }
        }
        let (resources, findings) = output.into_parts();
        let resources = resources.into_iter().map(|(_, resource)| resource).collect();
        ServiceEndpoints { planned, resources, findings }
    }
}

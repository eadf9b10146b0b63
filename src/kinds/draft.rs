//! What lowered documents add up to before `compile` relates them to each other.

use crate::diag::Span;
use crate::model::{
    Address, DestinationRule, EndpointAddress, Gateway, Hostname, HttpAction, HttpRule, Labels,
    Locality, Location, ObjectName, Origin, Resolution, Secret, SecretKey, ServicePort, Sidecar,
    VirtualService, Visibility, Workload,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One list a thing, in no particular order: `compile` sorts.
#[derive(Debug, Default)]
pub struct Draft {
    /// ServiceEntries.
    pub service_entries: Vec<ServiceEntryDraft>,
    /// WorkloadEntries.
    pub workloads: Vec<Workload>,
    /// VirtualServices.
    pub virtual_services: Vec<VirtualServiceDraft>,
    /// DestinationRules, not merged yet.
    pub destination_rules: Vec<DestinationRule>,
    /// Gateways.
    pub gateways: Vec<Gateway>,
    /// Sidecars.
    pub sidecars: Vec<Sidecar>,
    /// Secret documents.
    pub secrets: Vec<(SecretKey, Secret)>,
}

/// A VirtualService before those that delegate get the rules of those that they delegate to.
#[derive(Debug, Clone, PartialEq)]
pub enum VirtualServiceDraft {
    /// One whose rules all say themselves what to do.
    Complete(Arc<VirtualService>),
    /// One with rules that delegate.
    Delegating {
        /// All but the HTTP rules, of which there are none here.
        service: VirtualService,
        /// The HTTP rules.
        http: Vec<HttpRule<DraftAction>>,
    },
    /// One without hosts: rules for others to delegate to.
    Delegate(DelegateDraft),
}

/// The rules of a VirtualService without hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct DelegateDraft {
    /// The document.
    pub origin: Origin,
    /// Who may delegate to it.
    pub visibility: Visibility,
    /// Its rules; none of them delegates.
    pub http: Vec<HttpRule>,
}

/// What a rule does, or who says so.
#[derive(Debug, Clone, PartialEq)]
pub enum DraftAction {
    /// The rule itself.
    Own(HttpAction),
    /// Another VirtualService.
    Delegate(DelegateRef),
}

/// A reference to a VirtualService without hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DelegateRef {
    /// The VirtualService.
    pub name: ObjectName,
    /// Where it is named.
    pub span: Span,
}

impl VirtualServiceDraft {
    /// The document.
    pub fn origin(&self) -> &Origin {
        match self {
            VirtualServiceDraft::Complete(service) => &service.origin,
            VirtualServiceDraft::Delegating { service, .. } => &service.origin,
            VirtualServiceDraft::Delegate(delegate) => &delegate.origin,
        }
    }
}

/// A ServiceEntry before its hosts become services and its endpoints are found.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceEntryDraft {
    /// The document.
    pub origin: Origin,
    /// `metadata.labels`.
    pub labels: Labels,
    /// Hosts, at least one.
    pub hosts: Vec<Hostname>,
    /// Virtual addresses (`/32` and `/128` reduced to the address).
    pub addresses: Vec<Address>,
    /// Ports in document order.
    pub ports: Vec<ServicePort>,
    /// Inside or outside the mesh.
    pub location: Location,
    /// How endpoints are resolved.
    pub resolution: Resolution,
    /// Endpoints written in place.
    pub endpoints: Vec<EndpointSpec>,
    /// Labels of the WorkloadEntries that are its endpoints.
    pub workload_selector: Option<Labels>,
    /// Who may see it.
    pub visibility: Visibility,
    /// `subjectAltNames` as written.
    pub subject_alt_names: Vec<String>,
    /// Where `spec` stands.
    pub span: Span,
}

/// An endpoint written in a ServiceEntry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointSpec {
    /// Its address; `None` only where a network gateway is meant to stand in for it.
    pub address: Option<EndpointAddress>,
    /// Port numbers by service port name.
    pub ports: BTreeMap<String, u16>,
    /// Labels.
    pub labels: Labels,
    /// Network, empty when unknown.
    pub network: Arc<str>,
    /// Where it runs.
    pub locality: Locality,
    /// Weight, at least 1.
    pub weight: u32,
    /// Service account, empty when unknown.
    pub service_account: Arc<str>,
}

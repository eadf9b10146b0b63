//! Where generators put what they make: the last step before bytes. Whatever leaves has passed
//! here, was checked and encoded once.

use crate::diag::{Code, Diagnostic};
use crate::xds::pb::{Message, Name};
use crate::xds::{Resource, TypeUrl, canonical, constraints};

/// Collects resources and findings; encodes each resource once.
#[derive(Debug)]
pub struct Output {
    type_url: TypeUrl,
    resources: Vec<(TypeUrl, Resource)>,
    findings: Vec<Diagnostic>,
}

impl Default for Output {
    fn default() -> Output {
        Output { type_url: TypeUrl::Cluster, resources: Vec::new(), findings: Vec::new() }
    }
}

impl Output {
    /// The same output, for resources of this type.
    pub(super) fn of(&mut self, type_url: TypeUrl) -> &mut Output {
        self.type_url = type_url;
        self
    }

    /// Adds a resource of the generator's type. The first of a name counts.
    ///
    /// One that Envoy's proto constraints refuse is left out with a finding: Envoy would refuse
    /// the whole response with it, and every good resource of its type.
    pub fn emit<M: Message + Name>(&mut self, name: &str, message: &M) {
        let resource = canonical::resource(name, message);
        let violations = constraints::check_resource(self.type_url, &resource);
        if violations.is_empty() {
            self.resources.push((self.type_url, resource));
            return;
        }
        let reasons: Vec<String> = violations.iter().map(ToString::to_string).collect();
        self.report(Diagnostic::new(
            Code::InvalidResource,
            format!(
                "Envoy would refuse the {} resource '{name}', so it is left out: {}",
                self.type_url.short_name(),
                reasons.join("; ")
            ),
        ));
    }

    /// Adds what was made before.
    pub(super) fn add(&mut self, resources: &[(TypeUrl, Resource)], findings: &[Diagnostic]) {
        self.resources.extend(resources.iter().cloned());
        self.findings.extend(findings.iter().cloned());
    }

    /// Adds a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.findings.push(diagnostic);
    }

    /// What was collected.
    pub(super) fn into_parts(self) -> (Vec<(TypeUrl, Resource)>, Vec<Diagnostic>) {
        (self.resources, self.findings)
    }
}

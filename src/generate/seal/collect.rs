//! Where generators put what they make.

use super::{Fragment, resource};
use crate::diag::Diagnostic;
use crate::generate::plan::Because;
use crate::xds::pb::{Message, Name};
use crate::xds::{Resource, TypeUrl};

/// Collects resources and findings; seals each resource once.
#[derive(Debug, Default)]
pub struct Output {
    resources: Vec<(TypeUrl, Resource)>,
    findings: Vec<Diagnostic>,
}

impl Output {
    /// Adds what spells a planned thing. One that Envoy would refuse is reported instead. The first
    /// of a name counts.
    pub fn seal<M: Message + Name>(
        &mut self,
        type_url: TypeUrl,
        name: &str,
        because: &Because,
        message: M,
    ) {
        self.add_sealed(type_url, resource(type_url, name, because, message));
    }

    /// Adds a resource that was put together from fragments, in the same way.
    pub fn seal_whole<M: Message + Name>(
        &mut self,
        type_url: TypeUrl,
        name: &str,
        whole: Fragment<M>,
    ) {
        self.add_sealed(type_url, whole.into_resource(type_url, name));
    }

    /// Adds what was sealed before.
    pub(in crate::generate) fn add_sealed(
        &mut self,
        type_url: TypeUrl,
        sealed: Result<Resource, Box<Diagnostic>>,
    ) {
        match sealed {
            Ok(resource) => self.resources.push((type_url, resource)),
            Err(finding) => self.findings.push(*finding),
        }
    }

    /// Adds what was made before.
    pub(in crate::generate) fn add(
        &mut self,
        resources: &[(TypeUrl, Resource)],
        findings: &[Diagnostic],
    ) {
        self.resources.extend(resources.iter().cloned());
        self.findings.extend(findings.iter().cloned());
    }

    /// Adds a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.findings.push(diagnostic);
    }

    /// What was collected.
    pub(in crate::generate) fn into_parts(self) -> (Vec<(TypeUrl, Resource)>, Vec<Diagnostic>) {
        (self.resources, self.findings)
    }
}

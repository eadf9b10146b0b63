//! Where generators put what they make.

use super::Generated;
use crate::diag::{Diagnostic, Diagnostics};
use crate::xds::pb::{Message, Name};
use crate::xds::{Resource, TypeUrl, canonical};

/// Collects resources and findings; encodes each resource once.
#[derive(Debug)]
pub struct Output {
    type_url: TypeUrl,
    resources: Vec<(TypeUrl, Resource)>,
    diags: Diagnostics,
}

impl Default for Output {
    fn default() -> Output {
        Output { type_url: TypeUrl::Cluster, resources: Vec::new(), diags: Diagnostics::new() }
    }
}

impl Output {
    /// The same output, for the next generator.
    pub(super) fn of(&mut self, type_url: TypeUrl) -> &mut Output {
        self.type_url = type_url;
        self
    }

    /// Adds a resource of the generator's type.
    pub fn emit<M: Message + Name>(&mut self, name: &str, message: &M) {
        self.resources.push((self.type_url, canonical::resource(name, message)));
    }

    /// Adds a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    pub(super) fn finish(self) -> Generated {
        Generated { resources: self.resources, diagnostics: self.diags.into_sorted() }
    }
}

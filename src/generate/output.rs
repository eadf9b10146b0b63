//! Where generators put what they make.

use super::Generated;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::xds::pb::{Message, Name};
use crate::xds::{ResourceSet, TypeUrl, canonical, constraints};

/// Collects resources and findings; encodes each resource once.
#[derive(Debug)]
pub struct Output {
    type_url: TypeUrl,
    set: ResourceSet,
    diags: Diagnostics,
}

impl Default for Output {
    fn default() -> Output {
        Output { type_url: TypeUrl::Cluster, set: ResourceSet::new(), diags: Diagnostics::new() }
    }
}

impl Output {
    /// An output that begins with what is there already.
    pub(super) fn onto(start: &Generated) -> Output {
        let mut output = Output { set: (*start.set).clone(), ..Output::default() };
        output.diags.extend(start.diagnostics.iter().cloned());
        output
    }

    /// The same output, for the next generator.
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
            self.set.insert(self.type_url, resource);
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

    /// Adds a finding.
    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diags.push(diagnostic);
    }

    pub(super) fn finish(self) -> Generated {
        Generated { set: self.set.into(), diagnostics: self.diags.into_sorted() }
    }
}

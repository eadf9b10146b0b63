//! Snapshot x Proxy -> resources. Pure, total, deterministic.
//!
//! [`GENERATORS`] is the one ordered table; its order is the push order. A *shared* generator reads
//! only the [`View`] of a proxy, so proxies with equal views share its encoded resources; an *own*
//! generator also reads the proxy's addresses.

pub mod filters;
mod gateway;
mod matching;
mod names;
mod output;
mod scope;
#[cfg(test)]
mod test_support;
mod view;

pub use names::{Direction, parse_cluster};
pub use output::Output;
pub use scope::{EgressScope, Scope, ScopedService};
pub use view::View;

use crate::diag::Diagnostic;
use crate::model::Snapshot;
use crate::proxy::Proxy;
use crate::xds::{Resource, ResourceSet, TypeUrl};

/// One row of the table.
pub struct Generator {
    /// What it makes, for logs and metrics.
    pub name: &'static str,
    /// The type of its resources.
    pub type_url: TypeUrl,
    /// How.
    pub part: Part,
}

/// What a generator may read.
pub enum Part {
    /// The view only.
    Shared(fn(&Scope<'_>, &mut Output)),
    /// The proxy's addresses too.
    Own(fn(&Scope<'_>, &Proxy, &mut Output)),
}

/// Every generator, in push order.
pub const GENERATORS: &[Generator] = &[];

/// What generators made: resources in order, and what is to be said about them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Generated {
    /// Resources with their types. The first of a name counts.
    pub resources: Vec<(TypeUrl, Resource)>,
    /// Findings about what this proxy gets.
    pub diagnostics: Vec<Diagnostic>,
}

/// The resources that depend on the view only.
pub fn shared(snapshot: &Snapshot, view: &View) -> Generated {
    let scope = Scope::new(snapshot, view);
    let mut output = Output::default();
    for generator in GENERATORS {
        match generator.part {
            Part::Shared(generate) => generate(&scope, output.of(generator.type_url)),
            Part::Own(_) => {}
        }
    }
    output.finish()
}

/// The resources that are the proxy's own.
pub fn own(snapshot: &Snapshot, view: &View, proxy: &Proxy) -> Generated {
    if !GENERATORS.iter().any(|g| matches!(g.part, Part::Own(_))) {
        return Generated::default();
    }
    let scope = Scope::new(snapshot, view);
    let mut output = Output::default();
    for generator in GENERATORS {
        match generator.part {
            Part::Shared(_) => {}
            Part::Own(generate) => generate(&scope, proxy, output.of(generator.type_url)),
        }
    }
    output.finish()
}

/// Everything that one proxy should have.
pub fn all(snapshot: &Snapshot, proxy: &Proxy) -> (ResourceSet, Vec<Diagnostic>) {
    let view = View::of(snapshot, proxy);
    combine([&shared(snapshot, &view), &own(snapshot, &view, proxy)])
}

/// Puts parts together; findings are sorted.
pub fn combine<'a>(
    parts: impl IntoIterator<Item = &'a Generated>,
) -> (ResourceSet, Vec<Diagnostic>) {
    let mut set = ResourceSet::new();
    let mut diags = crate::diag::Diagnostics::new();
    for part in parts {
        for (type_url, resource) in &part.resources {
            set.insert(*type_url, resource.clone());
        }
        diags.extend(part.diagnostics.iter().cloned());
    }
    (set, diags.into_sorted())
}

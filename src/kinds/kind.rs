//! What a kind is, the same for all: a type, its rules and its meaning ([`KindSpec`]), and the row
//! that the table of kinds has of it ([`Kind`]).

use super::{Draft, Unsupported};
use crate::config::{Findings, Header, RawDocument, decode_rest};
use crate::diag::Diagnostics;
use crate::model::{MeshSettings, ObjectName, Origin};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use std::fmt;

/// What became of a document in the hands of its kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded<D = Box<dyn Lower>> {
    /// It is valid, and this is what it says.
    Accepted(D),
    /// It is of one of our kinds, but wrong; the kind has said why.
    Refused,
    /// Its kind is known, but not supported yet, so it counts for nothing; that was said.
    NotYet,
    /// Its kind is not ours.
    Foreign,
}

/// What is known of a kind without any document of it. Group and kind together are its name:
/// there is more than one `Gateway`.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its API group, empty for Kubernetes' core group.
    pub group: &'static str,
    /// `VirtualService`.
    pub kind: &'static str,
    /// The versions that are read, all alike.
    pub versions: &'static [&'static str],
    /// Where in a document the type is: `spec`, or nothing when it is beside the header.
    pub section: &'static str,
    /// The fields that are read but have no meaning yet. One table drives both the warnings and
    /// the table of fields that people read.
    pub unsupported: &'static [Unsupported],
}

impl About {
    /// A kind of the group that routes traffic; its versions are read alike.
    pub(super) const fn networking(kind: &'static str) -> About {
        About {
            group: "networking.istio.io",
            kind,
            versions: &["v1", "v1beta1", "v1alpha3"],
            section: "spec",
            unsupported: &[],
        }
    }

    /// The origin of what a document of this kind means.
    pub(super) fn origin(&self, header: &Header) -> Origin {
        Origin {
            kind: self.kind,
            name: ObjectName::new(&*header.namespace, header.name.clone()),
            created: header.created.map_or(0, |time| time.as_nanosecond()),
            span: header.span.clone(),
        }
    }
}

/// What the documents of a kind say, what is demanded of it, and what it means. Everything else
/// about a kind follows from this.
pub(super) trait KindSpec: DeserializeOwned + JsonSchema + 'static {
    /// The name of the kind, and what else is known without a document.
    const ABOUT: About;

    /// What a document means, as far as it can be said without the mesh's settings.
    type Share: fmt::Debug + Send + Sync + 'static;

    /// Says everything that is wrong with it. Of a document with values that cannot be read, it
    /// sees the rest.
    fn check(&self, f: &mut Findings<'_>);

    /// What it means. It was checked, so nothing can fail here; `None` when the document counts for
    /// nothing, which `check` has said. Places are looked up here: the tree is gone afterwards.
    fn lower(&self, document: &RawDocument) -> Option<Self::Share>;

    /// Adds what it means with these settings.
    fn add(share: &Self::Share, mesh: &MeshSettings, draft: &mut Draft);
}

/// A decoded document that can say what it means.
pub trait Lower: Send + Sync + fmt::Debug {
    /// Adds the document's share to the draft. It was checked, so nothing can fail here.
    fn lower(&self, mesh: &MeshSettings, draft: &mut Draft);
}

/// What is kept of a valid document.
struct Lowered<S: KindSpec>(Option<S::Share>);

impl<S: KindSpec> fmt::Debug for Lowered<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(S::ABOUT.kind).field(&self.0).finish()
    }
}

impl<S: KindSpec> Lower for Lowered<S> {
    fn lower(&self, mesh: &MeshSettings, draft: &mut Draft) {
        if let Some(share) = &self.0 {
            S::add(share, mesh, draft);
        }
    }
}

/// A row of the table of kinds.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Its name, and what else is known of it.
    pub about: About,
    decode: fn(&RawDocument, &mut Diagnostics) -> Option<Box<dyn Lower>>,
    section: fn(&mut SchemaGenerator) -> Schema,
}

impl Kind {
    /// The row of a kind.
    pub(super) const fn of<S: KindSpec>() -> Kind {
        Kind { about: S::ABOUT, decode: decode::<S>, section: section_schema::<S> }
    }

    /// The kind's name, `VirtualService`. Another group may have a kind of that name.
    pub fn name(&self) -> &'static str {
        self.about.kind
    }

    /// Decodes and checks one document. `None` when an error was found; every error and warning
    /// goes to `diags`.
    pub(super) fn decode(
        &self,
        document: &RawDocument,
        diags: &mut Diagnostics,
    ) -> Option<Box<dyn Lower>> {
        (self.decode)(document, diags)
    }

    /// The JSON Schema of the section.
    pub(super) fn section_schema(&self, generator: &mut SchemaGenerator) -> Schema {
        (self.section)(generator)
    }
}

/// Decodes the section, lets the kind check it, and lowers it when there is no error.
fn decode<S: KindSpec>(document: &RawDocument, diags: &mut Diagnostics) -> Option<Box<dyn Lower>> {
    let (spec, pruned) = decode_rest::<S>(document, S::ABOUT.section, diags);
    let spec = spec?;
    let is_whole = pruned.is_empty();
    let mut findings = Findings::about_rest(document, diags, pruned);
    spec.check(&mut findings);
    let is_valid = is_whole && !findings.has_errors();
    is_valid.then(|| Box::new(Lowered::<S>(spec.lower(document))) as Box<dyn Lower>)
}

/// In a section of its own the schema can be referred to; beside the header its fields are the
/// document's.
fn section_schema<S: KindSpec>(generator: &mut SchemaGenerator) -> Schema {
    if S::ABOUT.section.is_empty() {
        S::json_schema(generator)
    } else {
        generator.subschema_for::<S>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Field, SourceFile, read};
    use crate::diag::Code;
    use crate::model::{Secret, SecretKey};
    use serde::Deserialize;

    /// A kind of another group with a name that is taken; its documents leave a secret's name.
    #[derive(Deserialize, JsonSchema)]
    struct Spec {
        leave: String,
    }

    const KIND: Kind = Kind::of::<Spec>();

    impl KindSpec for Spec {
        const ABOUT: About = About { group: "gateway.example.com", ..About::networking("Gateway") };

        type Share = SecretKey;

        fn check(&self, f: &mut Findings<'_>) {
            if self.leave == "wrong" {
                f.error(&Field::root("spec").key("leave"), Code::InvalidValue, "it is wrong");
            }
        }

        fn lower(&self, document: &RawDocument) -> Option<SecretKey> {
            assert_ne!(self.leave, "wrong", "only what was found right is lowered");
            let origin = Self::ABOUT.origin(&document.header);
            let namespace = Some(origin.name.namespace);
            (self.leave != "nothing")
                .then(|| SecretKey { namespace, name: self.leave.as_str().into() })
        }

        fn add(share: &SecretKey, mesh: &MeshSettings, draft: &mut Draft) {
            assert_eq!(*mesh, MeshSettings::default());
            let secret = Secret {
                origin: None,
                certificate_chain: None,
                private_key: None,
                ca: None,
                crl: None,
            };
            draft.secrets.push((share.clone(), secret));
        }
    }

    /// The names that a document leaves, when it is accepted, and the findings.
    fn left(spec: &str) -> (Option<Vec<String>>, Vec<String>) {
        let head = "apiVersion: gateway.example.com/v1\nkind: Gateway\nmetadata: {name: x}\n";
        let reading = read(&SourceFile::new("a", format!("{head}spec: {spec}\n")));
        let mut diags = Diagnostics::new();
        let lowered = KIND.decode(&reading.documents[0], &mut diags).map(|lower| {
            let mut draft = Draft::default();
            lower.lower(&MeshSettings::default(), &mut draft);
            draft.secrets.iter().map(|(key, _)| key.name.to_string()).collect()
        });
        (lowered, diags.into_sorted().iter().map(|d| d.code.to_string()).collect())
    }

    #[test]
    fn a_kind_is_the_type_of_its_spec_with_check_lower_and_add() {
        assert_eq!(left("{leave: a}"), (Some(vec!["a".to_owned()]), vec![]));
        assert_eq!(left("{leave: nothing}"), (Some(vec![]), vec![]));
        assert_eq!(left("{leave: wrong}"), (None, vec!["PF0201".to_owned()]));
        assert_eq!(left("{leave: [1]}"), (None, vec!["PF0201".to_owned()]));
        assert_eq!((KIND.name(), KIND.about.group), ("Gateway", "gateway.example.com"));
    }
}

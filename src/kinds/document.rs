//! From a document to a decoded kind, the same way for all: find the kind, decode, check, warn
//! about what is not supported; and the JSON Schema of all kinds together.

use super::{KINDS, Kind, Lower, find, stranger, unsupported};
use crate::config::{Field, Findings, Header, RawDocument, decode_rest};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::model::{ObjectName, Origin};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// The API group of the kinds that route traffic.
pub(super) const NETWORKING: &str = "networking.istio.io";

/// The versions of that group; they are read alike.
pub(super) const NETWORKING_VERSIONS: &[&str] = &["v1", "v1beta1", "v1alpha3"];

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

/// Decodes and checks a document of any kind.
pub fn decode(document: &RawDocument, diags: &mut Diagnostics) -> Decoded {
    let header = &document.header;
    let kind = match find(&header.api_version, &header.kind) {
        Ok(None) => return stranger::judge(document, diags),
        Ok(Some(kind)) => kind,
        Err(versions) => {
            let message = format!("`{}` has no version `{}`", header.kind, header.version());
            let help = format!("the versions that are read are {}", versions.join(", "));
            let diagnostic = Diagnostic::new(Code::UnsupportedVersion, message).help(help);
            Findings::new(document, diags).report(&Field::root("apiVersion"), diagnostic);
            return Decoded::Refused;
        }
    };
    let lower = kind.decode(document, diags);
    let mut findings = Findings::new(document, diags);
    unsupported::warn(kind.unsupported(), &mut findings);
    annotations(&mut findings);
    match lower {
        Some(lower) if !findings.has_errors() => Decoded::Accepted(lower),
        _ => Decoded::Refused,
    }
}

/// Annotations of Istio's own machinery. Istio refuses them in what users write; documents that were
/// taken out of a running Istio carry them, and then they mean nothing.
const INTERNAL_ANNOTATIONS: [&str; 2] =
    ["internal.istio.io/parents", "internal.istio.io/parent-namespace"];

/// Annotations that ask not to be served.
const REFUSED_ANNOTATIONS: [&str; 2] =
    ["internal.istio.io/webhook-always-reject", "istio.io/dry-run"];

fn annotations(f: &mut Findings<'_>) {
    let metadata = Field::root("metadata");
    let at = metadata.key("annotations");
    for name in REFUSED_ANNOTATIONS {
        if f.document().header.annotations.contains_key(name) {
            let message = "the annotation must not be used here; remove it";
            let span = f.key_span(&at.key(name));
            f.report(&at.key(name), Diagnostic::new(Code::InvalidValue, message).at(span));
        }
    }
    for name in INTERNAL_ANNOTATIONS {
        if f.document().header.annotations.contains_key(name) {
            let message = "the annotation is Istio's own and has no effect here";
            let span = f.key_span(&at.key(name));
            f.report(&at.key(name), Diagnostic::new(Code::NoEffect, message).at(span));
        }
    }
}

/// Decodes `spec` and lets `check` look at it; what it gives counts when there is no error. Of a
/// `spec` with errors, the part that is right is looked at.
pub(super) fn decode_spec<S: DeserializeOwned, L: Lower + 'static>(
    document: &RawDocument,
    diags: &mut Diagnostics,
    check: impl FnOnce(S, &mut Findings<'_>) -> L,
) -> Option<Box<dyn Lower>> {
    let (spec, pruned) = decode_rest(document, "spec", diags);
    let is_whole = pruned.is_empty();
    let mut findings = Findings::about_rest(document, diags, pruned);
    let lower = check(spec?, &mut findings);
    if is_whole && !findings.has_errors() { Some(Box::new(lower)) } else { None }
}

/// The origin of a document of that kind.
pub(super) fn origin(kind: &'static str, header: &Header) -> Origin {
    Origin {
        kind,
        name: ObjectName::new(&*header.namespace, header.name.clone()),
        created: header.created.map_or(0, |time| time.as_nanosecond()),
        span: header.span.clone(),
    }
}

/// The JSON Schema of a document whose content is in `spec`.
pub(super) fn spec_schema<S: JsonSchema>(
    kind: &dyn Kind,
    generator: &mut SchemaGenerator,
) -> Schema {
    let spec = generator.subschema_for::<S>();
    object_schema(kind, &[("spec", spec)], &["spec"])
}

/// The JSON Schema of a document with these fields beside its header.
pub(super) fn object_schema(
    kind: &dyn Kind,
    fields: &[(&str, Schema)],
    required: &[&str],
) -> Schema {
    let versions: Vec<String> = kind
        .versions()
        .iter()
        .map(|version| match kind.group() {
            "" => (*version).to_owned(),
            group => format!("{group}/{version}"),
        })
        .collect();
    let mut properties = Map::new();
    properties.insert("apiVersion".into(), json!({ "enum": versions }));
    properties.insert("kind".into(), json!({ "const": kind.name() }));
    properties.insert("metadata".into(), json!({ "$ref": "#/$defs/ObjectMeta" }));
    for (name, schema) in fields {
        properties.insert((*name).to_owned(), schema.clone().to_value());
    }
    properties.insert("status".into(), json!({ "description": "Ignored." }));
    let mut all_required = vec!["apiVersion", "kind", "metadata"];
    all_required.extend(required);
    json_schema!({
        "type": "object",
        "properties": properties,
        "required": all_required,
    })
}

/// One JSON Schema (draft 2020-12) for a document of any kind.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let kinds: Vec<(&str, Schema)> =
        KINDS.iter().map(|kind| (kind.name(), kind.schema(&mut generator))).collect();
    let mut definitions = generator.take_definitions(true);
    definitions.insert("ObjectMeta".into(), metadata_schema());
    let mut one_of = Vec::new();
    for (name, schema) in kinds {
        // A kind and the type of its spec may share a name.
        let name = format!("{name}Document");
        one_of.push(json!({ "$ref": format!("#/$defs/{name}") }));
        definitions.insert(name, schema.to_value());
    }
    let mut root = json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pilotfish configuration",
        "oneOf": one_of,
        "$defs": definitions,
    });
    schemars::transform::Transform::transform(&mut RecursiveTransform(close), &mut root);
    root.to_value()
}

/// Editors should mark unknown fields: the types themselves stay open, so that decoding can
/// warn about each.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".into(), Value::Bool(false));
    }
}

fn metadata_schema() -> Value {
    let strings = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    json!({
        "type": "object",
        "description": "Who the object is.",
        "properties": {
            "name": { "type": "string", "minLength": 1, "description": "Its name." },
            "namespace": {
                "type": "string",
                "description": "Its namespace; `default` when there is none.",
            },
            "labels": strings,
            "annotations": strings,
            "creationTimestamp": {
                "type": ["string", "null"],
                "description": "Decides precedence where documents compete: the older one wins.",
            },
        },
        "required": ["name"],
        // Exports carry more, and it is accepted in silence.
        "additionalProperties": true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{SourceFile, read};

    fn each(value: &Value, look: &mut impl FnMut(&Map<String, Value>)) {
        match value {
            Value::Object(map) => {
                look(map);
                map.values().for_each(|value| each(value, look));
            }
            Value::Array(items) => items.iter().for_each(|value| each(value, look)),
            _ => {}
        }
    }

    fn found(text: &str) -> (Decoded, Vec<String>) {
        let reading = read(&SourceFile::new("a.yaml", text));
        let mut diags = Diagnostics::new();
        let decoded = decode(&reading.documents[0], &mut diags);
        (decoded, diags.into_sorted().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn the_schema_has_every_kind_and_no_loose_end() {
        let schema = schema();
        let definitions = &schema["$defs"];
        for kind in KINDS {
            let properties = &definitions[format!("{}Document", kind.name())]["properties"];
            assert_eq!(properties["kind"]["const"], kind.name());
        }
        assert_eq!(schema["oneOf"].as_array().map(Vec::len), Some(KINDS.len()));
        each(&schema, &mut |map| {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                let name = name.trim_start_matches("#/$defs/");
                assert!(definitions.get(name).is_some(), "{name}");
            }
            if map.get("properties").is_some_and(Value::is_object) && map.contains_key("type") {
                assert!(map.contains_key("additionalProperties"), "{map:?}");
            }
        });
    }

    #[test]
    fn every_version_of_a_kind_is_read_and_no_other() {
        let text = |version: &str| {
            format!(
                "apiVersion: networking.istio.io/{version}\nkind: Sidecar\nmetadata: {{name: x}}\n\
                 spec: {{egress: [hosts: [\"./*\"]]}}"
            )
        };
        for version in NETWORKING_VERSIONS {
            assert!(
                matches!(found(&text(version)), (Decoded::Accepted(_), none) if none.is_empty())
            );
        }
        let (decoded, told) = found(&text("v2"));
        assert!(matches!(decoded, Decoded::Refused));
        let expected = "a.yaml:1:13: error[PF0210]: apiVersion: `Sidecar` has no version `v2`";
        assert!(told[0].starts_with(expected), "{told:?}");
    }

    #[test]
    fn kinds_of_other_groups_are_not_ours() {
        let text = "apiVersion: gateway.example.com/v1\nkind: Gateway\nmetadata: {name: x}";
        assert!(matches!(found(text), (Decoded::Foreign, none) if none.is_empty()));
    }

    #[test]
    fn annotations_that_ask_not_to_be_served_are_refused_and_istios_own_are_warned_of() {
        let with = |annotation: &str| {
            found(&format!(
                "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata:\n  name: x\n  \
                 annotations: {{{annotation}: a}}\nspec: {{egress: [hosts: [\"./*\"]]}}",
            ))
        };
        let (decoded, told) = with("istio.io/dry-run");
        assert!(matches!(decoded, Decoded::Refused));
        assert!(told[0].starts_with("a.yaml:5:17: error[PF0201]"), "{told:?}");
        let (decoded, told) = with("internal.istio.io/parents");
        assert!(matches!(decoded, Decoded::Accepted(_)));
        assert!(told[0].starts_with("a.yaml:5:17: warning[PF0207]"), "{told:?}");
    }
}

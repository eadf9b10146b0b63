//! The JSON Schema of all kinds together, for editors.

use super::KINDS;
use super::kind::{About, Kind};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

/// One JSON Schema (draft 2020-12) for a document of any kind.
pub fn schema() -> Value {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let documents: Vec<(String, Schema)> = KINDS
        .iter()
        .map(|kind| (definition(&kind.about), document_schema(kind, &mut generator)))
        .collect();
    let mut definitions = generator.take_definitions(true);
    definitions.insert("ObjectMeta".into(), metadata_schema());
    let mut one_of = Vec::new();
    for (name, schema) in documents {
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

/// The JSON Schema of a document of that kind.
fn document_schema(kind: &Kind, generator: &mut SchemaGenerator) -> Schema {
    let About { group, versions, section, .. } = kind.about;
    let versions: Vec<String> = versions
        .iter()
        .map(|version| match group {
            "" => (*version).to_owned(),
            group => format!("{group}/{version}"),
        })
        .collect();
    let mut properties = Map::new();
    properties.insert("apiVersion".into(), json!({ "enum": versions }));
    properties.insert("kind".into(), json!({ "const": kind.name() }));
    properties.insert("metadata".into(), json!({ "$ref": "#/$defs/ObjectMeta" }));
    let mut required = vec!["apiVersion", "kind", "metadata"];
    let content = kind.section_schema(generator);
    if section.is_empty() {
        let fields = content.get("properties").and_then(Value::as_object).cloned();
        properties.extend(fields.unwrap_or_default());
    } else {
        properties.insert(section.to_owned(), content.to_value());
        required.push(section);
    }
    properties.insert("status".into(), json!({ "description": "Ignored." }));
    json_schema!({
        "type": "object",
        "properties": properties,
        "required": required,
    })
}

/// What the documents of a kind are called in `$defs`: `networking.istio.io.Gateway`. A kind, the
/// type of its spec and a kind of another group may share a name, so the group is part of it.
pub fn definition(about: &About) -> String {
    let group = if about.group.is_empty() { "core" } else { about.group };
    format!("{group}.{}", about.kind)
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

    #[test]
    fn the_schema_has_every_kind_and_no_loose_end() {
        let schema = schema();
        let definitions = &schema["$defs"];
        for kind in KINDS {
            let properties = &definitions[definition(&kind.about)]["properties"];
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
    fn kinds_of_one_name_in_two_groups_have_two_definitions() {
        let istio = About::networking("Gateway");
        let other = About { group: "gateway.networking.k8s.io", ..istio };
        assert_ne!(definition(&istio), definition(&other));
        assert_eq!(definition(&istio), "networking.istio.io.Gateway");
    }
}

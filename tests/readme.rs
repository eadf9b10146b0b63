//! The README's table of kinds and fields says what the code does: it is made from the types and
//! from the tables of unsupported fields, and compared here. `UPDATE_README=1` rewrites it.

use pilotfish::kinds::{self, About, KINDS};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const BEGIN: &str = "<!-- fields: made by tests/readme.rs from the code; do not edit -->";
const END: &str = "<!-- /fields -->";

#[test]
fn the_table_of_fields_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(BEGIN).expect("the README has the begin mark");
    let (_, after) = rest.split_once(END).expect("the README has the end mark");
    let expected = format!("{before}{BEGIN}\n\n{}\n{END}{after}", table());
    if std::env::var_os("UPDATE_README").is_some() {
        assert!(std::env::var_os("CI").is_none(), "CI does not rewrite the README");
        fs::write(&path, expected).unwrap();
    } else {
        assert!(
            readme == expected,
            "the table is out of date: UPDATE_README=1 cargo test --test readme"
        );
    }
}

#[test]
fn every_unsupported_field_is_a_field_of_its_kind() {
    let schema = kinds::schema();
    for kind in KINDS {
        let document = &schema["$defs"][kinds::definition(&kind.about)];
        for row in kind.about.unsupported {
            let path = row.path.replace("[]", ".[]");
            let steps: Vec<&str> = path.split('.').filter(|step| !step.is_empty()).collect();
            // A map key may hold dots: everything after the `{` is one step.
            let map = steps.iter().position(|step| step.starts_with('{'));
            let steps = &steps[..map.map_or(steps.len(), |map| map + 1)];
            assert!(
                exists(&schema, document, steps),
                "{}: {} is not a field",
                kind.name(),
                row.path
            );
        }
    }
}

/// Whether a path leads to a field of a schema.
fn exists(root: &Value, schema: &Value, steps: &[&str]) -> bool {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        return exists(root, &root["$defs"][name], steps);
    }
    let Some((first, rest)) = steps.split_first() else { return true };
    let options = ["anyOf", "oneOf", "allOf"].into_iter();
    let mut options = options.flat_map(|list| schema[list].as_array().into_iter().flatten());
    if options.any(|option| exists(root, option, steps)) {
        return true;
    }
    let next = match *first {
        "[]" => &schema["items"],
        key if key.starts_with('{') => &schema["additionalProperties"],
        key => &schema["properties"][key],
    };
    !next.is_null() && exists(root, next, rest)
}

fn table() -> String {
    let schema = kinds::schema();
    let mut out = String::new();
    for kind in KINDS {
        let About { group, versions, unsupported, .. } = kind.about;
        let group = if group.is_empty() { "core" } else { group };
        let title = format!("<b>{}</b> ({group}: {})", kind.name(), versions.join(", "));
        section(&mut out, &title, &objects(&schema, &kind.about), unsupported);
    }
    let mut generator = schemars::SchemaGenerator::default();
    let mut root = kinds::mesh_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    root["$defs"] = Value::Object(definitions);
    let mut found = Vec::new();
    walk(&root, &root.clone(), String::new(), &mut BTreeMap::new(), &mut found);
    section(
        &mut out,
        "<b>MeshConfig</b> (a file without apiVersion and kind)",
        &found,
        kinds::mesh_unsupported(),
    );
    out.trim_end().to_owned()
}

fn section(
    out: &mut String,
    title: &str,
    objects: &[(String, Vec<String>)],
    rows: &[kinds::Unsupported],
) {
    let count: usize = objects.iter().map(|(_, fields)| fields.len()).sum();
    let summary = format!("{title}: {count} fields, {} not supported yet", rows.len());
    writeln!(out, "<details><summary>{summary}</summary>\n").unwrap();
    writeln!(out, "| where | fields | not supported yet |\n| --- | --- | --- |").unwrap();
    for (path, fields) in objects {
        let unsupported: Vec<String> = rows
            .iter()
            .filter(|row| belongs(row.path, path, objects))
            .map(|row| {
                let field = row.path.strip_prefix(path.as_str()).unwrap_or(row.path);
                let field = field.trim_start_matches('.');
                let value = row.value.map(|v| format!(": {v}")).unwrap_or_default();
                format!("`{field}{value}` ({})", row.instead)
            })
            .collect();
        let fields: Vec<String> = fields.iter().map(|f| format!("`{f}`")).collect();
        let path = if path.is_empty() { "document" } else { path };
        writeln!(out, "| `{path}` | {} | {} |", fields.join(", "), unsupported.join("; ")).unwrap();
    }
    let elsewhere: Vec<String> = rows
        .iter()
        .filter(|row| !objects.iter().any(|(path, _)| belongs(row.path, path, objects)))
        .map(|row| format!("`{}` ({})", row.path, row.instead))
        .collect();
    if !elsewhere.is_empty() {
        writeln!(out, "| elsewhere | | {} |", elsewhere.join("; ")).unwrap();
    }
    writeln!(out, "\n</details>\n").unwrap();
}

/// Whether an unsupported path is shown in the row of this object: the longest that begins it.
fn belongs(unsupported: &str, object: &str, objects: &[(String, Vec<String>)]) -> bool {
    let begins = |object: &str| {
        let rest = unsupported.strip_prefix(object);
        rest.is_some_and(|rest| object.is_empty() || rest.starts_with(['.', '[']))
    };
    let longest =
        objects.iter().map(|(path, _)| path).filter(|p| begins(p)).max_by_key(|p| p.len());
    longest.is_some_and(|longest| longest == object)
}

/// The objects of a kind with their fields, parents first. A type that occurs again is listed
/// once, where it occurs first.
fn objects(schema: &Value, about: &About) -> Vec<(String, Vec<String>)> {
    let document = &schema["$defs"][kinds::definition(about)];
    let mut found = Vec::new();
    let mut seen = BTreeMap::new();
    let properties = document["properties"].as_object().expect("a document has properties");
    let own: Vec<String> = properties
        .keys()
        .filter(|name| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()))
        .cloned()
        .collect();
    if own != ["spec"] {
        found.push((String::new(), own.clone()));
    }
    for (name, property) in properties {
        if own.contains(name) {
            walk(schema, property, name.clone(), &mut seen, &mut found);
        }
    }
    found
}

fn walk(
    root: &Value,
    schema: &Value,
    path: String,
    seen: &mut BTreeMap<String, String>,
    found: &mut Vec<(String, Vec<String>)>,
) {
    if let Some(name) = schema["$ref"].as_str().and_then(|r| r.strip_prefix("#/$defs/")) {
        if seen.insert(name.to_owned(), path.clone()).is_none() {
            walk(root, &root["$defs"][name], path, seen, found);
        }
        return;
    }
    for list in ["anyOf", "oneOf", "allOf"] {
        for option in schema[list].as_array().into_iter().flatten() {
            walk(root, option, path.clone(), seen, found);
        }
    }
    if let Some(properties) = schema["properties"].as_object() {
        let names: Vec<String> = properties.keys().cloned().collect();
        match found.iter_mut().find(|(known, _)| *known == path) {
            Some((_, fields)) => fields.extend(names),
            None => found.push((path.clone(), names)),
        }
        for (name, property) in properties {
            let below = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            walk(root, property, below, seen, found);
        }
    }
    if schema["items"].is_object() {
        walk(root, &schema["items"], format!("{path}[]"), seen, found);
    }
    if schema["additionalProperties"].is_object() {
        walk(root, &schema["additionalProperties"], format!("{path}.{{}}"), seen, found);
    }
}

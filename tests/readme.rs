//! `examples/SUPPORTED.md` says what the code does: it is made from the types and from the tables of
//! unsupported fields, and compared here. `UPDATE_README=1` rewrites it. What the README itself
//! says of files and kinds is compared with the tree.

use pilotfish::kinds::{self, About, KINDS};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

const PAGE: &str = "examples/SUPPORTED.md";

const INTRODUCTION: &str = "\
<!-- Made by tests/readme.rs from the code; do not edit. -->

# What is supported

Every field of Istio's API is read. What has no effect yet gives a warning where it stands in your YAML, and is listed
here with what happens instead. A type that occurs several times in a kind is listed where it occurs first.
";

fn in_tree(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_page_of_fields_is_what_the_code_does() {
    let expected = page();
    if std::env::var_os("UPDATE_README").is_some() {
        assert!(std::env::var_os("CI").is_none(), "CI does not rewrite the page");
        fs::write(in_tree(PAGE), expected).unwrap();
    } else {
        let page = fs::read_to_string(in_tree(PAGE)).unwrap_or_default();
        assert!(
            page == expected,
            "{PAGE} is out of date: UPDATE_README=1 cargo test --test readme"
        );
    }
}

#[test]
fn the_readme_names_every_kind_and_links_to_what_is_there() {
    let readme = fs::read_to_string(in_tree("README.md")).unwrap();
    for kind in KINDS {
        assert!(readme.contains(kind.name()), "the README does not name {}", kind.name());
    }
    let links: Vec<&str> =
        readme.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();
    assert!(links.contains(&PAGE), "the README does not link to {PAGE}");
    for link in links.iter().filter(|link| !link.starts_with("http")) {
        assert!(in_tree(link).exists(), "the README links to {link}, which is not there");
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

/// One kind of the page.
struct Section {
    name: &'static str,
    versions: String,
    objects: Vec<(String, Vec<String>)>,
    unsupported: &'static [kinds::Unsupported],
}

impl Section {
    fn fields(&self) -> usize {
        self.objects.iter().map(|(_, fields)| fields.len()).sum()
    }
}

fn sections() -> Vec<Section> {
    let schema = kinds::schema();
    let of_kinds = KINDS.iter().map(|kind| {
        let About { group, versions, unsupported, .. } = kind.about;
        let group = if group.is_empty() { "core" } else { group };
        Section {
            name: kind.name(),
            versions: format!("{group}: {}", versions.join(", ")),
            objects: objects(&schema, &kind.about),
            unsupported,
        }
    });
    let mut generator = schemars::SchemaGenerator::default();
    let mut root = kinds::mesh_schema(&mut generator).to_value();
    let definitions = generator.take_definitions(true);
    root["$defs"] = Value::Object(definitions);
    let mut found = Vec::new();
    walk(&root, &root.clone(), String::new(), &mut BTreeMap::new(), &mut found);
    let mesh = Section {
        name: "MeshConfig",
        versions: "a file without apiVersion and kind".to_owned(),
        objects: found,
        unsupported: kinds::mesh_unsupported(),
    };
    of_kinds.chain([mesh]).collect()
}

fn page() -> String {
    let mut out = INTRODUCTION.to_owned();
    let sections = sections();
    writeln!(out, "\n| kind | read as | fields | not supported yet |").unwrap();
    writeln!(out, "| --- | --- | --- | --- |").unwrap();
    for section in &sections {
        let Section { name, versions, unsupported, .. } = section;
        let anchor = name.to_lowercase();
        let (fields, not_yet) = (section.fields(), unsupported.len());
        writeln!(out, "| [{name}](#{anchor}) | {versions} | {fields} | {not_yet} |").unwrap();
    }
    sections.iter().for_each(|section| write_section(&mut out, section));
    out
}

fn write_section(out: &mut String, section: &Section) {
    writeln!(out, "\n## {}\n", section.name).unwrap();
    if section.unsupported.is_empty() {
        writeln!(out, "Everything is supported.\n").unwrap();
    } else {
        writeln!(out, "| not supported yet | instead |\n| --- | --- |").unwrap();
        for row in section.unsupported {
            let value = row.value.map(|v| format!(": {v}")).unwrap_or_default();
            writeln!(out, "| `{}{value}` | {} |", row.path, row.instead).unwrap();
        }
        writeln!(out).unwrap();
    }
    writeln!(out, "<details><summary>All {} fields</summary>\n", section.fields()).unwrap();
    writeln!(out, "| where | fields |\n| --- | --- |").unwrap();
    for (path, fields) in &section.objects {
        let fields: Vec<String> = fields.iter().map(|f| format!("`{f}`")).collect();
        let path = if path.is_empty() { "document" } else { path };
        writeln!(out, "| `{path}` | {} |", fields.join(", ")).unwrap();
    }
    writeln!(out, "\n</details>").unwrap();
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

//! `pilotfish translate`: what a proxy would be sent.

use super::{Exit, files, output};
use crate::diag::{Diagnostics, Severity};
use crate::generate;
use crate::settings::{DataFormat, TranslateArgs, XdsType};
use crate::xds::{TypeUrl, json};
use anyhow::Context;
use serde_json::{Map, Value};
use std::io;

/// Prints the resources to standard output and findings to standard error. Findings that are
/// errors make the exit code 1; what is good is printed all the same.
pub fn run(args: &TranslateArgs) -> anyhow::Result<Exit> {
    let loaded = files::load(&args.source.config_dirs, &args.source.extra)?;
    let snapshot = &loaded.compiled.snapshot;
    let proxy = args.node.description().resolve(snapshot).context("the proxy cannot be served")?;
    let generated = generate::all(snapshot, &proxy);
    let document = selected(json::set_json(&generated.set), &args.types);
    output::print(&match args.output {
        DataFormat::Json => format!("{document:#}\n"),
        DataFormat::Yaml => json::yaml(&document),
    })?;
    let mut diags = Diagnostics::new();
    diags.extend(loaded.compiled.diagnostics.iter().cloned());
    diags.extend(generated.diagnostics);
    let findings = diags.into_sorted();
    output::print_error(&files::render(&loaded.workspace, &findings, &io::stderr()))?;
    let failed = findings.iter().any(|d| d.severity == Severity::Error);
    Ok(if failed { Exit::Findings } else { Exit::Fine })
}

/// Only the keys of these types; all when none is named.
fn selected(document: Value, types: &[XdsType]) -> Value {
    let Value::Object(all) = document else { return document };
    if types.is_empty() {
        return Value::Object(all);
    }
    let wanted: Vec<&str> = types.iter().map(|t| type_url(*t).plural()).collect();
    let kept: Map<String, Value> =
        all.into_iter().filter(|(key, _)| wanted.contains(&key.as_str())).collect();
    Value::Object(kept)
}

fn type_url(wanted: XdsType) -> TypeUrl {
    match wanted {
        XdsType::Lds => TypeUrl::Listener,
        XdsType::Rds => TypeUrl::Route,
        XdsType::Cds => TypeUrl::Cluster,
        XdsType::Eds => TypeUrl::Endpoint,
        XdsType::Sds => TypeUrl::Secret,
    }
}

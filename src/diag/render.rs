//! Diagnostics as text and as JSON: one function each.

use super::Diagnostic;

/// Text for people: placeholder until the excerpt renderer lands.
pub fn text(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|d| format!("{d}\n")).collect()
}

/// JSON for tools.
pub fn json(_diagnostics: &[Diagnostic]) -> serde_json::Value {
    serde_json::Value::Null
}

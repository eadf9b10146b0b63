//! What the tests of kinds share: from the text of a `spec` to findings and to the model.

use super::{Decoded, Draft, Kind, decode};
use crate::config::{self, SourceFile};
use crate::diag::{Code, Diagnostic, Diagnostics, Severity};
use crate::model::MeshSettings;

/// What became of one document.
pub struct Outcome {
    /// What it says, when it was accepted.
    pub draft: Option<Draft>,
    /// Everything that was found, in file order.
    pub found: Vec<Diagnostic>,
}

/// A document of the kind called `ns/x`; the lines of its `spec` are the lines of the text,
/// after the four of the header.
pub fn document(kind: &Kind, spec: &str) -> String {
    let group = match kind.about.group {
        "" => String::new(),
        group => format!("{group}/"),
    };
    let version = kind.about.versions[0];
    let mut text = format!(
        "apiVersion: {group}{version}\nkind: {}\nmetadata: {{name: x, namespace: ns}}\nspec:\n",
        kind.name()
    );
    for line in spec.trim_matches('\n').lines() {
        text.push_str("  ");
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// Reads the only document of a text.
pub fn read(text: &str) -> Outcome {
    let reading = config::read(&SourceFile::new("a.yaml", text));
    assert_eq!(reading.diagnostics, [], "the test's own document is broken");
    let [document] = reading.documents.as_slice() else { panic!("one document a test, please") };
    let mut diags = Diagnostics::new();
    let draft = match decode(document, &mut diags) {
        Decoded::Accepted(lower) => {
            let mut draft = Draft::default();
            lower.lower(&MeshSettings::default(), &mut draft);
            Some(draft)
        }
        Decoded::Refused => None,
        Decoded::NotYet | Decoded::Foreign => panic!("the kind is not in the table"),
    };
    assert_eq!(draft.is_none(), diags.has_errors(), "a document is refused iff it has errors");
    Outcome { draft, found: diags.into_sorted() }
}

/// What a spec means; it must give no finding at all.
pub fn accepted(kind: &Kind, spec: &str) -> Draft {
    let outcome = read(&document(kind, spec));
    assert_eq!(outcome.found, [], "{spec}");
    outcome.draft.expect("a document without errors is accepted")
}

/// A finding that is expected: place, code, and a part of the message.
pub type Expected<'e> = (&'e str, Code, &'e str);

/// Each spec must give exactly one error, and it must be this one.
pub fn refused(kind: &Kind, cases: &[(&str, Expected<'_>)]) {
    each(kind, Severity::Error, cases);
}

/// Each spec must be accepted with exactly one finding, a warning.
pub fn warned(kind: &Kind, cases: &[(&str, Expected<'_>)]) {
    each(kind, Severity::Warning, cases);
}

/// The spec must give these findings of this severity, and no others of any severity.
pub fn expect(kind: &Kind, spec: &str, severity: Severity, expected: &[Expected<'_>]) {
    if let Some(difference) = difference(kind, spec, severity, expected) {
        panic!("{difference}");
    }
}

/// Tells all cases that fail at once.
fn each(kind: &Kind, severity: Severity, cases: &[(&str, Expected<'_>)]) {
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|(spec, expected)| difference(kind, spec, severity, &[*expected]))
        .collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn difference(
    kind: &Kind,
    spec: &str,
    severity: Severity,
    expected: &[Expected<'_>],
) -> Option<String> {
    let mut found = read(&document(kind, spec)).found;
    if severity == Severity::Error {
        // What is not supported yet is told of refused documents too, and is tested as a warning.
        found.retain(|f| f.code != Code::NotSupported);
    }
    let same = found.len() == expected.len()
        && found.iter().zip(expected).all(|(found, (place, code, fragment))| {
            let at = found.span.as_ref().map(|s| format!("{}:{}", s.start.line, s.start.column));
            at.as_deref() == Some(place)
                && found.code == *code
                && found.severity == severity
                && found.to_string().contains(fragment)
        });
    let lines: Vec<String> = found.iter().map(ToString::to_string).collect();
    (!same).then(|| format!("\n{spec}\nexpected {severity} {expected:?}\nfound {lines:#?}"))
}

//! Which document was this? A tolerant look at the text of a document that cannot be parsed, so
//! that the last good version of the right one can be kept.

use crate::diag::lines;

/// As much of a document's identity as its text still tells; `None` is "could be anything".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialIdentity {
    /// `networking.istio.io/v1`.
    pub api_version: Option<String>,
    /// `VirtualService`.
    pub kind: Option<String>,
    /// The namespace, where the text names one.
    pub namespace: Option<String>,
    /// The name.
    pub name: Option<String>,
}

/// The documents that a text seems to hold: one usually, several where a `---` line was damaged
/// or the text is a `List`. Never empty: a text that tells nothing gives an identity without
/// anything known.
pub(in crate::config) fn identities(text: &str) -> Vec<PartialIdentity> {
    let mut scan = Scan::default();
    for line in lines(text) {
        scan.line(line);
    }
    scan.finish();
    if scan.found.is_empty() {
        scan.found.push(PartialIdentity::default());
    }
    scan.found
}

/// Whether the text may hold what must not be shown. Better to withhold too much: the text is
/// broken, so nothing is certain about it.
pub(in crate::config) fn may_be_secret(text: &str) -> bool {
    ["Secret", "tls.key", "stringData", "PRIVATE KEY"].iter().any(|mark| text.contains(mark))
}

#[derive(Default)]
struct Scan {
    found: Vec<PartialIdentity>,
    current: PartialIdentity,
    /// The column of the keys of the current document.
    base: Option<usize>,
    /// Inside `metadata`: the column of its keys, once one was seen.
    metadata: Option<Option<usize>>,
}

impl Scan {
    fn line(&mut self, line: &str) {
        let Some((column, key, value)) = key_value(line) else { return };
        let base = *self.base.get_or_insert(column);
        if column > base {
            if let Some(inner) = &mut self.metadata
                && *inner.get_or_insert(column) == column
            {
                self.metadata_key(key, value);
            }
            return;
        }
        self.metadata = None;
        match key {
            "apiVersion" => self.top_level(value, |identity| &mut identity.api_version),
            "kind" => self.top_level(value, |identity| &mut identity.kind),
            "metadata" => {
                if self.current.name.is_some() {
                    self.finish();
                }
                self.metadata = Some(None);
                for part in value.trim_matches(['{', '}', ' ', ',']).split(',') {
                    if let Some((_, key, value)) = key_value(part) {
                        self.metadata_key(key, value);
                    }
                }
            }
            // What follows are documents of their own, further in.
            "items" => {
                self.finish();
                self.base = None;
            }
            // An entry of `items` may start with any key.
            _ if column < base => self.base = Some(column),
            _ => {}
        }
    }

    fn top_level(
        &mut self,
        value: &str,
        slot: impl Fn(&mut PartialIdentity) -> &mut Option<String>,
    ) {
        if slot(&mut self.current).is_some() {
            self.finish();
        }
        *slot(&mut self.current) = known(value);
    }

    fn metadata_key(&mut self, key: &str, value: &str) {
        match key {
            // Of a key that is there twice, the first is the one that was meant to be there.
            "name" if self.current.name.is_none() => self.current.name = known(value),
            "namespace" if self.current.namespace.is_none() => {
                self.current.namespace = known(value);
            }
            _ => {}
        }
    }

    fn finish(&mut self) {
        let identity = std::mem::take(&mut self.current);
        self.metadata = None;
        if identity != PartialIdentity::default() {
            self.found.push(identity);
        }
    }
}

fn known(value: &str) -> Option<String> {
    let value = unquote(value);
    (!value.is_empty()).then(|| value.to_owned())
}

/// Column, key and value of a line like `- "kind": Foo, # why`; the column is that of the key.
fn key_value(line: &str) -> Option<(usize, &str, &str)> {
    let content = line.trim_start_matches([' ', '\t', '-', '{', '[', '\u{feff}']);
    let column = line.len() - content.len();
    let (key, value) = content.split_once(':')?;
    let value = value.split(" #").next().unwrap_or(value);
    Some((column, unquote(key), value.trim().trim_end_matches(',')))
}

fn unquote(text: &str) -> &str {
    text.trim().trim_matches(['"', '\'', ','])
}

#[cfg(test)]
mod tests {
    use super::{PartialIdentity, identities};

    fn identity(api: &str, kind: &str, namespace: &str, name: &str) -> PartialIdentity {
        let some = |s: &str| (!s.is_empty()).then(|| s.to_owned());
        PartialIdentity {
            api_version: some(api),
            kind: some(kind),
            namespace: some(namespace),
            name: some(name),
        }
    }

    #[test]
    fn the_usual_head_is_found_in_a_broken_text() {
        let text = "---\n# hi\napiVersion: a/v1\nkind: 'Foo' # x\nmetadata:\n  name: \"x\"\n  \
                    labels:\n    name: no\n  namespace: ns\nspec:\n  ref:\n    kind: Bar\n    \
                    name: other\n  a: b: c\n";
        assert_eq!(identities(text), [identity("a/v1", "Foo", "ns", "x")]);
    }

    #[test]
    fn first_of_two_names_counts() {
        let text = "kind: Foo\nmetadata:\n  name: x\n  namespace: n\n  name: y\n  namespace: m\n";
        assert_eq!(identities(text), [identity("", "Foo", "n", "x")]);
    }

    #[test]
    fn flow_style_and_json_are_understood() {
        let text = "kind: Foo\nmetadata: {name: x, namespace: ns}\nspec: {{\n";
        assert_eq!(identities(text), [identity("", "Foo", "ns", "x")]);
        let text = "{\n  \"apiVersion\": \"a/v1\",\n  \"kind\": \"Foo\",\n  \"metadata\": {\n    \
                    \"name\": \"x\"\n  },\n  \"spec\": {{\n}\n";
        assert_eq!(identities(text), [identity("a/v1", "Foo", "", "x")]);
    }

    #[test]
    fn documents_that_ran_into_each_other_are_told_apart() {
        let text = "kind: Foo\nmetadata:\n  name: x\n--\nkind: Bar\nmetadata:\n  name: y\n";
        assert_eq!(identities(text), [identity("", "Foo", "", "x"), identity("", "Bar", "", "y")]);
    }

    #[test]
    fn items_of_a_list_are_found() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: a/v1\n  kind: Foo\n  \
                    metadata:\n    name: x\n  spec: [\n- metadata:\n    name: y\n  kind: Bar\n";
        assert_eq!(
            identities(text),
            [
                identity("v1", "List", "", ""),
                identity("a/v1", "Foo", "", "x"),
                identity("", "Bar", "", "y"),
            ]
        );
    }

    #[test]
    fn a_text_that_tells_nothing_could_be_anything() {
        assert_eq!(identities("\t{{{"), [PartialIdentity::default()]);
        assert_eq!(identities(""), [PartialIdentity::default()]);
    }
}

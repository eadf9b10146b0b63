//! Edits, and the files of a mesh that they are done to.

use super::documents::{self, CERTIFICATE, KEY, document};
use super::{Document, documents::endpoint};
use pilotfish::config::{SecretFiles, SourceFile};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many files there may be.
const FILES: usize = 3;

/// Mesh settings that reach far.
const MESHES: [&str; 9] = [
    "{}\n",
    "# a comment\n\n{}\n",
    "localityLbSetting: {enabled: false}\n",
    "localityLbSetting: {failoverPriority: [tier, app]}\n\
     defaultTrafficPolicy: {outlierDetection: {consecutive5xxErrors: 2}}\n",
    "localityLbSetting:\n  distribute: [{from: region-0/*, to: {region-1/*: 100}}]\n",
    "defaultServiceExportTo: [\".\"]\ndefaultDestinationRuleExportTo: [\".\"]\n",
    "defaultVirtualServiceExportTo: [\".\"]\nrootNamespace: a\n",
    "outboundTrafficPolicy: {mode: REGISTRY_ONLY}\ntrustDomain: other.example\n",
    "connectTimeout: soon\n",
];

/// One thing that somebody does to the files. Documents are named by position.
#[derive(Debug, Clone)]
pub enum Edit {
    /// Nothing: a save without a change.
    Save,
    Add(Document, usize),
    /// Another body under the same name.
    Change(Index, Document),
    Delete(Index),
    /// To the end of that file.
    Move(Index, usize),
    /// A comment before this line of the document.
    Comment(Index, Index),
    /// Blank lines before the document.
    Space(Index, u8),
    Break(Index, Flaw),
    /// The first that is broken.
    Mend,
    /// Another address, other labels.
    Workload(Index, u8),
    /// Of the STATIC service, one more endpoint or one less.
    Endpoints(Index, u8),
    /// Of a route.
    Weight(Index, u8),
    Mesh(Option<&'static str>),
    Certificates(Option<Certificates>),
}

/// What is wrong with a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It is no YAML.
    Syntax,
    /// Its kind has a slip.
    Kind,
    /// A field has the wrong type.
    Field,
}

/// What is in the directory of certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certificates {
    Whole,
    WithAuthorities,
    WithoutKey,
}

/// Any edit; those that change little come up more often than in life.
pub fn edit() -> impl Strategy<Value = Edit> {
    let flaw = select(vec![Flaw::Syntax, Flaw::Kind, Flaw::Field]);
    let certificates =
        select(vec![Certificates::Whole, Certificates::WithAuthorities, Certificates::WithoutKey]);
    prop_oneof![
        1 => Just(Edit::Save),
        4 => (document(), 0..FILES).prop_map(|(d, file)| Edit::Add(d, file)),
        4 => (any::<Index>(), document()).prop_map(|(at, d)| Edit::Change(at, d)),
        2 => any::<Index>().prop_map(Edit::Delete),
        2 => (any::<Index>(), 0..FILES).prop_map(|(at, file)| Edit::Move(at, file)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(at, line)| Edit::Comment(at, line)),
        2 => (any::<Index>(), 0u8..3).prop_map(|(at, n)| Edit::Space(at, n)),
        2 => (any::<Index>(), flaw).prop_map(|(at, flaw)| Edit::Break(at, flaw)),
        2 => Just(Edit::Mend),
        5 => (any::<Index>(), 0u8..24).prop_map(|(at, n)| Edit::Workload(at, n)),
        4 => (any::<Index>(), 0u8..24).prop_map(|(at, n)| Edit::Endpoints(at, n)),
        2 => (any::<Index>(), 1u8..4).prop_map(|(at, n)| Edit::Weight(at, n)),
        4 => prop::option::of(select(&MESHES[..])).prop_map(Edit::Mesh),
        3 => prop::option::of(certificates).prop_map(Edit::Certificates),
    ]
}

/// A document in its file.
#[derive(Debug, Clone)]
struct Piece {
    document: Document,
    file: usize,
    blank_lines: u8,
    /// Before which lines there are comments.
    comments: BTreeSet<usize>,
    flaw: Option<Flaw>,
}

impl Piece {
    fn new(document: Document, file: usize) -> Piece {
        Piece { document, file, blank_lines: 0, comments: BTreeSet::new(), flaw: None }
    }

    fn text(&self) -> String {
        let mut text = "\n".repeat(self.blank_lines.into());
        let whole = self.document.text();
        let mut lines: Vec<&str> = whole.lines().collect();
        if self.flaw == Some(Flaw::Syntax) {
            lines.pop();
        }
        for (number, line) in lines.iter().enumerate() {
            if self.comments.contains(&number) {
                text.push_str("# more about this\n");
            }
            match (self.flaw, line.trim_start().strip_prefix("\"kind\": \"")) {
                (Some(Flaw::Kind), Some(kind)) => text.push_str(&format!("  \"kind\": \"x{kind}")),
                (Some(Flaw::Field), Some(_)) => {
                    text.push_str(line);
                    text.push_str("\n  \"metadata\": 7,");
                }
                _ => text.push_str(line),
            }
            text.push('\n');
        }
        text
    }
}

/// The files of a mesh.
#[derive(Debug, Clone, Default)]
pub struct Mesh {
    pieces: Vec<Piece>,
    mesh: Option<&'static str>,
    certificates: Option<Certificates>,
}

impl Mesh {
    /// These documents, dealt out to files.
    pub fn new(documents: Vec<Document>) -> Mesh {
        let deal = |(i, document)| Piece::new(document, i % FILES);
        Mesh { pieces: documents.into_iter().enumerate().map(deal).collect(), ..Mesh::default() }
    }

    /// Does it; what there is nothing to do to stays as it is.
    pub fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Save => {}
            Edit::Add(document, file) => self.pieces.push(Piece::new(document, file)),
            Edit::Change(at, document) => {
                if let Some(piece) = self.any(at, |_| true) {
                    let Document { name, namespace, .. } = piece.document;
                    piece.document = Document { name, namespace, ..document };
                }
            }
            Edit::Delete(at) => {
                if !self.pieces.is_empty() {
                    self.pieces.remove(at.index(self.pieces.len()));
                }
            }
            Edit::Move(at, file) => {
                if !self.pieces.is_empty() {
                    let piece = self.pieces.remove(at.index(self.pieces.len()));
                    self.pieces.push(Piece { file, ..piece });
                }
            }
            Edit::Comment(at, line) => {
                if let Some(piece) = self.any(at, |_| true) {
                    piece.comments.insert(line.index(piece.document.text().lines().count()));
                }
            }
            Edit::Space(at, lines) => {
                if let Some(piece) = self.any(at, |_| true) {
                    piece.blank_lines = lines;
                }
            }
            Edit::Break(at, flaw) => {
                if let Some(piece) = self.any(at, |_| true) {
                    piece.flaw = Some(flaw);
                }
            }
            Edit::Mend => {
                if let Some(piece) = self.pieces.iter_mut().find(|piece| piece.flaw.is_some()) {
                    piece.flaw = None;
                }
            }
            Edit::Workload(at, n) => {
                let of_workloads = |piece: &Piece| piece.document.kind == "WorkloadEntry";
                if let Some(piece) = self.any(at, of_workloads) {
                    piece.document.body = json!({"spec": endpoint(n)});
                }
            }
            Edit::Endpoints(at, n) => self.endpoints(at, n),
            Edit::Weight(at, weight) => {
                let has_route = |piece: &Piece| route(&piece.document.body).is_some();
                if let Some(piece) = self.any(at, has_route) {
                    piece.document.body["spec"]["http"][0]["route"][0]["weight"] = weight.into();
                }
            }
            Edit::Mesh(text) => self.mesh = text,
            Edit::Certificates(certificates) => self.certificates = certificates,
        }
    }

    fn endpoints(&mut self, at: Index, n: u8) {
        let has_endpoints = |piece: &Piece| piece.document.body["spec"]["endpoints"].is_array();
        let Some(piece) = self.any(at, has_endpoints) else { return };
        if let Some(endpoints) = piece.document.body["spec"]["endpoints"].as_array_mut() {
            if endpoints.len() > 3 {
                endpoints.remove(0);
            } else {
                endpoints.push(endpoint(n));
            }
        }
    }

    fn any(&mut self, at: Index, fits: impl Fn(&Piece) -> bool) -> Option<&mut Piece> {
        let fitting: Vec<usize> =
            (0..self.pieces.len()).filter(|&i| fits(&self.pieces[i])).collect();
        if fitting.is_empty() { None } else { self.pieces.get_mut(*at.get(&fitting)) }
    }

    /// Every file that has something in it.
    pub fn files(&self) -> BTreeMap<Arc<str>, SourceFile> {
        let mut texts: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        for piece in &self.pieces {
            texts.entry(piece.file).or_default().push(piece.text());
        }
        let named = texts.into_iter().map(|(number, texts)| {
            let path: Arc<str> = format!("config/{number}.yaml").into();
            (path.clone(), SourceFile::new(path, texts.join("---\n")))
        });
        named.collect()
    }

    /// The mesh configuration.
    pub fn settings(&self) -> Option<SourceFile> {
        self.mesh.map(|text| SourceFile::new("config/mesh.yaml", text))
    }

    /// The directory of certificates.
    pub fn certificates(&self) -> Option<SecretFiles> {
        let parts: &[(&str, &str)] = match self.certificates? {
            Certificates::Whole => &[("tls.crt", CERTIFICATE), ("tls.key", KEY)],
            Certificates::WithAuthorities => {
                &[("tls.crt", CERTIFICATE), ("tls.key", KEY), ("ca.crt", CERTIFICATE)]
            }
            Certificates::WithoutKey => &[("tls.crt", CERTIFICATE)],
        };
        let part = |(name, text): &(&str, &str)| ((*name).to_owned(), text.as_bytes().into());
        Some(SecretFiles {
            name: "cred".into(),
            path: "secrets/cred".into(),
            parts: parts.iter().map(part).collect(),
        })
    }
}

fn route(body: &Value) -> Option<&Value> {
    body.pointer("/spec/http/0/route/0/weight")
}

/// A mesh and what happens to it.
pub fn life(steps: usize) -> impl Strategy<Value = (Mesh, Vec<Edit>)> {
    let documents = documents::documents(6..16);
    let edits = prop::collection::vec(edit(), 1..=steps);
    (documents.prop_map(Mesh::new), edits)
}

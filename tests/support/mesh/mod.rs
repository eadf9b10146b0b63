//! Random meshes: documents, proxies, and the edits that a mesh lives through.
//!
//! Everything is made of few names, so that things meet: documents claim the same hosts and ports,
//! select the same workloads, name each other and what is not there. All that looks at a proxy is
//! among them.

pub mod documents;
pub mod edits;
pub mod proxies;

use serde_json::{Value, json};

/// Where documents are; the last is the root namespace unless the mesh's settings say otherwise.
pub const NAMESPACES: [&str; 4] = ["default", "a", "b", "istio-system"];

/// The names of documents and of the workloads that proxies run beside.
pub const NAMES: [&str; 5] = ["d0", "d1", "d2", "d3", "edge"];

/// One document.
#[derive(Debug, Clone)]
pub struct Document {
    pub kind: &'static str,
    pub namespace: &'static str,
    pub name: &'static str,
    /// The day of its creation, where it tells one.
    pub created: Option<u8>,
    /// Its fields beside kind and metadata.
    pub body: Value,
}

impl Document {
    /// The text over several lines.
    pub fn text(&self) -> String {
        let mut metadata = json!({"name": self.name, "namespace": self.namespace});
        if let Some(day) = self.created {
            metadata["creationTimestamp"] = format!("2024-01-0{day}T00:00:00Z").into();
        }
        let api = if self.kind == "Secret" { "v1" } else { "networking.istio.io/v1" };
        let mut document = json!({"apiVersion": api, "kind": self.kind, "metadata": metadata});
        let fields = self.body.as_object().into_iter().flatten();
        for (name, value) in fields {
            document[name] = value.clone();
        }
        serde_json::to_string_pretty(&document).expect("a value can be written")
    }
}

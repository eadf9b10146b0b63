//! A golden case as it lies in its directory: `tests/golden/<area>/<case>/`.

use pilotfish::settings::NodeArgs;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// One directory below `tests/golden/<area>`.
#[derive(Debug, Clone)]
pub struct Case {
    /// `<area>/<case>`.
    pub name: String,
    /// The directory.
    pub dir: PathBuf,
    /// The directory of its documents.
    pub config: PathBuf,
    /// What the documents are for: a case that shows an example to users must have no errors.
    pub origin: Origin,
    /// `secrets/`, used like `--secrets-dir`.
    pub secrets: Option<PathBuf>,
    /// Who asks.
    pub proxies: Vec<ProxySpec>,
}

/// Where the documents of a case are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the case itself.
    Own,
    /// In `examples/configs`, which the file `example` of the case names.
    Example,
}

/// An entry of `proxies.yaml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxySpec {
    /// The name of its directory below `expected`.
    pub name: String,
    /// `node.id`.
    pub id: String,
    /// `node.cluster`.
    #[serde(default)]
    pub cluster: String,
    /// `node.metadata`.
    #[serde(default)]
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// `region/zone/subzone`.
    #[serde(default)]
    pub locality: String,
}

impl ProxySpec {
    /// The node as the commands know it.
    pub fn node(&self) -> NodeArgs {
        NodeArgs {
            id: self.id.clone(),
            cluster: self.cluster.clone(),
            metadata: self.metadata.clone(),
            locality: self.locality.clone(),
        }
    }
}

impl Case {
    /// Reads a case.
    pub fn load(dir: &Path) -> Result<Case, String> {
        let label =
            |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let area = dir.parent().map(label).unwrap_or_default();
        let name = format!("{area}/{}", label(dir));
        let about = read(&dir.join("case.md"))?;
        if about.trim().is_empty() {
            return Err(format!("{name}: case.md must say what the case pins down and why"));
        }
        let (config, origin) = match fs::read_to_string(dir.join("example")) {
            Ok(example) => (examples().join(example.trim()), Origin::Example),
            Err(_) => (dir.join("config"), Origin::Own),
        };
        if !config.is_dir() {
            return Err(format!("{name}: {} is not a directory", config.display()));
        }
        let proxies: Vec<ProxySpec> = yaml(&dir.join("proxies.yaml"))?;
        let names: BTreeSet<&str> = proxies.iter().map(|p| p.name.as_str()).collect();
        if names.len() != proxies.len() {
            return Err(format!("{name}: proxies.yaml has a name twice"));
        }
        let secrets = Some(dir.join("secrets")).filter(|dir| dir.is_dir());
        Ok(Case { name, dir: dir.to_path_buf(), config, origin, secrets, proxies })
    }

    /// Where the expected files are.
    pub fn expected(&self) -> PathBuf {
        self.dir.join("expected")
    }
}

/// Every case below `tests/golden`, by name. A case that cannot be read is an error of its own.
pub fn all() -> Vec<(String, Result<Case, String>)> {
    let mut cases = Vec::new();
    for area in directories(&golden()) {
        for dir in directories(&area) {
            let name = dir.strip_prefix(golden()).unwrap_or(&dir).to_string_lossy().into_owned();
            cases.push((name, Case::load(&dir)));
        }
    }
    cases
}

/// `tests/golden`.
pub fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// `examples/configs`.
pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/configs")
}

/// The directories in a directory, sorted.
pub fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_dir()).collect();
    found.sort();
    found
}

/// A file's text.
pub fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// A YAML file of ours.
pub fn yaml<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, String> {
    serde_yaml::from_str(&read(path)?).map_err(|error| format!("{}: {error}", path.display()))
}

//! One look at the disk.

use crate::config::{SecretFiles, SourceFile};
use crate::diag::{Code, Diagnostic};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Larger files are refused: configuration of this size is a mistake.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How often a file that changes while it is read is read again before it is left for later.
const READ_TRIES: usize = 3;
/// A file that has just become empty is probably being rewritten; its old content counts this long.
const EMPTY_GRACE: Duration = Duration::from_secs(1);
/// The parts of a secret directory.
const SECRET_PARTS: [&str; 4] = ["tls.crt", "tls.key", "ca.crt", "ca.crl"];
/// The mesh configuration of a directory that has no other.
const MESH_FILE: &str = "mesh.yaml";

/// What is looked at.
#[derive(Debug, Clone, Default)]
pub struct Roots {
    /// Configuration directories (or single files), in order.
    pub config: Vec<PathBuf>,
    /// The mesh configuration; without it `mesh.yaml` in the first configuration directory.
    pub mesh: Option<PathBuf>,
    /// The directory of secret directories.
    pub secrets: Option<PathBuf>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Configuration files by label: the root as it was given, then the path below it.
    pub config: BTreeMap<Arc<str>, SourceFile>,
    /// The mesh configuration.
    pub mesh: Option<SourceFile>,
    /// Secret directories by name.
    pub secrets: BTreeMap<Arc<str>, SecretFiles>,
    /// What could not be read. What was read there before still counts.
    pub problems: Vec<Diagnostic>,
    /// Whether every root could be read.
    pub complete: bool,
    /// The directories, links resolved, that decide what a look finds, and which of their entries
    /// do.
    pub directories: BTreeMap<PathBuf, Interest>,
    /// Whether something was caught in the middle of a change and must be looked at again soon.
    pub unsettled: bool,
}

/// Which entries of a directory matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interest {
    /// All.
    Everything,
    /// Only these: a root, or a step of the way that a link leads. What else happens in the
    /// directory is none of our business, and it may be a busy place.
    Names(BTreeSet<OsString>),
}

impl Interest {
    /// Whether an entry of this name matters.
    pub fn includes(&self, name: &OsStr) -> bool {
        match self {
            Interest::Everything => true,
            Interest::Names(names) => names.contains(name),
        }
    }
}

/// Looks at the disk, and remembers what it read so that unchanged files are not read again.
#[derive(Debug)]
pub struct Scanner {
    roots: Roots,
    known: BTreeMap<PathBuf, Known>,
}

/// A file as it was read last.
#[derive(Debug, Clone)]
struct Known {
    stat: Stat,
    bytes: Arc<[u8]>,
    /// The same as text, made once.
    text: Option<Arc<str>>,
    /// Since when it has been empty after having had content.
    emptied: Option<Instant>,
}

/// What changes when a file does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stat {
    fn of(metadata: &Metadata) -> Stat {
        Stat {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// One walk over the roots.
struct Walk<'s> {
    known: &'s BTreeMap<PathBuf, Known>,
    now: Instant,
    found: Found,
    read: BTreeMap<PathBuf, Known>,
    /// Directories already walked, so that symlinks cannot lead in circles.
    visited: HashSet<(u64, u64)>,
    /// The mesh configuration, which is no document wherever it lies.
    mesh: Option<(u64, u64)>,
}

impl Scanner {
    /// Nothing is known yet.
    pub fn new(roots: Roots) -> Scanner {
        Scanner { roots, known: BTreeMap::new() }
    }

    /// Looks. `now` is for files that have just become empty.
    pub fn scan(&mut self, now: Instant) -> Found {
        let mut walk = Walk {
            known: &self.known,
            now,
            found: Found { complete: true, ..Found::default() },
            read: BTreeMap::new(),
            visited: HashSet::new(),
            mesh: self.roots.mesh.as_ref().and_then(|path| identity(path)),
        };
        for root in &self.roots.config {
            walk.config_root(root);
        }
        let default_mesh = self.roots.config.first().map(|dir| dir.join(MESH_FILE));
        match (&self.roots.mesh, default_mesh) {
            (Some(path), _) => walk.found.mesh = walk.named_file(path),
            (None, Some(path)) => walk.found.mesh = walk.found.config.remove(&label(&path)),
            (None, None) => {}
        }
        if let Some(root) = &self.roots.secrets {
            walk.secrets_root(root);
        }
        let Walk { found, read, .. } = walk;
        self.known = read;
        found
    }
}

impl Walk<'_> {
    fn config_root(&mut self, root: &Path) {
        self.watch_around(root);
        match fs::metadata(root) {
            Ok(metadata) if metadata.is_dir() => match fs::read_dir(root) {
                Ok(_) => self.directory(root, &metadata),
                Err(error) => self.unreadable_root(root, &error),
            },
            // A file that is named outright is read whatever its name is.
            Ok(metadata) => self.config_file(root, &metadata),
            Err(error) => self.unreadable_root(root, &error),
        }
    }

    fn unreadable_root(&mut self, root: &Path, error: &io::Error) {
        self.found.complete = false;
        self.unreadable(root, error);
    }

    fn directory(&mut self, path: &Path, metadata: &Metadata) {
        if !self.visited.insert((metadata.dev(), metadata.ino())) {
            return;
        }
        self.watch_entries(path);
        // What an entry is mostly comes with its name, which saves asking for each of many files.
        let with_type = |entry: io::Result<DirEntry>| {
            entry.map(|entry| (entry.path(), entry.file_type().is_ok_and(|of| of.is_symlink())))
        };
        let entries: io::Result<Vec<(PathBuf, bool)>> =
            fs::read_dir(path).and_then(|list| list.map(with_type).collect());
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(error) => return self.unreadable(path, &error),
        };
        entries.sort();
        for (entry, is_link) in entries.iter().filter(|(path, _)| !is_hidden(path)) {
            if *is_link {
                self.watch_target(entry);
            }
            match fs::metadata(entry) {
                Ok(metadata) if metadata.is_dir() => self.directory(entry, &metadata),
                Ok(metadata) if metadata.is_file() && is_config(entry) => {
                    self.config_file(entry, &metadata);
                }
                Ok(_) => {}
                // Gone since the directory was listed; a dangling link is told.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    if entry.is_symlink() && is_config(entry) {
                        self.unreadable(entry, &error);
                    }
                }
                Err(error) => self.unreadable(entry, &error),
            }
        }
    }

    fn config_file(&mut self, path: &Path, metadata: &Metadata) {
        if self.mesh == Some((metadata.dev(), metadata.ino())) {
            return;
        }
        if let Some(source) = self.text_file(path, metadata) {
            self.found.config.insert(source.path.clone(), source);
        }
    }

    fn text_file(&mut self, path: &Path, metadata: &Metadata) -> Option<SourceFile> {
        let mut file = self.read(path, metadata)?;
        if file.text.is_none() {
            match std::str::from_utf8(&file.bytes) {
                Ok(text) => file.text = Some(Arc::from(text)),
                Err(error) => {
                    let message =
                        format!("{}: not UTF-8 at byte {}", path.display(), error.valid_up_to());
                    self.problem(message, "save the file as UTF-8");
                    return self.keep(path);
                }
            }
        }
        let text = file.text.clone()?;
        self.read.insert(path.to_path_buf(), file);
        Some(SourceFile { path: label(path), text })
    }

    /// A file outside the walk, the mesh configuration.
    fn named_file(&mut self, path: &Path) -> Option<SourceFile> {
        self.watch_around(path);
        match fs::metadata(path) {
            Ok(metadata) => self.text_file(path, &metadata),
            Err(error) => {
                self.unreadable_root(path, &error);
                self.keep(path)
            }
        }
    }

    fn secrets_root(&mut self, root: &Path) {
        self.watch_around(root);
        let entries: io::Result<Vec<PathBuf>> =
            fs::read_dir(root).and_then(|list| list.map(|e| e.map(|e| e.path())).collect());
        let entries = match entries {
            Ok(mut entries) => {
                entries.sort();
                entries
            }
            Err(error) => {
                self.found.complete = false;
                self.report_unreadable(root, &error);
                let known = self.known.keys().filter(|path| path.starts_with(root));
                let parents: BTreeSet<PathBuf> =
                    known.filter_map(|path| path.parent().map(Path::to_path_buf)).collect();
                parents.into_iter().collect()
            }
        };
        self.watch_entries(root);
        for directory in entries.iter().filter(|e| !is_hidden(e)) {
            self.secret_directory(directory);
        }
    }

    fn secret_directory(&mut self, directory: &Path) {
        let Some(name) = directory.file_name().and_then(|n| n.to_str()) else { return };
        if !directory.is_dir() && !self.known.keys().any(|path| path.starts_with(directory)) {
            return;
        }
        self.watch_target(directory);
        self.watch_entries(directory);
        let mut parts = BTreeMap::new();
        for part in SECRET_PARTS {
            let path = directory.join(part);
            if path.is_symlink() {
                self.watch_target(&path);
            }
            let file = match fs::metadata(&path) {
                Ok(metadata) => self.read(&path, &metadata),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => {
                    self.report_unreadable(&path, &error);
                    self.known.get(&path).cloned()
                }
            };
            if let Some(file) = file {
                parts.insert(part.to_owned(), file.bytes.clone());
                self.read.insert(path, file);
            }
        }
        if !parts.is_empty() {
            let name: Arc<str> = Arc::from(name);
            let files = SecretFiles { name: name.clone(), path: label(directory), parts };
            self.found.secrets.insert(name, files);
        }
    }

    /// Reads a file. When it has not changed, cannot be read, or is caught in the middle of a
    /// change, gives what is known of it. `None` when it is to be left out.
    fn read(&mut self, path: &Path, metadata: &Metadata) -> Option<Known> {
        let known = self.known.get(path);
        let stat = Stat::of(metadata);
        if let Some(known) = known.filter(|k| k.stat == stat && k.emptied.is_none()) {
            return Some(known.clone());
        }
        if stat.size > MAX_FILE_BYTES {
            let message = format!("{}: larger than {MAX_FILE_BYTES} bytes", path.display());
            self.problem(message, "split the file");
            return known.cloned();
        }
        match read_settled(path) {
            Ok(Some((stat, bytes))) => {
                let mut fresh = Known { stat, bytes: bytes.into(), text: None, emptied: None };
                if let Some(known) = known {
                    if fresh.bytes == known.bytes {
                        fresh = Known { stat, emptied: None, ..known.clone() };
                    } else if fresh.bytes.is_empty() {
                        let since = known.emptied.unwrap_or(self.now);
                        if self.now.duration_since(since) < EMPTY_GRACE {
                            self.found.unsettled = true;
                            return Some(Known { emptied: Some(since), ..known.clone() });
                        }
                    }
                }
                Some(fresh)
            }
            Ok(None) => {
                self.found.unsettled = true;
                known.cloned()
            }
            // Gone between the listing and the reading: the next look will tell.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.found.unsettled = true;
                known.cloned()
            }
            Err(error) => {
                self.report_unreadable(path, &error);
                known.cloned()
            }
        }
    }

    /// A path that cannot be read keeps what was read below it.
    fn unreadable(&mut self, path: &Path, error: &io::Error) {
        self.report_unreadable(path, error);
        let below: Vec<PathBuf> =
            self.known.keys().filter(|known| known.starts_with(path)).cloned().collect();
        for path in below {
            if let Some(source) = self.keep(&path) {
                self.found.config.insert(source.path.clone(), source);
            }
        }
    }

    fn keep(&mut self, path: &Path) -> Option<SourceFile> {
        let known = self.known.get(path)?.clone();
        let text = known.text.clone()?;
        self.read.insert(path.to_path_buf(), known);
        Some(SourceFile { path: label(path), text })
    }

    fn report_unreadable(&mut self, path: &Path, error: &io::Error) {
        self.problem(
            format!("{}: {error}", path.display()),
            "make it readable; what was read there before, if anything, stays in force",
        );
    }

    fn problem(&mut self, message: String, help: &str) {
        self.found.problems.push(Diagnostic::new(Code::FileUnreadable, message).help(help));
    }

    /// Every entry of this directory matters.
    fn watch_entries(&mut self, directory: &Path) {
        if let Ok(real) = fs::canonicalize(directory) {
            self.found.directories.insert(real, Interest::Everything);
        }
    }

    /// This entry of a directory matters.
    fn watch_entry(&mut self, directory: &Path, name: &OsStr) {
        let Ok(real) = fs::canonicalize(directory) else { return };
        let none = || Interest::Names(BTreeSet::new());
        match self.found.directories.entry(real).or_insert_with(none) {
            Interest::Everything => {}
            Interest::Names(names) => {
                names.insert(name.to_owned());
            }
        }
    }

    /// A root can be replaced as a whole, so the directory that it is in is watched too. When the
    /// root is yet to come, that is the nearest one that is there. When it is a symlink, the same
    /// goes for its target.
    fn watch_around(&mut self, root: &Path) {
        let absolute = std::path::absolute(root).unwrap_or_else(|_| root.to_path_buf());
        let named = absolute.ancestors().zip(absolute.ancestors().skip(1));
        for (entry, parent) in named {
            if let Some(name) = entry.file_name() {
                self.watch_entry(parent, name);
            }
            if parent.exists() {
                break;
            }
        }
        self.watch_target(&absolute);
    }

    /// A link may lead to another link: each step is an entry of some directory.
    fn watch_target(&mut self, link: &Path) {
        let mut at = link.to_path_buf();
        for _ in 0..32 {
            let Ok(target) = fs::read_link(&at) else { break };
            let base = at.parent().unwrap_or(Path::new("/"));
            at = base.join(target);
            if let (Some(parent), Some(name)) = (at.parent(), at.file_name()) {
                self.watch_entry(parent, name);
            }
        }
        // Links in the middle of the path are resolved in one go.
        if let Ok(real) = fs::canonicalize(link)
            && let (Some(parent), Some(name)) = (real.parent(), real.file_name())
        {
            self.watch_entry(parent, name);
        }
    }
}

/// Reads a file, again when it has changed meanwhile. `None` when it keeps changing.
fn read_settled(path: &Path) -> io::Result<Option<(Stat, Vec<u8>)>> {
    for _ in 0..READ_TRIES {
        let before = Stat::of(&fs::metadata(path)?);
        let bytes = fs::read(path)?;
        let after = Stat::of(&fs::metadata(path)?);
        if before == after && bytes.len() as u64 == after.size {
            return Ok(Some((after, bytes)));
        }
    }
    Ok(None)
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|m| (m.dev(), m.ino()))
}

/// Dotfiles (also `..data` of Kubernetes mounts) and the lock files of editors.
fn is_hidden(path: &Path) -> bool {
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    name.starts_with('.') || name.starts_with('#') || name.ends_with('~')
}

fn is_config(path: &Path) -> bool {
    let extension = path.extension().and_then(|e| e.to_str()).unwrap_or_default();
    ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
}

fn label(path: &Path) -> Arc<str> {
    Arc::from(path.to_string_lossy().replace('\\', "/"))
}

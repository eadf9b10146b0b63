//! The source as a tree of modules, as the compiler finds it: from `lib.rs` and `main.rs` along
//! `mod` declarations. It knows what a name means where it is written: relative paths, imports,
//! renames and re-exports are followed.

use super::scan::{self, File, Scope, What};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// A path from the crate's root; empty for the root itself.
pub type ModulePath = Vec<String>;

/// How many imports of imports are followed. More than there can be, and circles end.
const DEEPEST: usize = 16;

/// The source files by their path below `src`.
#[derive(Clone, Default)]
pub struct Sources {
    pub texts: BTreeMap<String, String>,
    parsed: BTreeMap<String, Arc<File>>,
}

impl Sources {
    /// What is on the disk; read once.
    pub fn on_disk() -> &'static Sources {
        static ON_DISK: LazyLock<Sources> = LazyLock::new(Sources::read);
        &ON_DISK
    }

    fn read() -> Sources {
        let mut sources = Sources::default();
        sources.collect(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "");
        assert!(sources.texts.len() > 100, "src has only {} files", sources.texts.len());
        sources
    }

    fn collect(&mut self, folder: &Path, below: &str) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            if entry.path().is_dir() {
                self.collect(&entry.path(), &format!("{name}/"));
            } else if name.ends_with(".rs") {
                self.put(&name, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }

    /// Adds a file or replaces it.
    pub fn put(&mut self, name: &str, text: String) {
        let file = scan::file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        self.parsed.insert(name.to_owned(), Arc::new(file));
        self.texts.insert(name.to_owned(), text);
    }
}

/// One module of production code.
struct Module {
    file: String,
    parsed: Arc<File>,
    scope: usize,
}

impl Module {
    fn scope(&self) -> &Scope {
        &self.parsed.scopes[self.scope]
    }
}

/// The modules of production code.
pub struct Tree {
    modules: BTreeMap<ModulePath, Module>,
    /// `main.rs` is a crate of its own.
    main: Option<Module>,
    /// Files of production code and of tests.
    production: BTreeSet<String>,
    tests: BTreeSet<String>,
    problems: Vec<String>,
}

/// Something that a module mentions.
pub struct Reference<'a> {
    /// Where: none for `main.rs`.
    pub module: Option<&'a ModulePath>,
    pub file: &'a str,
    pub line: usize,
    pub what: Referred<'a>,
}

pub enum Referred<'a> {
    /// Everything that a path may mean, `crate` first for what is ours, and whether a glob
    /// follows.
    Path {
        written: String,
        meanings: BTreeSet<Vec<String>>,
        glob: bool,
    },
    /// See [`What`].
    Word(&'a str),
    Method(&'a str),
    Macro(&'a str),
}

impl Tree {
    pub fn of(sources: &Sources) -> Tree {
        let mut tree = Tree {
            modules: BTreeMap::new(),
            main: None,
            production: BTreeSet::new(),
            tests: BTreeSet::new(),
            problems: Vec::new(),
        };
        tree.enter(sources, "lib.rs", Vec::new(), false);
        if let Some(parsed) = sources.parsed.get("main.rs") {
            tree.production.insert("main.rs".to_owned());
            let file = "main.rs".to_owned();
            tree.main = Some(Module { file, parsed: parsed.clone(), scope: 0 });
            if !parsed.children.is_empty() || parsed.scopes.len() > 1 {
                tree.problems.push("main.rs: has modules; they belong into the library".to_owned());
            }
        }
        for file in sources.texts.keys() {
            if !tree.production.contains(file) && !tree.tests.contains(file) {
                tree.problems.push(format!("{file}: no `mod` leads to this file"));
            }
        }
        tree
    }

    fn enter(&mut self, sources: &Sources, file: &str, path: ModulePath, test: bool) {
        let Some(parsed) = sources.parsed.get(file) else {
            self.problems.push(format!("{file}: is declared and not there"));
            return;
        };
        let files = if test { &mut self.tests } else { &mut self.production };
        files.insert(file.to_owned());
        if !test {
            for (scope, written) in parsed.scopes.iter().enumerate() {
                let path = [path.clone(), written.inline.clone()].concat();
                let module = Module { file: file.to_owned(), parsed: parsed.clone(), scope };
                self.modules.insert(path, module);
            }
        }
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
        let own = match name {
            "lib.rs" | "mod.rs" => folder.to_owned(),
            _ => joined(folder, name.trim_end_matches(".rs")),
        };
        for child in &parsed.children {
            let below = child.inline.iter().fold(own.clone(), |at, part| joined(&at, part));
            let candidates = match &child.path {
                Some(path) => vec![joined(folder, path)],
                None => vec![
                    joined(&below, &format!("{}.rs", child.name)),
                    joined(&below, &format!("{}/mod.rs", child.name)),
                ],
            };
            let there = candidates.iter().find(|c| sources.parsed.contains_key(*c));
            let mut path = [path.clone(), child.inline.clone()].concat();
            path.push(child.name.clone());
            self.enter(sources, there.unwrap_or(&candidates[0]), path, test || child.test);
        }
    }

    /// What is wrong with the tree itself.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Whether a path is a module of production code.
    pub fn has(&self, path: &[String]) -> bool {
        self.modules.contains_key(path)
    }

    /// All modules of production code.
    pub fn modules(&self) -> impl Iterator<Item = &ModulePath> {
        self.modules.keys()
    }

    /// Everything that production code mentions.
    pub fn references(&self) -> Vec<Reference<'_>> {
        let library = self.modules.iter().map(|(path, module)| (Some(path), module));
        let main = self.main.iter().map(|module| (None, module));
        library.chain(main).flat_map(|(path, module)| self.references_of(path, module)).collect()
    }

    fn references_of<'a>(
        &'a self,
        path: Option<&'a ModulePath>,
        module: &'a Module,
    ) -> Vec<Reference<'a>> {
        let root = Vec::new();
        let at = path.unwrap_or(&root);
        let referred = |line, what| Reference { module: path, file: &module.file, line, what };
        let path_of = |written: &[String], glob| {
            let mut meanings = BTreeSet::new();
            self.resolve(at, written, &mut meanings, 0);
            Referred::Path { written: written.join("::"), meanings, glob }
        };
        let mut all = Vec::new();
        for import in &module.scope().imports {
            all.push(referred(import.line, path_of(&import.path, import.name.is_none())));
            let words = import.path.iter().map(|w| referred(import.line, Referred::Word(w)));
            all.extend(words);
        }
        for mention in &module.scope().mentions {
            let what = match &mention.what {
                What::Path(written) => path_of(written, false),
                What::Word(word) => Referred::Word(word),
                What::Method(name) => Referred::Method(name),
                What::Macro(name) => Referred::Macro(name),
            };
            all.push(referred(mention.line, what));
        }
        all
    }

    /// Everything that a path means in a module: itself from the root, and what it leads to
    /// through imports, renames and re-exports.
    pub fn resolve(
        &self,
        module: &[String],
        path: &[String],
        meanings: &mut BTreeSet<Vec<String>>,
        depth: usize,
    ) {
        let Some((first, rest)) = path.split_first() else { return };
        match first.as_str() {
            "::" => {
                meanings.insert(rest.to_vec());
            }
            // The binary calls the library by its name.
            "crate" | "pilotfish" => self.absolute(rest, meanings, depth),
            "self" => self.absolute(&[module, rest].concat(), meanings, depth),
            "super" => {
                let mut at = &module[..module.len().saturating_sub(1)];
                let mut rest = rest;
                while let Some(("super", more)) = rest.split_first().map(|(f, m)| (f.as_str(), m)) {
                    at = &at[..at.len().saturating_sub(1)];
                    rest = more;
                }
                self.absolute(&[at, rest].concat(), meanings, depth);
            }
            _ => {
                let found = self.look_up(module, first, depth);
                if found.is_empty() {
                    meanings.insert(path.to_vec());
                }
                for target in found {
                    self.follow(&[&target, rest].concat(), meanings, depth);
                }
            }
        }
    }

    fn follow(&self, path: &[String], meanings: &mut BTreeSet<Vec<String>>, depth: usize) {
        match path.split_first() {
            Some((first, rest)) if first == "crate" => self.absolute(rest, meanings, depth),
            _ => {
                meanings.insert(path.to_vec());
            }
        }
    }

    /// A path from the root. Where it passes a name that a module only imports, it goes on there.
    fn absolute(&self, path: &[String], meanings: &mut BTreeSet<Vec<String>>, depth: usize) {
        let whole = [&["crate".to_owned()], path].concat();
        if !meanings.insert(whole) || depth > DEEPEST {
            return;
        }
        for end in 0..path.len() {
            if self.has(&path[..=end]) {
                continue;
            }
            for target in self.look_up(&path[..end], &path[end], depth) {
                self.follow(&[&target, &path[end + 1..]].concat(), meanings, depth + 1);
            }
            return;
        }
    }

    /// What a single name means in a module, from the root. Nothing for what is defined there.
    fn look_up(&self, module: &[String], name: &str, depth: usize) -> Vec<Vec<String>> {
        let below = [module, &[name.to_owned()]].concat();
        if self.has(&below) {
            return vec![[&["crate".to_owned()], &below[..]].concat()];
        }
        let Some(here) = self.modules.get(module).filter(|_| depth <= DEEPEST) else {
            return Vec::new();
        };
        let mut found = BTreeSet::new();
        let imports = &here.scope().imports;
        for import in imports.iter().filter(|i| i.name.as_deref() == Some(name)) {
            if import.path == [name] {
                // `use tokio;`
                found.insert(import.path.clone());
            } else {
                self.resolve(module, &import.path, &mut found, depth + 1);
            }
        }
        if found.is_empty() {
            for glob in imports.iter().filter(|i| i.name.is_none()) {
                let mut targets = BTreeSet::new();
                self.resolve(module, &glob.path, &mut targets, depth + 1);
                for target in targets.iter().filter(|t| t.first().is_some_and(|f| f == "crate")) {
                    found.extend(self.look_up(&target[1..], name, depth + 1));
                }
            }
        }
        found.into_iter().collect()
    }
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

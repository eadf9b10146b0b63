//! The shape of the source, checked: who may use whom, what the core may not touch, and how long
//! files may be. ARCHITECTURE.md has the reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Which modules of ours a module may use, beside itself.
const ALLOWED: &[(&str, &[&str])] = &[
    ("diag", &[]),
    ("xds", &[]),
    ("config", &["diag"]),
    ("model", &["diag"]),
    ("kinds", &["config", "model", "diag"]),
    ("compile", &["kinds", "config", "model", "diag"]),
    ("proxy", &["model", "diag"]),
    ("generate", &["model", "proxy", "xds", "diag"]),
    ("ads", &["xds", "diag"]),
    ("watch", &["config", "diag"]),
    ("push", &["model", "proxy", "generate", "xds", "diag"]),
    ("server", &["ads", "push", "proxy", "model", "xds", "diag"]),
    ("settings", &["model", "proxy"]),
    ("telemetry", &["settings"]),
    ("admin", &["ads", "push", "server", "generate", "model", "proxy", "xds", "diag", "telemetry"]),
    ("commands", &ALL),
    ("app", &ALL),
    ("lib", &[]),
    ("main", &["commands", "settings"]),
];

const ALL: [&str; 17] = [
    "admin",
    "ads",
    "app",
    "commands",
    "compile",
    "config",
    "diag",
    "generate",
    "kinds",
    "model",
    "proxy",
    "push",
    "server",
    "settings",
    "telemetry",
    "watch",
    "xds",
];

/// The functional core: values in, values out.
const CORE: &[&str] =
    &["diag", "xds", "config", "model", "kinds", "compile", "proxy", "generate", "ads"];

/// What the core may not mention, with the reason that a failure prints.
const FORBIDDEN_IN_CORE: &[(&str, &str)] = &[
    ("std::fs", "the core does no I/O"),
    ("std::env", "the core reads no environment"),
    ("std::net::Tcp", "the core opens no sockets"),
    ("std::thread", "the core spawns nothing"),
    ("tokio", "the core spawns nothing and waits for nothing"),
    ("Instant::now", "the core reads no clock; time is passed in"),
    ("SystemTime", "the core reads no clock; time is passed in"),
    ("Timestamp::now", "the core reads no clock; time is passed in"),
    ("println!", "the core prints nothing; findings are values"),
    ("eprintln!", "the core prints nothing; findings are values"),
    ("info!(", "the core logs nothing; findings are values"),
    ("warn!(", "the core logs nothing; findings are values"),
    ("error!(", "the core logs nothing; findings are values"),
];

/// A file may not be longer, inline tests included.
const HARD_LIMIT: usize = 800;
/// The median may not be longer.
const MEDIAN_LIMIT: usize = 250;

struct Source {
    path: PathBuf,
    /// Top-level module, `lib` and `main` for those files.
    module: String,
    text: String,
}

impl Source {
    /// The text without comments, strings left as they are, and without inline test modules.
    fn code(&self) -> String {
        let production = self.text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = production.lines().map(|line| match line.trim_start().starts_with("//") {
            true => "",
            false => line,
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    fn is_test(&self) -> bool {
        let name = self.path.file_stem().and_then(|n| n.to_str()).unwrap_or_default();
        let in_folder = self.path.components().any(|part| part.as_os_str() == "tests");
        in_folder || name.ends_with("tests") || ["test_support", "testing"].contains(&name)
    }
}

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    collect(&root, &root, &mut found);
    assert!(found.len() > 30, "the walk over src found only {} files", found.len());
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let relative = path.strip_prefix(root).unwrap();
            let first = relative.components().next().unwrap().as_os_str().to_str().unwrap();
            let module = first.trim_end_matches(".rs").to_owned();
            let text = fs::read_to_string(&path).unwrap();
            found.push(Source { path: relative.to_path_buf(), module, text });
        }
    }
}

/// Every `crate::<module>` of a text, also inside `use crate::{a, b}`.
fn used_modules(code: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for (position, _) in code.match_indices("crate::") {
        let rest = &code[position + "crate::".len()..];
        if let Some(list) = rest.strip_prefix('{') {
            let list = list.split('}').next().unwrap_or_default();
            used.extend(list.split(',').map(|item| word(item.trim()).to_owned()));
        } else {
            used.insert(word(rest).to_owned());
        }
    }
    used.retain(|name| ALL.contains(&name.as_str()));
    used
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn fail_with(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn modules_use_only_what_the_table_allows() {
    let allowed: BTreeMap<&str, &[&str]> = ALLOWED.iter().copied().collect();
    let mut problems = Vec::new();
    for source in sources() {
        let Some(may) = allowed.get(source.module.as_str()) else {
            problems.push(format!("{}: module is not in the table", source.path.display()));
            continue;
        };
        let code = if source.is_test() { String::new() } else { source.code() };
        for used in used_modules(&code) {
            if used != source.module && !may.contains(&used.as_str()) {
                problems.push(format!(
                    "{}: '{}' may not use '{used}'",
                    source.path.display(),
                    source.module
                ));
            }
        }
    }
    fail_with(problems);
}

#[test]
fn the_core_touches_nothing() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| CORE.contains(&s.module.as_str()) && !s.is_test()) {
        let code = source.code();
        for (what, why) in FORBIDDEN_IN_CORE {
            if code.contains(what) {
                problems.push(format!("{}: mentions {what}: {why}", source.path.display()));
            }
        }
    }
    fail_with(problems);
}

#[test]
fn protobuf_stays_in_its_modules_and_tonic_in_the_server() {
    let protobuf = ["xds", "generate", "ads", "server"];
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !s.is_test()) {
        let code = source.code();
        let module = source.module.as_str();
        if !protobuf.contains(&module) && (code.contains("xds::pb") || code.contains("prost")) {
            problems.push(format!("{}: mentions protobuf types", source.path.display()));
        }
        if code.contains("envoy_types::") && module != "xds" {
            problems.push(format!("{}: only xds names envoy_types", source.path.display()));
        }
        if code.contains("tonic::") && module != "server" {
            problems.push(format!("{}: only the server mentions tonic", source.path.display()));
        }
    }
    fail_with(problems);
}

#[test]
fn a_snapshot_holds_no_lock_and_no_counter() {
    let words = ["Mutex", "RwLock", "Atomic", "Cell<", "OnceLock", "OnceCell"];
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| s.module == "model") {
        for word in words {
            if source.code().contains(word) {
                problems.push(format!("{}: mentions {word}", source.path.display()));
            }
        }
    }
    fail_with(problems);
}

#[test]
fn versions_come_from_content_only() {
    // Hashers that are seeded per process would make versions differ between runs.
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| CORE.contains(&s.module.as_str())) {
        for word in ["DefaultHasher", "RandomState", "Uuid::new", "rand::"] {
            if source.code().contains(word) {
                problems.push(format!("{}: mentions {word}", source.path.display()));
            }
        }
    }
    fail_with(problems);
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let sources = sources();
    let mut problems = Vec::new();
    let mut sizes = Vec::new();
    for source in &sources {
        let lines = source.text.lines().count();
        sizes.push(lines);
        if lines > HARD_LIMIT {
            problems
                .push(format!("{}: {lines} lines, more than {HARD_LIMIT}", source.path.display()));
        }
        if !source.text.starts_with("//!") {
            problems
                .push(format!("{}: does not begin with a //! paragraph", source.path.display()));
        }
        for mark in ["TODO", "FIXME", "XXX", "unimplemented!", "todo!("] {
            if source.text.contains(mark) {
                problems.push(format!("{}: has the mark {mark}", source.path.display()));
            }
        }
    }
    sizes.sort_unstable();
    let median = sizes[sizes.len() / 2];
    if median > MEDIAN_LIMIT {
        problems.push(format!("the median file has {median} lines, more than {MEDIAN_LIMIT}"));
    }
    fail_with(problems);
}

#[test]
fn nothing_in_production_code_unwraps_or_panics() {
    let mut problems = Vec::new();
    for source in sources().iter().filter(|s| !s.is_test()) {
        for (number, line) in source.code().lines().enumerate() {
            if [".unwrap()", "panic!(", "unreachable!("].iter().any(|word| line.contains(word)) {
                problems.push(format!("{}:{}: {}", source.path.display(), number + 1, line.trim()));
            }
        }
    }
    fail_with(problems);
}

#[test]
fn the_table_is_checked_against_what_it_says() {
    // The checks themselves, on text where the answer is known.
    let code = "use crate::{model, diag::Code};\nfn f() { crate::server::run() }";
    let used: Vec<String> = used_modules(code).into_iter().collect();
    assert_eq!(used, ["diag", "model", "server"]);
}

/// The rooms in which unit tests sit as ARCHITECTURE.md says.
const TESTS_IN_PLACE: [&str; 3] = ["config", "kinds", "compile"];
/// Unit tests at the end of their file may not have more lines.
const INLINE_TESTS: usize = 120;

/// What is wrong with where the tests of a file sit; `has_folder` says whether `x/` is beside `x.rs`.
fn misplaced_tests(path: &str, text: &str, has_folder: bool) -> Option<String> {
    let inline = text.split_once("\nmod tests {\n").map_or(0, |(_, tests)| tests.lines().count());
    if inline > INLINE_TESTS {
        return Some(format!("{path}: {inline} lines of inline tests, more than {INLINE_TESTS}"));
    }
    has_folder.then(|| format!("{path}: the module has a folder, so it is the folder's mod.rs"))
}

#[test]
fn unit_tests_sit_where_the_rule_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut problems = Vec::new();
    for room in TESTS_IN_PLACE {
        let mut found = Vec::new();
        collect(&root, &root.join(room), &mut found);
        assert!(found.len() > 5, "{room} has only {} files", found.len());
        problems.extend(found.iter().filter_map(|source| {
            let folder = root.join(&source.path).with_extension("");
            misplaced_tests(&source.path.display().to_string(), &source.text, folder.is_dir())
        }));
    }
    fail_with(problems);
}

#[test]
fn misplaced_tests_are_found() {
    let file = |lines: usize| {
        format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{}", "x\n".repeat(lines))
    };
    assert_eq!(misplaced_tests("a.rs", &file(INLINE_TESTS), false), None);
    assert!(misplaced_tests("a.rs", &file(INLINE_TESTS + 1), false).is_some());
    assert!(misplaced_tests("a.rs", "fn f() {}\n", true).is_some());
}

//! The shape of the source, checked: who may use whom, what the core may not touch, and how long
//! files may be. ARCHITECTURE.md has the reasons.
//!
//! The tables are here; `architecture/scan.rs` reads a file, `tree.rs` finds out what its names
//! mean, `rules.rs` applies the tables, and `planted.rs` proves that each violation is found.

#[path = "architecture/planted.rs"]
mod planted;
#[path = "architecture/rules.rs"]
mod rules;
#[path = "architecture/scan.rs"]
mod scan;
#[path = "architecture/tree.rs"]
mod tree;

use tree::Sources;

/// A module whose walls are checked: one of the top level, or one inside of such (`config/yaml`).
/// Once a folder has one room in the table, each folder in it must be in the table.
#[derive(Clone, Copy)]
struct Room {
    name: &'static str,
    side: Side,
    /// Which other rooms it may use.
    may: &'static [&'static str],
    /// What it may see of what is guarded.
    sees: &'static [Gate],
    /// Paths that it may not mention though it may use the room that they are in.
    never: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    /// Values in, values out.
    Core,
    /// Files, clocks, sockets.
    Shell,
}

/// What only some rooms may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gate {
    Protobuf,
    /// The crate that Envoy's types come from; everybody else takes them from `xds::pb`.
    EnvoyTypes,
    Tonic,
}

impl Room {
    const fn sees(mut self, sees: &'static [Gate]) -> Room {
        self.sees = sees;
        self
    }

    const fn never(mut self, never: &'static [&'static str]) -> Room {
        self.never = never;
        self
    }
}

const fn core(name: &'static str, may: &'static [&'static str]) -> Room {
    Room { name, side: Side::Core, may, sees: &[], never: &[] }
}

const fn shell(name: &'static str, may: &'static [&'static str]) -> Room {
    Room { name, side: Side::Shell, may, sees: &[], never: &[] }
}

/// In place of a list: all rooms.
const EVERYTHING: &str = "*";

use Gate::{EnvoyTypes, Protobuf, Tonic};

/// Which rooms there are, and which others they may use.
const ROOMS: &[Room] = &[
    core("diag", &[]),
    core("xds", &[]).sees(&[Protobuf, EnvoyTypes]),
    core("config", &["config/decode", "config/source", "config/yaml"]),
    core("config/decode", &["config/source", "config/yaml", "diag"]),
    core("config/source", &[]),
    core("config/yaml", &["diag"]),
    core("model", &["diag"]),
    core("kinds", &["config", "model", "diag"]),
    core("compile", &["kinds", "config", "model", "diag"]),
    core("proxy", &["model", "diag"]),
    core(
        "generate",
        &[
            "generate/clusters",
            "generate/envoy",
            "generate/filters",
            "generate/plan",
            "generate/routes",
            "generate/seal",
            "model",
            "proxy",
            "xds",
            "diag",
        ],
    ),
    // Decides, and does not know how Envoy spells anything.
    core("generate/plan", &["generate", "generate/filters", "model", "proxy", "diag"]),
    // Spells, and cannot look anything up.
    core("generate/envoy", &["generate", "generate/filters", "generate/plan", "model", "xds"])
        .sees(&[Protobuf])
        .never(&[
            "crate::model::Snapshot",
            "crate::model::Routing",
            "crate::generate::Scope",
            "crate::generate::World",
            "crate::generate::View",
            "crate::generate::Viewer",
        ]),
    core("generate/seal", &["generate", "generate/plan", "xds", "diag"]).sees(&[Protobuf]),
    // A filter decides where it belongs and knows how that is spelled: both in one file.
    core(
        "generate/filters",
        &["generate", "generate/envoy", "generate/plan", "model", "proxy", "xds", "diag"],
    )
    .sees(&[Protobuf]),
    core(
        "generate/routes",
        &[
            "generate",
            "generate/envoy",
            "generate/filters",
            "generate/plan",
            "generate/seal",
            "model",
            "xds",
            "diag",
        ],
    )
    .sees(&[Protobuf]),
    core(
        "generate/clusters",
        &["generate", "generate/envoy", "generate/plan", "generate/seal", "model", "xds"],
    ),
    core("ads", &["xds", "diag"]).sees(&[Protobuf]),
    shell("watch", &["config", "diag"]),
    shell("push", &["model", "proxy", "generate", "xds", "diag"]),
    shell("server", &["ads", "push", "proxy", "generate", "model", "xds", "diag"])
        .sees(&[Protobuf, Tonic]),
    shell("settings", &["model", "proxy"]),
    shell("telemetry", &["settings"]),
    shell(
        "admin",
        &["ads", "push", "server", "generate", "model", "proxy", "xds", "diag", "telemetry"],
    ),
    shell("commands", &[EVERYTHING]),
    shell("serve", &[EVERYTHING]),
    shell("lib", &[]),
    shell("main", &["commands", "settings"]),
];

/// Where everybody takes Envoy's types from.
const PROTOBUF: &str = "crate::xds::pb";

/// What is behind a gate.
const GUARDED: &[(&str, Gate)] = &[
    (PROTOBUF, Protobuf),
    ("prost", Protobuf),
    ("prost_reflect", Protobuf),
    ("envoy_types", EnvoyTypes),
    ("tonic", Tonic),
    ("tonic_prost", Tonic),
];

/// The crates that the core may use. What is not here (runtimes, logging, sockets) it may not.
const CORE_CRATES: &[&str] = &[
    "annotate_snippets",
    "base64",
    "bytes",
    "envoy_types",
    "http",
    "imbl",
    "ipnet",
    "jiff",
    "prost",
    "prost_reflect",
    "regex",
    "regex_syntax",
    "saphyr_parser",
    "schemars",
    "serde",
    "serde_json",
    "serde_yaml",
    "strsim",
    "thiserror",
    "x509_parser",
    "xxhash_rust",
];

/// What of its crates and of the standard library the core may not mention.
const CORE_MAY_NOT_MENTION: &[(&str, &str)] = &[
    ("std::fs", "the core does no I/O"),
    ("std::io::stdin", "the core does no I/O"),
    ("std::io::stdout", "the core does no I/O"),
    ("std::io::stderr", "the core does no I/O"),
    ("std::os", "the core does no I/O"),
    ("std::env", "the core reads no environment"),
    ("std::net::TcpListener", "the core opens no sockets"),
    ("std::net::TcpStream", "the core opens no sockets"),
    ("std::net::UdpSocket", "the core opens no sockets"),
    ("std::net::ToSocketAddrs", "the core resolves no names"),
    ("std::process", "the core starts nothing"),
    ("std::thread", "the core spawns nothing"),
    ("std::time::Instant::now", "the core reads no clock; time is passed in"),
    ("std::time::SystemTime", "the core reads no clock; time is passed in"),
    ("jiff::Timestamp::now", "the core reads no clock; time is passed in"),
    ("jiff::Zoned::now", "the core reads no clock; time is passed in"),
];

/// Methods that do I/O or read a clock without naming a module that does.
const CORE_MAY_NOT_CALL: &[(&str, &str)] = &[
    ("exists", "the core does no I/O"),
    ("is_dir", "the core does no I/O"),
    ("is_file", "the core does no I/O"),
    ("read_dir", "the core does no I/O"),
    ("canonicalize", "the core does no I/O"),
    ("elapsed", "the core reads no clock; time is passed in"),
];

/// Macros that print or log.
const CORE_MAY_NOT_PRINT: &[&str] =
    &["print", "println", "eprint", "eprintln", "dbg", "trace", "debug", "info", "warn", "error"];

/// How words begin that lock or count.
const NEVER_IN_MODEL: &[&str] = &[
    "Mutex",
    "RwLock",
    "Atomic",
    "Cell",
    "RefCell",
    "UnsafeCell",
    "OnceCell",
    "OnceLock",
    "LazyCell",
    "LazyLock",
];

/// Hashers that are seeded per process would make versions differ between runs.
const NEVER_IN_VERSIONS: &[&str] = &["DefaultHasher", "RandomState", "Uuid", "rand"];

/// What ends the process, or a task of it, in the middle. `expect` is allowed: it says why it
/// cannot fail.
const PANICS: Panics = Panics {
    methods: &["unwrap", "unwrap_err", "unwrap_unchecked"],
    macros: &["panic", "unreachable", "todo", "unimplemented"],
};

struct Panics {
    methods: &'static [&'static str],
    macros: &'static [&'static str],
}

/// A file may not be longer, inline tests included.
const HARD_LIMIT: usize = 800;
/// The median may not be longer.
const MEDIAN_LIMIT: usize = 250;

fn fail_with(problems: Vec<String>) {
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn the_source_keeps_its_walls() {
    fail_with(rules::problems(Sources::on_disk(), ROOMS));
}

#[test]
fn files_are_short_and_say_what_they_are_for() {
    let sources = Sources::on_disk();
    let mut problems = Vec::new();
    let mut sizes = Vec::new();
    for (file, text) in &sources.texts {
        let lines = text.lines().count();
        sizes.push(lines);
        if lines > HARD_LIMIT {
            problems.push(format!("{file}: {lines} lines, more than {HARD_LIMIT}"));
        }
        if !text.starts_with("//!") {
            problems.push(format!("{file}: does not begin with a //! paragraph"));
        }
        for mark in ["TODO", "FIXME", "XXX"] {
            if text.contains(mark) {
                problems.push(format!("{file}: has the mark {mark}"));
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
    let texts = &Sources::on_disk().texts;
    let mut problems = Vec::new();
    for room in TESTS_IN_PLACE {
        let within = |file: &str, room: &str| file.starts_with(&format!("{room}/"));
        let found: Vec<_> = texts.iter().filter(|(file, _)| within(file, room)).collect();
        assert!(found.len() > 5, "{room} has only {} files", found.len());
        problems.extend(found.into_iter().filter_map(|(file, text)| {
            let folder = file.trim_end_matches(".rs");
            misplaced_tests(file, text, texts.keys().any(|other| within(other, folder)))
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

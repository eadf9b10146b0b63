//! Violations, planted into a copy of the source, and look-alikes that are none: the rules must
//! find each of the first, and nothing in the second.

use super::tree::Sources;
use super::{Gate, ROOMS, Room, core, rules, shell};

/// A file, what is added at its end, and what must be said about the first of the added lines.
type Plant = (&'static str, &'static str, &'static str);

/// A file of its own, and one in which a `#[cfg(test)] mod …;` comes before everything added.
const NEW: &str = "generate/planted.rs";
const AFTER_TESTS: &str = "generate/mod.rs";

const PLANTS: &[Plant] = &[
    (AFTER_TESTS, "use crate::server::Xds;", "'generate' may not use 'server'"),
    (AFTER_TESTS, "fn a1() { tokio::spawn(async {}); }", "may not use the crate 'tokio'"),
    (AFTER_TESTS, "fn a2() { drop(std::fs::read(\"x\").unwrap()); }", "mentions std::fs"),
    (AFTER_TESTS, "fn a3() { drop(std::fs::read(\"x\").unwrap()); }", "calls .unwrap()"),
    (AFTER_TESTS, "fn a4() -> bool { std::env::var(\"X\").is_ok() }", "mentions std::env"),
    (AFTER_TESTS, "fn a5() { println!(\"x\"); }", "says println!"),
    // Through `super`, also from a module inside a module.
    (NEW, "use super::super::server::Xds as S1;", "'generate' may not use 'server'"),
    (NEW, "fn b1() { super::super::admin::run() }", "'generate' may not use 'admin'"),
    (NEW, "mod b2 { mod c { use super::super::super::super::push; } }", "may not use 'push'"),
    // Inside of longer imports.
    (NEW, "use crate::{diag, watch::{self, settle::{Settle as S2}}};", "may not use 'watch'"),
    (NEW, "use ::tokio::{sync::{mpsc as channel}};", "may not use the crate 'tokio'"),
    (NEW, "fn b3() { use crate::settings::Cli; }", "'generate' may not use 'settings'"),
    // Renamed, and used later.
    (NEW, "use std as b4;\nfn b4() { b4::fs::remove_file(\"x\").ok(); }", ""),
    (NEW, "fn b5() { b4::fs::remove_file(\"x\").ok(); }", "mentions std::fs"),
    (NEW, "use std::time::{self as hours, Instant as Moment};", ""),
    (NEW, "fn b6() { hours::SystemTime::now(); }", "mentions std::time::SystemTime"),
    (NEW, "fn b7() { Moment::now(); }", "mentions std::time::Instant::now"),
    // Through globs.
    (NEW, "use std::io::*;", "mentions std::io::stdout"),
    (NEW, "mod b8 { use crate::*; fn f() { server::run() } }", "'generate' may not use 'server'"),
    // In types, in arguments of macros, in attributes of methods, in macros that we define.
    (NEW, "fn b9(_: &dyn Fn() -> Vec<crate::server::Xds>) {}", "may not use 'server'"),
    (NEW, "fn b10() { <crate::server::Xds as Clone>::clone(); }", "may not use 'server'"),
    (NEW, "fn b11() -> String { format!(\"{:?}\", std::env::args()) }", "mentions std::env"),
    (NEW, "macro_rules! b12 { () => { $crate::server::run() } }", "may not use 'server'"),
    (NEW, "fn b13() -> ::tokio::task::Id { f() }", "may not use the crate 'tokio'"),
    (NEW, "fn b14() { tracing::info!(x = 1, \"x\"); }", "may not use the crate 'tracing'"),
    (NEW, "fn b15() { vec![{ eprintln!(\"x\") }]; }", "says eprintln!"),
    // What reads the disk or the clock without saying so.
    (NEW, "fn b16(p: &std::path::Path) -> bool { p.exists() }", "calls .exists()"),
    (NEW, "fn b17(p: Moment) { p.elapsed(); }", "calls .elapsed()"),
    // What ends in the middle, in the shell too.
    (NEW, "fn b18() { None::<u8>.into_iter().map(Option::unwrap); }", "calls Option::unwrap"),
    (NEW, "#[cfg(not(test))]\nfn b19() { }", ""),
    (NEW, "#[cfg(not(test))] fn b20() { panic!() }", "says panic!"),
    (NEW, "#[cfg(any(test, unix))] fn b21() { unreachable!() }", "says unreachable!"),
    ("push/mod.rs", "fn c1() { None::<u8>.unwrap(); }", "calls .unwrap()"),
    ("serve/mod.rs", "fn c2() { todo!() }", "says todo!"),
    // What is behind a gate.
    ("kinds/mod.rs", "use crate::xds::pb::route as r;", "'kinds' may not see Protobuf"),
    ("kinds/mod.rs", "fn c3<M: prost::Message>() {}", "'kinds' may not see Protobuf"),
    ("admin/mod.rs", "use crate::xds as wire;", ""),
    ("admin/mod.rs", "fn c4(_: wire::pb::Struct) {}", "'admin' may not see Protobuf"),
    (NEW, "fn c5(_: envoy_types::pb::google::Any) {}", "'generate' may not see EnvoyTypes"),
    ("push/mod.rs", "fn c6(_: tonic::Status) {}", "'push' may not see Tonic"),
    // Through a re-export of somebody who may.
    (AFTER_TESTS, "pub use crate::xds::pb as handed_on;", ""),
    ("admin/mod.rs", "use crate::generate::handed_on::Struct;", "'admin' may not see Protobuf"),
    // The binary, which calls the library by its name.
    ("main.rs", "use pilotfish::server;", "'main' may not use 'server'"),
    // Between the rooms of `config`.
    ("config/yaml/mod.rs", "use super::decode::header as c8;", "may not use 'config/decode'"),
    ("config/yaml/mod.rs", "use crate::config::Document as c9;", "'config/yaml' may not use"),
    ("model/mod.rs", "fn c7(_: &std::sync::Mutex<u8>) {}", "mentions Mutex: a Snapshot"),
    ("model/mod.rs", "use std::sync::atomic::AtomicU64 as Number;", "mentions AtomicU64"),
    (NEW, "use std::hash::{DefaultHasher as Hash};", "mentions DefaultHasher"),
    ("lib.rs", "pub mod planted;", "planted.rs: is declared and not there"),
    ("unplanted.rs", "//! Nobody declares it.", "unplanted.rs: no `mod` leads to this file"),
    ("planned/mod.rs", "//! It is declared, but not in the table.", ""),
    ("lib.rs", "pub mod planned;", "planned: module is not in the table"),
];

/// What looks like a violation to whoever reads text instead of syntax.
const INNOCENT: &str = r##"//! `crate::server::Xds`, tokio::spawn, std::fs::read().unwrap(), println!
/* use crate::server::Xds; */
/// Not `crate::server`: see std::env::var, panic!("x").
fn text() -> [&'static str; 2] {
    // tokio::spawn(async { std::fs::read("x").unwrap() })
    ["crate::server::Xds std::fs::read().unwrap()", r#"println!("{}", std::env::var("X"))"#]
}
mod server {
    pub fn run() {}
}
fn of_our_own() -> Option<std::net::IpAddr> {
    server::run();
    let unwrap = std::time::Duration::ZERO;
    let (println, tokio) = (unwrap, unwrap);
    assert!(println != tokio);
    None.unwrap_or_default()
}
#[cfg(test)]
use crate::server::Xds;
#[cfg(test)]
fn helper() {
    std::fs::read("x").unwrap();
}
struct Thing;
impl Thing {
    #[cfg(test)]
    fn only_in_tests(&self) {
        tokio::spawn(async {});
    }
    fn always(&self) {
        #[cfg(test)]
        println!("x");
        #[cfg(test)]
        let _ = std::env::var("X");
        #[cfg(test)]
        {
            panic!("x");
        }
    }
}
#[cfg(all(test, unix))]
mod more {
    use crate::server::Xds;
}
#[cfg(test)]
mod tests {
    use crate::push::Queue;
    mod deeper {
        fn f() {
            unreachable!()
        }
    }
    #[test]
    fn f() {
        std::fs::read("x").unwrap();
    }
}
"##;

/// The source with one more file, so that plants need not know what is there.
fn with_a_new_file(text: &str) -> Sources {
    let mut sources = Sources::on_disk().clone();
    sources.put(NEW, text.to_owned());
    append(&mut sources, AFTER_TESTS, "mod planted;");
    sources
}

/// Adds code to a file and says in which line it begins.
fn append(sources: &mut Sources, file: &str, code: &str) -> usize {
    let before = sources.texts.get(file).cloned().unwrap_or_default();
    sources.put(file, format!("{before}{code}\n"));
    before.lines().count() + 1
}

#[test]
fn each_planted_violation_is_found_where_it_is() {
    let mut sources = with_a_new_file("//! Planted.\n");
    let text = &sources.texts[AFTER_TESTS];
    assert!(text.contains("#[cfg(test)]\nmod "), "{AFTER_TESTS} has no tests that come before");
    let lines: Vec<usize> =
        PLANTS.iter().map(|(file, code, _)| append(&mut sources, file, code)).collect();
    let problems = rules::problems(&sources, ROOMS);
    for ((file, code, expected), line) in PLANTS.iter().zip(lines) {
        let place = format!("{file}:{line}: ");
        let found = |problem: &String| match problem.strip_prefix(&place) {
            Some(said) => said.contains(expected),
            // About the tree as a whole.
            None => problem == expected,
        };
        // Without an expectation a plant only prepares another.
        assert!(
            expected.is_empty() || problems.iter().any(found),
            "`{code}` in {file}:{line} was not found:\n{}",
            problems.join("\n")
        );
    }
}

#[test]
fn look_alikes_are_no_violations() {
    let problems = rules::problems(&with_a_new_file(INNOCENT), ROOMS);
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// A crate whose rooms have rooms in them.
fn nested() -> Sources {
    let files = [
        ("lib.rs", "pub mod config; pub mod generate; pub mod model; pub mod proxy; pub mod xds;"),
        ("model.rs", "mod snapshot; pub use snapshot::Snapshot; pub struct Route;"),
        ("model/snapshot.rs", "pub struct Snapshot;"),
        ("proxy.rs", "mod inside {}"),
        ("xds.rs", "pub mod pb { pub use envoy_types::pb as core; }"),
        ("generate/mod.rs", "mod envoy; mod names; mod plan; mod seal; pub use plan::Plan;"),
        ("generate/names.rs", "pub fn cluster() {}"),
        ("generate/plan/mod.rs", "mod routes; pub struct Plan;"),
        ("generate/plan/routes.rs", "use crate::model::Snapshot; use super::super::names;"),
        ("generate/envoy/mod.rs", "use super::plan::Plan; use crate::xds::pb::core::Any;"),
        ("generate/seal/mod.rs", "use crate::xds; use super::envoy as spelled;"),
        ("config/mod.rs", "pub mod decode; pub mod yaml; fn f() { decode::g(yaml::h()) }"),
        ("config/decode/mod.rs", "use super::yaml; pub fn g() {}"),
        ("config/yaml/mod.rs", "pub(in crate::config) fn h() {}"),
    ];
    let mut sources = Sources::default();
    for (file, text) in files {
        sources.put(file, format!("{text}\n"));
    }
    sources
}

const NESTED: &[Room] = &[
    core("model", &[]),
    core("proxy", &[]),
    core("xds", &[]).sees(&[Gate::Protobuf, Gate::EnvoyTypes]),
    core("config", &["config/decode", "config/yaml"]),
    core("config/decode", &["config/yaml"]),
    core("config/yaml", &[]),
    core("generate", &["generate/plan", "generate/envoy", "generate/seal"]),
    core("generate/plan", &["generate", "model", "proxy"]),
    core("generate/envoy", &["generate/plan", "generate", "model", "xds"])
        .sees(&[Gate::Protobuf])
        .never(&["crate::model::Snapshot"]),
    core("generate/seal", &["generate/envoy", "xds"]),
    shell("lib", &[]),
];

#[test]
fn rooms_inside_of_rooms_have_walls_of_their_own() {
    let clean = rules::problems(&nested(), NESTED);
    assert!(clean.is_empty(), "\n{}\n", clean.join("\n"));
    let plan = "generate/plan/routes.rs";
    let envoy = "generate/envoy/mod.rs";
    let yaml = "config/yaml/mod.rs";
    for (file, code, expected) in [
        (plan, "use crate::xds::pb::core;", "'generate/plan' may not see Protobuf"),
        (plan, "fn f<M: prost::Message>() {}", "'generate/plan' may not see Protobuf"),
        (plan, "fn f(_: envoy_types::pb::X) {}", "'generate/plan' may not see EnvoyTypes"),
        (plan, "use super::super::envoy;", "'generate/plan' may not use 'generate/envoy'"),
        (plan, "use crate::generate::seal::x;", "'generate/plan' may not use 'generate/seal'"),
        (envoy, "use crate::model::Snapshot;", "may not see crate::model::Snapshot"),
        (envoy, "use crate::model as m; fn f(_: m::Snapshot) {}", "may not see crate::model::Sn"),
        (envoy, "use crate::model::*;", "may not see crate::model::Snapshot"),
        (envoy, "use super::super::proxy;", "'generate/envoy' may not use 'proxy'"),
        (yaml, "use super::decode::g;", "'config/yaml' may not use 'config/decode'"),
        (yaml, "fn f() { super::super::config::decode::g() }", "may not use 'config/decode'"),
        ("model.rs", "use crate::config;", "'model' may not use 'config'"),
        ("model.rs", "use crate::config::yaml;", "'model' may not use 'config/yaml'"),
    ] {
        let mut sources = nested();
        let line = append(&mut sources, file, code);
        let problems = rules::problems(&sources, NESTED);
        let place = format!("{file}:{line}: ");
        let found = |p: &String| p.strip_prefix(&place).is_some_and(|p| p.contains(expected));
        assert!(problems.iter().any(found), "`{code}` in {file}: {problems:?}");
    }
}

#[test]
fn the_table_and_the_tree_name_the_same_rooms() {
    let only = |sources: &Sources, rooms: &[Room], expected: &str| {
        assert_eq!(rules::problems(sources, rooms), [expected]);
    };
    let without = |name: &str| NESTED.iter().filter(|room| room.name != name).copied().collect();
    let with = |room: Room| -> Vec<Room> { NESTED.iter().copied().chain([room]).collect() };

    let rooms: Vec<Room> = without("generate/seal");
    let problems = rules::problems(&nested(), &rooms);
    let expected = "generate/seal: folder is not in the table, and others of generate are";
    assert!(problems.iter().any(|problem| problem == expected), "{problems:?}");

    let rooms: Vec<Room> = without("proxy");
    let problems = rules::problems(&nested(), &rooms);
    assert!(problems.iter().any(|p| p == "proxy: module is not in the table"), "{problems:?}");

    only(&nested(), &with(core("serve", &[])), "serve: is in the table and not in src");
    let room = core("generate/patch", &[]);
    only(&nested(), &with(room), "generate/patch: is in the table and not in src");
    only(&nested(), &with(core("proxy", &[])), "proxy: is in the table twice");
    let room = core("proxy/inside", &["clock"]);
    only(&nested(), &with(room), "proxy/inside: may use 'clock', which is not in src");
    let room = shell("proxy/inside", &[]);
    only(&nested(), &with(room), "proxy/inside: is Shell inside of the other side");

    // A folder with nothing but tests needs no room.
    let mut sources = nested();
    append(&mut sources, "generate/mod.rs", "#[cfg(test)]\nmod tests;");
    sources.put("generate/tests/mod.rs", "fn f() { None::<u8>.unwrap(); }".to_owned());
    assert_eq!(rules::problems(&sources, NESTED), Vec::<String>::new());
}

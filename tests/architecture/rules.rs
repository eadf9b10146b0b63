//! The rules, applied to a tree. The tables that they read are in `tests/architecture.rs`.

use super::tree::{ModulePath, Reference, Referred, Sources, Tree};
use super::{
    CORE_CRATES, CORE_MAY_NOT_CALL, CORE_MAY_NOT_MENTION, CORE_MAY_NOT_PRINT, EVERYTHING, GUARDED,
    NEVER_IN_MODEL, NEVER_IN_VERSIONS, PANICS, PROTOBUF, Room, Side,
};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything that is wrong.
pub fn problems(sources: &Sources, rooms: &[Room]) -> Vec<String> {
    let tree = Tree::of(sources);
    let mut problems = tree.problems().to_vec();
    problems.extend(table(sources, &tree, rooms));
    let crates = crates();
    for reference in tree.references() {
        let Some(room) = room_of(rooms, reference.module) else { continue };
        let mut wrong = Vec::new();
        match &reference.what {
            Referred::Path { meanings, glob, .. } => {
                let judge = Judge { tree: &tree, rooms, crates: &crates, room, glob: *glob };
                // Envoy's types come through `xds::pb`: who takes them there uses that door.
                let through = meanings.iter().any(|m| judge.touches(m, PROTOBUF));
                for meaning in meanings {
                    if !through || meaning.first().is_some_and(|first| first == "crate") {
                        judge.path(meaning, &mut wrong);
                    }
                }
            }
            Referred::Word(word) => words(room, word, &mut wrong),
            Referred::Method(name) => {
                if PANICS.methods.contains(name) {
                    wrong.push(format!("production code calls .{name}()"));
                }
                if room.side == Side::Core
                    && let Some((_, why)) = CORE_MAY_NOT_CALL.iter().find(|(n, _)| n == name)
                {
                    wrong.push(format!("calls .{name}(): {why}"));
                }
            }
            Referred::Macro(name) => {
                if PANICS.macros.contains(name) {
                    wrong.push(format!("production code says {name}!"));
                }
                if room.side == Side::Core && CORE_MAY_NOT_PRINT.contains(name) {
                    wrong.push(format!("says {name}!: the core prints and logs nothing"));
                }
            }
        }
        problems.extend(wrong.into_iter().map(|what| located(&reference, &what)));
    }
    problems.sort();
    problems.dedup();
    problems
}

fn located(reference: &Reference<'_>, what: &str) -> String {
    let as_written = match &reference.what {
        Referred::Path { written, .. } => format!(" (`{written}`)"),
        Referred::Word(_) | Referred::Method(_) | Referred::Macro(_) => String::new(),
    };
    format!("{}:{}: {what}{as_written}", reference.file, reference.line)
}

/// The room that a module is in: the longest of the table that its path begins with.
fn room_of<'r>(rooms: &'r [Room], module: Option<&ModulePath>) -> Option<&'r Room> {
    let name = match module {
        None => return rooms.iter().find(|room| room.name == "main"),
        Some(path) if path.is_empty() => return rooms.iter().find(|room| room.name == "lib"),
        Some(path) => path.join("/"),
    };
    rooms.iter().filter(|room| within(&name, room.name)).max_by_key(|room| room.name.len())
}

/// Whether a module is a room or below it.
fn within(module: &str, room: &str) -> bool {
    module.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The table and the tree name the same rooms.
fn table(sources: &Sources, tree: &Tree, rooms: &[Room]) -> Vec<String> {
    let mut problems = Vec::new();
    for module in tree.modules().filter(|module| module.len() == 1) {
        if !rooms.iter().any(|room| room.name == module[0]) {
            problems.push(format!("{}: module is not in the table", module[0]));
        }
    }
    let is_room = |name: &str| {
        let path: Vec<String> = name.split('/').map(str::to_owned).collect();
        tree.has(&path) || ["lib", "main"].contains(&name)
    };
    for room in rooms {
        if !is_room(room.name) {
            problems.push(format!("{}: is in the table and not in src", room.name));
        }
        let unknown = room.may.iter().filter(|name| **name != EVERYTHING && !is_room(name));
        problems.extend(
            unknown.map(|name| format!("{}: may use '{name}', which is not in src", room.name)),
        );
        let around = room.name.rsplit_once('/').map(|(around, _)| around);
        if let Some(around) = around.and_then(|n| rooms.iter().find(|room| room.name == n)) {
            if around.side != room.side {
                problems
                    .push(format!("{}: is {:?} inside of the other side", room.name, room.side));
            }
        } else if around.is_some() {
            problems.push(format!("{}: the room around it is not in the table", room.name));
        }
        if rooms.iter().filter(|other| other.name == room.name).count() > 1 {
            problems.push(format!("{}: is in the table twice", room.name));
        }
    }
    // Where a folder is divided into rooms, each folder in it is one. Folders that hold nothing but
    // tests are none.
    let folders: BTreeSet<String> = tree
        .modules()
        .filter(|module| sources.texts.keys().any(|f| within(f, &module.join("/"))))
        .map(|module| module.join("/"))
        .collect();
    for folder in folders {
        let Some((around, _)) = folder.rsplit_once('/') else { continue };
        let divided =
            rooms.iter().any(|r| r.name.rsplit_once('/').is_some_and(|(a, _)| a == around));
        if divided && !rooms.iter().any(|room| room.name == folder) {
            problems
                .push(format!("{folder}: folder is not in the table, and others of {around} are"));
        }
    }
    problems
}

struct Judge<'a> {
    tree: &'a Tree,
    rooms: &'a [Room],
    crates: &'a BTreeSet<String>,
    room: &'a Room,
    glob: bool,
}

impl Judge<'_> {
    fn path(&self, path: &[String], wrong: &mut Vec<String>) {
        if path.first().is_some_and(|first| first == "crate") {
            self.ours(&path[1..], wrong);
        } else if let Some(first) = path.first().filter(|_| self.room.side == Side::Core) {
            if self.crates.contains(first) && !CORE_CRATES.contains(&first.as_str()) {
                wrong.push(format!("the core may not use the crate '{first}'"));
            }
            for (what, why) in CORE_MAY_NOT_MENTION {
                if self.touches(path, what) {
                    wrong.push(format!("mentions {what}: {why}"));
                }
            }
        }
        for (what, gate) in GUARDED {
            let opens = self.room.sees.contains(gate);
            if !opens && self.touches(path, what) {
                wrong.push(format!("'{}' may not see {gate:?}: {what}", self.room.name));
            }
        }
        for what in self.room.never {
            let mut all = BTreeSet::new();
            let full: Vec<String> = what.split("::").map(str::to_owned).collect();
            self.tree.resolve(&[], &full, &mut all, 0);
            if all.iter().any(|what| self.touches(path, &what.join("::"))) {
                wrong.push(format!("'{}' may not see {what}", self.room.name));
            }
        }
        if path.last().is_some_and(|name| PANICS.methods.contains(&name.as_str())) {
            wrong.push(format!("production code calls {}", path.join("::")));
        }
    }

    fn ours(&self, path: &[String], wrong: &mut Vec<String>) {
        // The module that is meant: what follows it is an item.
        let end = (0..=path.len()).rev().find(|end| self.tree.has(&path[..*end])).unwrap_or(0);
        let module = path[..end].to_vec();
        let Some(used) = room_of(self.rooms, Some(&module)).filter(|_| end > 0) else { return };
        // `pub(in crate::config)` names the room around, and uses nothing of it.
        let around = end == path.len() && within(self.room.name, used.name);
        if !around && !granted(self.room, used) {
            wrong.push(format!("'{}' may not use '{}'", self.room.name, used.name));
        }
    }

    /// Whether a path is `what`, something in it, or a glob that brings it.
    fn touches(&self, path: &[String], what: &str) -> bool {
        let what: Vec<&str> = what.split("::").collect();
        let begins = path.iter().zip(&what).all(|(a, b)| a == b);
        begins && (path.len() >= what.len() || self.glob)
    }
}

/// Whether a room may use another. A room that is named in the table comes with the rooms in it,
/// but for those who are in it themselves: to them it is only what is beside the rooms.
fn granted(room: &Room, used: &Room) -> bool {
    let by = |name: &str| {
        name == EVERYTHING
            || name == used.name
            || (within(used.name, name) && !within(room.name, name))
    };
    room.name == used.name || room.may.iter().any(|name| by(name))
}

fn words(room: &Room, word: &str, wrong: &mut Vec<String>) {
    let top = room.name.split('/').next().unwrap_or(room.name);
    if top == "model" && NEVER_IN_MODEL.iter().any(|never| word.starts_with(never)) {
        wrong.push(format!("mentions {word}: a Snapshot holds no lock and no counter"));
    }
    if room.side == Side::Core && NEVER_IN_VERSIONS.contains(&word) {
        wrong.push(format!("mentions {word}: versions come from content only"));
    }
}

/// The crates that the library depends on.
fn crates() -> BTreeSet<String> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest = std::fs::read_to_string(manifest).unwrap();
    let (_, after) = manifest.split_once("\n[dependencies]\n").unwrap();
    let (dependencies, _) = after.split_once("\n[dev-dependencies]\n").unwrap();
    let names = dependencies.lines().filter_map(|line| line.split_once('='));
    let names: BTreeSet<String> = names.map(|(name, _)| name.trim().replace('-', "_")).collect();
    assert!(names.contains("tokio") && names.contains("serde_json"), "{names:?}");
    names
}

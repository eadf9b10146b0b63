//! What is in force after files came, changed, broke and went.

use super::{DocumentSet, Entry, Prepared};
use crate::config::{RawDocument, SourceFile, decode};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::kinds::Decoded;
use proptest::prelude::*;
use serde::Deserialize;
use std::sync::Arc;

/// The kind of these tests: a number.
#[derive(Deserialize)]
struct Spec {
    num: u32,
}

fn kinds(raw: &RawDocument, diags: &mut Diagnostics) -> Decoded<u32> {
    if &*raw.header.kind != "Num" || raw.header.group() == "tset" {
        return Decoded::Foreign;
    }
    match decode::<Spec>(raw, "spec", diags) {
        Some(spec) => Decoded::Accepted(spec.num),
        None => Decoded::Refused,
    }
}

#[derive(Default)]
struct Set(DocumentSet<u32>);

impl Set {
    fn put(&mut self, path: &str, text: &str) -> &mut Set {
        self.0.take(Prepared::new(SourceFile::new(path, text), &kinds));
        self
    }

    fn remove(&mut self, path: &str) -> &mut Set {
        self.0.remove_file(path);
        self
    }

    /// `a=1 b=2`: names and numbers in force, by name.
    fn served(&self) -> String {
        let mut all = self.in_order();
        all.sort();
        all.join(" ")
    }

    /// The same in the order of the documents.
    fn in_order(&self) -> Vec<String> {
        self.0.documents().map(|e| format!("{}={}", e.header.name, e.value)).collect()
    }

    fn entries(&self) -> Vec<Arc<Entry<u32>>> {
        self.0.documents().cloned().collect()
    }

    /// `x=1 -> x=2`, sorted; `-` stands for nothing.
    fn changes(&mut self) -> Vec<String> {
        let text = |entry: Option<Arc<Entry<u32>>>| {
            entry.map_or("-".to_owned(), |e| format!("{}={}", e.header.name, e.value))
        };
        let changes = self.0.changes().into_iter();
        let mut all: Vec<String> =
            changes.map(|c| format!("{} -> {}", text(c.before), text(c.after))).collect();
        all.sort();
        all
    }

    fn findings(&self, code: Code) -> Vec<Diagnostic> {
        self.0.diagnostics().into_iter().filter(|d| d.code == code).collect()
    }

    /// The file:line of the findings with that code.
    fn places(&self, code: Code) -> Vec<String> {
        let place = |d: Diagnostic| {
            let span = d.span.unwrap();
            format!("{}:{}", span.file, span.start.line)
        };
        self.findings(code).into_iter().map(place).collect()
    }
}

fn num(name: &str, n: &str) -> String {
    format!("---\napiVersion: t/v1\nkind: Num\nmetadata:\n  name: {name}\nspec:\n  num: {n}\n")
}

fn nums(documents: &[(&str, &str)]) -> String {
    documents.iter().map(|(name, n)| num(name, n)).collect()
}

#[test]
fn documents_come_in_path_order_whatever_the_order_of_reading() {
    let mut one = Set::default();
    one.put("b.yaml", &num("x", "1")).put("a.yaml", &nums(&[("z", "3"), ("v", "2")]));
    let mut other = Set::default();
    other.put("a.yaml", &nums(&[("z", "3"), ("v", "2")])).put("b.yaml", &num("x", "1"));
    assert_eq!(one.in_order(), ["z=3", "v=2", "x=1"]);
    assert_eq!(other.in_order(), one.in_order());
}

#[test]
fn refused_document_keeps_its_last_good_version_and_says_so() {
    let mut set = Set::default();
    set.put("a", &nums(&[("x", "1"), ("v", "2")]));
    set.put("a", &nums(&[("x", "oops"), ("v", "3")]));
    assert_eq!(set.served(), "v=3 x=1");
    assert_eq!(set.places(Code::InvalidValue), ["a:7"]);
    assert_eq!(set.places(Code::LastGoodServed), ["a:5"]);
    set.put("a", &nums(&[("x", "4"), ("v", "3")]));
    assert_eq!(set.served(), "v=3 x=4");
    assert!(set.0.diagnostics().is_empty());
}

#[test]
fn unparsable_document_keeps_its_last_good_version() {
    let mut set = Set::default();
    set.put("a", &nums(&[("x", "1"), ("v", "2")]));
    set.put("a", &nums(&[("x", "[1"), ("v", "3")]));
    assert_eq!(set.served(), "v=3 x=1");
    assert_eq!(set.places(Code::LastGoodServed), ["a:1"]);
    // It moves, stays broken, and is still known.
    set.put("a", &nums(&[("new", "9"), ("v", "3"), ("x", "[1")]));
    assert_eq!(set.served(), "new=9 v=3 x=1");
    assert_eq!(set.places(Code::LastGoodServed), ["a:15"]);
}

#[test]
fn document_that_lost_its_name_or_kind_keeps_its_last_good_version() {
    let text = nums(&[("x", "1"), ("v", "2")]);
    for broken in [
        text.replacen("kind: Num\n", "", 1),
        text.replacen("  name: x\n", "", 1),
        text.replacen("  name: x\n", "  name:\n", 1),
        text.replacen("  name: x\n", "  nam", 1),
        text.replacen("kind: Num\nmetadata:\n  name: x\n", "kind: Nu", 1),
    ] {
        let mut set = Set::default();
        set.put("a", &text).put("a", &broken);
        assert_eq!(set.served(), "v=2 x=1", "{broken}");
        assert_eq!(set.findings(Code::LastGoodServed).len(), 1, "{broken}");
    }
}

#[test]
fn document_with_a_misspelt_kind_keeps_its_last_good_version() {
    let text = num("x", "1");
    for (from, to) in [("Num", "Nun"), ("test/v1", "tset/v1")] {
        let mut set = Set::default();
        set.put("a", &text.replace("t/v1", "test/v1"));
        set.put("a", &text.replace("t/v1", "test/v1").replace(from, to));
        assert_eq!(set.served(), "x=1", "{to}");
        assert_eq!(set.places(Code::LastGoodServed), ["a:5"], "{to}");
        set.put("a", &text.replace("Num", "Deployment"));
        assert_eq!(set.served(), "", "{to}");
    }
}

#[test]
fn file_that_cannot_be_split_any_more_keeps_its_documents() {
    let text = nums(&[("x", "1"), ("v", "2"), ("z", "3")]);
    let mut set = Set::default();
    set.put("a", &text).put("a", &text.replace("---", "- --"));
    assert_eq!(set.served(), "v=2 x=1 z=3");
    set.put("a", "\t{");
    assert_eq!(set.served(), "v=2 x=1 z=3");
    set.put("a", &nums(&[("x", "1")]));
    assert_eq!(set.served(), "x=1");
    assert!(set.0.diagnostics().is_empty());
}

#[test]
fn deleted_document_goes_even_beside_a_broken_one() {
    let mut set = Set::default();
    set.put("a", &nums(&[("x", "1"), ("v", "2"), ("z", "3")]));
    set.put("a", &nums(&[("x", "[1"), ("z", "3")]));
    assert_eq!(set.served(), "x=1 z=3");
    set.put("a", &nums(&[("x", "[1")]));
    assert_eq!(set.served(), "x=1");
    set.put("a", "# nothing\n");
    assert_eq!(set.served(), "");
}

#[test]
fn document_deleted_beside_one_long_broken_and_nameless_goes() {
    let mut set = Set::default();
    let broken = "---\n{{\n";
    set.put("a", &(num("x", "1") + broken));
    assert_eq!(set.served(), "x=1");
    set.put("a", broken);
    assert_eq!(set.served(), "");
}

#[test]
fn removed_file_takes_its_last_good_versions_with_it() {
    let mut set = Set::default();
    set.put("a", &num("x", "1")).put("a", &num("x", "oops")).remove("a");
    assert_eq!(set.served(), "");
    set.put("a", &num("x", "oops"));
    assert_eq!(set.served(), "");
    assert!(set.findings(Code::LastGoodServed).is_empty());
}

#[test]
fn cold_start_has_no_last_good_version() {
    let mut set = Set::default();
    set.put("a", &nums(&[("x", "oops"), ("v", "2"), ("z", "[")]));
    assert_eq!(set.served(), "v=2");
    assert!(set.findings(Code::LastGoodServed).is_empty());
}

#[test]
fn duplicates_name_both_places_and_the_first_in_path_order_counts() {
    let mut set = Set::default();
    set.put("b", &num("x", "2")).put("a", &nums(&[("w", "0"), ("x", "1")]));
    assert_eq!(set.served(), "w=0 x=1");
    let found = set.findings(Code::DuplicateDocument);
    let [finding] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(finding.span.as_ref().unwrap().to_string(), "b:5:9");
    assert_eq!(finding.related[0].span.to_string(), "a:12:9");
    assert!(finding.message.contains("a:12:9"), "{finding}");
    set.remove("a");
    assert_eq!(set.served(), "x=2");
    assert!(set.0.diagnostics().is_empty());
}

#[test]
fn duplicates_in_one_file_count_in_document_order() {
    let mut set = Set::default();
    set.put("a", &nums(&[("x", "1"), ("x", "2"), ("x", "3")]));
    assert_eq!(set.served(), "x=1");
    assert_eq!(set.places(Code::DuplicateDocument), ["a:12", "a:19"]);
}

#[test]
fn valid_duplicate_counts_where_the_first_was_never_valid() {
    let mut set = Set::default();
    set.put("a", &num("x", "oops")).put("b", &num("x", "2"));
    assert_eq!(set.served(), "x=2");
    assert_eq!(set.places(Code::DuplicateDocument), ["a:5"]);
}

#[test]
fn versions_of_a_kind_are_one_document_but_groups_are_not() {
    let mut set = Set::default();
    set.put("a", &num("x", "1")).put("b", &num("x", "2").replace("t/v1", "t/v1beta1"));
    assert_eq!(set.served(), "x=1");
    set.put("b", &num("x", "2").replace("t/v1", "other/v1"));
    assert_eq!(set.served(), "x=1 x=2");
    assert!(set.findings(Code::DuplicateDocument).is_empty());
    // The last good version outlives a change of version, too.
    set.remove("b").put("a", &num("x", "oops").replace("t/v1", "t/v1alpha3"));
    assert_eq!(set.served(), "x=1");
}

#[test]
fn foreign_kinds_are_listed_once() {
    let mut set = Set::default();
    let foreign = num("x", "1").replace("Num", "Deployment");
    set.put("a", &(foreign.clone() + &foreign)).put("b", &foreign);
    assert_eq!(set.served(), "");
    let found = set.findings(Code::KindIgnored);
    assert_eq!(found.len(), 1);
    assert!(found[0].message.contains("3 documents"), "{}", found[0]);
    assert_eq!(set.0.diagnostics(), found);
}

#[test]
fn unchanged_file_changes_nothing() {
    let mut set = Set::default();
    set.put("a", &num("x", "1")).put("a", &(num("x", "2") + "---\n{{\n"));
    assert!(set.0.is_current(&SourceFile::new("a", num("x", "2") + "---\n{{\n")));
    assert!(!set.0.is_current(&SourceFile::new("b", num("x", "2") + "---\n{{\n")));
    let (before, found) = (set.entries(), set.0.diagnostics());
    set.0.changes();
    set.put("a", &(num("x", "2") + "---\n{{\n"));
    assert!(Arc::ptr_eq(&before[0], &set.entries()[0]));
    assert_eq!(set.0.diagnostics(), found);
    assert!(set.0.changes().is_empty());
}

#[test]
fn document_as_it_was_where_it_was_stays_the_same_entry() {
    let mut set = Set::default();
    set.put("a", &nums(&[("v", "1"), ("x", "2"), ("z", "3")]));
    let before = set.entries();
    set.put("a", &nums(&[("v", "1"), ("x", "5"), ("z", "3")]));
    let same = |before: &[Arc<Entry<u32>>], after: &[Arc<Entry<u32>>]| -> Vec<bool> {
        before.iter().zip(after).map(|(a, b)| Arc::ptr_eq(a, b)).collect()
    };
    assert_eq!(same(&before, &set.entries()), [true, false, true]);

    // Broken and mended again, it is the same; moved, it is another, because its places are.
    let before = set.entries();
    set.put("a", &nums(&[("v", "[1"), ("x", "oops"), ("z", "3")]));
    set.put("a", &nums(&[("v", "1"), ("x", "5"), ("z", "3")]));
    assert_eq!(same(&before, &set.entries()), [true, true, true]);
    set.put("a", &("# above\n".to_owned() + &nums(&[("v", "1"), ("x", "5"), ("z", "3")])));
    assert_eq!(same(&before, &set.entries()), [false, false, false]);
}

#[test]
fn item_of_a_list_changes_with_an_anchor_elsewhere_in_it() {
    let list = |n: &str| {
        format!(
            "kind: List\nx: &n {n}\nitems:\n- apiVersion: t/v1\n  kind: Num\n  metadata: \
             {{name: x}}\n  spec: {{num: *n}}\n"
        )
    };
    let mut set = Set::default();
    assert_eq!(set.put("a", &list("1")).served(), "x=1");
    assert_eq!(set.put("a", &list("2")).served(), "x=2");
}

#[test]
fn changes_are_what_came_went_and_changed_since_they_were_asked_for() {
    let mut set = Set::default();
    set.put("a", &nums(&[("v", "1"), ("x", "2")])).put("b", &num("x", "3"));
    assert_eq!(set.changes(), ["- -> v=1", "- -> x=2"]);
    assert_eq!(set.changes(), Vec::<String>::new());
    // The duplicate takes over; what changes twice is one change.
    set.put("a", &num("v", "4")).put("a", &num("v", "5"));
    assert_eq!(set.changes(), ["v=1 -> v=5", "x=2 -> x=3"]);
    set.put("a", &num("v", "6")).put("a", "").put("a", &num("w", "7")).remove("b");
    assert_eq!(set.changes(), ["- -> w=7", "v=5 -> -", "x=3 -> -"]);
    // Nothing changes by breaking, nor by what counts for nothing.
    set.put("a", &num("w", "oops")).put("b", &num("x", "1").replace("Num", "Deployment"));
    assert_eq!(set.changes(), Vec::<String>::new());
}

#[test]
fn files_can_be_prepared_on_any_thread() {
    fn assert_sent<T: Send + 'static>(prepared: T) -> T {
        std::thread::spawn(move || prepared).join().expect("the thread ends well")
    }
    let prepared = Prepared::new(SourceFile::new("a", num("x", "1")), &kinds);
    let mut set = Set::default();
    set.0.take(assert_sent(prepared));
    assert_eq!(set.served(), "x=1");
    assert_sent(super::prepare(SourceFile::new("a", "")));
}

/// A file of the model: for each of four names absent, a number, refused or unparsable.
#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Absent,
    Good(u8),
    Refused,
    Broken,
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![
        Just(State::Absent),
        (0..9u8).prop_map(State::Good),
        Just(State::Refused),
        Just(State::Broken)
    ]
}

/// Absent or a number.
fn good() -> impl Strategy<Value = State> {
    prop_oneof![Just(State::Absent), (0..3u8).prop_map(State::Good)]
}

const NAMES: [&str; 4] = ["p", "q", "r", "s"];

fn file_of(states: &[State; 4]) -> String {
    let text = |(name, state): (&&str, &State)| match state {
        State::Absent => String::new(),
        State::Good(n) => num(name, &n.to_string()),
        State::Refused => num(name, "oops"),
        State::Broken => num(name, "[1"),
    };
    NAMES.iter().zip(states).map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    /// Each document's fate depends on its own history only.
    #[test]
    fn documents_do_not_disturb_each_other(
        history in prop::collection::vec([state(), state(), state(), state()], 1..6),
    ) {
        let mut set = Set::default();
        let mut expected: [Option<u8>; 4] = [None; 4];
        for states in &history {
            set.put("f", &file_of(states));
            for (slot, state) in expected.iter_mut().zip(states) {
                *slot = match state {
                    State::Absent => None,
                    State::Good(n) => Some(*n),
                    State::Refused | State::Broken => *slot,
                };
            }
            // A newly broken document without a past may stand for one that vanished with it.
            let ambiguous = expected.iter().zip(states).any(|(e, s)| e.is_none() && *s == State::Broken);
            if !ambiguous {
                let wanted: Vec<String> = NAMES.iter().zip(expected)
                    .filter_map(|(name, n)| Some(format!("{name}={}", n?))).collect();
                prop_assert_eq!(set.served(), wanted.join(" "));
            } else {
                for (name, n) in NAMES.iter().zip(expected) {
                    if let Some(n) = n {
                        let wanted = format!("{name}={n}");
                        prop_assert!(set.served().contains(&wanted), "{} lacks {wanted}", set.served());
                    }
                }
                return Ok(());
            }
        }
    }

    /// The order in which files are read never shows.
    #[test]
    fn order_of_files_does_not_matter(
        files in prop::collection::vec([state(), state(), state(), state()], 1..5),
        order in Just((0..5usize).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let texts: Vec<(String, String)> =
            files.iter().enumerate().map(|(i, f)| (format!("f{i}"), file_of(f))).collect();
        let mut straight = Set::default();
        for (path, text) in &texts {
            straight.put(path, text);
        }
        let mut shuffled = Set::default();
        for (path, text) in order.iter().filter_map(|&i| texts.get(i)) {
            shuffled.put(path, text);
        }
        prop_assert_eq!(straight.served(), shuffled.served());
        prop_assert_eq!(straight.0.diagnostics(), shuffled.0.diagnostics());
    }

    /// What is kept up to date file by file is what a fresh look at all files would find.
    #[test]
    fn history_does_not_show_where_nothing_was_broken(
        history in prop::collection::vec((0..3usize, [good(), good(), good(), good()]), 1..12),
    ) {
        let mut grown = Set::default();
        let mut files: [Option<String>; 3] = [None, None, None];
        for (at, states) in &history {
            let path = format!("f{at}");
            if states.iter().all(|state| *state == State::Absent) {
                grown.remove(&path);
                files[*at] = None;
            } else {
                grown.put(&path, &file_of(states));
                files[*at] = Some(file_of(states));
            }
        }
        let mut fresh = Set::default();
        for (at, text) in files.iter().enumerate() {
            if let Some(text) = text {
                fresh.put(&format!("f{at}"), text);
            }
        }
        prop_assert_eq!(grown.in_order(), fresh.in_order());
        prop_assert_eq!(grown.0.diagnostics(), fresh.0.diagnostics());
        let changes = |mut set: Set| set.changes();
        prop_assert_eq!(changes(grown), changes(fresh));
    }
}

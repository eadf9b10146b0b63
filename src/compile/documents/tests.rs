//! What is in force after files came, changed, broke and went.

use super::{Decoded, DocumentSet};
use crate::config::{RawDocument, SourceFile, decode};
use crate::diag::{Code, Diagnostic, Diagnostics};
use proptest::prelude::*;
use serde::Deserialize;

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
        self.0.replace_file(SourceFile::new(path, text), &kinds);
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
        let documents = self.0.documents();
        documents.iter().map(|e| format!("{}={}", e.raw.header.name, e.value)).collect()
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
fn unchanged_file_is_not_decoded_again() {
    let mut set = Set::default();
    set.put("a", &num("x", "1")).put("a", &num("x", "oops"));
    let never = |_: &RawDocument, _: &mut Diagnostics| -> Decoded<u32> { panic!("decoded again") };
    set.0.replace_file(SourceFile::new("a", num("x", "oops")), &never);
    assert_eq!(set.served(), "x=1");
    assert_eq!(set.findings(Code::LastGoodServed).len(), 1);
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
}

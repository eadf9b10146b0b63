//! Header changes. Envoy refuses a route that adds or removes `:`-headers or `host`, so a new
//! authority becomes a host rewrite.

use crate::model::{HeaderOperations, Headers};
use std::collections::BTreeMap;

/// Header changes in one direction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderChanges {
    /// What is set first, then what is added, each by name.
    pub add: Vec<HeaderAddition>,
    /// As written.
    pub remove: Vec<String>,
}

/// A header with a new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderAddition {
    /// The header.
    pub name: String,
    /// Its value, an Envoy format string.
    pub value: String,
    /// Whether a value that is there stays beside the new one.
    pub append: bool,
}

/// The changes that a rule or a destination asks for.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub request: HeaderChanges,
    pub response: HeaderChanges,
    /// A new authority; one that is set beats one that is added.
    pub authority: Option<String>,
}

impl Changes {
    pub fn of(headers: &Headers) -> Changes {
        Changes {
            request: HeaderChanges::of(&headers.request),
            response: HeaderChanges::of(&headers.response),
            authority: authority(&headers.request.set).or_else(|| authority(&headers.request.add)),
        }
    }

    /// Adds the changes of a destination behind those of its rule.
    pub fn append(&mut self, other: Changes) {
        self.request.append(other.request);
        self.response.append(other.response);
    }
}

impl HeaderChanges {
    fn of(operations: &HeaderOperations) -> HeaderChanges {
        let additions = |map: &BTreeMap<String, String>, append| -> Vec<HeaderAddition> {
            let mutable = map.iter().filter(|(name, _)| is_mutable(name));
            let one = |(name, value): (&String, &String)| HeaderAddition {
                name: name.clone(),
                value: value.clone(),
                append,
            };
            mutable.map(one).collect()
        };
        let mut add = additions(&operations.set, false);
        add.extend(additions(&operations.add, true));
        let remove = operations.remove.iter().filter(|name| is_mutable(name)).cloned().collect();
        HeaderChanges { add, remove }
    }

    fn append(&mut self, other: HeaderChanges) {
        self.add.extend(other.add);
        self.remove.extend(other.remove);
    }
}

fn is_mutable(name: &str) -> bool {
    !name.starts_with(':') && !name.eq_ignore_ascii_case("host")
}

fn authority(operations: &BTreeMap<String, String>) -> Option<String> {
    let names_it =
        |key: &str| key.eq_ignore_ascii_case(":authority") || key.eq_ignore_ascii_case("host");
    operations.iter().find(|(key, _)| names_it(key)).map(|(_, value)| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations(set: &[(&str, &str)], add: &[(&str, &str)], remove: &[&str]) -> HeaderOperations {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect()
        };
        HeaderOperations {
            set: map(set),
            add: map(add),
            remove: remove.iter().map(|&r| r.to_owned()).collect(),
        }
    }

    #[test]
    fn what_is_set_comes_before_what_is_added() {
        let headers = Headers {
            request: operations(&[("z", "1"), ("b", "2")], &[("a", "3")], &["gone"]),
            response: HeaderOperations::default(),
        };
        let changes = Changes::of(&headers).request;
        let written: Vec<_> = changes.add.iter().map(|a| (a.name.as_str(), a.append)).collect();
        assert_eq!(written, [("b", false), ("z", false), ("a", true)]);
        assert_eq!(changes.remove, ["gone"]);
    }

    #[test]
    fn the_authority_is_taken_out_of_the_lists() {
        let headers = Headers {
            request: operations(&[("Host", "set")], &[(":authority", "added")], &["HOST", ":path"]),
            response: operations(&[("host", "x")], &[(":status", "1")], &[":status"]),
        };
        let changes = Changes::of(&headers);
        assert_eq!(changes.authority.as_deref(), Some("set"));
        assert_eq!(changes.request, HeaderChanges::default());
        assert_eq!(changes.response, HeaderChanges::default());
    }
}

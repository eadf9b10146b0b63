//! Header changes. Envoy refuses a route that adds or removes `:`-headers or `host`, so a new
//! authority becomes a host rewrite.

use crate::model::{HeaderOperations, Headers};
use crate::xds::pb::core;
use core::header_value_option::HeaderAppendAction;
use std::collections::BTreeMap;

/// Header changes in Envoy's terms.
#[derive(Debug, Default)]
pub struct Changes {
    /// Set first, then added, each by name.
    pub request_add: Vec<core::HeaderValueOption>,
    /// As written.
    pub request_remove: Vec<String>,
    /// Set first, then added, each by name.
    pub response_add: Vec<core::HeaderValueOption>,
    /// As written.
    pub response_remove: Vec<String>,
    /// A new authority; one that is set beats one that is added.
    pub authority: Option<String>,
}

/// The changes that a rule or a destination asks for.
pub fn changes(headers: &Headers) -> Changes {
    Changes {
        request_add: additions(&headers.request),
        request_remove: removals(&headers.request),
        response_add: additions(&headers.response),
        response_remove: removals(&headers.response),
        authority: authority(&headers.request.set).or_else(|| authority(&headers.request.add)),
    }
}

fn additions(operations: &HeaderOperations) -> Vec<core::HeaderValueOption> {
    let option = |action: HeaderAppendAction| {
        move |(key, value): (&String, &String)| core::HeaderValueOption {
            header: Some(core::HeaderValue {
                key: key.clone(),
                value: value.clone(),
                ..Default::default()
            }),
            append_action: action.into(),
            ..Default::default()
        }
    };
    let mutable = |(key, _): &(&String, &String)| is_mutable(key);
    let set = operations.set.iter().filter(mutable);
    let add = operations.add.iter().filter(mutable);
    set.map(option(HeaderAppendAction::OverwriteIfExistsOrAdd))
        .chain(add.map(option(HeaderAppendAction::AppendIfExistsOrAdd)))
        .collect()
}

fn removals(operations: &HeaderOperations) -> Vec<String> {
    operations.remove.iter().filter(|key| is_mutable(key)).cloned().collect()
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
        let changes = changes(&headers);
        let written: Vec<_> = changes
            .request_add
            .iter()
            .map(|o| (o.header.as_ref().unwrap().key.as_str(), o.append_action().as_str_name()))
            .collect();
        assert_eq!(
            written,
            [
                ("b", "OVERWRITE_IF_EXISTS_OR_ADD"),
                ("z", "OVERWRITE_IF_EXISTS_OR_ADD"),
                ("a", "APPEND_IF_EXISTS_OR_ADD")
            ]
        );
        assert_eq!(changes.request_remove, ["gone"]);
    }

    #[test]
    fn the_authority_is_taken_out_of_the_lists() {
        let headers = Headers {
            request: operations(&[("Host", "set")], &[(":authority", "added")], &["HOST", ":path"]),
            response: operations(&[("host", "x")], &[(":status", "1")], &[":status"]),
        };
        let changes = changes(&headers);
        assert_eq!(changes.authority.as_deref(), Some("set"));
        assert!(changes.request_add.is_empty() && changes.request_remove.is_empty());
        assert!(changes.response_add.is_empty() && changes.response_remove.is_empty());
    }
}

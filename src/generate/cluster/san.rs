//! Names in the certificates of servers.

use crate::model::{MeshSettings, Service};
use crate::xds::pb;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The names in the certificates of a service (`compile` has added the identities of its
/// workloads), in every trust domain that counts as ours.
pub(super) fn of_service(service: &Service, mesh: &MeshSettings) -> BTreeSet<String> {
    let domains = || std::iter::once(&mesh.trust_domain).chain(mesh.trust_domain_aliases.iter());
    let mut names = BTreeSet::new();
    for name in &service.subject_alt_names {
        match name.strip_prefix("spiffe://").and_then(|rest| rest.split_once('/')) {
            Some((domain, path)) if domains().any(|d| **d == *domain) => {
                names.extend(domains().map(|d| format!("spiffe://{d}/{path}")));
            }
            Some(_) | None => {
                names.insert(name.clone());
            }
        }
    }
    names
}

/// Matches one name, of the type that it looks like.
pub(in crate::generate) fn matcher(name: &str) -> pb::tls::SubjectAltNameMatcher {
    use pb::tls::subject_alt_name_matcher::SanType;
    let san_type = if name.contains("://") {
        SanType::Uri
    } else if name.parse::<IpAddr>().is_ok() {
        SanType::IpAddress
    } else if name.contains('@') {
        SanType::Email
    } else {
        SanType::Dns
    };
    let exact = pb::matcher::string_matcher::MatchPattern::Exact(name.to_owned());
    pb::tls::SubjectAltNameMatcher {
        san_type: san_type.into(),
        matcher: Some(pb::matcher::StringMatcher {
            match_pattern: Some(exact),
            ..Default::default()
        }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pb::tls::subject_alt_name_matcher::SanType;

    #[test]
    fn a_name_is_matched_as_what_it_looks_like() {
        for (name, expected) in [
            ("spiffe://td/ns/a/sa/b", SanType::Uri),
            ("10.0.0.1", SanType::IpAddress),
            ("fd00::1", SanType::IpAddress),
            ("a@b.example", SanType::Email),
            ("b.example", SanType::Dns),
        ] {
            assert_eq!(matcher(name).san_type, i32::from(expected), "{name}");
        }
    }
}

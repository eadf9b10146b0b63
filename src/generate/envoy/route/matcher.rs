//! Which requests a match wants.

use crate::generate::envoy::matching;
use crate::model::{HttpMatch, PathMatch, StringMatch};
use crate::xds::pb::{self, matcher, route};
use matcher::metadata_matcher::{PathSegment, path_segment::Segment};
use matcher::{MetadataMatcher, ValueMatcher, list_matcher, value_matcher};
use route::header_matcher::HeaderMatchSpecifier;
use route::query_parameter_matcher::QueryParameterMatchSpecifier;
use route::route_match::PathSpecifier;

/// The match of a rule that has none.
pub fn everything() -> route::RouteMatch {
    route::RouteMatch {
        path_specifier: Some(PathSpecifier::Prefix("/".to_owned())),
        ..Default::default()
    }
}

/// What a match asks of a request.
pub fn route_match(wanted: &HttpMatch) -> route::RouteMatch {
    let pseudo_headers = [
        (":method", &wanted.method),
        (":authority", &wanted.authority),
        (":scheme", &wanted.scheme),
    ];
    let plain = |name: &String| claim_path(name).is_none();
    let mut headers: Vec<route::HeaderMatcher> =
        wanted.headers.iter().filter(|(n, _)| plain(n)).map(|(n, v)| header(n, v)).collect();
    headers.extend(
        wanted.without_headers.iter().filter(|(n, _)| plain(n)).map(|(n, v)| without(n, v)),
    );
    headers.sort_by(|a, b| a.name.cmp(&b.name));
    headers.extend(
        pseudo_headers
            .into_iter()
            .filter(|(_, value)| value.is_some())
            .map(|(name, value)| header(name, value)),
    );
    let claims =
        |(name, value): (&String, &Option<StringMatch>)| Some(claim(&claim_path(name)?, value));
    route::RouteMatch {
        path_specifier: Some(path(wanted.path.as_ref())),
        case_sensitive: Some(pb::bool_value(!wanted.ignore_path_case)),
        headers,
        query_parameters: wanted.query_params.iter().map(|(n, v)| query(n, v)).collect(),
        dynamic_metadata: wanted
            .headers
            .iter()
            .filter_map(claims)
            .chain(wanted.without_headers.iter().filter_map(claims).map(inverted))
            .collect(),
        ..Default::default()
    }
}

fn path(wanted: Option<&PathMatch>) -> PathSpecifier {
    let everything = || PathSpecifier::Prefix("/".to_owned());
    match wanted {
        None => everything(),
        Some(PathMatch::Exact(path)) => PathSpecifier::Path(path.clone()),
        Some(PathMatch::Prefix(prefix)) => PathSpecifier::Prefix(prefix.clone()),
        // Envoy refuses a final slash, which means nothing.
        Some(PathMatch::SegmentPrefix(prefix)) => match prefix.trim_end_matches('/') {
            "" => everything(),
            prefix => PathSpecifier::PathSeparatedPrefix(prefix.to_owned()),
        },
        Some(PathMatch::Regex(pattern)) => PathSpecifier::SafeRegex(matching::regex(pattern)),
    }
}

/// Istio writes presence as an empty match or as the regex `*`, which is none.
fn is_presence(value: &Option<StringMatch>) -> bool {
    match value {
        None => true,
        Some(StringMatch::Regex(pattern)) => pattern == "*",
        Some(StringMatch::Exact(_) | StringMatch::Prefix(_)) => false,
    }
}

fn header(name: &str, value: &Option<StringMatch>) -> route::HeaderMatcher {
    let specifier = match value {
        Some(value_match) if !is_presence(value) => {
            HeaderMatchSpecifier::StringMatch(matching::string(value_match))
        }
        Some(_) | None => HeaderMatchSpecifier::PresentMatch(true),
    };
    route::HeaderMatcher {
        name: name.to_owned(),
        header_match_specifier: Some(specifier),
        ..Default::default()
    }
}

/// A request that lacks the header must match too. Seen on Envoy 1.40: an inverted match does not
/// take such a request unless a missing header may count as an empty one.
fn without(name: &str, value: &Option<StringMatch>) -> route::HeaderMatcher {
    route::HeaderMatcher {
        invert_match: true,
        treat_missing_header_as_empty: !is_presence(value),
        ..header(name, value)
    }
}

fn query(name: &str, value: &Option<StringMatch>) -> route::QueryParameterMatcher {
    let specifier = match value {
        Some(value_match) if !is_presence(value) => {
            QueryParameterMatchSpecifier::StringMatch(matching::string(value_match))
        }
        Some(_) | None => QueryParameterMatchSpecifier::PresentMatch(true),
    };
    route::QueryParameterMatcher {
        name: name.to_owned(),
        query_parameter_match_specifier: Some(specifier),
    }
}

/// The path of a JWT claim that is written as a header: `@request.auth.claims.group` or
/// `@request.auth.claims[group][name]`.
fn claim_path(name: &str) -> Option<Vec<String>> {
    const PREFIX: &str = "@request.auth.claims";
    let head = name.get(..PREFIX.len()).filter(|head| head.eq_ignore_ascii_case(PREFIX))?;
    let rest = &name[head.len()..];
    if let Some(dotted) = rest.strip_prefix('.') {
        let parts: Vec<String> = dotted.split('.').map(str::to_owned).collect();
        return parts.iter().all(|part| !part.is_empty()).then_some(parts);
    }
    let bracketed = rest.strip_prefix('[')?.strip_suffix(']')?;
    Some(bracketed.split("][").map(str::to_owned).collect())
}

/// A claim may be a text or a list that has the text.
fn claim(path: &[String], value: &Option<StringMatch>) -> MetadataMatcher {
    use value_matcher::MatchPattern;
    let pattern = |pattern| ValueMatcher { match_pattern: Some(pattern) };
    let value = match value {
        Some(text) if !is_presence(value) => {
            let text = pattern(MatchPattern::StringMatch(matching::string(text)));
            let one_of = list_matcher::MatchPattern::OneOf(Box::new(text.clone()));
            let list = matcher::ListMatcher { match_pattern: Some(one_of) };
            let list = pattern(MatchPattern::ListMatch(Box::new(list)));
            pattern(MatchPattern::OrMatch(matcher::OrMatcher { value_matchers: vec![text, list] }))
        }
        Some(_) | None => pattern(MatchPattern::PresentMatch(true)),
    };
    let segment = |key: &str| PathSegment { segment: Some(Segment::Key(key.to_owned())) };
    MetadataMatcher {
        filter: "envoy.filters.http.jwt_authn".to_owned(),
        path: std::iter::once("payload")
            .chain(path.iter().map(String::as_str))
            .map(segment)
            .collect(),
        value: Some(value),
        invert: false,
    }
}

fn inverted(matcher: MetadataMatcher) -> MetadataMatcher {
    MetadataMatcher { invert: true, ..matcher }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::http_match;

    fn exact(text: &str) -> Option<StringMatch> {
        Some(StringMatch::Exact(text.to_owned()))
    }

    #[test]
    fn headers_come_by_name_and_pseudo_headers_last() {
        let mut wanted = HttpMatch { method: exact("GET"), authority: exact("a"), ..http_match() };
        wanted.headers.insert("z".into(), exact("1"));
        wanted.headers.insert("m".into(), None);
        wanted.without_headers.insert("n".into(), exact("2"));
        let names: Vec<String> = route_match(&wanted).headers.into_iter().map(|h| h.name).collect();
        assert_eq!(names, ["m", "n", "z", ":method", ":authority"]);
    }

    #[test]
    fn a_request_without_the_header_satisfies_without_headers() {
        let mut wanted = http_match();
        wanted.without_headers.insert("a".into(), Some(StringMatch::Regex("x.*".into())));
        wanted.without_headers.insert("b".into(), Some(StringMatch::Regex("*".into())));
        wanted.without_headers.insert("c".into(), None);
        for header in route_match(&wanted).headers {
            assert!(header.invert_match);
            assert_eq!(header.treat_missing_header_as_empty, header.name == "a", "{}", header.name);
        }
    }

    #[test]
    fn presence_of_a_query_parameter_is_written_as_such() {
        let mut wanted = http_match();
        wanted.query_params.insert("q".into(), None);
        wanted.query_params.insert("p".into(), exact("1"));
        let query = route_match(&wanted).query_parameters;
        assert_eq!(query[0].name, "p");
        assert_eq!(
            query[1].query_parameter_match_specifier,
            Some(QueryParameterMatchSpecifier::PresentMatch(true))
        );
    }

    #[test]
    fn claims_are_looked_up_in_what_jwt_authn_leaves() {
        assert_eq!(claim_path("@request.auth.claims.a.b"), Some(vec!["a".into(), "b".into()]));
        assert_eq!(
            claim_path("@Request.Auth.Claims[a.b][c]"),
            Some(vec!["a.b".into(), "c".into()])
        );
        assert_eq!(claim_path("@request.auth.claims"), None);
        assert_eq!(claim_path("x-header"), None);
        let mut wanted = http_match();
        wanted.without_headers.insert("@request.auth.claims.group".into(), exact("admin"));
        let made = route_match(&wanted);
        assert!(made.headers.is_empty());
        assert_eq!(made.dynamic_metadata.len(), 1);
        assert!(made.dynamic_metadata[0].invert);
        assert_eq!(made.dynamic_metadata[0].path.len(), 2);
    }

    #[test]
    fn case_is_ignored_only_when_asked() {
        let ignoring = HttpMatch { ignore_path_case: true, ..http_match() };
        assert_eq!(route_match(&ignoring).case_sensitive, Some(pb::bool_value(false)));
        assert_eq!(route_match(&http_match()).case_sensitive, Some(pb::bool_value(true)));
        assert_eq!(everything().case_sensitive, None);
    }

    #[test]
    fn segments_are_separated_and_have_no_final_slash() {
        let of = |prefix: &str| path(Some(&PathMatch::SegmentPrefix(prefix.into())));
        assert_eq!(of("/a/b"), PathSpecifier::PathSeparatedPrefix("/a/b".into()));
        assert_eq!(of("/a/"), PathSpecifier::PathSeparatedPrefix("/a".into()));
        assert_eq!(of("/"), PathSpecifier::Prefix("/".into()));
    }
}

//! Answers cross-origin preflights: empty in the chain, the policies are on the routes.

use super::{Decided, Extra, HttpFilter, RouteSite, Site};
use crate::generate::envoy::matching;
use crate::generate::filters::Settings;
use crate::model::{self, Percent};
use crate::xds::pb::{self, Any, cors};

pub(super) struct Cors;

impl HttpFilter for Cors {
    fn name(&self) -> &'static str {
        "envoy.filters.http.cors"
    }

    fn in_chain(&self, _: &Site<'_>, _: &mut Extra) -> Option<Decided> {
        Some(Present.into())
    }

    fn on_route(&self, site: &RouteSite<'_>, _: &mut Extra) -> Option<Decided> {
        Some(Policy(site.rule.cors.clone()?).into())
    }
}

/// In the chain, where routes have policies.
#[derive(Debug, PartialEq)]
struct Present;

impl Settings for Present {
    fn spell(&self) -> Any {
        pb::any(&cors::Cors {})
    }
}

/// The policy of a route.
#[derive(Debug, PartialEq)]
struct Policy(model::Cors);

impl Settings for Policy {
    fn spell(&self) -> Any {
        pb::any(&policy(&self.0))
    }
}

fn policy(policy: &model::Cors) -> cors::CorsPolicy {
    cors::CorsPolicy {
        allow_origin_string_match: policy.allow_origins.iter().map(matching::string).collect(),
        allow_methods: policy.allow_methods.join(","),
        allow_headers: policy.allow_headers.join(","),
        expose_headers: policy.expose_headers.join(","),
        max_age: policy.max_age.map_or_else(String::new, |age| age.as_secs().to_string()),
        allow_credentials: policy.allow_credentials.map(pb::bool_value),
        filter_enabled: Some(matching::runtime_fraction(Percent::Hundredths(100))),
        forward_not_matching_preflights: Some(pb::bool_value(
            policy.forward_not_matching_preflights,
        )),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::test_support::decode;
    use crate::model::StringMatch;
    use std::time::Duration;

    #[test]
    fn a_policy_is_written_as_header_values() {
        let cors = model::Cors {
            allow_origins: vec![StringMatch::Exact("https://a".into())],
            allow_methods: vec!["GET".into(), "POST".into()],
            allow_headers: vec!["x-a".into(), "x-b".into()],
            expose_headers: Vec::new(),
            max_age: Some(Duration::from_secs(86400)),
            allow_credentials: Some(false),
            forward_not_matching_preflights: true,
        };
        let made: cors::CorsPolicy = decode(&Policy(cors).spell());
        assert_eq!(made.allow_methods, "GET,POST");
        assert_eq!(made.allow_headers, "x-a,x-b");
        assert_eq!(made.expose_headers, "");
        assert_eq!(made.max_age, "86400");
        assert_eq!(made.allow_credentials, Some(pb::bool_value(false)));
        assert_eq!(made.forward_not_matching_preflights, Some(pb::bool_value(true)));
        assert_eq!(made.allow_origin_string_match.len(), 1);
    }
}

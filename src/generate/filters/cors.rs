//! Answers cross-origin preflights: empty in the chain, the policies are on the routes.

use super::{FilterContext, HttpFilter};
use crate::generate::matching;
use crate::model::{self, HttpRule, Percent};
use crate::xds::pb::{self, Any, cors};

pub(super) struct Cors;

impl HttpFilter for Cors {
    fn name(&self) -> &'static str {
        "envoy.filters.http.cors"
    }

    fn in_chain(&self, _: &FilterContext) -> Option<Any> {
        Some(pb::any(&cors::Cors {}))
    }

    fn on_route(&self, rule: &HttpRule) -> Option<Any> {
        Some(pb::any(&policy(rule.cors.as_ref()?)))
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
    use crate::generate::test_support::{decode, http_rule};
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
        let rule = HttpRule { cors: Some(cors), ..http_rule() };
        let made: cors::CorsPolicy = decode(&Cors.on_route(&rule).unwrap());
        assert_eq!(made.allow_methods, "GET,POST");
        assert_eq!(made.allow_headers, "x-a,x-b");
        assert_eq!(made.expose_headers, "");
        assert_eq!(made.max_age, "86400");
        assert_eq!(made.allow_credentials, Some(pb::bool_value(false)));
        assert_eq!(made.forward_not_matching_preflights, Some(pb::bool_value(true)));
        assert_eq!(made.allow_origin_string_match.len(), 1);
    }
}

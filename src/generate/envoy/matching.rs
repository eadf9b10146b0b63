//! Text matches and shares in Envoy's terms, for everything that compares or samples.

use crate::model::{Percent, StringMatch};
use crate::xds::pb::{core, matcher, percent};

/// A text match. Envoy's constraints refuse empty prefixes and empty expressions, so those are
/// written as what they mean.
pub fn string(value: &StringMatch) -> matcher::StringMatcher {
    use matcher::string_matcher::MatchPattern;
    let pattern = match value {
        StringMatch::Exact(text) => MatchPattern::Exact(text.clone()),
        StringMatch::Prefix(text) if text.is_empty() => MatchPattern::SafeRegex(regex(".*")),
        StringMatch::Prefix(text) => MatchPattern::Prefix(text.clone()),
        StringMatch::Regex(text) if text.is_empty() => MatchPattern::Exact(String::new()),
        StringMatch::Regex(text) => MatchPattern::SafeRegex(regex(text)),
    };
    matcher::StringMatcher { match_pattern: Some(pattern), ..Default::default() }
}

/// An RE2 expression; the engine is not named because Envoy knows only one.
pub fn regex(pattern: &str) -> matcher::RegexMatcher {
    matcher::RegexMatcher { regex: pattern.to_owned(), ..Default::default() }
}

/// A share in the unit in which it was written.
pub fn fraction(share: Percent) -> percent::FractionalPercent {
    use percent::fractional_percent::DenominatorType;
    let (numerator, denominator) = match share {
        Percent::Millionths(n) => (n, DenominatorType::Million),
        Percent::Hundredths(n) => (n, DenominatorType::Hundred),
    };
    percent::FractionalPercent { numerator, denominator: denominator.into() }
}

/// A share that no runtime key changes.
pub fn runtime_fraction(share: Percent) -> core::RuntimeFractionalPercent {
    core::RuntimeFractionalPercent {
        default_value: Some(fraction(share)),
        runtime_key: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use matcher::string_matcher::MatchPattern;

    #[test]
    fn what_envoy_refuses_is_written_as_what_it_means() {
        let pattern = |m| string(&m).match_pattern;
        assert_eq!(
            pattern(StringMatch::Prefix(String::new())),
            Some(MatchPattern::SafeRegex(regex(".*")))
        );
        assert_eq!(
            pattern(StringMatch::Regex(String::new())),
            Some(MatchPattern::Exact(String::new()))
        );
    }
}

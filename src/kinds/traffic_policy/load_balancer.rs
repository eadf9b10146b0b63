//! `loadBalancer`: which endpoint a request goes to. Localities have a file of their own.

use super::locality::{LocalitySetting, ZoneAwareSetting};
use super::outlier_detection::OutlierDetection;
use crate::config::{Field, Findings};
use crate::diag::{Code, Diagnostic};
use crate::kinds::{rules, values};
use crate::model;
use schemars::JsonSchema;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Istio's limit for the table of Maglev hashing, which is also Envoy's.
const MAGLEV_LIMIT: u64 = 5_000_011;

/// Which endpoint a request goes to. At most one of `simple` and `consistentHash`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadBalancer {
    /// One of the standard algorithms.
    pub simple: Option<SimpleLb>,
    /// Sends what is alike to the same endpoint.
    pub consistent_hash: Option<ConsistentHash>,
    /// Preferences between localities.
    pub locality_lb_setting: Option<LocalitySetting>,
    /// Prefers endpoints of the caller's zone.
    pub zone_aware_lb_setting: Option<ZoneAwareSetting>,
    /// Deprecated form of `warmup.duration`.
    pub warmup_duration_secs: Option<values::Duration>,
    /// Lets new endpoints start with little traffic.
    pub warmup: Option<Warmup>,
}

/// Standard algorithms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum SimpleLb {
    /// The default, which is `LEAST_REQUEST`.
    #[default]
    Unspecified,
    /// Deprecated name of `LEAST_REQUEST`.
    LeastConn,
    /// Any endpoint.
    Random,
    /// The address that the client asked for.
    Passthrough,
    /// One after the other.
    RoundRobin,
    /// The less busy of two random endpoints.
    LeastRequest,
}

/// Sends what is alike to the same endpoint. Exactly one of the four keys is hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsistentHash {
    /// Hashes a request header of this name.
    pub http_header_name: Option<String>,
    /// Hashes a cookie.
    pub http_cookie: Option<HttpCookie>,
    /// Hashes the caller's address.
    pub use_source_ip: Option<bool>,
    /// Hashes a query parameter of this name.
    pub http_query_parameter_name: Option<String>,
    /// Finds endpoints with a hash ring; the default.
    pub ring_hash: Option<RingHash>,
    /// Finds endpoints with Maglev's table.
    pub maglev: Option<Maglev>,
    /// Deprecated form of `ringHash.minimumRingSize`.
    #[serde(default)]
    pub minimum_ring_size: u64,
}

/// A hash ring.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RingHash {
    /// Fewest entries of the ring; unset is 1024.
    #[serde(default)]
    pub minimum_ring_size: u64,
}

/// Maglev's table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Maglev {
    /// Size of the table, a prime number below 5000011.
    #[serde(default)]
    pub table_size: u64,
}

/// A cookie that is hashed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCookie {
    /// Name of the cookie.
    pub name: String,
    /// Path of the cookie when it is made.
    #[serde(default)]
    pub path: String,
    /// How long the cookie lives when it is made; 0s is a session. Unset never makes one.
    pub ttl: Option<values::Duration>,
    /// Further attributes of the cookie when it is made.
    #[serde(default)]
    pub attributes: Vec<CookieAttribute>,
}

/// An attribute of a cookie.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CookieAttribute {
    /// Name of the attribute.
    pub name: String,
    /// Value of the attribute; some have none.
    #[serde(default)]
    pub value: String,
}

/// Lets new endpoints start with little traffic.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warmup {
    /// How long an endpoint counts as new.
    pub duration: values::Duration,
    /// Share to start with, in percent; unset is 10.
    #[schemars(range(min = 0, max = 100))]
    pub minimum_percent: Option<f64>,
    /// How traffic grows: 1 is evenly (the default), more is slow at first.
    #[schemars(range(min = 0))]
    pub aggression: Option<f64>,
}

impl LoadBalancer {
    /// Istio's rules; those of localities depend on whether failing endpoints are noticed.
    pub fn check(&self, at: &Field<'_>, outlier: Option<&OutlierDetection>, f: &mut Findings<'_>) {
        if self.simple.is_some() && self.consistent_hash.is_some() {
            let message = "`simple` and `consistentHash` exclude each other; keep one";
            f.error(&at.key("simple"), Code::ConflictingFields, message);
        }
        if let Some(hash) = &self.consistent_hash {
            hash.check(&at.key("consistentHash"), f);
        }
        if self.locality_lb_setting.is_some() && self.zone_aware_lb_setting.is_some() {
            let message =
                "`localityLbSetting` and `zoneAwareLbSetting` exclude each other; keep one";
            f.error(&at.key("zoneAwareLbSetting"), Code::ConflictingFields, message);
        }
        if let Some(setting) = &self.locality_lb_setting {
            setting.check(&at.key("localityLbSetting"), outlier, f);
        }
        if let Some(setting) = &self.zone_aware_lb_setting {
            setting.check(&at.key("zoneAwareLbSetting"), outlier, f);
        }
        if let Some(duration) = self.warmup_duration_secs {
            rules::duration(f, &at.key("warmupDurationSecs"), duration);
            if self.warmup.is_some() {
                let message = "`warmupDurationSecs` and `warmup` exclude each other; keep `warmup`";
                f.error(&at.key("warmupDurationSecs"), Code::ConflictingFields, message);
            }
        }
        if let Some(warmup) = &self.warmup {
            warmup.check(&at.key("warmup"), f);
        }
    }

    /// What it means.
    pub fn lower(&self) -> model::LoadBalancer {
        let warmup = self.warmup.as_ref().map(Warmup::lower);
        let old_warmup = || {
            self.warmup_duration_secs.map(|duration| model::Warmup {
                duration: duration.into(),
                minimum_percent: None,
                aggression: None,
            })
        };
        model::LoadBalancer {
            simple: match self.simple.unwrap_or_default() {
                SimpleLb::Unspecified => model::SimpleLb::Unspecified,
                SimpleLb::LeastConn | SimpleLb::LeastRequest => model::SimpleLb::LeastRequest,
                SimpleLb::Random => model::SimpleLb::Random,
                SimpleLb::Passthrough => model::SimpleLb::Passthrough,
                SimpleLb::RoundRobin => model::SimpleLb::RoundRobin,
            },
            consistent_hash: self.consistent_hash.as_ref().map(ConsistentHash::lower),
            locality: self.locality_lb_setting.as_ref().map(LocalitySetting::lower),
            zone_aware: self.zone_aware_lb_setting.as_ref().map(ZoneAwareSetting::lower),
            warmup: warmup.or_else(old_warmup),
        }
    }
}

impl ConsistentHash {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        let keys: Vec<&str> = [
            ("httpHeaderName", self.http_header_name.is_some()),
            ("httpCookie", self.http_cookie.is_some()),
            ("useSourceIp", self.use_source_ip.is_some()),
            ("httpQueryParameterName", self.http_query_parameter_name.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, set)| set.then_some(name))
        .collect();
        if let [first, others @ ..] = keys.as_slice() {
            for other in others {
                let message = format!("`{first}` is already hashed; keep one of the two");
                f.error(&at.key(other), Code::ConflictingFields, message);
            }
        }
        if self.ring_hash.is_some() && self.maglev.is_some() {
            let message = "`ringHash` and `maglev` exclude each other; keep one";
            f.error(&at.key("maglev"), Code::ConflictingFields, message);
        }
        if self.minimum_ring_size > 0 {
            let field = at.key("minimumRingSize");
            if self.ring_hash.is_some() || self.maglev.is_some() {
                let message = "the field excludes `ringHash` and `maglev`; remove it";
                f.error(&field, Code::ConflictingFields, message);
            } else {
                let message = "the field is deprecated; use `ringHash.minimumRingSize`";
                f.warn(&field, Code::Deprecated, message);
            }
        }
        if let Some(cookie) = &self.http_cookie {
            cookie.check(&at.key("httpCookie"), f);
        }
        if let Some(maglev) = &self.maglev {
            let size = maglev.table_size;
            if size >= MAGLEV_LIMIT || !is_prime(size) {
                let message =
                    format!("the size must be a prime number below {MAGLEV_LIMIT}, not {size}");
                let diagnostic =
                    Diagnostic::new(Code::InvalidValue, message).help("65537 is a good choice");
                f.report(&at.key("maglev").key("tableSize"), diagnostic);
            }
        }
    }

    fn lower(&self) -> model::ConsistentHash {
        let key = if let Some(name) = &self.http_header_name {
            Some(model::HashKey::Header(name.clone()))
        } else if let Some(cookie) = &self.http_cookie {
            Some(model::HashKey::Cookie(cookie.lower()))
        } else if let Some(on) = self.use_source_ip {
            Some(model::HashKey::SourceIp(on))
        } else {
            self.http_query_parameter_name.clone().map(model::HashKey::QueryParameter)
        };
        let algorithm = match (&self.ring_hash, &self.maglev) {
            (Some(ring), _) => model::HashAlgorithm::RingHash(ring.minimum_ring_size),
            (None, Some(maglev)) => model::HashAlgorithm::Maglev(maglev.table_size),
            (None, None) if self.minimum_ring_size > 0 => {
                model::HashAlgorithm::Default(self.minimum_ring_size)
            }
            (None, None) => model::HashAlgorithm::Default(1024),
        };
        model::ConsistentHash { key, algorithm }
    }
}

impl HttpCookie {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        if self.name.is_empty() {
            f.error(&at.key("name"), Code::MissingField, "the cookie needs a name");
        }
        let attributes = at.key("attributes");
        let mut seen = BTreeSet::new();
        for (index, attribute) in self.attributes.iter().enumerate() {
            let item = attributes.index(index);
            let name = item.key("name");
            if attribute.name.is_empty() {
                f.error(&name, Code::MissingField, "the attribute needs a name");
            } else if !seen.insert(&attribute.name) {
                let message =
                    format!("the attribute `{}` is set twice; remove one", attribute.name);
                f.error(&name, Code::InvalidValue, message);
            }
        }
    }

    fn lower(&self) -> model::HashCookie {
        model::HashCookie {
            name: self.name.clone(),
            path: self.path.clone(),
            ttl: self.ttl.map(Into::into),
            attributes: self.attributes.iter().map(|a| (a.name.clone(), a.value.clone())).collect(),
        }
    }
}

impl Warmup {
    fn check(&self, at: &Field<'_>, f: &mut Findings<'_>) {
        rules::duration(f, &at.key("duration"), self.duration);
        if let Some(percent) = self.minimum_percent.filter(|p| !(0.0..=100.0).contains(p)) {
            let message = format!("a percentage is from 0 to 100, not {percent}");
            f.error(&at.key("minimumPercent"), Code::InvalidValue, message);
        }
        if let Some(value) = self.aggression.filter(|a| !(a.is_finite() && *a > 0.0)) {
            let message = format!("the aggression must be greater than 0, not {value}");
            f.error(&at.key("aggression"), Code::InvalidValue, message);
        }
    }

    fn lower(&self) -> model::Warmup {
        model::Warmup {
            duration: self.duration.into(),
            minimum_percent: Some(self.minimum_percent.unwrap_or(10.0)),
            aggression: Some(self.aggression.unwrap_or(1.0)),
        }
    }
}

fn is_prime(number: u64) -> bool {
    number >= 2 && (2..).take_while(|d| d * d <= number).all(|d| !number.is_multiple_of(d))
}

#[cfg(test)]
mod tests {
    use super::is_prime;

    #[test]
    fn primes_are_primes() {
        for prime in [2, 3, 5, 101, 65537, 4_999_999] {
            assert!(is_prime(prime), "{prime}");
        }
        for other in [0, 1, 4, 9, 65536, 65539 * 3] {
            assert!(!is_prime(other), "{other}");
        }
    }
}

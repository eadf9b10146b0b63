//! Value types that several kinds share, as users write them.
//!
//! They only say what can be read; whether a value is allowed where it stands is said in `rules`
//! and by the kinds.

use crate::config::Field;
use crate::model::{self, parse_duration};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Unexpected, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Reads a number that must not be negative where Istio's type would let it; that rule is said
/// with the others, here only what is no number at all.
pub fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i32, D::Error> {
    struct Count;

    impl Visitor<'_> for Count {
        type Value = i32;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a whole number, 0 or more")
        }

        fn visit_i64<E: Error>(self, value: i64) -> Result<i32, E> {
            i32::try_from(value).map_err(|_| {
                let most = i32::MAX;
                E::invalid_value(
                    Unexpected::Signed(value),
                    &format!("a whole number from 0 to {most}").as_str(),
                )
            })
        }

        fn visit_u64<E: Error>(self, value: u64) -> Result<i32, E> {
            self.visit_i64(i64::try_from(value).unwrap_or(i64::MAX))
        }
    }

    deserializer.deserialize_i32(Count)
}

/// A duration in Go's syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(pub std::time::Duration);

impl From<Duration> for std::time::Duration {
    fn from(duration: Duration) -> std::time::Duration {
        duration.0
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Duration;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a duration such as \"5s\", \"100ms\" or \"1h2m\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
                parse_duration(text)
                    .map(Duration)
                    .ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
            }
        }

        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for Duration {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+$",
            "examples": ["5s", "100ms", "1h2m"],
        })
    }
}

/// How a text is compared. In YAML exactly one of `exact`, `prefix` and `regex`, or nothing at
/// all, which asks for presence only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum StringMatch {
    /// `{}`.
    Present,
    /// `exact`.
    Exact(String),
    /// `prefix`.
    Prefix(String),
    /// `regex`.
    Regex(String),
}

impl StringMatch {
    const FIELDS: &'static [&'static str] = &["exact", "prefix", "regex"];

    /// What it means; `None` asks for presence only. The regular expression `*` is no RE2 and
    /// is Istio's old way to say the same.
    pub fn lower(&self) -> Option<model::StringMatch> {
        match self {
            StringMatch::Present => None,
            StringMatch::Exact(text) => Some(model::StringMatch::Exact(text.clone())),
            StringMatch::Prefix(text) => Some(model::StringMatch::Prefix(text.clone())),
            StringMatch::Regex(text) if text == "*" => None,
            StringMatch::Regex(text) => Some(model::StringMatch::Regex(text.clone())),
        }
    }

    /// What it means for a path; `None` is every path.
    pub fn lower_path(&self) -> Option<model::PathMatch> {
        self.lower().map(|text| match text {
            model::StringMatch::Exact(path) => model::PathMatch::Exact(path),
            model::StringMatch::Prefix(prefix) => model::PathMatch::Prefix(prefix),
            model::StringMatch::Regex(pattern) => model::PathMatch::Regex(pattern),
        })
    }

    /// The field that holds the text.
    pub fn field<'a>(&self, at: &'a Field<'a>) -> Field<'a> {
        match self {
            StringMatch::Present => *at,
            StringMatch::Exact(_) => at.key("exact"),
            StringMatch::Prefix(_) => at.key("prefix"),
            StringMatch::Regex(_) => at.key("regex"),
        }
    }
}

impl<'de> Deserialize<'de> for StringMatch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StringMatch, D::Error> {
        struct OneOf;

        impl<'de> Visitor<'de> for OneOf {
            type Value = StringMatch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a mapping with one of `exact`, `prefix`, `regex`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StringMatch, A::Error> {
                let mut chosen: Option<(String, StringMatch)> = None;
                while let Some(key) = map.next_key::<String>()? {
                    if !StringMatch::FIELDS.contains(&key.as_str()) {
                        // A mistyped alternative must not turn into "anything matches".
                        return Err(A::Error::unknown_variant(&key, StringMatch::FIELDS));
                    }
                    if let Some((first, _)) = chosen {
                        return Err(A::Error::custom(format_args!(
                            "only one of the alternatives may be set, and `{first}` is already"
                        )));
                    }
                    let text = map.next_value::<String>()?;
                    let value = match key.as_str() {
                        "exact" => StringMatch::Exact(text),
                        "prefix" => StringMatch::Prefix(text),
                        _ => StringMatch::Regex(text),
                    };
                    chosen = Some((key, value));
                }
                Ok(chosen.map_or(StringMatch::Present, |(_, value)| value))
            }
        }

        deserializer.deserialize_struct("StringMatch", StringMatch::FIELDS, OneOf)
    }
}

impl JsonSchema for StringMatch {
    fn schema_name() -> Cow<'static, str> {
        "StringMatch".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "How a text is compared: one of the three, or nothing for presence.",
            "properties": {
                "exact": { "type": "string", "description": "Equal to this text." },
                "prefix": { "type": "string", "description": "Begins with this text." },
                "regex": {
                    "type": "string",
                    "description": "RE2 regular expression that matches the whole text.",
                },
            },
            "maxProperties": 1,
            "additionalProperties": false,
        })
    }
}

/// A share in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Percent {
    /// The share, 0 or from 0.0001 to 100.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub value: f64,
}

impl Percent {
    /// In millionths, rounded down as Istio does.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked by `rules::percent`"
    )]
    pub fn lower(self) -> model::Percent {
        model::Percent::Millionths((self.value * 10_000.0).clamp(0.0, 1_000_000.0) as u32)
    }
}

/// A port of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PortSelector {
    /// The port's number.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub number: u16,
}

/// Workloads by their labels.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadSelector {
    /// Labels that a workload must have, all of them.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// A service, one of its ports, one of its subsets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// The service's host; a name without dots is in this document's namespace.
    pub host: String,
    /// A subset that a DestinationRule of the host defines.
    #[serde(default)]
    pub subset: String,
    /// The service's port; can be left out when it has only one.
    pub port: Option<PortSelector>,
}

/// TLS protocol versions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
pub enum TlsProtocol {
    /// The default of the proxy.
    #[default]
    #[serde(rename = "TLS_AUTO")]
    Auto,
    /// TLS 1.0.
    #[serde(rename = "TLSV1_0")]
    V1_0,
    /// TLS 1.1.
    #[serde(rename = "TLSV1_1")]
    V1_1,
    /// TLS 1.2.
    #[serde(rename = "TLSV1_2")]
    V1_2,
    /// TLS 1.3.
    #[serde(rename = "TLSV1_3")]
    V1_3,
}

impl TlsProtocol {
    /// The version, `None` for the default.
    pub fn lower(self) -> Option<model::TlsVersion> {
        match self {
            TlsProtocol::Auto => None,
            TlsProtocol::V1_0 => Some(model::TlsVersion::V1_0),
            TlsProtocol::V1_1 => Some(model::TlsVersion::V1_1),
            TlsProtocol::V1_2 => Some(model::TlsVersion::V1_2),
            TlsProtocol::V1_3 => Some(model::TlsVersion::V1_3),
        }
    }
}

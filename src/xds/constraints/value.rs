//! What one value must fulfil, judged on its wire form.

use crate::xds::wire::{self, Malformed, Raw, Scalar};
use regex::Regex;
use std::fmt::Display;

/// The demands on one value: of a field, of an item of a list, or of a key or value of a map.
#[derive(Debug)]
pub(super) enum Value {
    /// None. A scalar still has its wire form, so that items of packed lists can be counted.
    Free(Option<Scalar>),
    /// A message that has rules itself or below: an index into the table.
    Message(usize),
    /// An `Any`, whose content has the rules of its type.
    Any,
    /// A rule about the value itself.
    Leaf(Leaf),
}

impl Value {
    /// How the value stands in a packed list, if it can.
    pub(super) fn packed(&self) -> Option<Scalar> {
        match self {
            Value::Free(scalar) => *scalar,
            Value::Leaf(leaf) => leaf.scalar(),
            Value::Message(_) | Value::Any => None,
        }
    }

    /// What is wrong with the default value, which is not written.
    pub(super) fn complaint_about_default(&self) -> Option<String> {
        match self {
            Value::Leaf(leaf) => leaf.complaint_about_default(),
            Value::Free(_) | Value::Message(_) | Value::Any => None,
        }
    }
}

/// A rule about a value that is not a message with fields of its own.
#[derive(Debug)]
pub(super) enum Leaf {
    /// An integer or enum.
    Integer(Integer, IntegerRule),
    /// A `float` or `double`.
    Float(Scalar, Bounds<f64>),
    /// A `bool` that must have this value.
    Bool(bool),
    /// A string.
    Text(Box<Text>),
    /// Bytes, by their length.
    Blob(Bounds<usize>),
    /// A `Duration`, in nanoseconds.
    Duration(Bounds<i128>),
    /// A wrapper such as `UInt32Value`, by the value in it.
    Wrapper(Box<Leaf>),
}

/// How an integer is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Integer {
    Int,
    Uint,
    Zigzag,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
}

/// The rule of an integer.
#[derive(Debug)]
pub(super) enum IntegerRule {
    /// Within bounds; `zero_is_unset` lets zero pass as well.
    Bounds { bounds: Bounds<i128>, zero_is_unset: bool },
    /// An enum: one of the defined numbers, if given, and none of the others.
    Enum { defined: Option<Vec<i128>>, not_in: Vec<i128> },
}

/// A lower and an upper limit. If the lower one is above the upper one, the values between them are
/// the ones that are not allowed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Bounds<T> {
    pub(super) low: Option<Limit<T>>,
    pub(super) high: Option<Limit<T>>,
}

/// One limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Limit<T> {
    /// The value itself is allowed.
    Inclusive(T),
    /// The value itself is not allowed.
    Exclusive(T),
}

impl<T: PartialOrd + Copy> Limit<T> {
    fn value(self) -> T {
        match self {
            Limit::Inclusive(value) | Limit::Exclusive(value) => value,
        }
    }
}

impl<T: PartialOrd + Copy> Bounds<T> {
    /// What `value` must be instead, in words; `show` writes a number.
    fn complaint(&self, value: T, show: fn(T) -> String) -> Option<String> {
        let low = match self.low {
            Some(Limit::Inclusive(low)) if value < low => Some(("at least", low)),
            Some(Limit::Exclusive(low)) if value <= low => Some(("greater than", low)),
            _ => None,
        };
        let high = match self.high {
            Some(Limit::Inclusive(high)) if value > high => Some(("at most", high)),
            Some(Limit::Exclusive(high)) if value >= high => Some(("less than", high)),
            _ => None,
        };
        let must = |(must, limit): (&str, T)| format!("{must} {}", show(limit));
        let demand = match (low, high) {
            (Some(low), Some(high)) => format!("{} or {}", must(high), must(low)),
            (Some(_), None) | (None, Some(_)) if self.is_outside() => return None,
            (Some(one), None) | (None, Some(one)) => must(one),
            (None, None) => return None,
        };
        Some(format!("must be {demand}, is {}", show(value)))
    }

    fn is_outside(&self) -> bool {
        let limits = self.low.zip(self.high);
        limits.is_some_and(|(low, high)| low.value() > high.value())
    }
}

/// The rule of a string. Values are never repeated in a complaint: they may be secret.
#[derive(Debug, Default)]
pub(super) struct Text {
    /// The empty string passes, whatever the rest says.
    pub(super) empty_is_unset: bool,
    /// Length in characters.
    pub(super) chars: Bounds<usize>,
    /// Length in bytes.
    pub(super) bytes: Bounds<usize>,
    pub(super) prefix: String,
    pub(super) suffix: String,
    /// One of these, unless there are none.
    pub(super) one_of: Vec<String>,
    pub(super) pattern: Option<Regex>,
    pub(super) header: Option<HeaderText>,
}

/// What the characters of a header's name or value must be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum HeaderText {
    /// A name as HTTP has it: a token, possibly of a pseudo-header.
    StrictName,
    /// A value as HTTP has it: no control characters other than tab.
    StrictValue,
    /// Anything that cannot break out of a header line.
    Line,
}

impl HeaderText {
    fn complaint(self, text: &str) -> Option<&'static str> {
        let (fits, complaint) = match self {
            HeaderText::StrictName => {
                let token = text.strip_prefix(':').unwrap_or(text);
                let special = "!#$%&'*+,-.^_|~`";
                let fits = |c: char| c.is_ascii_alphanumeric() || special.contains(c);
                (!token.is_empty() && token.chars().all(fits), "must be a header name")
            }
            HeaderText::StrictValue => {
                let control = |c: char| c.is_ascii_control() && c != '\t';
                (!text.contains(control), "must not contain control characters")
            }
            HeaderText::Line => {
                (!text.contains(['\0', '\n', '\r']), "must not contain NUL, CR or LF")
            }
        };
        (!fits).then_some(complaint)
    }
}

impl Text {
    fn complaint(&self, text: &str) -> Option<String> {
        if text.is_empty() && self.empty_is_unset {
            return None;
        }
        if let (true, Some(Limit::Inclusive(1))) = (text.is_empty(), self.chars.low) {
            return Some("must not be empty".into());
        }
        let length = |unit, complaint: Option<String>| complaint.map(|c| format!("{unit} {c}"));
        let chars = || length("its length in characters", self.length_in_chars(text));
        let bytes = || length("its length in bytes", self.bytes.complaint(text.len(), decimal));
        let shape = || {
            if !text.starts_with(&self.prefix) {
                Some(format!("must begin with {}", self.prefix))
            } else if !text.ends_with(&self.suffix) {
                Some(format!("must end with {}", self.suffix))
            } else if !self.one_of.is_empty() && !self.one_of.iter().any(|one| one == text) {
                Some(format!("must be one of {}", self.one_of.join(", ")))
            } else {
                let pattern = self.pattern.as_ref().filter(|pattern| !pattern.is_match(text));
                pattern.map(|pattern| format!("must match {pattern}"))
            }
        };
        let header = || self.header.and_then(|header| header.complaint(text)).map(str::to_owned);
        chars().or_else(bytes).or_else(shape).or_else(header)
    }

    fn length_in_chars(&self, text: &str) -> Option<String> {
        // Counting is not free, and most strings have no limit but "not empty".
        if self.chars == Bounds::default() {
            return None;
        }
        self.chars.complaint(text.chars().count(), decimal)
    }
}

impl Leaf {
    /// How the value stands in a packed list, if it can.
    fn scalar(&self) -> Option<Scalar> {
        match self {
            Leaf::Integer(integer, _) => Some(integer.scalar()),
            Leaf::Float(scalar, _) => Some(*scalar),
            Leaf::Bool(_) => Some(Scalar::Varint),
            Leaf::Text(_) | Leaf::Blob(_) | Leaf::Duration(_) | Leaf::Wrapper(_) => None,
        }
    }

    /// What is wrong with the value, which lies in `encoded`.
    pub(super) fn complaint(&self, raw: &Raw, encoded: &[u8]) -> Result<Option<String>, Malformed> {
        match (self, raw) {
            (Leaf::Integer(integer, rule), raw) => Ok(rule.complaint(integer.read(raw)?)),
            (Leaf::Float(_, bounds), raw) => {
                let value = match raw {
                    Raw::Fixed32(bits) => f64::from(f32::from_bits(*bits)),
                    Raw::Fixed64(bits) => f64::from_bits(*bits),
                    Raw::Varint(_) | Raw::Bytes(_) => return Err(Malformed),
                };
                Ok(bounds.complaint(value, decimal))
            }
            (Leaf::Bool(must), Raw::Varint(value)) => {
                Ok(((*value != 0) != *must).then(|| format!("must be {must}")))
            }
            (Leaf::Text(text), Raw::Bytes(range)) => {
                let value = std::str::from_utf8(&encoded[range.clone()]).map_err(|_| Malformed)?;
                Ok(text.complaint(value))
            }
            (Leaf::Blob(bounds), Raw::Bytes(range)) => Ok(blob_complaint(bounds, range.len())),
            (Leaf::Duration(bounds), Raw::Bytes(range)) => {
                let nanos = nanoseconds(&encoded[range.clone()])?;
                Ok(bounds.complaint(nanos, seconds))
            }
            (Leaf::Wrapper(inner), Raw::Bytes(range)) => {
                let wrapper = &encoded[range.clone()];
                match wire::field(wrapper, 0)? {
                    Some(field) => inner.complaint(&field.value, wrapper),
                    None => Ok(inner.complaint_about_default()),
                }
            }
            _ => Err(Malformed),
        }
    }

    /// What is wrong with the default value.
    pub(super) fn complaint_about_default(&self) -> Option<String> {
        match self {
            Leaf::Integer(_, rule) => rule.complaint(0),
            Leaf::Float(_, bounds) => bounds.complaint(0.0, decimal),
            Leaf::Bool(must) => must.then(|| "must be true".into()),
            Leaf::Text(text) => text.complaint(""),
            Leaf::Blob(bounds) => blob_complaint(bounds, 0),
            // Messages have no default value: one that is absent is not there.
            Leaf::Duration(_) | Leaf::Wrapper(_) => None,
        }
    }
}

impl Integer {
    fn scalar(self) -> Scalar {
        match self {
            Integer::Int | Integer::Uint | Integer::Zigzag => Scalar::Varint,
            Integer::Fixed32 | Integer::Sfixed32 => Scalar::Fixed32,
            Integer::Fixed64 | Integer::Sfixed64 => Scalar::Fixed64,
        }
    }

    fn read(self, raw: &Raw) -> Result<i128, Malformed> {
        Ok(match (self, raw) {
            (Integer::Int, Raw::Varint(n)) => i128::from(n.cast_signed()),
            (Integer::Uint, Raw::Varint(n)) => i128::from(*n),
            (Integer::Zigzag, Raw::Varint(n)) => {
                i128::from((n >> 1).cast_signed() ^ -(n & 1).cast_signed())
            }
            (Integer::Fixed32, Raw::Fixed32(n)) => i128::from(*n),
            (Integer::Sfixed32, Raw::Fixed32(n)) => i128::from(n.cast_signed()),
            (Integer::Fixed64, Raw::Fixed64(n)) => i128::from(*n),
            (Integer::Sfixed64, Raw::Fixed64(n)) => i128::from(n.cast_signed()),
            _ => return Err(Malformed),
        })
    }
}

impl IntegerRule {
    fn complaint(&self, value: i128) -> Option<String> {
        match self {
            IntegerRule::Bounds { zero_is_unset: true, .. } if value == 0 => None,
            IntegerRule::Bounds { bounds, .. } => bounds.complaint(value, decimal),
            IntegerRule::Enum { defined, not_in } => {
                let undefined = defined.as_ref().is_some_and(|defined| !defined.contains(&value));
                if undefined {
                    Some(format!("must be a defined value, is {value}"))
                } else {
                    not_in.contains(&value).then(|| format!("must not be {value}"))
                }
            }
        }
    }
}

fn blob_complaint(bounds: &Bounds<usize>, length: usize) -> Option<String> {
    bounds.complaint(length, decimal).map(|complaint| format!("its length in bytes {complaint}"))
}

/// The length of an encoded `Duration`.
fn nanoseconds(duration: &[u8]) -> Result<i128, Malformed> {
    let mut total = 0;
    let mut at = 0;
    while let Some(field) = wire::field(duration, at)? {
        at = field.whole.end;
        match field.number {
            1 => total += Integer::Int.read(&field.value)? * 1_000_000_000,
            2 => total += Integer::Int.read(&field.value)?,
            _ => {}
        }
    }
    Ok(total)
}

fn decimal<T: Display>(value: T) -> String {
    value.to_string()
}

fn seconds(nanoseconds: i128) -> String {
    let sign = if nanoseconds < 0 { "-" } else { "" };
    let (whole, part) = (nanoseconds.abs() / 1_000_000_000, nanoseconds.abs() % 1_000_000_000);
    let part = format!("{part:09}");
    match part.trim_end_matches('0') {
        "" => format!("{sign}{whole}s"),
        part => format!("{sign}{whole}.{part}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_texts_differ_in_what_they_let_pass() {
        use HeaderText::*;
        let passes =
            |text: &str| [StrictName, StrictValue, Line].map(|h| h.complaint(text).is_none());
        assert_eq!(passes("x-a"), [true, true, true]);
        assert_eq!(passes(":path"), [true, true, true]);
        assert_eq!(passes("x a"), [false, true, true]);
        assert_eq!(passes(""), [false, true, true]);
        assert_eq!(passes("a\x07"), [false, false, true]);
        assert_eq!(passes("a\nb"), [false, false, false]);
    }

    #[test]
    fn integers_are_read_as_they_are_written() {
        assert_eq!(Integer::Int.read(&Raw::Varint(u64::MAX)), Ok(-1));
        assert_eq!(Integer::Uint.read(&Raw::Varint(u64::MAX)), Ok(i128::from(u64::MAX)));
        assert_eq!(Integer::Zigzag.read(&Raw::Varint(3)), Ok(-2));
        assert_eq!(Integer::Zigzag.read(&Raw::Varint(4)), Ok(2));
        assert_eq!(Integer::Sfixed32.read(&Raw::Fixed32(u32::MAX)), Ok(-1));
        assert_eq!(Integer::Fixed32.read(&Raw::Varint(1)), Err(Malformed));
    }

    #[test]
    fn durations_are_written_as_protobuf_writes_them() {
        assert_eq!(seconds(0), "0s");
        assert_eq!(seconds(1_500_000_000), "1.5s");
        assert_eq!(seconds(-1), "-0.000000001s");
    }

    #[test]
    fn limits_the_wrong_way_round_exclude_what_is_between() {
        let bounds = Bounds { low: Some(Limit::Inclusive(5)), high: Some(Limit::Exclusive(2)) };
        let complaint = |value: i128| bounds.complaint(value, decimal);
        assert_eq!((complaint(1), complaint(5)), (None, None));
        assert_eq!(complaint(3).as_deref(), Some("must be less than 2 or at least 5, is 3"));
    }

    #[test]
    fn a_text_is_measured_in_characters_and_in_bytes() {
        let limit = |n| Bounds { low: None, high: Some(Limit::Inclusive(n)) };
        let chars = Text { chars: limit(2), ..Default::default() };
        assert_eq!(chars.complaint("éé"), None);
        assert!(chars.complaint("eee").is_some());
        let bytes = Text { bytes: limit(2), ..Default::default() };
        assert!(bytes.complaint("éé").is_some());
    }
}

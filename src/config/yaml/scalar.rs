//! What a plain scalar means.
//!
//! Kubernetes tooling (sigs.k8s.io/yaml over go-yaml v2) reads YAML 1.1 with Go's number syntax,
//! and so do we: `yes`, `on` and `y` are booleans, `0777` and `0o777` are octal, `1_000` is a
//! number, and there are no base-60 numbers. Timestamps stay strings.

use super::node::Value;

/// What an unquoted scalar without a tag means.
pub(in crate::config) fn plain(text: &str) -> Value {
    let Some(first) = text.bytes().next() else { return Value::Null };
    match first {
        b'0'..=b'9' | b'+' | b'-' => {
            word(text).or_else(|| number(text)).unwrap_or_else(|| string(text))
        }
        b'.' => word(text).or_else(|| float(text)).unwrap_or_else(|| string(text)),
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => {
            word(text).unwrap_or_else(|| string(text))
        }
        _ => string(text),
    }
}

/// What a scalar with one of YAML's own tags means; `Err` says what the text would have to be.
pub(super) fn tagged(suffix: &str, text: &str) -> Result<Value, &'static str> {
    match suffix {
        "str" | "binary" | "timestamp" => Ok(string(text)),
        "null" => match plain(text) {
            Value::Null => Ok(Value::Null),
            _ => Err("null"),
        },
        "bool" => match plain(text) {
            Value::Bool(value) => Ok(Value::Bool(value)),
            _ => Err("a boolean"),
        },
        "int" => match plain(text) {
            Value::Int(value) => Ok(Value::Int(value)),
            _ => Err("a whole number"),
        },
        "float" => match plain(text) {
            #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
            Value::Int(value) => Ok(Value::Float(value as f64)),
            Value::Float(value) => Ok(Value::Float(value)),
            _ => Err("a number"),
        },
        _ => Ok(string(text)),
    }
}

fn string(text: &str) -> Value {
    Value::String(text.into())
}

fn word(text: &str) -> Option<Value> {
    Some(match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Value::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Value::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Value::Null,
        ".nan" | ".NaN" | ".NAN" => Value::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => Value::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => Value::Float(f64::NEG_INFINITY),
        _ => return None,
    })
}

fn number(text: &str) -> Option<Value> {
    // Cheap refusals first: most text that starts with a digit is a duration or an address.
    let ok = |b: u8| b.is_ascii_hexdigit() || b"+-._xXoObB".contains(&b);
    if !text.bytes().all(ok) {
        return None;
    }
    if text.contains('_') {
        let text = text.replace('_', "");
        return integer(&text).or_else(|| float(&text));
    }
    integer(text).or_else(|| float(text))
}

/// Go's integer literals, with a sign in front.
fn integer(text: &str) -> Option<Value> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return None;
    }
    let Ok(magnitude) = i128::from_str_radix(digits, radix) else {
        // Beyond 128 bits; a decimal still has a meaning as a float.
        return None;
    };
    let value = if negative { -magnitude } else { magnitude };
    Some(match i64::try_from(value) {
        Ok(value) => Value::Int(value),
        #[expect(clippy::cast_precision_loss, reason = "what does not fit is only ever reported")]
        Err(_) => Value::Float(value as f64),
    })
}

/// Decimal floats: `1.5`, `.5`, `1.`, `1e3`; never `inf`, `nan` or hexadecimal.
fn float(text: &str) -> Option<Value> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.find(['e', 'E']) {
        Some(at) => (&unsigned[..at], Some(&unsigned[at + 1..])),
        None => (unsigned, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let mantissa_ok = match mantissa.split_once('.') {
        None => !mantissa.is_empty() && digits(mantissa),
        Some((whole, fraction)) => {
            (!whole.is_empty() || !fraction.is_empty()) && digits(whole) && digits(fraction)
        }
    };
    let exponent_ok = exponent.is_none_or(|e| {
        let e = e.strip_prefix(['+', '-']).unwrap_or(e);
        !e.is_empty() && digits(e)
    });
    if !(mantissa_ok && exponent_ok) {
        return None;
    }
    text.parse().ok().map(Value::Float)
}

#[cfg(test)]
mod tests {
    use super::{plain, tagged};
    use crate::config::Value;

    fn s(text: &str) -> Value {
        Value::String(text.into())
    }

    #[test]
    fn booleans_and_null_are_those_of_yaml_1_1() {
        for text in ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"] {
            assert_eq!(plain(text), Value::Bool(true), "{text}");
        }
        for text in ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"] {
            assert_eq!(plain(text), Value::Bool(false), "{text}");
        }
        for text in ["", "~", "null", "Null", "NULL"] {
            assert_eq!(plain(text), Value::Null, "{text}");
        }
        for text in ["yEs", "tRUE", "oN", "nULL", "yes!", "none"] {
            assert_eq!(plain(text), s(text));
        }
    }

    #[test]
    fn integers_are_those_of_go() {
        for (text, value) in [
            ("0", 0),
            ("-0", 0),
            ("8080", 8080),
            ("+12", 12),
            ("-12", -12),
            ("0777", 511),
            ("0o777", 511),
            ("0x1F", 31),
            ("-0x1f", -31),
            ("0b101", 5),
            ("1_000", 1000),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(plain(text), Value::Int(value), "{text}");
        }
        assert_eq!(plain("9223372036854775808"), Value::Float(9_223_372_036_854_775_808.0));
        assert_eq!(plain("1".repeat(60).as_str()), Value::Float("1".repeat(60).parse().unwrap()));
    }

    #[test]
    fn floats_are_decimal() {
        for (text, value) in [
            ("1.5", 1.5),
            (".5", 0.5),
            ("1.", 1.0),
            ("1e3", 1000.0),
            ("-1.5E-3", -0.0015),
            ("0.1", 0.1),
            ("089", 89.0),
            (".inf", f64::INFINITY),
            ("-.Inf", f64::NEG_INFINITY),
        ] {
            assert_eq!(plain(text), Value::Float(value), "{text}");
        }
        assert!(matches!(plain(".nan"), Value::Float(f) if f.is_nan()));
    }

    #[test]
    fn what_only_starts_like_a_number_is_text() {
        for text in [
            "1:20",
            "12:30:45",
            "10.0.0.1",
            "1h2m",
            "5s",
            "2001-01-01",
            "2001-01-01T00:00:00Z",
            "-",
            "+",
            "--",
            "0x",
            "0b2",
            "1e",
            "1.2.3",
            ".",
            "..",
            "-.",
            "inf",
            "nan",
            "+inf",
            "1 2",
            "0xZZ",
            "_1",
            "deadbeef",
            "1-2",
        ] {
            assert_eq!(plain(text), s(text));
        }
    }

    #[test]
    fn tags_overrule_the_look() {
        assert_eq!(tagged("str", "80"), Ok(s("80")));
        assert_eq!(tagged("int", "80"), Ok(Value::Int(80)));
        assert_eq!(tagged("float", "80"), Ok(Value::Float(80.0)));
        assert_eq!(tagged("bool", "on"), Ok(Value::Bool(true)));
        assert_eq!(tagged("null", ""), Ok(Value::Null));
        assert!(tagged("int", "x").is_err());
        assert!(tagged("bool", "1").is_err());
    }
}

//! The error of decoding: what serde complains about, in the words of a configuration file.

use super::suggest::nearest;
use crate::config::yaml::{Extent, Node};
use crate::diag::Code;
use serde::de::{Expected, Unexpected};
use std::fmt;

/// Why a value cannot be decoded. The place is filled in by the innermost deserializer that
/// sees the error pass.
#[derive(Debug)]
pub(super) struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    trouble: Trouble,
    help: Option<String>,
    place: Option<Place>,
}

#[derive(Debug)]
enum Trouble {
    /// Something of our own or of a kind's making.
    Other(String),
    Mismatch {
        expected: String,
        found: Seen,
    },
    Variant {
        found: String,
        expected: String,
    },
    Missing(&'static str),
}

/// A value that was found, with and without its content.
#[derive(Debug)]
struct Seen {
    shown: String,
    withheld: &'static str,
}

/// Where an error belongs.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub path: String,
    pub at: Extent,
    /// The value to leave out when looking for further errors.
    pub node: *const Node,
}

/// Whether found values may be repeated in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    Shown,
    Withheld,
}

impl Error {
    fn new(trouble: Trouble) -> Error {
        Error(Box::new(Inner { trouble, help: None, place: None }))
    }

    /// Sets the place, unless a deeper one is known.
    pub fn placed(mut self, place: impl FnOnce() -> Place) -> Error {
        self.0.place.get_or_insert_with(place);
        self
    }

    /// Adds help, unless there is some.
    pub fn or_help(mut self, help: impl FnOnce() -> Option<String>) -> Error {
        if self.0.help.is_none() {
            self.0.help = help();
        }
        self
    }

    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    pub fn is_missing_field(&self) -> Option<&'static str> {
        match self.0.trouble {
            Trouble::Missing(field) => Some(field),
            Trouble::Other(_) | Trouble::Mismatch { .. } | Trouble::Variant { .. } => None,
        }
    }

    pub fn is_mismatch(&self) -> bool {
        matches!(self.0.trouble, Trouble::Mismatch { .. })
    }

    pub fn code(&self) -> Code {
        match self.0.trouble {
            Trouble::Missing(_) => Code::MissingField,
            Trouble::Other(_) | Trouble::Mismatch { .. } | Trouble::Variant { .. } => {
                Code::InvalidValue
            }
        }
    }

    pub fn message(&self, values: Values) -> String {
        match (&self.0.trouble, values) {
            (Trouble::Other(message), _) => message.clone(),
            (Trouble::Mismatch { expected, found }, Values::Shown) => {
                format!("expected {expected}, found {}", found.shown)
            }
            (Trouble::Mismatch { expected, found }, Values::Withheld) => {
                format!("expected {expected}, found {}", found.withheld)
            }
            (Trouble::Variant { found, expected }, Values::Shown) => {
                format!("unknown value `{found}`, expected {expected}")
            }
            (Trouble::Variant { expected, .. }, Values::Withheld) => {
                format!("unknown value, expected {expected}")
            }
            (Trouble::Missing(field), _) => format!("the required field `{field}` is missing"),
        }
    }

    pub fn help(&self) -> Option<String> {
        self.0.help.clone()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message(Values::Shown))
    }
}

impl std::error::Error for Error {}

impl serde::de::Error for Error {
    fn custom<T: fmt::Display>(message: T) -> Error {
        Error::new(Trouble::Other(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::new(Trouble::Mismatch { expected: words(expected, found), found: seen(found) })
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Error {
        Error::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Error {
        Error::custom(format_args!(
            "expected {}, found {length} elements",
            words(expected, Unexpected::Seq)
        ))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Error {
        let help = nearest(variant, expected.iter().copied())
            .map(|name| format!("did you mean `{name}`?"));
        let expected = one_of(expected);
        Error::new(Trouble::Variant { found: variant.to_owned(), expected }).or_help(|| help)
    }

    fn missing_field(field: &'static str) -> Error {
        Error::new(Trouble::Missing(field))
    }
}

/// `one of `a`, `b`, `c``, as serde writes it.
pub(super) fn one_of(names: &[&str]) -> String {
    let list: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match list.as_slice() {
        [] => "nothing".to_owned(),
        [one] => one.clone(),
        _ => format!("one of {}", list.join(", ")),
    }
}

/// What serde's visitors expect, in the words of a configuration file.
fn words(expected: &dyn Expected, found: Unexpected<'_>) -> String {
    let text = expected.to_string();
    let integer = |least: i128, most: i128| format!("a whole number from {least} to {most}");
    // Where the type takes more than anybody needs, its bounds matter only beyond them.
    let large = |least: i128, most: i128| match found {
        Unexpected::Unsigned(value) if i128::from(value) > most => {
            format!("a whole number of at most {most}")
        }
        Unexpected::Signed(value) if i128::from(value) > most => {
            format!("a whole number of at most {most}")
        }
        Unexpected::Signed(value) if least < 0 && i128::from(value) < least => {
            format!("a whole number of at least {least}")
        }
        _ if least == 0 => "a whole number, 0 or more".to_owned(),
        _ => "a whole number".to_owned(),
    };
    match text.as_str() {
        "u8" => integer(0, u8::MAX.into()),
        "u16" => integer(0, u16::MAX.into()),
        "u32" => large(0, u32::MAX.into()),
        "u64" | "usize" => large(0, u64::MAX.into()),
        "i8" => integer(i8::MIN.into(), i8::MAX.into()),
        "i16" => integer(i16::MIN.into(), i16::MAX.into()),
        "i32" => large(i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => "a whole number".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        "a boolean" => "`true` or `false`".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" => "a mapping".to_owned(),
        "unit" => "nothing".to_owned(),
        _ if text.starts_with("struct ") || text.starts_with("enum ") => "a mapping".to_owned(),
        _ => text,
    }
}

fn seen(found: Unexpected<'_>) -> Seen {
    let (shown, withheld) = match found {
        Unexpected::Bool(value) => (format!("`{value}`"), "a boolean"),
        Unexpected::Unsigned(value) => (format!("the number {value}"), "a number"),
        Unexpected::Signed(value) => (format!("the number {value}"), "a number"),
        Unexpected::Float(value) => (format!("the number {value}"), "a number"),
        Unexpected::Char(value) => (format!("the string {value:?}"), "a string"),
        Unexpected::Str(value) => (format!("the string {}", abridged(value)), "a string"),
        Unexpected::Seq => ("a list".to_owned(), "a list"),
        Unexpected::Map => ("a mapping".to_owned(), "a mapping"),
        Unexpected::Unit | Unexpected::Option => ("null".to_owned(), "null"),
        other => (other.to_string(), "another type"),
    };
    Seen { shown, withheld }
}

/// The text in quotes; of a long one only the beginning.
fn abridged(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        None => format!("{text:?}"),
        Some((at, _)) => format!("{:?}…", &text[..at]),
    }
}

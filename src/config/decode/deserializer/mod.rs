//! serde's view of a located tree. It keeps the path while it descends, so that every error and
//! every ignored field comes out with its path and place.
//!
//! How values are matched to types, decided here once for all kinds: no value changes its type
//! silently (a quoted number is not a number, a number is not a string), except that a float
//! without a fraction may stand for an integer; `null` for a field of a struct is the same as
//! leaving it out; an enum with data is a mapping with exactly one of its variants as key.
//!
//! Values lead to their parts and parts to values: `access` is the other half of that recursion.

mod access;

use super::context::{Context, Names};
use super::error::{Error, Place, one_of};
use super::field::Field;
use crate::config::yaml::{Key, Node, Value, plain};
use access::{Entries, Items, Nulls, Variant, visit_integer};
use serde::de::{Deserializer, Error as _, Expected, Unexpected, Visitor};
use std::cell::Cell;

/// A value of the tree as a serde deserializer.
#[derive(Clone, Copy)]
pub(super) struct NodeDeserializer<'de, 'p> {
    node: &'de Node,
    path: &'p Field<'p>,
    context: &'p Context,
    /// In a mapping: the key, and the names that would have been right.
    key: Option<(&'de Key, Names)>,
}

impl<'de, 'p> NodeDeserializer<'de, 'p> {
    pub fn new(node: &'de Node, path: &'p Field<'p>, context: &'p Context) -> Self {
        NodeDeserializer { node, path, context, key: None }
    }

    pub fn with_key(mut self, key: &'de Key, siblings: Names) -> Self {
        self.key = Some((key, siblings));
        self
    }

    fn place(&self) -> Place {
        Place { path: self.path.to_string(), at: self.node.focus(), node: self.node }
    }

    /// The place of something that is missing in here.
    fn place_above(&self) -> Place {
        Place { at: self.node.focus_above(self.key.map(|(key, _)| key)), ..self.place() }
    }

    fn placed<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        result.map_err(|error| error.placed(|| self.place()))
    }

    fn mismatch(&self, expected: &dyn Expected) -> Error {
        let found = match &self.node.value {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Int(value) => Unexpected::Signed(*value),
            Value::Float(value) => Unexpected::Float(*value),
            Value::String(text) => Unexpected::Str(text),
            Value::Sequence(_) => Unexpected::Seq,
            Value::Mapping(_) => Unexpected::Map,
        };
        Error::invalid_type(found, expected).placed(|| self.place())
    }

    /// A mismatch of something that must not be quoted.
    fn unquoted(&self, expected: &dyn Expected, fits: impl Fn(&Value) -> bool) -> Error {
        self.mismatch(expected).or_help(|| match &self.node.value {
            Value::String(text) if fits(&plain(text)) => Some("remove the quotes".to_owned()),
            _ => None,
        })
    }

    fn map<V: Visitor<'de>>(
        self,
        entries: &'de [(Key, Node)],
        fields: Names,
        nulls: Nulls,
        visitor: V,
    ) -> Result<V::Value, Error> {
        let at_key = Cell::new(None);
        let access = Entries::new(entries, self.path, self.context, fields, nulls, &at_key);
        visitor.visit_map(access).map_err(|error| match at_key.get() {
            // The visitor objected to a key.
            Some((key, node)) if error.is_missing_field().is_none() => {
                let path = self.path;
                error.placed(|| Place { path: path.key(&key.text).to_string(), at: key.span, node })
            }
            _ => error.placed(|| self.place_above()),
        })
    }

    fn sequence<V: Visitor<'de>>(self, items: &'de [Node], visitor: V) -> Result<V::Value, Error> {
        self.placed(visitor.visit_seq(Items::new(items, self.path, self.context)))
    }

    fn integer<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Int(value) => self.placed(visit_integer(*value, visitor)),
            #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
            Value::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                self.placed(visit_integer(*value as i64, visitor))
            }
            _ => Err(self.unquoted(&visitor, |value| matches!(value, Value::Int(_)))),
        }
    }

    fn float<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            #[expect(clippy::cast_precision_loss, reason = "a float was asked for")]
            Value::Int(value) => self.placed(visitor.visit_f64(*value as f64)),
            Value::Float(value) => self.placed(visitor.visit_f64(*value)),
            _ => Err(self.unquoted(&visitor, |v| matches!(v, Value::Int(_) | Value::Float(_)))),
        }
    }

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::String(text) => self.placed(visitor.visit_borrowed_str(text)),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => {
                // Quotes help only where any string will do.
                let any_string = (&visitor as &dyn Expected).to_string() == "a string";
                let help = any_string.then(|| "put the value in quotes".to_owned());
                Err(self.mismatch(&visitor).or_help(|| help))
            }
            Value::Null | Value::Sequence(_) | Value::Mapping(_) => Err(self.mismatch(&visitor)),
        }
    }
}

macro_rules! forward {
    ($to:ident: $($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.$to(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for NodeDeserializer<'de, '_> {
    type Error = Error;

    forward!(integer: deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);
    forward!(float: deserialize_f32 deserialize_f64);
    forward!(text: deserialize_char deserialize_str deserialize_string deserialize_bytes
        deserialize_byte_buf deserialize_identifier);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => self.placed(visitor.visit_unit()),
            Value::Bool(value) => self.placed(visitor.visit_bool(*value)),
            Value::Int(value) => self.placed(visit_integer(*value, visitor)),
            Value::Float(value) => self.placed(visitor.visit_f64(*value)),
            Value::String(text) => self.placed(visitor.visit_borrowed_str(text)),
            Value::Sequence(items) => self.sequence(items, visitor),
            Value::Mapping(entries) => self.map(entries, &[], Nulls::Kept, visitor),
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Bool(value) => self.placed(visitor.visit_bool(*value)),
            _ => Err(self.unquoted(&visitor, |value| matches!(value, Value::Bool(_)))),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => self.placed(visitor.visit_none()),
            _ => self.placed(visitor.visit_some(self)),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Null => self.placed(visitor.visit_unit()),
            Value::Mapping(entries) if entries.is_empty() => self.placed(visitor.visit_unit()),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.placed(visitor.visit_newtype_struct(self))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Sequence(items) => self.sequence(items, visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Mapping(entries) => self.map(entries, &[], Nulls::Kept, visitor),
            _ => Err(self.mismatch(&visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: Names,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::Mapping(entries) => self.map(entries, fields, Nulls::Absent, visitor),
            _ => Err(self.mismatch(&"a mapping")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        variants: Names,
        visitor: V,
    ) -> Result<V::Value, Error> {
        match &self.node.value {
            Value::String(text) => {
                self.placed(visitor.visit_enum(Variant { name: text, content: Err(self.place()) }))
            }
            Value::Mapping(entries) => {
                let variant = self.variant(entries, variants)?;
                self.placed(visitor.visit_enum(variant))
            }
            _ => Err(self.mismatch(&one_of(variants).as_str())),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if let Some((key, fields)) = self.key {
            self.context.ignore(self.path, key, fields);
        }
        visitor.visit_unit()
    }
}

impl<'de, 'p> NodeDeserializer<'de, 'p> {
    /// The one variant that a mapping names.
    fn variant(
        &self,
        entries: &'de [(Key, Node)],
        variants: Names,
    ) -> Result<Variant<'de, 'p>, Error> {
        let mut chosen: Option<&'de (Key, Node)> = None;
        let mut stranger: Option<&'de (Key, Node)> = None;
        for entry in entries {
            let (key, node) = entry;
            if !variants.contains(&&*key.text) {
                if stranger.is_some() || chosen.is_some() {
                    self.context.ignore(&self.path.key(&key.text), key, variants);
                }
                stranger = stranger.or(Some(entry));
                continue;
            }
            if node.value == Value::Null || self.context.is_pruned(node) {
                continue;
            }
            if let Some((first, _)) = chosen {
                let message = format!(
                    "only one of the alternatives may be set, and `{}` is already",
                    first.text
                );
                return Err(Error::custom(message).placed(|| self.key_place(key, node)));
            }
            chosen = Some(entry);
            if let Some((key, _)) = stranger {
                self.context.ignore(&self.path.key(&key.text), key, variants);
            }
        }
        match (chosen, stranger) {
            (Some((key, node)), _) => {
                Ok(Variant { name: &key.text, content: Ok((key, node, self.path, self.context)) })
            }
            (None, Some((key, node))) => {
                Err(Error::unknown_variant(&key.text, variants)
                    .placed(|| self.key_place(key, node)))
            }
            (None, None) => {
                let message = format!("{} must be set", one_of(variants));
                Err(Error::custom(message).placed(|| self.place_above()))
            }
        }
    }

    fn key_place(&self, key: &Key, node: &Node) -> Place {
        Place { path: self.path.key(&key.text).to_string(), at: key.span, node }
    }
}

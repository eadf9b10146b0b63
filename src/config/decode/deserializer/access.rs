//! The inner parts of serde's view of a tree: entries, keys, elements and variants.

use super::NodeDeserializer;
use crate::config::decode::context::{Context, Names};
use crate::config::decode::error::{Error, Place};
use crate::config::decode::field::Field;
use crate::config::yaml::{Key, Node, Value, plain};
use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use std::cell::Cell;

/// What `null` means as the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// The same as leaving the field out.
    Absent,
    /// A value of its own.
    Kept,
}

/// The entries of a mapping.
pub(super) struct Entries<'de, 'p> {
    rest: std::slice::Iter<'de, (Key, Node)>,
    path: &'p Field<'p>,
    context: &'p Context,
    fields: Names,
    nulls: Nulls,
    value: Option<&'de (Key, Node)>,
    /// The key that was handed out while its value was not.
    at_key: &'p Cell<Option<(&'de Key, &'de Node)>>,
}

impl<'de, 'p> Entries<'de, 'p> {
    pub fn new(
        entries: &'de [(Key, Node)],
        path: &'p Field<'p>,
        context: &'p Context,
        fields: Names,
        nulls: Nulls,
        at_key: &'p Cell<Option<(&'de Key, &'de Node)>>,
    ) -> Self {
        Entries { rest: entries.iter(), path, context, fields, nulls, value: None, at_key }
    }
}

impl<'de> MapAccess<'de> for Entries<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        self.at_key.set(None);
        for entry in self.rest.by_ref() {
            let (key, node) = entry;
            let absent = self.nulls == Nulls::Absent
                && node.value == Value::Null
                && self.fields.contains(&&*key.text);
            if absent || self.context.is_pruned(node) {
                continue;
            }
            self.at_key.set(Some((key, node)));
            self.value = Some(entry);
            return seed.deserialize(KeyDeserializer { key: &key.text }).map(Some);
        }
        Ok(None)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        let Some((key, node)) = self.value.take() else {
            return Err(Error::custom("a value was asked for before its key"));
        };
        let path = self.path.key(&key.text);
        let node = NodeDeserializer::new(node, &path, self.context).with_key(key, self.fields);
        let value = seed.deserialize(node)?;
        self.at_key.set(None);
        Ok(value)
    }
}

/// The elements of a list.
pub(super) struct Items<'de, 'p> {
    rest: std::iter::Enumerate<std::slice::Iter<'de, Node>>,
    path: &'p Field<'p>,
    context: &'p Context,
}

impl<'de, 'p> Items<'de, 'p> {
    pub fn new(items: &'de [Node], path: &'p Field<'p>, context: &'p Context) -> Self {
        Items { rest: items.iter().enumerate(), path, context }
    }
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Error> {
        for (index, node) in self.rest.by_ref() {
            if !self.context.is_pruned(node) {
                let path = self.path.index(index);
                return seed
                    .deserialize(NodeDeserializer::new(node, &path, self.context))
                    .map(Some);
            }
        }
        Ok(None)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.rest.len())
    }
}

/// An integer by the method that its sign asks for.
pub(super) fn visit_integer<'de, V: Visitor<'de>>(
    value: i64,
    visitor: V,
) -> Result<V::Value, Error> {
    match u64::try_from(value) {
        Ok(value) => visitor.visit_u64(value),
        Err(_) => visitor.visit_i64(value),
    }
}

/// A key: a string, or a number where the map has numbers as keys.
struct KeyDeserializer<'de> {
    key: &'de str,
}

impl<'de> KeyDeserializer<'de> {
    fn number<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match plain(self.key) {
            Value::Int(value) => visit_integer(value, visitor),
            _ => Err(Error::invalid_type(Unexpected::Str(self.key), &visitor)),
        }
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            self.number(visitor)
        })*
    };
}

impl<'de> Deserializer<'de> for KeyDeserializer<'de> {
    type Error = Error;

    numbers!(deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64);

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.key)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: Names,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(BorrowedStrDeserializer::<Error>::new(self.key))
    }

    serde::forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

/// A variant: its name, and its value or the place of a name without one.
pub(super) struct Variant<'de, 'p> {
    pub name: &'de str,
    pub content: Result<(&'de Key, &'de Node, &'p Field<'p>, &'p Context), Place>,
}

impl<'de, 'p> EnumAccess<'de> for Variant<'de, 'p> {
    type Error = Error;
    type Variant = Variant<'de, 'p>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Variant<'de, 'p>), Error> {
        let name: StrDeserializer<'_, Error> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> Variant<'de, '_> {
    fn with<T>(
        self,
        visit: impl FnOnce(NodeDeserializer<'de, '_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        match self.content {
            Ok((key, node, path, context)) => {
                let path = path.key(&key.text);
                visit(NodeDeserializer::new(node, &path, context))
            }
            Err(place) => {
                let name = self.name;
                let error = Error::custom(format_args!("`{name}` needs a value"));
                Err(error
                    .placed(|| place)
                    .or_help(|| Some(format!("write it as a mapping: `{name}: …`"))))
            }
        }
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        match self.content {
            Ok(_) => self.with(|node| serde::Deserialize::deserialize(node)),
            Err(_) => Ok(()),
        }
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        self.with(|node| seed.deserialize(node))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        self.with(|node| node.deserialize_seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, fields: Names, visitor: V) -> Result<V::Value, Error> {
        self.with(|node| node.deserialize_struct("", fields, visitor))
    }
}

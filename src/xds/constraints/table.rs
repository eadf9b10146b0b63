//! The table of rules: what the `validate.rules` in the descriptors say, one row for each message
//! type that has rules itself or below.

use super::value::{Bounds, HeaderText, Integer, IntegerRule, Leaf, Limit, Text, Value};
use crate::xds::descriptors::{pool, reaching};
use crate::xds::pb::validate::field_rules::Type;
use crate::xds::pb::validate::{EnumRules, FieldRules, KnownRegex, StringRules, string_rules};
use crate::xds::wire::Scalar;
use prost::Message;
use prost_reflect::{ExtensionDescriptor, FieldDescriptor, Kind, MessageDescriptor};
use regex::Regex;
use std::collections::HashMap;

/// The rules of all message types.
pub(super) struct Table {
    pub(super) by_name: HashMap<String, usize>,
    pub(super) types: Vec<TypeRules>,
    /// Rules that this module does not know, by field. A test holds it empty, so that a new kind of
    /// rule in a later envoy-types is noticed.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the test"))]
    pub(super) unknown: Vec<String>,
}

/// The rules of one message type.
pub(super) struct TypeRules {
    /// The fields that matter, sorted by number.
    pub(super) fields: Vec<Field>,
    pub(super) required_oneofs: Vec<RequiredOneof>,
}

/// A field that has rules, has some below, or belongs to a required oneof.
pub(super) struct Field {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) shape: Shape,
}

/// How often the field may occur, and what its values must fulfil.
pub(super) enum Shape {
    One { value: Value, absent: Option<String> },
    List { item: Value, count: Count, unique: bool },
    Map { key: Value, value: Value, count: Count },
}

/// Limits to the number of items.
#[derive(Clone, Copy, Default)]
pub(super) struct Count {
    min: usize,
    max: Option<usize>,
    empty_is_unset: bool,
}

/// A oneof that must be set, by the places of its members among the fields.
pub(super) struct RequiredOneof {
    pub(super) members: Vec<usize>,
}

impl Field {
    /// What is wrong with the field occurring `count` times.
    pub(super) fn complaint_about_count(&self, count: usize) -> Option<String> {
        match &self.shape {
            Shape::One { absent, .. } => absent.clone().filter(|_| count == 0),
            Shape::List { count: limits, .. } | Shape::Map { count: limits, .. } => {
                limits.complaint(count)
            }
        }
    }
}

impl Count {
    fn complaint(self, count: usize) -> Option<String> {
        if count == 0 && self.empty_is_unset {
            return None;
        }
        if count < self.min {
            return Some(format!("must have at least {} items, has {count}", self.min));
        }
        let max = self.max.filter(|max| count > *max)?;
        Some(format!("must have at most {max} items, has {count}"))
    }
}

impl Table {
    /// Reads all rules out of the descriptors.
    pub(super) fn compile() -> Table {
        let mut compiler = Compiler {
            rules: pool().get_extension_by_name("validate.rules"),
            required: pool().get_extension_by_name("validate.required"),
            by_name: HashMap::new(),
            unknown: Vec::new(),
        };
        let types = reaching(|message| {
            message.full_name() == ANY
                || message.fields().any(|field| compiler.has_rules(&field))
                || message.oneofs().any(|oneof| compiler.is_required(&oneof))
        });
        let numbered = types.iter().enumerate();
        compiler.by_name = numbered.map(|(i, m)| (m.full_name().to_owned(), i)).collect();
        let types = types.iter().map(|message| compiler.message(message)).collect();
        Table { by_name: compiler.by_name, types, unknown: compiler.unknown }
    }
}

const ANY: &str = "google.protobuf.Any";

struct Compiler {
    rules: Option<ExtensionDescriptor>,
    required: Option<ExtensionDescriptor>,
    by_name: HashMap<String, usize>,
    unknown: Vec<String>,
}

impl Compiler {
    fn has_rules(&self, field: &FieldDescriptor) -> bool {
        self.rules.as_ref().is_some_and(|rules| field.options().has_extension(rules))
    }

    fn is_required(&self, oneof: &prost_reflect::OneofDescriptor) -> bool {
        let required = |mark| oneof.options().get_extension(mark).as_bool() == Some(true);
        self.required.as_ref().is_some_and(required)
    }

    fn message(&mut self, message: &MessageDescriptor) -> TypeRules {
        let required: Vec<_> = message.oneofs().filter(|oneof| self.is_required(oneof)).collect();
        let in_required = |field: &FieldDescriptor| {
            field.containing_oneof().is_some_and(|oneof| required.contains(&oneof))
        };
        let mut fields: Vec<Field> = message
            .fields()
            .filter_map(|field| {
                let keep = in_required(&field);
                let shape = self.shape(&field);
                let matters = keep || shape.matters();
                matters.then(|| Field { number: field.number(), name: field.name().into(), shape })
            })
            .collect();
        fields.sort_by_key(|field| field.number);
        let required_oneofs = required
            .iter()
            .map(|oneof| {
                let numbers = oneof.fields().map(|field| field.number());
                let place = |number| fields.binary_search_by_key(&number, |f| f.number).ok();
                RequiredOneof { members: numbers.filter_map(place).collect() }
            })
            .collect();
        TypeRules { fields, required_oneofs }
    }

    fn shape(&mut self, field: &FieldDescriptor) -> Shape {
        let rules = self.rules_of(field);
        let name = field.full_name();
        match field.kind() {
            Kind::Message(entry) if field.is_map() => {
                let mut map = match rules.r#type {
                    Some(Type::Map(map)) => *map,
                    None => Default::default(),
                    Some(other) => self.unknown(name, other),
                };
                let key = map.keys.take().map(|rules| *rules).unwrap_or_default();
                let value = map.values.take().map(|rules| *rules).unwrap_or_default();
                let count = Count {
                    min: length(map.min_pairs.take()).unwrap_or(0),
                    max: length(map.max_pairs.take()),
                    empty_is_unset: map.ignore_empty.take() == Some(true),
                };
                self.expect_empty(name, &map);
                Shape::Map {
                    key: self.value(name, &entry.map_entry_key_field().kind(), key),
                    value: self.value(name, &entry.map_entry_value_field().kind(), value),
                    count,
                }
            }
            kind if field.is_list() => {
                let mut list = match rules.r#type {
                    Some(Type::Repeated(list)) => *list,
                    None => Default::default(),
                    Some(other) => self.unknown(name, other),
                };
                let item = list.items.take().map(|rules| *rules).unwrap_or_default();
                let count = Count {
                    min: length(list.min_items.take()).unwrap_or(0),
                    max: length(list.max_items.take()),
                    empty_is_unset: list.ignore_empty.take() == Some(true),
                };
                let unique = list.unique.take() == Some(true);
                self.expect_empty(name, &list);
                Shape::List { item: self.value(name, &kind, item), count, unique }
            }
            kind => {
                let required = match &rules.r#type {
                    Some(Type::Any(any)) => any.required(),
                    Some(Type::Duration(duration)) => duration.required(),
                    Some(Type::Timestamp(timestamp)) => timestamp.required(),
                    _ => false,
                };
                let message = rules.message.as_ref().is_some_and(|message| message.required());
                let value = self.value(name, &kind, rules);
                // A member of a oneof is demanded only of who has chosen it, and so has it.
                let chosen = field.containing_oneof().is_some_and(|oneof| !oneof.is_synthetic());
                let absent = if (required || message) && !chosen {
                    Some("is required".into())
                } else if field.supports_presence() {
                    None
                } else {
                    value.complaint_about_default()
                };
                Shape::One { value, absent }
            }
        }
    }

    fn rules_of(&mut self, field: &FieldDescriptor) -> FieldRules {
        let Some(rules) = self.rules.as_ref().filter(|_| self.has_rules(field)) else {
            return FieldRules::default();
        };
        let options = field.options();
        let value = options.get_extension(rules);
        match value.as_message().map(|message| message.transcode_to()) {
            Some(Ok(rules)) => rules,
            Some(Err(_)) | None => {
                self.unknown.push(field.full_name().into());
                FieldRules::default()
            }
        }
    }

    /// The demands that `rules` make on a value of this kind.
    fn value(&mut self, field: &str, kind: &Kind, rules: FieldRules) -> Value {
        let skip = rules.message.as_ref().is_some_and(|message| message.skip());
        match kind {
            Kind::Message(_) if skip => Value::Free(None),
            Kind::Message(message) => self.message_value(field, message, rules),
            kind => match rules.r#type {
                Some(rule) => self.leaf(field, kind, rule).map_or(Value::Free(None), Value::Leaf),
                None => Value::Free(scalar(kind)),
            },
        }
    }

    fn message_value(
        &mut self,
        field: &str,
        message: &MessageDescriptor,
        rules: FieldRules,
    ) -> Value {
        let name = message.full_name();
        match rules.r#type {
            // `any.required` also stands at a field that is no `Any`, where it means the same.
            Some(Type::Any(mut any)) => {
                any.required = None;
                self.expect_empty(field, &any);
                self.below(name)
            }
            None => self.below(name),
            Some(Type::Duration(mut rule)) => {
                let nanos = |d: crate::xds::pb::Duration| {
                    i128::from(d.seconds) * 1_000_000_000 + i128::from(d.nanos)
                };
                let limits = [rule.gte.take(), rule.gt.take(), rule.lte.take(), rule.lt.take()];
                let bounds = bounds(limits.map(|limit| limit.map(nanos)));
                rule.required = None;
                self.expect_empty(field, &rule);
                Value::Leaf(Leaf::Duration(bounds))
            }
            // Everything else speaks of the value inside a wrapper.
            Some(rule) => {
                let inner = message.get_field_by_name("value").map(|value| value.kind());
                let leaf = inner.and_then(|kind| self.leaf(field, &kind, rule));
                match leaf {
                    Some(leaf) => Value::Leaf(Leaf::Wrapper(Box::new(leaf))),
                    None => {
                        self.unknown.push(field.into());
                        Value::Free(None)
                    }
                }
            }
        }
    }

    fn below(&self, name: &str) -> Value {
        match self.by_name.get(name) {
            Some(_) if name == ANY => Value::Any,
            Some(index) => Value::Message(*index),
            None => Value::Free(None),
        }
    }

    fn leaf(&mut self, field: &str, kind: &Kind, rule: Type) -> Option<Leaf> {
        // The numeric rules are one shape in ten types.
        macro_rules! number {
            ($rule:expr, $number:ty) => {{
                let mut rule = $rule;
                let limits = [rule.gte.take(), rule.gt.take(), rule.lte.take(), rule.lt.take()];
                let bounds = bounds(limits.map(|limit| limit.map(<$number>::from)));
                let zero_is_unset = rule.ignore_empty.take() == Some(true);
                self.expect_empty(field, &rule);
                (bounds, zero_is_unset)
            }};
        }
        macro_rules! integer {
            ($rule:expr, $integer:ident) => {{
                let (bounds, zero_is_unset) = number!($rule, i128);
                let rule = IntegerRule::Bounds { bounds, zero_is_unset };
                Some(Leaf::Integer(Integer::$integer, rule))
            }};
        }
        macro_rules! float {
            ($rule:expr, $scalar:ident) => {{
                let (bounds, zero_is_unset) = number!($rule, f64);
                if zero_is_unset {
                    self.unknown.push(field.into());
                }
                Some(Leaf::Float(Scalar::$scalar, bounds))
            }};
        }
        match (kind, rule) {
            (Kind::Float, Type::Float(rule)) => float!(rule, Fixed32),
            (Kind::Double, Type::Double(rule)) => float!(rule, Fixed64),
            (Kind::Int32, Type::Int32(rule)) => integer!(rule, Int),
            (Kind::Int64, Type::Int64(rule)) => integer!(rule, Int),
            (Kind::Uint32, Type::Uint32(rule)) => integer!(rule, Uint),
            (Kind::Uint64, Type::Uint64(rule)) => integer!(rule, Uint),
            (Kind::Sint32, Type::Sint32(rule)) => integer!(rule, Zigzag),
            (Kind::Sint64, Type::Sint64(rule)) => integer!(rule, Zigzag),
            (Kind::Fixed32, Type::Fixed32(rule)) => integer!(rule, Fixed32),
            (Kind::Fixed64, Type::Fixed64(rule)) => integer!(rule, Fixed64),
            (Kind::Sfixed32, Type::Sfixed32(rule)) => integer!(rule, Sfixed32),
            (Kind::Sfixed64, Type::Sfixed64(rule)) => integer!(rule, Sfixed64),
            (Kind::Bool, Type::Bool(rule)) => rule.r#const.map(Leaf::Bool),
            (Kind::String, Type::String(rule)) => Some(Leaf::Text(self.text(field, rule))),
            (Kind::Bytes, Type::Bytes(mut rule)) => {
                let bounds = lengths(rule.min_len.take(), rule.max_len.take());
                self.expect_empty(field, &rule);
                Some(Leaf::Blob(bounds))
            }
            (Kind::Enum(kind), Type::Enum(mut rule)) => {
                let defined = rule.defined_only.take() == Some(true);
                let numbers = || kind.values().map(|value| i128::from(value.number())).collect();
                let not_in: Vec<i32> = std::mem::take(&mut rule.not_in);
                self.expect_empty::<EnumRules>(field, &rule);
                let rule = IntegerRule::Enum {
                    defined: defined.then(numbers),
                    not_in: not_in.into_iter().map(i128::from).collect(),
                };
                Some(Leaf::Integer(Integer::Int, rule))
            }
            _ => {
                self.unknown.push(field.into());
                None
            }
        }
    }

    fn text(&mut self, field: &str, mut rule: StringRules) -> Box<Text> {
        let strict = rule.strict();
        rule.strict = None;
        let header = match rule.well_known {
            Some(string_rules::WellKnown::WellKnownRegex(known)) => {
                rule.well_known = None;
                match (KnownRegex::try_from(known), strict) {
                    (Ok(KnownRegex::HttpHeaderName), true) => Some(HeaderText::StrictName),
                    (Ok(KnownRegex::HttpHeaderValue), true) => Some(HeaderText::StrictValue),
                    (Ok(KnownRegex::HttpHeaderName | KnownRegex::HttpHeaderValue), false) => {
                        Some(HeaderText::Line)
                    }
                    (Ok(KnownRegex::Unknown) | Err(_), _) => None,
                }
            }
            _ => None,
        };
        let pattern = rule.pattern.take().and_then(|pattern| {
            Regex::new(&pattern).map_err(|_| self.unknown.push(field.into())).ok()
        });
        let text = Text {
            empty_is_unset: rule.ignore_empty.take() == Some(true),
            chars: lengths(rule.min_len.take(), rule.max_len.take()),
            bytes: lengths(rule.min_bytes.take(), rule.max_bytes.take()),
            prefix: rule.prefix.take().unwrap_or_default(),
            suffix: rule.suffix.take().unwrap_or_default(),
            one_of: std::mem::take(&mut rule.r#in),
            pattern,
            header,
        };
        self.expect_empty(field, &rule);
        Box::new(text)
    }

    /// Notes the field if there is a rule left that nobody has taken.
    fn expect_empty<M: Message + Default + PartialEq>(&mut self, field: &str, rest: &M) {
        if *rest != M::default() {
            self.unknown.push(field.into());
        }
    }

    /// Notes a rule of the wrong type for its field.
    fn unknown<T: Default>(&mut self, field: &str, _rule: Type) -> T {
        self.unknown.push(field.into());
        T::default()
    }
}

impl Shape {
    /// Whether there is anything to check.
    fn matters(&self) -> bool {
        let free = |value: &Value| matches!(value, Value::Free(_));
        match self {
            Shape::One { value, absent } => !free(value) || absent.is_some(),
            Shape::List { item, count, unique } => !free(item) || count.limits() || *unique,
            Shape::Map { key, value, count } => !free(key) || !free(value) || count.limits(),
        }
    }
}

impl Count {
    fn limits(self) -> bool {
        self.min > 0 || self.max.is_some()
    }
}

fn scalar(kind: &Kind) -> Option<Scalar> {
    match kind {
        Kind::String | Kind::Bytes | Kind::Message(_) => None,
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => Some(Scalar::Fixed32),
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => Some(Scalar::Fixed64),
        Kind::Bool | Kind::Enum(_) | Kind::Int32 | Kind::Int64 => Some(Scalar::Varint),
        Kind::Uint32 | Kind::Uint64 | Kind::Sint32 | Kind::Sint64 => Some(Scalar::Varint),
    }
}

/// The bounds made of the limits `gte`, `gt`, `lte` and `lt`.
fn bounds<T>(limits: [Option<T>; 4]) -> Bounds<T> {
    let [gte, gt, lte, lt] = limits;
    Bounds {
        low: gte.map(Limit::Inclusive).or(gt.map(Limit::Exclusive)),
        high: lte.map(Limit::Inclusive).or(lt.map(Limit::Exclusive)),
    }
}

fn lengths(min: Option<u64>, max: Option<u64>) -> Bounds<usize> {
    Bounds { low: length(min).map(Limit::Inclusive), high: length(max).map(Limit::Inclusive) }
}

fn length(limit: Option<u64>) -> Option<usize> {
    limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

//! Reads TOML into the raw types of a scenario, finding all mistakes at once.
//!
//! A derived deserialiser stops at its first error; here every value of the wrong type, every
//! unknown key and every missing one is reported, and a stand-in that draws no further complaints
//! takes its place. A table's fields are declared once, with the [`section`] macro: known keys,
//! types and the JSON schema follow.

use std::borrow::Cow;
use std::ops::Range;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::decimal::Decimal;
use super::diagnostic::{Report, Spot, nearest};

/// A value with the place it is written at.
pub(super) type Value<'i> = Spanned<DeValue<'i>>;

/// Walks the tree and knows where it is.
pub(super) struct Reader<'r, 'a> {
    pub(super) report: &'r mut Report<'a>,
    path: Vec<String>,
}

/// Can be read from a TOML value.
pub(super) trait Read: Sized {
    /// Reads `value`; on failure says why in the report and returns a stand-in if there is one.
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self>;

    /// The stand-in for a value that cannot be read or is not there.
    fn broken(_at: Spot) -> Option<Self> {
        None
    }

    /// The value of a key that is not there: an error unless there is a natural one.
    fn absent(reader: &mut Reader<'_, '_>, table: &Value<'_>, key: &str) -> Option<Self> {
        let spot = reader.spot(table);
        reader.report.table(&spot, format_args!("the key {key} is missing"), format!("add {key} = …"));
        Self::broken(spot)
    }
}

/// A table of a scenario: each field is a key, anything else is an error.
macro_rules! section {
    ($(#[$meta:meta])* struct $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, JsonSchema)]
        #[schemars(deny_unknown_fields)]
        pub(super) struct $name {
            #[schemars(skip)]
            #[allow(dead_code, reason = "not every table is complained about as a whole")]
            pub(super) at: Spot,
            $($(#[$field_meta])* pub(super) $field: $type,)*
        }

        impl Read for $name {
            fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
                let table = reader.table(value, &[$(stringify!($field)),*])?;
                $(let $field = reader.field(value, table, stringify!($field));)*
                let at = reader.spot(value);
                Some(Self { at, $($field: $field?),* })
            }
        }
    };
}
pub(super) use section;

impl<'r, 'a> Reader<'r, 'a> {
    pub(super) fn new(report: &'r mut Report<'a>) -> Self {
        Self { report, path: Vec::new() }
    }

    /// Where `value`, the one being read, is.
    pub(super) fn spot(&self, value: &Value<'_>) -> Spot {
        Spot { path: self.path.join("."), span: value.span() }
    }

    /// `value` as a table whose keys are all among `known`.
    pub(super) fn table<'v, 'i>(&mut self, value: &'v Value<'i>, known: &[&str]) -> Option<&'v DeTable<'i>> {
        let DeValue::Table(table) = value.get_ref() else {
            return self.not_a_table(value);
        };
        for key in table.keys() {
            if !known.contains(&key.get_ref().as_ref()) {
                self.unknown_key(key.get_ref(), key.span(), known);
            }
        }
        Some(table)
    }

    fn not_a_table<T>(&mut self, value: &Value<'_>) -> Option<T> {
        let _no_stand_in: Option<Vec<Flag>> = self.wrong_type(value, "a table");
        None
    }

    fn unknown_key(&mut self, key: &str, span: Range<usize>, known: &[&str]) {
        let shown: String = key.chars().take(40).flat_map(char::escape_debug).collect();
        let place = match self.path.join(".") {
            path if path.is_empty() => "at the top level".to_owned(),
            path => format!("in {path}"),
        };
        let remedy = match nearest(key, known.iter().copied()) {
            Some(like) => format!("did you mean {like}?"),
            None => format!("known keys are {}", known.join(", ")),
        };
        self.report.address(span.start, format!("{shown}: there is no such key {place}"), remedy);
    }

    /// Reads the value of `key`.
    pub(super) fn field<T: Read>(&mut self, value: &Value<'_>, table: &DeTable<'_>, key: &str) -> Option<T> {
        match table.get(key) {
            Some(field) => self.within(key.to_owned(), |reader| T::read(reader, field)),
            None => T::absent(self, value, key),
        }
    }

    /// Reports a value of the wrong type; returns the stand-in for it.
    pub(super) fn wrong_type<T: Read>(&mut self, value: &Value<'_>, wanted: &str) -> Option<T> {
        let spot = self.spot(value);
        let found = value.get_ref().type_str();
        self.report.value(
            &spot,
            format_args!("must be {wanted}, not {}", with_article(found)),
            format!("write {wanted}"),
        );
        T::broken(spot)
    }

    fn within<T>(&mut self, segment: String, read: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(segment);
        let result = read(self);
        self.path.pop();
        result
    }
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'i']) { "an" } else { "a" };
    format!("{article} {noun}")
}

/// The path segment of an array's element: its name if it has one, else its index.
fn segment(element: &Value<'_>, index: usize) -> String {
    let name = element
        .get_ref()
        .as_table()
        .and_then(|table| table.get("name"))
        .and_then(|name| name.get_ref().as_str());
    match name {
        Some(name) => name.chars().take(super::decimal::NAME_CHARS_MAX).filter(|c| !c.is_control()).collect(),
        None => index.to_string(),
    }
}

impl<T: Read> Read for Option<T> {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        Some(T::read(reader, value))
    }

    fn absent(_: &mut Reader<'_, '_>, _: &Value<'_>, _: &str) -> Option<Self> {
        Some(None)
    }
}

/// Elements that cannot be read are reported and left out, so that the others still get checked.
impl<T: Read> Read for Vec<T> {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let DeValue::Array(array) = value.get_ref() else {
            return reader.wrong_type(value, "an array");
        };
        let read_one =
            |(index, element)| reader.within(segment(element, index), |reader| T::read(reader, element));
        Some(array.iter().enumerate().filter_map(read_one).collect())
    }

    fn absent(reader: &mut Reader<'_, '_>, table: &Value<'_>, key: &str) -> Option<Self> {
        let spot = reader.spot(table);
        let problem = format_args!("there is no {key}");
        let remedy = format!("add at least one [[{key}]] table");
        reader.report.table(&spot, problem, remedy);
        None
    }
}

/// A text.
#[derive(Clone, Debug)]
pub(super) struct Text {
    pub(super) at: Spot,
    /// `None` if it is broken.
    pub(super) value: Option<String>,
}

impl Read for Text {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let Some(text) = value.get_ref().as_str() else {
            return reader.wrong_type(value, "a string");
        };
        let at = reader.spot(value);
        let value = Some(text.to_owned());
        Some(Self { at, value })
    }

    fn broken(at: Spot) -> Option<Self> {
        Some(Self { at, value: None })
    }
}

/// Yes or no.
#[derive(Clone, Debug)]
pub(super) struct Flag {
    pub(super) at: Spot,
    pub(super) value: bool,
}

impl Read for Flag {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let Some(flag) = value.get_ref().as_bool() else {
            return reader.wrong_type(value, "true or false");
        };
        let at = reader.spot(value);
        Some(Self { at, value: flag })
    }
}

/// A number, exactly as written.
#[derive(Clone, Debug)]
pub(super) struct Number {
    pub(super) at: Spot,
    pub(super) value: Decimal,
}

impl Read for Number {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let number = match value.get_ref() {
            DeValue::Integer(digits) => Some(Decimal::integer(digits.as_str(), digits.radix())),
            DeValue::Float(digits) => Decimal::parse(digits.as_str()),
            _ => None,
        };
        let Some(number) = number else {
            return reader.wrong_type(value, "a number");
        };
        let at = reader.spot(value);
        Some(Self { at, value: number })
    }

    fn broken(at: Spot) -> Option<Self> {
        let value = Decimal::Broken;
        Some(Self { at, value })
    }
}

/// A number that must be whole.
#[derive(Clone, Debug)]
pub(super) struct Whole(pub(super) Number);

impl Read for Whole {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        Number::read(reader, value).map(Self)
    }

    fn broken(at: Spot) -> Option<Self> {
        Number::broken(at).map(Self)
    }
}

/// One value, or the bounds of a range: `5` or `[3, 8]`.
#[derive(Clone, Debug)]
pub(super) struct OneOrRange<T = Number> {
    pub(super) at: Spot,
    pub(super) lo: T,
    pub(super) hi: T,
}

impl<T: Read + Clone> Read for OneOrRange<T> {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        let at = reader.spot(value);
        match value.get_ref() {
            DeValue::Array(array) => {
                let [lo, hi] = array.as_ref() else {
                    return reader.wrong_type(value, "a number or a range [lo, hi]");
                };
                let (lo, hi) = (T::read(reader, lo), T::read(reader, hi));
                Some(Self { at, lo: lo?, hi: hi? })
            }
            DeValue::Integer(_) | DeValue::Float(_) => {
                let one = T::read(reader, value)?;
                Some(Self { at, lo: one.clone(), hi: one })
            }
            _ => reader.wrong_type(value, "a number or a range [lo, hi]"),
        }
    }

    fn broken(at: Spot) -> Option<Self> {
        let one = T::broken(at.clone())?;
        let (lo, hi) = (one.clone(), one);
        Some(Self { at, lo, hi })
    }
}

/// One table, or a list of them.
#[derive(Debug)]
pub(super) enum OneOrMany<T> {
    One(T),
    Many(Vec<T>),
}

impl<T: Read> Read for OneOrMany<T> {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Array(_) => Vec::read(reader, value).map(Self::Many),
            _ => T::read(reader, value).map(Self::One),
        }
    }
}

impl<T: JsonSchema> JsonSchema for OneOrMany<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("OneOrMany{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (one, many) = (generator.subschema_for::<T>(), generator.subschema_for::<Vec<T>>());
        json_schema!({ "anyOf": [one, many] })
    }
}

/// A word, or a table that says more.
#[derive(Debug)]
pub(super) enum WordOr<T> {
    Word(Text),
    Table(T),
}

impl<T: Read> Read for WordOr<T> {
    fn read(reader: &mut Reader<'_, '_>, value: &Value<'_>) -> Option<Self> {
        match value.get_ref() {
            DeValue::Table(_) => T::read(reader, value).map(Self::Table),
            DeValue::String(_) => Text::read(reader, value).map(Self::Word),
            _ => reader.wrong_type(value, "a string or a table"),
        }
    }

    fn broken(at: Spot) -> Option<Self> {
        Text::broken(at).map(Self::Word)
    }
}

impl<T: JsonSchema> JsonSchema for WordOr<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("WordOr{}", T::schema_name()).into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, table) = (generator.subschema_for::<Text>(), generator.subschema_for::<T>());
        json_schema!({ "anyOf": [word, table] })
    }
}

/// Gives a leaf type a schema of its own, written in place.
macro_rules! leaf_schema {
    ($type:ty, $name:literal, $($schema:tt)*) => {
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($($schema)*)
            }
        }
    };
}

leaf_schema!(Text, "Text", { "type": "string" });
leaf_schema!(Flag, "Flag", { "type": "boolean" });
leaf_schema!(Number, "Number", { "type": "number" });
leaf_schema!(Whole, "Whole", { "type": "integer" });
leaf_schema!(OneOrRange, "NumberOrRange", {
    "anyOf": [
        { "type": "number" },
        { "type": "array", "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
    ],
});
leaf_schema!(OneOrRange<Whole>, "WholeOrRange", {
    "anyOf": [
        { "type": "integer" },
        { "type": "array", "items": { "type": "integer" }, "minItems": 2, "maxItems": 2 },
    ],
});

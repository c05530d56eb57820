//! Values as users write them: a size, a duration, an address, a pattern.
//!
//! Each kind of value is one type that implements [`Scalar`]. The same implementation provides the
//! JSON schema, the validation of a value (used by [`crate::structure`], which knows a kind by its
//! schema `format`), and the conversion (used by serde after validation).

mod address;
mod coverage;
mod expression;
mod host;
mod name;
mod network;
mod pattern;
mod portion;
mod quantity;
mod rate;
mod schedule;
mod share;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use address::{Address, FileMode, MetricsAt, UNIX_PATH_MAX_BYTES};
pub use coverage::Coverage;
pub(crate) use expression::Expression;
pub use host::HostPattern;
pub(crate) use name::*;
pub(crate) use network::Peer;
pub use outboard_access::Network;
pub use pattern::PathPattern;
pub(crate) use portion::Portion;
pub(crate) use quantity::{ByteSize, Percent, Period};
pub(crate) use rate::RateText;
pub use schedule::Schedule;
pub use share::{Count, MemoryBudget};
pub use template::UrlTemplate;

/// A value as written in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Written<'t> {
    Text(&'t str),
    Integer(i64),
    Float(f64),
    Boolean(bool),
}

/// Why a value is invalid.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Fault { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// One kind of value.
pub(crate) trait Scalar: Sized {
    /// Its name: the `format` in the schema and the type in the reference.
    const NAME: &'static str;
    /// What to write, for messages: "a size such as `64 MiB`".
    const EXPECTED: &'static str;
    /// The JSON types it may be written in.
    const TYPES: &'static [&'static str] = &["string"];

    /// Reads what was written.
    fn read(written: Written<'_>) -> Result<Self, Fault>;

    /// Writes it as a person would, for the defaults in the schema.
    fn write(&self) -> String;

    /// Its size on a scale, when there is one, to be compared with bounds.
    fn magnitude(&self) -> Option<u64> {
        None
    }

    /// The error of [`Scalar::read`] for a value of another type.
    fn unexpected() -> Fault {
        Fault::new(format!("expected {}", Self::EXPECTED))
    }
}

/// Validates a value without knowing its Rust type.
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) expected: &'static str,
    /// Returns the value's magnitude, or the error.
    pub(crate) inspect: fn(Written<'_>) -> Result<Option<u64>, Fault>,
}

const fn format<S: Scalar>() -> Format {
    Format {
        name: S::NAME,
        expected: S::EXPECTED,
        inspect: |written| S::read(written).map(|value| value.magnitude()),
    }
}

/// Gives each type its serde and schema implementations and a row in [`FORMATS`].
macro_rules! scalars {
    ($($kind:ty),+ $(,)?) => {
        /// Every kind of value, found by its name.
        pub(crate) const FORMATS: &[Format] = &[$(format::<$kind>()),+];

        $(
            impl serde::Serialize for $kind {
                fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                    // A number is written as one: `1` and not `"1"`; "0660" is not a number.
                    let text = self.write();
                    match text.parse::<u64>() {
                        Ok(number) if number.to_string() == text => s.serialize_u64(number),
                        _ => s.serialize_str(&text),
                    }
                }
            }

            impl<'de> serde::Deserialize<'de> for $kind {
                fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                    deserialize(d)
                }
            }

            impl schemars::JsonSchema for $kind {
                fn inline_schema() -> bool {
                    true
                }

                fn schema_name() -> std::borrow::Cow<'static, str> {
                    <$kind>::NAME.into()
                }

                fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                    let types = <$kind>::TYPES;
                    let types = match types {
                        [one] => serde_json::json!(one),
                        many => serde_json::json!(many),
                    };
                    schemars::json_schema!({ "type": types, "format": <$kind>::NAME })
                }
            }
        )+
    };
}

scalars!(
    ByteSize,
    Period,
    Percent,
    RateText,
    Portion,
    Count,
    MemoryBudget,
    Address,
    MetricsAt,
    FileMode,
    Peer,
    HostPattern,
    Schedule,
    PathPattern,
    Expression,
    FilePath,
    UrlPath,
    HeaderName,
    HeaderValue,
    AppName,
    EnvName,
    IniName,
    IniValue,
    StatusClass,
    AnyStatus,
    FileExtension,
    FileName,
    PhpVersion,
    PlainText,
    PrefetchName,
    UrlTemplate,
);

fn deserialize<'de, S: Scalar, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<S, D::Error> {
    struct Reader<S>(std::marker::PhantomData<S>);

    impl<S: Scalar> serde::de::Visitor<'_> for Reader<S> {
        type Value = S;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(S::EXPECTED)
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<S, E> {
            read(Written::Text(text))
        }

        fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<S, E> {
            read(Written::Integer(number))
        }

        fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<S, E> {
            read(Written::Integer(i64::try_from(number).map_err(E::custom)?))
        }

        fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<S, E> {
            read(Written::Float(number))
        }

        fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<S, E> {
            read(Written::Boolean(value))
        }
    }

    fn read<S: Scalar, E: serde::de::Error>(written: Written<'_>) -> Result<S, E> {
        S::read(written).map_err(|fault| E::custom(fault.message))
    }

    deserializer.deserialize_any(Reader(std::marker::PhantomData))
}

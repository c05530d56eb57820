//! [`Scalar`]: what a kind of value is to the file, to its schema and to messages.
//!
//! Each file of this directory implements it for its kinds; [`super::FORMATS`] lists them.

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

pub(super) const fn format<S: Scalar>() -> Format {
    Format {
        name: S::NAME,
        expected: S::EXPECTED,
        inspect: |written| S::read(written).map(|value| value.magnitude()),
    }
}

/// Reads a value by its [`Scalar`], for serde.
pub(super) fn deserialize<'de, S: Scalar, D: serde::Deserializer<'de>>(
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

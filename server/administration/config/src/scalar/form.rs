//! [`As`]: a field of a plain type that is written as a kind of value: a `u64` as a duration, a `String` as the
//! name of a header.
//!
//! So a setting is declared once, with the type that the server uses. Invariant: what is serialized is what
//! was written, in the spelling of [`super::Scalar::write`].

use super::log_format::LogFormat;
use super::name::{
    AppName, EnvName, FileExtension, FileName, FilePath, HeaderValue, IniValue, PhpVersion,
    PlainText, UrlPath,
};
use super::portion::Portion;
use super::quantity::{ByteSize, Percent, Period};
use super::schedule::Schedule;
use outboard_log::AccessFormat;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;

/// How a plain value is written.
pub(crate) trait Form: Sized {
    /// The type of the field.
    type Plain;

    /// The value of what was written.
    fn plain(self) -> Self::Plain;

    /// What is written for a value.
    fn of(plain: &Self::Plain) -> Self;
}

/// For `#[serde(with = "As::<FORM>")]`.
pub(crate) struct As<F>(PhantomData<F>);

impl<F: Form> As<F> {
    pub(crate) fn serialize<S: Serializer>(plain: &F::Plain, to: S) -> Result<S::Ok, S::Error>
    where
        F: Serialize,
    {
        F::of(plain).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<F::Plain, D::Error>
    where
        F: Deserialize<'de>,
    {
        F::deserialize(from).map(F::plain)
    }
}

impl<F: JsonSchema> JsonSchema for As<F> {
    /// Forms with parameters share their names: a definition would be that of the first.
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        F::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        F::json_schema(generator)
    }
}

macro_rules! newtypes {
    ($($form:ident: $plain:ty),+) => {
        $(
            impl Form for $form {
                type Plain = $plain;

                fn plain(self) -> $plain {
                    self.0
                }

                fn of(plain: &$plain) -> Self {
                    Self(plain.clone())
                }
            }
        )+
    };
}

newtypes!(
    AppName: String, ByteSize: u64, EnvName: String, FileExtension: String, FileName: String,
    HeaderValue: String, IniValue: String, LogFormat: AccessFormat, Percent: u32, Period: u64, PhpVersion: String,
    PlainText: String, Portion: u32, UrlPath: String
);

impl Form for FilePath {
    type Plain = PathBuf;

    fn plain(self) -> PathBuf {
        self.0.into()
    }

    fn of(plain: &PathBuf) -> Self {
        Self(plain.to_string_lossy().into_owned())
    }
}

impl Form for u32 {
    type Plain = u32;

    fn plain(self) -> u32 {
        self
    }

    fn of(plain: &u32) -> Self {
        *plain
    }
}

impl Form for Schedule {
    type Plain = Schedule;

    fn plain(self) -> Schedule {
        self
    }

    fn of(plain: &Schedule) -> Self {
        plain.clone()
    }
}

impl<F: Form> Form for Option<F> {
    type Plain = Option<F::Plain>;

    fn plain(self) -> Self::Plain {
        self.map(F::plain)
    }

    fn of(plain: &Self::Plain) -> Self {
        plain.as_ref().map(F::of)
    }
}

impl<F: Form> Form for Vec<F> {
    type Plain = Vec<F::Plain>;

    fn plain(self) -> Self::Plain {
        self.into_iter().map(F::plain).collect()
    }

    fn of(plain: &Self::Plain) -> Self {
        plain.iter().map(F::of).collect()
    }
}

impl<F: Form> Form for BTreeMap<String, F> {
    type Plain = BTreeMap<String, F::Plain>;

    fn plain(self) -> Self::Plain {
        self.into_iter().map(|(name, value)| (name, value.plain())).collect()
    }

    fn of(plain: &Self::Plain) -> Self {
        plain.iter().map(|(name, value)| (name.clone(), F::of(value))).collect()
    }
}

/// Declares a form that is written as what it wraps.
macro_rules! wrappers {
    ($(
        $(#[$doc:meta])*
        $name:ident<$form:ident>($wrapped:ty): $plain:ty $(where $of:ty: $($bound:ident),+)? = $into:expr, $from:expr;
    )+) => {
        $(
            $(#[$doc])*
            #[derive(Serialize, Deserialize, JsonSchema)]
            #[serde(transparent)]
            #[schemars(transparent)]
            pub(crate) struct $name<$form>($wrapped);

            impl<$form: Form> Form for $name<$form> $(where $of: $($bound +)+)? {
                type Plain = $plain;

                fn plain(self) -> Self::Plain {
                    let into: fn($wrapped) -> $plain = $into;
                    into(self.0)
                }

                fn of(plain: &Self::Plain) -> Self {
                    let from: fn(&$plain) -> $wrapped = $from;
                    Self(from(plain))
                }
            }
        )+
    };
}

wrappers! {
    /// `None` is written as 0.
    OrZero<F>(F): Option<F::Plain> where F::Plain: Clone, Default, PartialEq =
        |written| Some(written.plain()).filter(|plain| *plain != F::Plain::default()),
        |plain| F::of(&plain.clone().unwrap_or_default());

    /// An empty value is not written.
    OrEmpty<F>(Option<F>): F::Plain where F::Plain: Default, PartialEq =
        |written| written.map(F::plain).unwrap_or_default(),
        |plain| (*plain != F::Plain::default()).then(|| F::of(plain));

    /// A table whose keys are names of the user, as a list.
    Pairs<F>(BTreeMap<String, F>): Vec<(String, F::Plain)> =
        |written| written.into_iter().map(|(name, value)| (name, value.plain())).collect(),
        |plain| plain.iter().map(|(name, value)| (name.clone(), F::of(value))).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Table {
        #[serde(with = "As::<Period>")]
        time_ms: u64,
        #[serde(with = "As::<OrZero<ByteSize>>")]
        most_bytes: Option<u64>,
        #[serde(with = "As::<OrEmpty<FilePath>>")]
        path: PathBuf,
        #[serde(with = "As::<Pairs<HeaderValue>>")]
        headers: Vec<(String, String)>,
        #[serde(with = "As::<Vec<FileName>>")]
        names: Vec<String>,
    }

    #[test]
    fn a_value_is_written_as_it_is_read() {
        for (written, most_bytes, path) in [
            (
                r#"{"time_ms":"2s","most_bytes":"64 KiB","path":"a/b","headers":{"A":"b"},"names":["c"]}"#,
                Some(65_536),
                "a/b",
            ),
            (
                r#"{"time_ms":"2s","most_bytes":0,"path":null,"headers":{"A":"b"},"names":["c"]}"#,
                None,
                "",
            ),
        ] {
            let table: Table = from_str(written).unwrap();
            let headers = vec![("A".to_owned(), "b".to_owned())];
            let expected = Table {
                time_ms: 2_000,
                most_bytes,
                path: path.into(),
                headers,
                names: vec!["c".to_owned()],
            };
            assert_eq!(table, expected);
            assert_eq!(to_string(&table).unwrap(), written);
        }
    }
}

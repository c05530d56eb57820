//! Values as users write them: a size, a duration, an address, a pattern.
//!
//! Each kind of value is one type that implements [`Scalar`]. The same implementation provides the
//! JSON schema, the validation of a value (used by [`crate::structure`], which knows a kind by its
//! schema `format`), and the conversion (used by serde after validation).

mod address;
mod coverage;
mod expression;
mod form;
mod host;
mod kind;
mod log_format;
mod name;
mod network;
mod pattern;
mod portion;
mod quantity;
mod rate;
mod schedule;
mod secret;
mod share;
mod template;
#[cfg(test)]
mod tests;
mod time_zone;

pub(crate) use address::{Address, FileMode, MetricsAt, UNIX_PATH_MAX_BYTES};
pub use coverage::Coverage;
pub(crate) use expression::{Expression, REGEX_MAX_BYTES};
pub(crate) use form::{As, Form, OrEmpty, OrZero, Pairs};
pub use host::HostPattern;
pub(crate) use kind::{Fault, Format, Scalar, Written};
pub(crate) use log_format::LogFormat;
pub(crate) use name::*;
pub(crate) use network::Peer;
pub use outboard_access::Network;
pub use pattern::PathPattern;
pub(crate) use portion::Portion;
pub(crate) use quantity::{ByteSize, Percent, Period};
pub(crate) use rate::RateText;
pub use schedule::Schedule;
pub use secret::Secret;
pub use share::{Count, MemoryBudget};
pub use template::{UrlTemplate, query_pairs};
pub use time_zone::TimeZone;

/// Gives each type its serde and schema implementations and a row in [`FORMATS`].
macro_rules! scalars {
    ($($kind:ty),+ $(,)?) => {
        /// Every kind of value, found by its name.
        pub(crate) const FORMATS: &[Format] = &[$(kind::format::<$kind>()),+];

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
                    kind::deserialize(d)
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
    TimeZone,
    PathPattern,
    Expression,
    LogFormat,
    FilePath,
    UrlPath,
    HeaderName,
    HeaderValue,
    AppName,
    ConditionName,
    CountryCode,
    MethodName,
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
    Secret,
    UrlTemplate,
);

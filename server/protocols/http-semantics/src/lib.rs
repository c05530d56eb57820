//! HTTP semantics (RFC 9110) without I/O: what header values mean, whatever version of HTTP carries
//! them, and the requests of the versions that have decoded fields instead of lines.
//!
//! Called by `static-files` and `page-cache`, which answer requests from content that they have,
//! by the gateway for records and compression, and by `http2` and `http3` for the heads that they
//! decode. Invariant: values come from clients, so no value panics, allocates more than its own length
//! or costs more than a few passes over it.
//!
//! | file | owns |
//! |---|---|
//! | `list` | comma-separated lists, tokens and quoted strings (5.6) |
//! | `date` | HTTP-dates (5.6.7) and the Date field |
//! | `entity_tag` | entity-tags and lists of them (8.8.3) |
//! | `conditions` | conditional requests (13) |
//! | `range` | byte ranges (14) |
//! | `request_head`, `fields` | [`RequestHead`] and [`Fields`] of HTTP/2 and HTTP/3 |
//! | `head_reader`, `malformed` | [`HeadReader`], the rules for them, and how they are broken |
//! | `field_syntax` | what each field has to satisfy |
//! | `priority` | [`Priority`] of a response (RFC 9218) |
//! | `coding` | content codings and Accept-Encoding (8.4.1, 12.5.3) |
//!
//! # Examples
//!
//! ```
//! use outboard_http_semantics::{Conditions, EntityTag, Outcome, Validators};
//!
//! let current = Validators { etag: EntityTag::parse(b"\"v2\""), last_modified: None };
//! let revisit = Conditions { if_none_match: Some(b"\"v1\", \"v2\""), ..Conditions::default() };
//! assert_eq!(revisit.evaluate(current), Outcome::NotModified);
//! ```
#![forbid(unsafe_code)]

mod coding;
mod conditions;
mod date;
mod entity_tag;
mod field_syntax;
mod fields;
mod head_reader;
pub mod list;
mod malformed;
mod priority;
mod range;
mod request_head;

pub use coding::{Coding, is_compressible, parse_weight};
pub use conditions::{Conditions, LastModified, Outcome, Validators};
pub use date::{DateCache, UNIX_SECONDS_MAX, format_http_date, parse_http_date};
pub use entity_tag::{EntityTag, MalformedTag, entity_tags, is_any_tag};
pub use field_syntax::{
    check_field, is_connection_specific, is_token, is_valid_name, is_valid_value,
    parse_content_length,
};
pub use fields::Fields;
pub use head_reader::{HeadReader, SectionKind};
pub use malformed::MalformedFields;
pub use priority::Priority;
pub use range::{ByteRange, RangeSelection, select_ranges};
pub use request_head::RequestHead;

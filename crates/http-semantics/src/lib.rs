//! HTTP semantics (RFC 9110) without I/O: what header values mean, whatever version of HTTP carries
//! them.
//!
//! Called by `static-files` and `page-cache`, which answer requests from content that they have,
//! and by the gateway for records and compression. Invariant: values come from clients, so no value
//! panics, allocates more than its own length or costs more than one pass over it.
//!
//! | file | owns |
//! |---|---|
//! | `list` | comma-separated lists, tokens and quoted strings (5.6) |
//! | `date` | HTTP-dates (5.6.7) and the Date field |
//! | `entity_tag` | entity-tags and lists of them (8.8.3) |
//! | `conditions` | conditional requests (13) |
//! | `range` | byte ranges (14) |
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
pub mod list;
mod range;

pub use coding::{Coding, is_compressible, parse_weight};
pub use conditions::{Conditions, LastModified, Outcome, Validators};
pub use date::{DateCache, UNIX_SECONDS_MAX, format_http_date, parse_http_date};
pub use entity_tag::{EntityTag, MalformedTag, entity_tags, is_any_tag};
pub use range::{ByteRange, RangeSelection, select_ranges};

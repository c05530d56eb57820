//! An HTTP cache as a shared cache keeps it (RFC 9111), without I/O and without a clock.
//!
//! The gateway hands in heads as borrowed slices and the time as seconds; it gets decisions back,
//! each with a reason that can be shown. Nothing here reads a socket, a file or the time.
//!
//! Invariants: what may be personal is not kept, whoever allows it; every answer that is not from
//! the cache says why; nothing is used longer than its origin allowed.
//!
//! | file | owns |
//! |---|---|
//! | `message` | what is seen of requests and responses |
//! | `list`, `structured`, `date` | the syntax of field values |
//! | `directives`, `targeted` | Cache-Control, and the field that counts instead of it |
//! | `request_facts`, `cookies`, `known_fields` | who asks for what, and what is passed by |
//! | `preset`, `pattern` | what is known of common applications |
//! | `storage` | whether a response is kept, and for whom |
//! | `freshness`, `policy`, `reuse` | how long it lives and when it may be used |
//! | `vary` | which of several responses answers a request |
//! | `conditions`, `range`, `validators` | 304 and 206 to clients |
//! | `validation`, `invalidation` | what the origin confirms, and what it changed |
//! | `entry`, `coding`, `compress` | a stored response and the codings of its body |
//! | `encoder` | the coding of a body that is not stored |
//! | `store` | the entries in memory |
//! | `purge`, `tags`, `purge_index`, `purge_log` | what is purged, which entries that are, and what was purged lately |
//! | `record`, `shelf` | an entry as bytes, and what of them lies on disk |
//! | `difference` | what two visitors' copies of a page differ in |
//! | `cache_status`, `reason` | what is said about it |
#![forbid(unsafe_code)]

mod cache_status;
mod coding;
mod compress;
mod conditions;
mod cookies;
mod date;
mod difference;
mod directives;
mod encoder;
mod entry;
mod freshness;
mod invalidation;
mod known_fields;
mod list;
mod message;
mod pattern;
mod policy;
mod preset;
mod purge;
mod purge_index;
mod purge_log;
mod range;
mod reason;
mod record;
mod request_facts;
mod reuse;
mod shelf;
mod storage;
mod store;
mod structured;
mod tags;
mod targeted;
mod validation;
mod validators;
mod vary;

pub use cache_status::{Missed, Outcome};
pub use coding::{Coding, best, is_compressible};
pub use compress::{COMPRESS_MIN_BYTES, compressed};
pub use conditions::{Answer, Conditions};
pub use cookies::{CookieRules, Visitor};
pub use date::http_date;
pub use difference::Difference;
pub use directives::{RequestDirectives, ResponseDirectives, SECONDS_MAX, Scope};
pub use encoder::Encoder;
pub use entry::{Entry, Key, Representation, Shared};
pub use freshness::{Basis, Freshness};
pub use invalidation::{Target, invalidated, is_unsafe};
pub use known_fields::{OVERRIDES, SILENT_MARKS, SILENT_NAMES};
pub use message::{Exchanged, Field, Fields, Request, Response};
pub use pattern::NamePattern;
pub use policy::Policy;
pub use preset::{PRESETS, Preset};
pub use purge::Selector;
pub use purge_log::PurgeLog;
pub use range::Ranged;
pub use reason::Reason;
pub use record::{decoded, encoded};
pub use request_facts::{Guard, RequestFacts};
pub use reuse::{Forward, Reuse, is_error, reuse, stands_in};
pub use shelf::Shelf;
pub use storage::{Audience, Storable, kept_fields, may_be_kept, storable};
pub use store::{Counts, Found, Purge, Stamp, Store};
pub use tags::tags;
pub use targeted::{Control, TARGETED};
pub use validation::{
    Verdict, belongs_into_304, conditional_fields, freshened, head_agrees, is_replaced, verdict,
};
pub use validators::Validators;
pub use vary::{Variant, VariesByAnything};

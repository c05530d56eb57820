//! The page cache: a shared HTTP cache (RFC 9111) with a memory, a disk and a shared tier.
//!
//! The gateway's handlers pass heads as borrowed slices to the rules and get decisions back, each with
//! a reason that can be shown; they look pages up, store and purge them in [`PageCache`].
//!
//! Invariants: a response that may be personal is never stored; every response that is not from the
//! cache says why; no response is used longer than its origin allowed.
//!
//! Pure rules, without I/O and with the time as a parameter:
//!
//! | file | owns |
//! |---|---|
//! | `message` | borrowed views of requests and responses |
//! | `directives`, `targeted` | Cache-Control, and the targeted field that replaces it |
//! | `request_facts`, `cookies`, `known_fields` | which requests may use the cache |
//! | `preset`, `pattern`, `settings` | cookies and paths of common applications, and of an app |
//! | `storage` | whether a response is stored, and for which requests |
//! | `freshness`, `reuse` | how long a response is fresh, and when it may be used |
//! | `vary` | which of several stored responses matches a request |
//! | `conditions`, `validators` | 304 and 206 responses to clients |
//! | `validation`, `invalidation` | revalidation with the origin, and invalidation by unsafe methods |
//! | `key`, `entry`, `compress` | a stored response and the codings of its body |
//! | `encoder` | the coding of a body that is not stored |
//! | `store` | the entries in memory |
//! | `shared`, `front` | a shard's references to entries, and those that answer its hits |
//! | `purge`, `purge_index`, `purge_log` | tags and selectors, the entries that they select, recent purges |
//! | `record`, `disk_index` | an entry as bytes, and the index of the entries on disk |
//! | `difference` | the certain differences between two visitors' copies of a page |
//! | `cache_status`, `reason` | Cache-Status, X-Cache and the reasons in them |
//!
//! State, one for all shards (threads with an event loop each):
//!
//! | file | owns |
//! |---|---|
//! | `pages` | the tiers of an app, and everything else that its shards share |
//! | `disk_tier` | a file for each page |
//! | `single_flight` | requests that wait for another one to render the same page |
//!
//! State of each shard, on its event loop:
//!
//! | file | owns |
//! |---|---|
//! | `page_cache` | the cache of an app: its front, its pages and everything below |
//! | `shared_tier` | a Redis between several gateways; what its shards know together |
//! | `compressor` | compression in the background |
//! | `audit` | checks whether pages are the same for all visitors |
//! | `status_counts` | responses by cache status |
//! | `doorbell` | calls from another shard |
//! | `clock` | the wall clock of the tiers |
//!
//! # Examples
//!
//! A page is stored and found again:
//!
//! ```
//! use outboard_http1::Method;
//! use outboard_page_cache::{
//!     BypassRules, Control, CookieRules, Entry, ExchangeTimes, Fields, Found, Key, Policy, Request,
//!     RequestFacts, Response, Reuse, Store, reuse, storable, stored_fields,
//! };
//!
//! let (policy, rules) = (Policy::STANDARD, BypassRules::default());
//! let request = Request { method: Method::Get, path: b"/", fields: Fields(&[]) };
//! let facts = RequestFacts::read(request, &rules, &policy).expect("a plain GET may be cached");
//!
//! let fields = [(&b"Cache-Control"[..], &b"max-age=60"[..])];
//! let response = Response { status: 200, fields: Fields(&fields) };
//! let times = ExchangeTimes { request_s: 1_000, response_s: 1_000 };
//! let storable = storable(&policy, &rules.cookies, &facts, request.fields, response, times)
//!     .expect("the response says how long it is fresh");
//!
//! let mut store = Store::new(1 << 20);
//! let (key, epoch) = (Key::new(true, b"example.org", b"/"), store.purge_epoch());
//! let stored = stored_fields(response.fields, &Control::read(response.fields));
//! let body = b"<p>hello</p>".as_slice().into();
//! let entry = Entry::new(key.clone(), 200, Fields(&stored), body, storable, Box::default());
//! store.insert(entry, epoch, 1_000).expect("there is room");
//!
//! let matches = |entry: &Entry| entry.variant().matches(request.fields, false, &CookieRules::default());
//! let Found::Entry(entry) = store.find(&key, matches) else { panic!("nothing is stored") };
//! let decision = reuse(entry.times(), &facts.directives, 1_010);
//! assert_eq!(decision, Reuse::Fresh { age_s: 10, remaining_s: 50 });
//! ```
#![forbid(unsafe_code)]

mod allocated;
mod already_hashed;
mod audit;
mod cache_status;
mod clock;
mod compress;
mod compressor;
mod conditions;
mod cookies;
mod difference;
mod directives;
mod disk_index;
mod disk_tier;
mod doorbell;
mod encoder;
mod entry;
mod freshness;
mod front;
mod invalidation;
mod key;
mod known_fields;
mod message;
mod page_cache;
mod pages;
mod pattern;
mod preset;
mod purge;
mod purge_index;
mod purge_log;
mod reason;
mod record;
mod request_facts;
mod reuse;
mod settings;
mod shared;
mod shared_tier;
mod single_flight;
mod status_counts;
mod storage;
mod store;
mod targeted;
mod validation;
mod validators;
mod vary;

#[cfg(fuzzing)]
pub mod fuzzing;
#[cfg(test)]
mod test_support;

pub use audit::{Audit, OwnFields, Replay, Replayed};
pub use cache_status::{CacheStatus, MissReason};
pub use clock::now_s;
pub use compress::{COMPRESS_MIN_BYTES, compressed};
pub use conditions::{Conditions, ContentSelection};
pub use cookies::{CookieRules, Visitor};
pub use difference::Difference;
pub use directives::{RequestDirectives, ResponseDirectives, SECONDS_MAX, Scope};
pub use disk_index::DiskIndex;
pub use encoder::Encoder;
pub use entry::{Entry, Representation};
pub use freshness::{Basis, Freshness, Policy};
pub use invalidation::{Target, invalidated, is_unsafe};
pub use key::{Key, LookupKey};
pub use known_fields::{IMPLICIT_VARY, OVERRIDES, RARE_IMPLICIT_VARY};
pub use message::{ExchangeTimes, Field, Fields, Request, Response};
pub use page_cache::PageCache;
pub use pages::Pages;
pub use pattern::NamePattern;
pub use preset::{PRESETS, Preset};
pub use purge::{Selector, tags, tags_of};
pub use purge_log::PurgeLog;
pub use reason::Reason;
pub use record::{decoded, encoded};
pub use request_facts::{BypassRules, RequestFacts};
pub use reuse::{Forward, Reuse, is_stale_if_error_status, may_serve_on_error, reuse};
pub use settings::Settings;
pub use shared::Shared;
pub use single_flight::{Flight, Leader, Role, SingleFlight};
pub use storage::{Audience, Storable, may_be_stored, storable, stored_fields};
pub use store::{Counts, Found, Purge, PurgeEpoch, Store, Stored};
pub use targeted::{Control, TARGETED};
pub use validation::{
    Validation, belongs_into_304, conditional_fields, freshened, head_agrees, is_replaced, validate,
};
pub use validators::Validators;
pub use vary::{Variant, VariesByAnything};

//! An HTTP client on the gateway's own event loop: what PHP would wait for is waited for here.
//!
//! Called by the gateway for `fetch()`, `compose`, `prefetch` and for routes of other servers. It speaks HTTP/1.1 over
//! plain sockets and TLS, HTTP/2 over TLS, keeps connections, follows redirects, decodes bodies and bounds
//! everything: time, size, requests per host. State is `Rc` and belongs to one loop of
//! `outboard_reactor`.
//!
//! | file | owns |
//! |---|---|
//! | `client` | [`Client`]: redirects, retries, idle connections |
//! | `request`, `response` | [`Request`], [`Response`] |
//! | `upload` | [`Upload`]: a request whose body is still coming |
//! | `connection` | one HTTP/1.1 exchange, read strictly |
//! | `http2` | exchanges that share a connection |
//! | `channel` | [`Channel`]: a connection that speaks something else |
//! | `host` | what is under way to one origin, and what is idle |
//! | `names`, `tcp`, `tls`, `transport` | from a name to bytes |
//! | `decode` | content codings |
//! | `account`, `sockets` | what one caller, and all together, may have open |
//! | `interim` | [`Interims`]: answers before the answer |
//! | `job` | work that may be given up |
//! | `url`, `error`, `counters` | what their names say |
#![forbid(unsafe_code)]

mod account;
mod channel;
mod client;
mod connection;
mod counters;
mod decode;
mod error;
#[cfg(fuzzing)]
pub mod fuzzing;
mod host;
mod http2;
mod interim;
mod job;
mod names;
mod request;
mod response;
mod sockets;
mod tcp;
mod tls;
mod transport;
mod upload;
mod url;

pub use account::Account;
pub use channel::{Channel, Destination};
pub use client::{Client, Settings};
pub use counters::{Counters, Gauges};
pub use error::{Error, Kind};
pub use interim::{Interim, Interims};
pub use job::Job;
pub use request::{Request, RequestHeaders};
pub use response::Response;
pub use upload::{BodyLength, Upload};
pub use url::Url;

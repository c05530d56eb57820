//! The admin API: requests and replies of the admin socket, typed for both ends.
//!
//! The gateway serves it and the command line calls it, both through the types here, so that a
//! renamed field is a compile error at both ends. `docs/reference/admin-api.md` is generated from
//! [`ENDPOINTS`]. Invariant: an [`Endpoint`] has one method, one path and one reply type.
//!
//! ```
//! use outboard_admin_api::{Endpoint, cache};
//!
//! let purge = cache::Purge { url: Some("/news".to_owned()), ..cache::Purge::default() };
//! assert_eq!(purge.target(), "/cache/purge?url=%2Fnews");
//! let query = purge.query();
//! assert_eq!(cache::Purge::from_query(&query).unwrap().url.as_deref(), Some("/news"));
//! ```

#![forbid(unsafe_code)]

pub mod bans;
pub mod cache;
pub mod certificates;
pub mod config;
pub mod dashboard;
mod endpoint;
pub mod kv;
pub mod opcache;
pub mod processes;
mod query;
#[cfg(test)]
mod reference;
pub mod server;
pub mod snapshot;
pub mod status;
#[cfg(test)]
mod tests;
pub mod upstreams;

pub use endpoint::{Description, Endpoint, Failure, Method};

/// Every endpoint that replies with JSON, by module.
pub const ENDPOINTS: &[&[Description]] = &[
    status::ENDPOINTS,
    server::ENDPOINTS,
    opcache::ENDPOINTS,
    snapshot::ENDPOINTS,
    processes::ENDPOINTS,
    certificates::ENDPOINTS,
    cache::ENDPOINTS,
    bans::ENDPOINTS,
    upstreams::ENDPOINTS,
    kv::ENDPOINTS,
    config::ENDPOINTS,
    dashboard::ENDPOINTS,
];
